"""`cost`: what a month costs."""

from typing import TYPE_CHECKING, Annotated

import typer

from ops.screen import AsJson, WrittenStage, errors, plain, screen, tell

if TYPE_CHECKING:
    from ops.cost.answer import Cost

Mail = Annotated[int, typer.Option(min=0, help="Mails a month.")]
Sms = Annotated[int, typer.Option(min=0, help="Text messages a month.")]
Push = Annotated[int, typer.Option(min=0, help="Pushes a month.")]
Fax = Annotated[int, typer.Option(min=0, help="Faxes a month, of a minute each.")]
Webhook = Annotated[int, typer.Option(min=0, help="Webhooks a month; callbacks are others.")]
Requests = Annotated[int, typer.Option("--api", min=0, help="How many come by the HTTP API, one a request.")]
Bulk = Annotated[bool, typer.Option("--bulk", help="The mails are campaigns', by the lane bulk.")]
Callbacks = Annotated[bool, typer.Option("--callbacks", help="Each message has a callback_url.")]
Fixed = Annotated[
    bool, typer.Option("--fixed", help="Synthesize the stage and count its alarms, keys and so on.")
]


def cost(
    mail: Mail = 0,
    sms: Sms = 0,
    push: Push = 0,
    fax: Fax = 0,
    webhook: Webhook = 0,
    requests: Requests = 0,
    stage: WrittenStage = "dev",
    *,
    bulk: Bulk = False,
    callbacks: Callbacks = False,
    fixed: Fixed = False,
    as_json: AsJson = False,
) -> None:
    """Say what so many messages cost a month on AWS, by channel and by part, and what the stage itself does.

    Calls and writes are those that the bench counted, waits are those of the stage's settings in cdk.json,
    prices those of a dated list: nothing is asked of AWS. What providers take is in it where they have one
    price.

    Exit code 2: the stage has no such channel, or its settings are wrong.

    Example: mailroom cost --mail 1000000 --sms 20000 --stage prod
    """
    # Settings are pydantic's, which the other commands need not wait for.
    from ops.cost.screen import show
    from stacks.settings.sentences import SettingsError

    counts = {"mail": mail, "sms": sms, "push": push, "fax": fax, "webhook": webhook}
    try:
        said = _answer(stage, counts, requests, bulk=bulk, callbacks=callbacks, fixed=fixed)
    except SettingsError as error:
        errors.print(plain(str(error)), style="red", soft_wrap=True)
        raise typer.Exit(2) from None
    if as_json:
        tell(said)
    else:
        show(said, screen)


def _answer(
    stage: str, counts: dict[str, int], requests: int, *, bulk: bool, callbacks: bool, fixed: bool
) -> "Cost":
    from ops.cost import answer, synthesized
    from ops.cost.fixed import of_settings, of_templates
    from ops.plan.lanes import Stages

    settings = answer.settings_of(stage)
    wanted = [
        answer.Wanted(channel, messages, "bulk" if bulk and channel == "mail" else "normal")
        for channel, messages in counts.items()
        if messages
    ]
    if fixed:
        with errors.status("synthesizing the stage"):
            resources = of_templates(synthesized.templates(stage))
    else:
        resources = of_settings(settings)
    return answer.cost(Stages.of(), settings, wanted, resources, callbacks=callbacks, requests=requests)
