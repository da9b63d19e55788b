"""Sends messages of a stage again that are stuck: `messages resend --stuck`."""

import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from mailroom.errors import quantity
from mailroom_ops.repair.judge import SENTENCES
from mailroom_ops.repair.repairs import Candidates, Repaired, Repairs
from mailroom_ops.shared.deployed_stage import aws_session
from mailroom_ops.shared.screen import confirm, errors, print_answer, print_line, screen, status
from mailroom_ops.shared.stage_queues import DeployedStage
from mailroom_ops.shared.times import duration, seconds_of

Ask = Callable[[str], None]
"""Function that asks a question, and ends the command unless the answer is yes."""


def send_stuck(
    stage: str,
    *,
    older_than: str | None,
    include_forgotten: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> bool:
    """Search a stage for messages that are stuck, and put them back after a question, or only print their
    numbers in a dry run. Return whether some remain."""
    seconds = None if older_than is None else float(seconds_of(older_than))
    deployed = DeployedStage.of(aws_session(), stage)
    repairs = Repairs.of(deployed, older_than=seconds, confirmed=include_forgotten)
    candidates = _scan(repairs, stage, quiet=as_json)
    answer = _repair(repairs, candidates, partial(confirm, yes=yes), dry_run=dry_run, quiet=as_json)
    print_answer(answer, _show, as_json=as_json)
    return answer.incomplete


def _scan(repairs: Repairs, stage: str, *, quiet: bool) -> Candidates:
    """Scan both tables, wait until messages that are still missing count as lost, and return the
    candidates."""
    with status(f"reading the tables of {stage}", quiet=quiet) as say:
        candidates = repairs.scan(lambda seen: say(f"reading the tables of {stage}: {seen:,} read"))
    seconds = repairs.second_look_in(candidates)
    if seconds:
        if not quiet:
            words = "Some messages of the mailbox have no record yet; looking again in"
            errors.print(f"{words} {duration(seconds)}.", soft_wrap=True)
        with status("waiting", quiet=quiet):
            time.sleep(seconds)
    return candidates


def _repair(repairs: Repairs, candidates: Candidates, ask: Ask, *, dry_run: bool, quiet: bool) -> Repaired:
    with status("looking at the messages", quiet=quiet):
        answer = repairs.look(candidates, dry_run=dry_run)
    if not quiet:
        for sentence in _sentences(answer):
            print_line(sentence)
    if dry_run or not answer.ready:
        return answer
    ask(_question(answer))
    with status("putting back", quiet=quiet):
        return repairs.repair(candidates, answer)


def _question(answer: Repaired) -> str:
    question = f"Put {quantity(answer.ready, 'message')} of {answer.stage} back?"
    if not answer.may_go_twice:
        return question
    return (
        f"{question} The records of {answer.may_go_twice:,} of them may have expired. Confirm that they were "
        "never sent. A message that was sent would be sent again."
    )


def _sentences(answer: Repaired) -> Iterator[str]:
    for state, counts in answer.found.items():
        yield f"{sum(counts.values()):,} ({_by_channel(counts)}): {SENTENCES[state]}."


def _by_channel(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{channel} {count:,}".strip() for channel, count in counts.items())


def _show(answer: Repaired) -> None:
    looked = " and ".join(f"{count:,} of the {table}" for table, count in answer.looked_at.items())
    if answer.dry_run:
        done = f"{answer.ready:,} would be put back"
    else:
        done = f"{sum(answer.repaired.values()):,} put back"
    failed = f", {answer.failed:,} could not be" if answer.failed else ""
    screen.print(f"{looked} looked at; {done}{failed}.")
    if answer.failed:
        screen.print("To see why, read the logs of the functions dispatch and outcomes at this time.")
