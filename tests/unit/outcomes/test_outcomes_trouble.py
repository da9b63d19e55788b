"""Outcomes in trouble: an invalid record delays no other, and a record that was not queued comes again."""

import json
from typing import Any

import pytest

from tests.support.unit.consequences import FAX, Consequences, busy, ledger_record
from tests.support.unit.events import lines_about
from tests.support.unit.fakes import Meddler, client_error, failing
from tests.support.unit.post import Log
from tests.support.unit.shared import Aws, FakeClock

BAD: dict[str, dict[str, Any]] = {
    "an invalid time": {"updatedAt": "soon"},
    "no time": {"updatedAt": ...},
    "invalid attempts": {"attempts": "many"},
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
def test_an_invalid_stream_record_is_retried_and_the_other_records_are_handled(
    consequences: Consequences, aws: Aws, log: Log, bad: dict[str, Any]
) -> None:
    records = [
        ledger_record(100, {**FAX, "id": "a"}, status="sent"),
        ledger_record(101, {**FAX, "id": "b"}, **{"status": "sent", **bad}),
        ledger_record(102, {**FAX, "id": "c"}, status="sent"),
    ]
    assert consequences.handle(*records) == {"101"}
    assert [body["id"] for body in aws.bodies("webhook")] == ["a", "c"]
    (line,) = lines_about(log(), "a ledger change was not handled; it is tried again")
    assert (line["level"], line["sequence"]) == ("ERROR", "101")


def test_a_stream_record_whose_callback_could_not_be_queued_is_reported_as_failed(
    aws: Aws, clock: FakeClock
) -> None:
    def refusing(real: Any, **arguments: Any) -> Any:
        if any('"id":"b"' in entry["MessageBody"] for entry in arguments["Entries"]):
            raise client_error("ServiceUnavailable", status=503)
        return real(**arguments)

    outcomes = Consequences(aws, clock, Meddler(aws.sqs, send_message_batch=refusing))
    records = [
        ledger_record(number, {**FAX, "id": id_}, status="sent") for number, id_ in enumerate("abc", 100)
    ]
    assert outcomes.handle(*records) == {"101"}
    assert sorted(body["id"] for body in aws.bodies("webhook")) == ["a", "c"]


def test_if_a_retry_could_not_be_queued_its_stream_record_is_handled_again_and_repeats_the_callback(
    aws: Aws, clock: FakeClock
) -> None:
    down = client_error("ServiceUnavailable", status=503)

    def refusing(real: Any, **arguments: Any) -> Any:
        if "retry" in arguments["QueueUrl"]:
            return failing(down)(real, **arguments)
        return real(**arguments)

    outcomes = Consequences(aws, clock, Meddler(aws.sqs, send_message_batch=refusing))
    assert outcomes.handle(busy(7), ledger_record(8, {**FAX, "id": "b"}, status="sent")) == {"7"}
    assert Consequences(aws, clock).handle(busy(7)) == set()
    ids = [body["webhook_id"] for body in aws.bodies("webhook") if body["id"] == "f-1"]
    assert (len(ids), len(set(ids))) == (2, 1)  # at least once, under one id


@pytest.mark.parametrize("character", ["\ufffe", "\uffff"])
def test_a_character_that_sqs_does_not_accept_is_escaped_in_queued_callbacks_and_retries(
    consequences: Consequences, aws: Aws, character: str
) -> None:
    id_ = f"f{character}1"
    assert consequences.handle(busy(1, id=id_)) == set()
    callback, retry = (consequences.entries(queue)[0]["MessageBody"] for queue in ("webhook", "fax-retry"))
    assert [record["Body"] for record in aws.receive("webhook")] == [callback]
    assert character not in callback + retry
    assert (json.loads(callback)["id"], json.loads(retry)["fax_id"]) == (id_, id_)
