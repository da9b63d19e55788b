"""The command `activity`: lists who has changed something in a stage, when and why."""

import time
from itertools import islice

from msgspec import Struct
from rich.text import Text

from mailroom.search.finder import PAGE
from mailroom_ops.messages import filter_options, filters
from mailroom_ops.shared.deeds import LIST, Deed, Deeds
from mailroom_ops.shared.deployed_stage import aws_session
from mailroom_ops.shared.options import AsJson, Stage
from mailroom_ops.shared.screen import aws_faults, fold, print_answer, screen, stacked, table_of, whole
from mailroom_ops.shared.times import short


class ActivityAnswer(Struct, frozen=True):
    """Output of `activity`, the newest first. `more` is whether --limit has left out deeds."""

    stage: str
    deeds: list[Deed]
    more: bool


def deeds(
    stage: Stage = "dev",
    *,
    since: filter_options.Since = "7d",
    until: filter_options.Until = "",
    limit: filter_options.Limit = None,
    as_json: AsJson = False,
) -> None:
    """List who has changed something, when, and why.

    The list has what was done by a command or in the console, the newest first. A deed is recorded before it
    is done, so one that failed is listed too.

    Example: mailroom activity --since 24h --stage prod
    """
    limit = limit or PAGE
    with aws_faults(stage):
        span = filters.bounds(since, until, time.time())
        first_s = int(span.get("since", 0)) / 1000
        newest = Deeds(aws_session(), stage).of(LIST, span.get("until", "~"), since=first_s)
        listed = [*islice(newest, limit + 1)]
    print_answer(ActivityAnswer(stage, listed[:limit], len(listed) > limit), _print, as_json=as_json)


def _print(answer: ActivityAnswer) -> None:
    columns = (whole("when (UTC)"), fold("what, by whom and why", ratio=1))
    screen.print(table_of(*columns, rows=map(_cells, answer.deeds)))
    if answer.more:
        screen.print(f"More: --limit {10 * len(answer.deeds)}")


def _cells(deed: Deed) -> tuple[str | Text, ...]:
    done = f"{deed.verb}: {deed.thing.replace('#', ' ')}"
    return short(deed.at).removesuffix(" UTC"), stacked(done, deed.words)
