"""The retry mover: what waited comes into the fax queue once its time has come, and not before."""

import json
from typing import Any

import pytest

from mailroom.channels.fax.retry_mover import RetryMover
from mailroom.clock import iso
from mailroom.ledger.change import LedgerChange
from mailroom.message.message import encode
from mailroom.outcomes import retry_of
from tests.support.unit.events import failures, sqs_event
from tests.support.unit.fakes import Meddler, client_error, failing
from tests.support.unit.fax import LINE, OTHER_LINE, PDF, fax, fax_body, fax_item
from tests.support.unit.post import Counted
from tests.support.unit.shared import NOW, Aws, FakeClock, Item


class Mover:
    """The mover, and the visibilities that it asked of its queue."""

    def __init__(self, aws: Aws, clock: FakeClock, **changes: Any) -> None:
        still: dict[str, Any] = {"change_message_visibility_batch": lambda _real, **_arguments: {}}
        self.sqs = Meddler(aws.sqs, **still, **changes)
        self._mover = RetryMover(
            self.sqs,  # type: ignore[arg-type]
            aws.urls["fax-retry"],
            aws.urls["fax.fifo"],
            clock,
        )

    def handle(self, *bodies: str | Item) -> list[str]:
        return failures(self._mover.handle(sqs_event(*bodies)))

    def waits(self) -> dict[str, int]:
        return {
            each["ReceiptHandle"].replace("receipt", "r"): each["VisibilityTimeout"]
            for name, call in self.sqs.calls
            if name == "change_message_visibility_batch"
            for each in call["Entries"]
        }


@pytest.fixture
def mover(fax_queues: Aws, clock: FakeClock) -> Mover:
    return Mover(fax_queues, clock)


def retry(attempts: int = 1, at: float = NOW) -> str:
    """What outcomes put on the queue."""
    old = {"id": "f-1", "event_type": "fax", "status": "sending"}
    new = {
        **old,
        "status": "retrying",
        "attempts": attempts,
        "to": LINE,
        "pdf_url": PDF,
        "updatedAt": iso(at),
    }
    body = retry_of(LedgerChange(old, new), 600)
    assert body is not None
    return encode(body)


def test_the_next_attempt_that_outcomes_wrote_is_moved_when_its_time_has_come(
    mover: Mover, aws: Aws, clock: FakeClock, counted: Counted
) -> None:
    clock.advance(600)
    assert mover.handle(retry()) == []
    (moved,) = aws.receive("fax.fifo")
    assert json.loads(moved["Body"]) == fax_item(attempt=2)
    assert moved["Attributes"]["MessageGroupId"] == LINE
    assert moved["Attributes"]["MessageDeduplicationId"] == fax(attempt=2).duplicate
    assert counted() == {"Moved": 1}


def test_the_next_attempt_that_outcomes_wrote_waits_until_then(
    mover: Mover, aws: Aws, clock: FakeClock
) -> None:
    clock.advance(599.5)
    assert mover.handle(retry()) == ["r-0"]
    assert mover.waits() == {"r-0": 1}
    assert aws.receive("fax.fifo") == []


@pytest.mark.parametrize(
    ("ahead", "wait"), [(1, 1), (600, 600), (30_000, 30_000), (43_200, 42_300), (90_000, 42_300)]
)
def test_what_is_not_due_comes_back_when_it_is_or_as_late_as_a_queue_can(
    mover: Mover, aws: Aws, ahead: int, wait: int
) -> None:
    assert mover.handle(fax_body(not_before=int(NOW) + ahead)) == ["r-0"]
    assert mover.waits() == {"r-0": wait}
    assert aws.receive("fax.fifo") == []


@pytest.mark.parametrize("changes", [{}, {"not_before": 0}, {"not_before": int(NOW)}, {"not_before": -1}])
def test_what_is_due_or_names_no_time_is_moved_at_once(
    mover: Mover, aws: Aws, changes: dict[str, Any]
) -> None:
    assert mover.handle(fax_body(**changes)) == []
    (body,) = aws.bodies("fax.fifo")
    assert "not_before" not in body
    assert body["id"] == "f-1"


def test_a_fax_that_dispatch_delayed_is_moved_under_its_line(mover: Mover, aws: Aws) -> None:
    assert mover.handle(fax_item(to="+49 30 12345678", send_at=iso(NOW))) == []
    (moved,) = aws.receive("fax.fifo")
    assert moved["Attributes"]["MessageGroupId"] == OTHER_LINE
    assert json.loads(moved["Body"]) == fax_item(to="+49 30 12345678", send_at=iso(NOW))


def test_moving_one_twice_leaves_one(mover: Mover, aws: Aws) -> None:
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
def test_what_is_no_fax_comes_back_and_holds_up_no_other(
    mover: Mover, aws: Aws, counted: Counted, bad: str | Item
) -> None:
    assert mover.handle(fax_body(fax_id="a"), bad, fax_body(fax_id="c", to=OTHER_LINE)) == ["r-1"]
    assert sorted(each["id"] for each in aws.bodies("fax.fifo")) == ["a", "c"]
    assert counted()["Moved"] == 2


@pytest.mark.parametrize("bad", ["no", fax_body(fax_id=...), fax_body(to="wrong")])
def test_what_is_no_fax_comes_back_without_a_wait_on_its_way_to_the_dead_letters(
    mover: Mover, counted: Counted, bad: str | Item
) -> None:
    mover.handle(bad)
    assert mover.waits() == {"r-0": 0}
    assert counted() == {"Malformed": 1, "Moved": 0}


def test_what_the_fax_queue_does_not_take_comes_back(
    fax_queues: Aws, clock: FakeClock, counted: Counted
) -> None:
    down = client_error("ServiceUnavailable", status=503)
    mover = Mover(fax_queues, clock, send_message_batch=failing(down, down))
    bodies = [fax_body(fax_id="a"), fax_body(fax_id="b", not_before=int(NOW) + 60), fax_body(fax_id="c")]
    assert mover.handle(*bodies) == ["r-0", "r-1"]
    assert mover.waits() == {"r-1": 60}
    assert [each["id"] for each in fax_queues.bodies("fax.fifo")] == ["c"]
    assert counted() == {"Moved": 1}
