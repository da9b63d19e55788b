"""The retry mover: a fax moves to the fax queue at its time, and not before."""

import json
from typing import Any

import pytest

from mailroom.channels.fax.retry_mover import RetryMover
from mailroom.clock import iso
from mailroom.ledger.change import LedgerChange
from mailroom.message.message import encode
from mailroom.outcomes import retry_of
from tests.support.unit.events import failures, sqs_event
from tests.support.unit.fakes import client_error, failing
from tests.support.unit.fax import LINE, OTHER_LINE, PDF, fax, fax_body, fax_item
from tests.support.unit.post import Counted, Visibilities
from tests.support.unit.shared import NOW, Aws, FakeClock, Item


class Mover:
    """The mover, and the visibilities that it sets in its queue."""

    def __init__(self, aws: Aws, clock: FakeClock, **changes: Any) -> None:
        self.sqs = Visibilities(aws.sqs, **changes)
        self._mover = RetryMover(
            self.sqs,  # type: ignore[arg-type]
            aws.urls["fax-retry"],
            aws.urls["fax.fifo"],
            clock,
        )

    def handle(self, *bodies: str | Item) -> list[str]:
        return failures(self._mover.handle(sqs_event(*bodies)))

    @property
    def waits(self) -> dict[str, int]:
        return self.sqs.waits


@pytest.fixture
def mover(aws: Aws, clock: FakeClock) -> Mover:
    return Mover(aws, clock)


def test_a_fax_retry_queued_by_the_outcomes_function_is_moved_to_the_fax_queue_only_when_due(
    mover: Mover, aws: Aws, clock: FakeClock, counted: Counted
) -> None:
    old = {"id": "f-1", "event_type": "fax", "status": "sending"}
    retrying = {"status": "retrying", "attempts": 1, "to": LINE, "pdf_url": PDF, "updatedAt": iso(NOW)}
    retry = retry_of(LedgerChange(old, {**old, **retrying}), 600)
    assert retry is not None
    clock.advance(599.5)
    assert mover.handle(encode(retry)) == ["r-0"]
    assert mover.waits == {"r-0": 1}
    assert aws.receive("fax.fifo") == []
    clock.advance(0.5)
    assert mover.handle(encode(retry)) == []
    (message,) = aws.receive("fax.fifo")
    assert json.loads(message["Body"]) == fax_item(attempt=2)
    assert message["Attributes"]["MessageGroupId"] == LINE
    assert message["Attributes"]["MessageDeduplicationId"] == fax(attempt=2).duplicate
    assert counted() == {"Moved": 1}


@pytest.mark.parametrize(
    ("ahead", "wait"), [(1, 1), (600, 600), (30_000, 30_000), (43_200, 42_300), (90_000, 42_300)]
)
def test_a_fax_that_is_not_due_waits_on_the_retry_queue_for_at_most_the_longest_delay_of_sqs(
    mover: Mover, aws: Aws, ahead: int, wait: int
) -> None:
    assert mover.handle(fax_body(not_before=int(NOW) + ahead)) == ["r-0"]
    assert mover.waits == {"r-0": wait}
    assert aws.receive("fax.fifo") == []


@pytest.mark.parametrize("changes", [{}, {"not_before": 0}, {"not_before": int(NOW)}, {"not_before": -1}])
def test_a_fax_that_is_due_or_lacks_a_due_time_is_moved_to_the_fax_queue_at_once(
    mover: Mover, aws: Aws, changes: dict[str, Any]
) -> None:
    assert mover.handle(fax_body(**changes)) == []
    (body,) = aws.bodies("fax.fifo")
    assert "not_before" not in body
    assert body["id"] == "f-1"


def test_a_fax_delayed_by_dispatch_is_moved_to_the_message_group_of_its_line(mover: Mover, aws: Aws) -> None:
    assert mover.handle(fax_item(to="+49 30 12345678", send_at=iso(NOW))) == []
    (message,) = aws.receive("fax.fifo")
    assert message["Attributes"]["MessageGroupId"] == OTHER_LINE
    assert json.loads(message["Body"]) == fax_item(to="+49 30 12345678", send_at=iso(NOW))


def test_a_fax_that_is_moved_twice_has_one_record_on_the_fax_queue(mover: Mover, aws: Aws) -> None:
    for _ in range(2):
        assert mover.handle(fax_body(attempt=2)) == []
    assert len(aws.receive("fax.fifo")) == 1


BAD: list[str | Item] = [
    "no",
    "[]",
    {},
    fax_body(fax_id=...),
    fax_body(to="wrong"),
    fax_body(pdf_url=...),
    fax_body(not_before="tomorrow"),
    fax_body(not_before=True),
    fax_body(not_before=None),
    fax_body(attempt=0),
    fax_item(event_type="mail"),
    json.dumps(fax_body(not_before=0)).replace('"not_before": 0', '"not_before": 1e999'),
    json.dumps(fax_body(not_before=0)).replace('"not_before": 0', '"not_before": 1' + "0" * 400),
]


@pytest.mark.parametrize("bad", BAD, ids=range(len(BAD)))
def test_an_invalid_body_goes_to_the_dead_letter_queue_at_once_and_valid_faxes_are_moved(
    mover: Mover, aws: Aws, counted: Counted, bad: str | Item
) -> None:
    assert mover.handle(fax_body(fax_id="a"), bad, fax_body(fax_id="c", to=OTHER_LINE)) == ["r-1"]
    assert mover.waits == {"r-1": 0}
    assert sorted(body["id"] for body in aws.bodies("fax.fifo")) == ["a", "c"]
    assert counted() == {"Malformed": 1, "Moved": 2}


def test_a_fax_that_the_fax_queue_refuses_stays_on_the_retry_queue(
    aws: Aws, clock: FakeClock, counted: Counted
) -> None:
    down = client_error("ServiceUnavailable", status=503)
    mover = Mover(aws, clock, send_message_batch=failing(down, down))
    bodies = [fax_body(fax_id="a"), fax_body(fax_id="b", not_before=int(NOW) + 60), fax_body(fax_id="c")]
    assert mover.handle(*bodies) == ["r-0", "r-1"]
    assert mover.waits == {"r-1": 60}
    assert [body["id"] for body in aws.bodies("fax.fifo")] == ["c"]
    assert counted() == {"Moved": 1}
