"""`plan`: how long many messages take, what bounds it, and what they cost."""

from typing import Annotated

import typer

from ops.plan.assumed import BETWEEN, LATENCIES_IN_WORDS, latency_of
from ops.screen import AsJson, WrittenStage, errors, plain, screen, tell

Channel = Annotated[str, typer.Option(help="The channel: mail, sms, push, fax or webhook.")]
Messages = Annotated[int, typer.Option(min=1, help="How many messages.")]
LaneName = Annotated[str, typer.Option(help="The lane; campaigns use bulk.")]
Latency = Annotated[
    float | None,
    typer.Option(
        min=0.001,
        help="Seconds of a message in its sender: the provider's answer and the ledger's writes.",
        show_default=LATENCIES_IN_WORDS,
    ),
]
Between = Annotated[float, typer.Option(min=0, help="Seconds from one invocation of a function to its next.")]


def plan(
    channel: Channel,
    messages: Messages,
    lane: LaneName = "normal",
    stage: WrittenStage = "dev",
    latency: Latency = None,
    between: Between = BETWEEN,
    *,
    as_json: AsJson = False,
) -> None:
    """Say how long so many messages take with a stage's settings, what bounds it, and what they cost.

    The settings are those of cdk.json: nothing is asked of AWS. It is an estimate: latencies vary.

    Exit code 1: so many would wait for longer than their queue keeps them.

    Example: mailroom plan --channel mail --messages 100000 --lane bulk --stage prod
    """
    # Settings are pydantic's, which the other commands need not wait for.
    from ops.plan.answer import answer
    from ops.plan.lanes import Stages
    from ops.plan.model import Assumed
    from ops.plan.screen import show
    from stacks.settings.sentences import SettingsError

    stages = Stages.of()
    try:
        found = stages.lane(stage, channel, lane)
        assumed = Assumed(latency_of(channel) if latency is None else latency, between)
        said = answer(stages, stage, found, assumed, messages)
    except SettingsError as error:
        errors.print(plain(str(error)), style="red", soft_wrap=True)
        raise typer.Exit(2) from None
    if as_json:
        tell(said.told())
    else:
        show(said, screen)
    raise typer.Exit(1 if said.warning else 0)
