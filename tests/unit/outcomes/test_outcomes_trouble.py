"""Outcomes in trouble: one bad record stops no other, and what was not queued is told."""

import json
from typing import Any

import pytest

from tests.support.unit.consequences import FAX, Consequences, busy, change
from tests.support.unit.events import lines_about
from tests.support.unit.fakes import Meddler, client_error, failing
from tests.support.unit.post import Log
from tests.support.unit.shared import Aws, FakeClock

BAD: dict[str, dict[str, Any]] = {
    "a time that is none": {"updatedAt": "soon"},
    "no time": {"updatedAt": ...},
    "attempts that are none": {"attempts": "many"},
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
def test_a_record_that_cannot_be_followed_is_tried_again_and_stops_no_other(
    outcomes: Consequences, aws: Aws, log: Log, bad: dict[str, Any]
) -> None:
    records = [
        change(100, {**FAX, "id": "a"}, status="sent"),
        change(101, {**FAX, "id": "b"}, **{"status": "sent", **bad}),
        change(102, {**FAX, "id": "c"}, status="sent"),
    ]
    assert outcomes.handle(*records) == {"101"}
    assert [each["id"] for each in aws.bodies("webhook")] == ["a", "c"]
    (line,) = lines_about(log(), "no consequence drawn; it is tried again")
    assert (line["level"], line["sequence"]) == ("ERROR", "101")


def test_what_the_queue_did_not_take_is_told_by_its_sequence_number(
    fax_queues: Aws, clock: FakeClock
) -> None:
    def refusing(real: Any, **arguments: Any) -> Any:
        if any('"id":"b"' in each["MessageBody"] for each in arguments["Entries"]):
            raise client_error("ServiceUnavailable", status=503)
        return real(**arguments)

    outcomes = Consequences(fax_queues, clock, Meddler(fax_queues.sqs, send_message_batch=refusing))
    records = [change(100 + at, {**FAX, "id": id_}, status="sent") for at, id_ in enumerate("abc")]
    assert outcomes.handle(*records) == {"101"}
    assert sorted(each["id"] for each in fax_queues.bodies("webhook")) == ["a", "c"]


def test_a_retry_that_was_not_queued_is_tried_again_with_its_callback(
    fax_queues: Aws, clock: FakeClock
) -> None:
    down = client_error("ServiceUnavailable", status=503)

    def refusing(real: Any, **arguments: Any) -> Any:
        if "retry" in arguments["QueueUrl"]:
            return failing(down)(real, **arguments)
        return real(**arguments)

    outcomes = Consequences(fax_queues, clock, Meddler(fax_queues.sqs, send_message_batch=refusing))
    assert outcomes.handle(busy(7), change(8, {**FAX, "id": "b"}, status="sent")) == {"7"}
    again = Consequences(fax_queues, clock)
    assert again.handle(busy(7)) == set()
    ids = [each["webhook_id"] for each in fax_queues.bodies("webhook") if each["id"] == "f-1"]
    assert (len(ids), len(set(ids))) == (2, 1)  # at least once, under one id


@pytest.mark.parametrize("character", ["\ufffe", "\uffff"])
def test_a_character_that_sqs_does_not_take_reaches_the_queue_all_the_same(
    outcomes: Consequences, aws: Aws, character: str
) -> None:
    id_ = f"f{character}1"
    assert outcomes.handle(busy(1, id=id_)) == set()
    bodies = [each["Body"] for queue in ("webhook", "fax-retry") for each in aws.receive(queue)]
    sent = [each["MessageBody"] for each in (*outcomes.entries("webhook"), *outcomes.entries("fax-retry"))]
    assert bodies
    assert not any(character in each for each in (*bodies, *sent))
    assert [json.loads(each).get("id", json.loads(each).get("fax_id")) for each in sent] == [id_, id_]
