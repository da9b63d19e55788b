"""The command `deeds`: lists who has changed something in a stage, when and why."""

import time
from typing import Annotated

import typer

from mailroom_ops.shared.deeds import LIST, Deed, Deeds
from mailroom_ops.shared.deployed_stage import aws_session
from mailroom_ops.shared.options import AsJson, Stage
from mailroom_ops.shared.screen import aws_faults, fold, print_answer, screen, table_of, whole
from mailroom_ops.shared.times import seconds_of, short


def deeds(
    stage: Stage = "dev",
    *,
    since: Annotated[str, typer.Option(help="The span of time to list: 90m, 24h, 7d, 2w.")] = "7d",
    as_json: AsJson = False,
) -> None:
    """List who has changed something by a command or in the console, when, and why, the newest first.

    A deed is recorded before it is done, so one that failed is listed too.

    Example: mailroom deeds --since 24h --stage prod
    """
    with aws_faults(stage):
        listed = [*Deeds(aws_session(), stage).of(LIST, since=time.time() - seconds_of(since))]
    print_answer(listed, _print, as_json=as_json)


def _print(listed: list[Deed]) -> None:
    rows = ((short(deed.at), f"{deed.verb}: {deed.thing.replace('#', ' ')}", deed.words) for deed in listed)
    screen.print(table_of(whole("when"), fold("what"), fold("who and why", ratio=1), rows=rows))
