"""`messages resend --stuck`: what the ledger may have forgotten, or never known, is not taken for lost."""

import time
from datetime import UTC, datetime
from typing import Any

import pytest

from mailroom_ops.repair.judge import DAY, Memory
from tests.support.ops.repair import LEDGER, MAILBOX, RepairStage, repair_stage, run, scanned
from tests.support.pipeline.items import mail_item

STAGE = repair_stage
NOW = 1_800_000_000.0
HOUR = 3600.0


def table_made_at(since: float, *, restored: bool = False) -> Any:
    """Return DynamoDB's description of a table that was created at this time."""
    summary = {"RestoreSummary": {"RestoreInProgress": False}} if restored else {}
    return {"CreationDateTime": datetime.fromtimestamp(since, UTC), **summary}


def complete(mailbox: Any, ledger: Any) -> bool:
    """Return whether a ledger of this age still has every message."""
    return Memory.of(mailbox, ledger, NOW, confirmed=False).complete


def test_a_ledger_counts_as_complete_if_it_is_not_much_younger_than_the_mailbox() -> None:
    since = NOW - 10 * DAY
    assert complete(table_made_at(since), table_made_at(since))
    assert complete(table_made_at(since), table_made_at(since + HOUR))
    assert complete(table_made_at(since), table_made_at(since - 5 * DAY))


def test_a_ledger_counts_as_incomplete_if_it_is_over_an_hour_younger_than_the_mailbox() -> None:
    since = NOW - 10 * DAY
    assert not complete(table_made_at(since - HOUR - 1), table_made_at(since))


@pytest.mark.parametrize(("days", "known"), [(88.9, True), (89.1, False), (180, False)])
def test_a_ledger_counts_as_incomplete_if_it_is_older_than_the_least_retention_of_its_items(
    days: float, *, known: bool
) -> None:
    since = NOW - days * DAY
    assert complete(table_made_at(since), table_made_at(since)) == known


@pytest.mark.parametrize("which", ["mailbox", "ledger"])
def test_a_ledger_counts_as_incomplete_if_it_or_the_mailbox_was_restored_from_a_backup(which: str) -> None:
    both = {each: table_made_at(NOW - DAY, restored=each == which) for each in ("mailbox", "ledger")}
    assert not complete(both["mailbox"], both["ledger"])


def test_a_message_without_a_record_is_not_requeued_if_the_ledger_is_younger_than_the_mailbox(
    stage: RepairStage,
) -> None:
    stage.put(mail_item("sent long ago"))
    stage.made(MAILBOX, time.time() - 30 * DAY)
    stage.made(LEDGER, time.time() - HOUR)
    code, answer = scanned("--yes")
    assert not stage.functions.invoked
    assert (code, answer["found"], answer["repaired"]) == (1, {"forgotten": {"mail": 1}}, {})


def test_a_repair_requeues_forgotten_messages_after_a_confirmation_that_they_were_never_sent(
    stage: RepairStage,
) -> None:
    stage.put(mail_item("a"))
    stage.made(MAILBOX, time.time() - 30 * DAY)
    asked = run("resend", "--stuck", "--older-than", "0s", "--include-forgotten", typed="n\n")
    assert "The records of 1 of them may have expired. Confirm that they were never sent" in asked.stderr
    assert not stage.functions.invoked
    code, answer = scanned("--include-forgotten", "--yes")
    assert (code, answer["may_go_twice"], answer["repaired"]) == (0, 1, {"mail": 1})
