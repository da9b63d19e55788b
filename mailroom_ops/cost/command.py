"""`cost`: what a month costs."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Column, Table

from mailroom_ops.estimates.prices import SES_PLANS
from mailroom_ops.options import AsJson, WrittenStage
from mailroom_ops.screen import errors, plain, print_answer, print_line, right, screen, table_of

if TYPE_CHECKING:
    from mailroom_ops.cost.answer import ChannelCost, Cost


def cost(
    mail: Annotated[int, typer.Option(min=0, help="Mails a month.")] = 0,
    sms: Annotated[int, typer.Option(min=0, help="Text messages a month.")] = 0,
    push: Annotated[int, typer.Option(min=0, help="Pushes a month.")] = 0,
    fax: Annotated[int, typer.Option(min=0, help="Faxes a month, each of one minute.")] = 0,
    webhook: Annotated[int, typer.Option(min=0, help="Webhooks a month, without callbacks.")] = 0,
    requests: Annotated[
        int, typer.Option("--api", min=0, help="Requests to the HTTP API a month, each with one message.")
    ] = 0,
    other: Annotated[
        list[str] | None,
        typer.Option(
            "--messages", help="Messages a month of another channel, as chat=10000. You may repeat it."
        ),
    ] = None,
    stage: WrittenStage = "dev",
    *,
    bulk: Annotated[bool, typer.Option("--bulk", help="Count the mails as campaigns': lane bulk.")] = False,
    callbacks: Annotated[
        bool, typer.Option("--callbacks", help="Count a callback for each message.")
    ] = False,
    ses_plan: Annotated[
        str, typer.Option(help=f"The account's plan at SES: {' or '.join(SES_PLANS)}. doctor says which.")
    ] = "none",
    as_json: AsJson = False,
) -> None:
    """Print what a number of messages costs a month on AWS, by channel and part, and what the stage costs.

    The command asks AWS nothing. The stage's settings in cdk.json say the waits; what a message needs of each
    service, and the prices, are from a dated list. A provider's price is included if it is the same
    everywhere.

    Exits 2 if the stage has no such channel, or its settings are wrong.

    Example: mailroom cost --mail 1000000 --sms 20000 --stage prod
    """
    # Settings are pydantic's, which the other commands need not wait for.
    from mailroom_ops.cost import answer
    from mailroom_ops.cost.fixed import of_settings
    from mailroom_ops.estimates.lanes import Stages
    from mailroom_stacks.settings.sentences import SettingsError

    if (ses_mail := SES_PLANS.get(ses_plan.lower())) is None:
        raise typer.BadParameter(
            f"--ses-plan: the price of {ses_plan!r:.30} is not known here; use {' or '.join(SES_PLANS)}, and "
            "see https://aws.amazon.com/ses/pricing/."
        )
    counts = {"mail": mail, "sms": sms, "push": push, "fax": fax, "webhook": webhook, **_counts(other or ())}
    wanted = [
        answer.WantedMessages(channel, messages, "bulk" if bulk and channel == "mail" else "normal")
        for channel, messages in counts.items()
        if messages
    ]
    stages = Stages.of()
    try:
        resources = of_settings(stages.settings(stage))
        found = answer.cost(
            stages, stage, wanted, resources, callbacks=callbacks, requests=requests, ses_mail=ses_mail
        )
    except SettingsError as error:
        print_line(str(error), "red", errors)
        raise typer.Exit(2) from None
    print_answer(found, _show, as_json=as_json)


def _counts(texts: Sequence[str]) -> dict[str, int]:
    counts = {}
    for each in texts:
        channel, _, count = each.partition("=")
        if not (channel and count.isdecimal()):
            raise typer.BadParameter(
                f"--messages: {each!r:.60} is not a channel and a count; use chat=10000."
            )
        counts[channel] = int(count)
    return counts


def _show(cost: "Cost") -> None:
    for each in cost.channels:
        screen.print(_channel(each))
        if each.not_included:
            note = f"The provider's price for {each.channel} is not included: {each.not_included}."
            print_line(note)
    screen.print(_fixed(cost))
    per_1000 = f", {small(cost.dollars_per_1000)} a thousand messages" if cost.dollars_per_1000 else ""
    screen.print(plain(f"Together: {money(cost.dollars)} US dollars a month{per_1000}."), style="bold")
    for sentence in _sentences(cost):
        print_line(sentence)


def money(dollars: float) -> str:
    """Dollars with two decimals; from 10,000 on whole ones."""
    if dollars >= 10_000:
        return f"{dollars:,.0f}"
    return f"{dollars:,.2f}" if dollars >= 0.005 else "< 0.01"


def small(dollars: float) -> str:
    """What a thousand messages cost: often less than a cent."""
    if dollars >= 1:
        return f"{dollars:,.2f}"
    return f"{dollars:.4f}" if dollars >= 0.00005 else "< 0.0001"


def _channel(channel: "ChannelCost") -> Table:
    lane = f", lane {channel.lane}" if channel.lane != "normal" else ""
    what = "requests of the HTTP API" if channel.channel == "api" else f"messages by {channel.channel}{lane}"
    table = table_of(
        Column("part", "together"),
        right("a thousand", small(channel.dollars_per_1000)),
        right("a month", money(channel.dollars)),
        show_footer=True,
        title_justify="left",
        title=f"{channel.messages:,} {what}",
    )
    for name, price in channel.parts.items():
        table.add_row(name, small(price / channel.messages * 1000), money(price))
    return table


def _fixed(cost: "Cost") -> Table:
    resources = cost.fixed.resources
    counts = {
        "alarms": resources.alarm_metrics,
        "dashboard": resources.dashboards,
        "metrics of mappings": resources.mapping_metrics,
        "polling of queues": resources.queues,
        "rounds of release": resources.rounds,
        "keys": resources.keys,
        "rotation of keys": resources.rotated_keys,
        "secrets": resources.secrets,
    }
    table = table_of(
        Column("part", "together"),
        right("how many"),
        right("a month", money(cost.fixed.dollars)),
        show_footer=True,
        title_justify="left",
        title=f"The stage {cost.stage} itself",
    )
    for name, price in cost.fixed.parts.items():
        count = counts.get(name)
        table.add_row(name, "" if count is None else f"{count}", money(price))
    return table


def _sentences(cost: "Cost") -> Iterator[str]:
    yield f"Prices: {cost.priced}."
    yield "The stage's alarms, keys and secrets follow from its settings."
    if cost.alone >= 0.005:
        yield f"Messages that come one by one, and not in full batches, cost {money(cost.alone)} more."
    for sentence in cost.assumptions:
        yield f"Assumed: {sentence}"
