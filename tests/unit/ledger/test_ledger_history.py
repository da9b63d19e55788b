"""The bounded history: an outcome is written even if the history is full."""

import pytest

from mailroom.errors import ClaimLost
from mailroom.ledger.claims import Claimed
from mailroom.ledger.items import MAX_HISTORY
from mailroom.ledger.ledger import Ledger
from tests.support.unit.shared import LEASE, LEDGER, NOW_MS, Aws, FakeClock, claimed, image
from tests.support.unit.verbs import OWN_VERBS


def _long_history(aws: Aws, ledger: Ledger, count: int = MAX_HISTORY) -> Claimed:
    """Claim a message whose history has `count` entries; by default it is full."""
    claim = claimed(ledger)
    entries = [{"at": at, "status": "retrying"} for at in range(count)]
    aws.dynamodb.update_item(
        TableName=LEDGER,
        Key=image(id="m-1", event_type="mail"),
        UpdateExpression="SET history = :entries",
        ExpressionAttributeValues=image(**{":entries": entries}),
    )
    return claim


@pytest.mark.parametrize(
    ("verb", "status"), [("complete", "sent"), ("fail", "failed"), ("retry_later", "retrying")]
)
def test_an_outcome_is_written_even_if_the_history_is_full(
    ledger: Ledger, aws: Aws, verb: str, status: str
) -> None:
    OWN_VERBS[verb](ledger, _long_history(aws, ledger))
    assert (aws.item()["status"], aws.item()["attempts"]) == (status, 1)
    assert len(aws.item()["history"]) == MAX_HISTORY


def test_a_worker_that_lost_its_claim_cannot_write_even_if_the_history_is_full(
    ledger: Ledger, aws: Aws, clock: FakeClock
) -> None:
    lost = _long_history(aws, ledger)
    clock.advance(LEASE)
    claimed(ledger)
    with pytest.raises(ClaimLost):
        ledger.complete(lost, "ses", "p-1")
    assert aws.item()["status"] == "sending"


def test_the_last_entry_that_fits_into_the_history_is_written(ledger: Ledger, aws: Aws) -> None:
    ledger.complete(_long_history(aws, ledger, MAX_HISTORY - 1), "ses", "p-1")
    assert aws.item()["history"][-1] == {"at": NOW_MS, "status": "sent"}
    assert len(aws.item()["history"]) == MAX_HISTORY
