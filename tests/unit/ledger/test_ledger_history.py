"""The bounded history, which never costs the fact itself."""

import pytest

from mailroom.errors import ClaimLost
from mailroom.ledger.claims import Claimed
from mailroom.ledger.items import MAX_HISTORY
from mailroom.ledger.ledger import Ledger
from tests.support.unit.shared import (
    LEASE,
    LEDGER,
    NOW_MS,
    Aws,
    FakeClock,
    claimed,
    image,
)
from tests.support.unit.verbs import OWN_VERBS


def _worn(aws: Aws, ledger: Ledger, count: int = MAX_HISTORY) -> Claimed:
    """A claim of an item whose history has so many lines: it is full, unless a test wants fewer."""
    claim = claimed(ledger)
    lines = [{"at": at, "status": "retrying"} for at in range(count)]
    aws.dynamodb.update_item(
        TableName=LEDGER,
        Key=image(id="m-1", event_type="mail"),
        UpdateExpression="SET history = :lines",
        ExpressionAttributeValues=image(**{":lines": lines}),
    )
    return claim


@pytest.mark.parametrize(
    ("verb", "status"), [("complete", "sent"), ("fail", "failed"), ("retry_later", "retrying")]
)
def test_a_full_history_never_costs_the_fact(ledger: Ledger, aws: Aws, verb: str, status: str) -> None:
    OWN_VERBS[verb](ledger, _worn(aws, ledger))
    assert (aws.item()["status"], aws.item()["attempts"]) == (status, 1)
    assert len(aws.item()["history"]) == MAX_HISTORY


def test_a_full_history_does_not_let_in_who_lost_the_claim(
    ledger: Ledger, aws: Aws, clock: FakeClock
) -> None:
    lost = _worn(aws, ledger)
    clock.advance(LEASE)
    claimed(ledger)
    with pytest.raises(ClaimLost):
        ledger.complete(lost, "ses", "p-1")
    assert aws.item()["status"] == "sending"


def test_the_last_line_that_fits_is_still_written(ledger: Ledger, aws: Aws) -> None:
    ledger.complete(_worn(aws, ledger, MAX_HISTORY - 1), "ses", "p-1")
    assert aws.item()["history"][-1] == {"at": NOW_MS, "status": "sent"}
    assert len(aws.item()["history"]) == MAX_HISTORY
