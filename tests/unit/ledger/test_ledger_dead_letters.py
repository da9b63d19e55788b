"""The mark of a message in a dead-letter queue, and the trouble that kept it from being sent."""

import pytest

from mailroom.ledger.items import DEAD_LETTER, FAILURE_KEYS
from mailroom.ledger.ledger import Ledger
from tests.support.tables import failure
from tests.support.unit.shared import KEY, NOW_MS, Aws, FakeClock, claimed, crash, mail
from tests.support.unit.verbs import OWN_VERBS

ENDING = ("complete", "fail")


def test_marking_a_message_as_a_dead_letter_changes_only_its_mark_index_keys_update_time_and_ttl(
    ledger: Ledger, aws: Aws, clock: FakeClock
) -> None:
    claimed(ledger)
    before = aws.item()
    clock.advance(5)
    ledger.dead_lettered(KEY)
    stored = aws.item()
    changed = {name for name in stored if stored[name] != before.get(name)}
    assert changed == {"dead_lettered_at", *FAILURE_KEYS, "updatedAt", "ttl"}
    assert stored["dead_lettered_at"] == NOW_MS + 5000
    assert stored.items() >= failure(KEY, DEAD_LETTER, NOW_MS + 5000).items()


@pytest.mark.parametrize("verb", ["claim", *ENDING])
def test_a_dead_letter_leaves_the_index_if_it_is_claimed_or_gets_an_outcome(
    ledger: Ledger, aws: Aws, verb: str
) -> None:
    claim = claimed(ledger)
    if verb == "claim":
        ledger.release(claim, "retry", "busy")
    ledger.dead_lettered(KEY)
    if verb == "claim":
        claimed(ledger)
    else:
        OWN_VERBS[verb](ledger, claim)
    stored = aws.item()
    assert "dead_lettered_at" not in stored
    assert stored.get("failed_as", "none").partition("#")[0] in ("none", stored["status"])


def test_marking_a_dead_letter_again_keeps_the_time_of_the_first_mark(
    ledger: Ledger, aws: Aws, clock: FakeClock
) -> None:
    claimed(ledger)
    ledger.dead_lettered(KEY)
    marked = aws.item()
    clock.advance(3600)
    ledger.dead_lettered(KEY)
    assert aws.item() == marked


@pytest.mark.parametrize("verb", ENDING)
def test_a_sent_or_failed_message_is_not_marked_as_a_dead_letter(ledger: Ledger, aws: Aws, verb: str) -> None:
    OWN_VERBS[verb](ledger, claimed(ledger))
    done = aws.item()
    ledger.dead_lettered(KEY)
    assert aws.item() == done


def test_a_dead_letter_mark_for_a_message_without_a_ledger_item_does_not_create_a_ledger_item(
    ledger: Ledger, aws: Aws
) -> None:
    ledger.dead_lettered(KEY)
    assert aws.item() == {}


def test_a_recorded_trouble_stays_after_a_later_claim_and_a_release_without_a_trouble(
    ledger: Ledger, aws: Aws
) -> None:
    """A fax that waits for its turn in an outage would lose the cause for its dead letter."""
    ledger.release(claimed(ledger), "misconfigured", "AccountSuspendedException: no")
    ledger.release(claimed(ledger))
    assert aws.item()["trouble"] == {"code": "misconfigured", "message": "AccountSuspendedException: no"}


@pytest.mark.parametrize("end", ["retry_later", "release", "hand_back"])
def test_a_claim_that_has_ended_can_be_neither_released_nor_marked_with_an_unknown_outcome(
    ledger: Ledger, aws: Aws, clock: FakeClock, end: str
) -> None:
    """The response to the end was lost, so the worker releases the message as after any error."""
    crash(ledger, clock)
    claim = claimed(ledger)
    ledger.checkpoint(claim, "telnyx", "p-1")
    OWN_VERBS[end](ledger, claim)
    before = aws.item()
    ledger.release(claim, "unprepared", "ReadTimeoutError")
    ledger.doubt(claim, "ReadTimeoutError")
    assert aws.item() == before


def test_recording_the_error_of_an_unknown_outcome_changes_only_the_trouble_of_the_ledger_item(
    ledger: Ledger, aws: Aws
) -> None:
    claim = claimed(ledger)
    before = aws.item()
    ledger.doubt(claim, "SES: ReadTimeoutError")
    assert aws.item() == before | {"trouble": {"code": "no_outcome", "message": "SES: ReadTimeoutError"}}


@pytest.mark.parametrize("verb", ENDING)
def test_an_outcome_removes_the_dead_letter_mark_and_the_recorded_trouble(
    ledger: Ledger, aws: Aws, verb: str
) -> None:
    claim = claimed(ledger)
    ledger.doubt(claim, "SES: ReadTimeoutError")
    ledger.dead_lettered(KEY)
    OWN_VERBS[verb](ledger, claim)
    assert not {"trouble", "dead_lettered_at"} & aws.item().keys()


def test_details_from_the_provider_are_stored_in_the_ledger_when_a_message_is_completed(
    ledger: Ledger, aws: Aws
) -> None:
    ledger.complete(claimed(ledger, mail()), "twilio", "SM1", {"segments": 2, "encoding": "UCS-2"})
    stored = aws.item()
    assert (stored["segments"], stored["encoding"]) == (2, "UCS-2")
