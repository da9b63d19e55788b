"""Passes over dead letters: causes are logged, messages are marked, and every dead letter stays."""

from collections.abc import Callable
from typing import Any

import pytest

from mailroom.channels.fax.contract import Fax
from mailroom.dead_letters.queue import SEEN_AGAIN, DeadLetterQueue
from mailroom.ledger.claims import Claimed
from mailroom.ledger.items import FAILURE_KEYS
from tests.support.unit.dead_letter_office import Office
from tests.support.unit.post import Log
from tests.support.unit.shared import LEDGER, NOW_MS, Aws, claimed, item, mail


def logged(log: Log) -> list[dict[str, Any]]:
    """Return the log lines about causes."""
    return [dict(line) for line in log() if line["message"] == "dead letters"]


def test_dead_letters_with_one_cause_are_logged_in_one_line_with_an_example_and_without_bodies(
    office: Office, log: Log
) -> None:
    for id_ in ("m-1", "m-2"):
        claim = claimed(office.ledger, mail(id_))
        office.ledger.release(claim, "misconfigured", "the sender is not verified.")
        office.put("mail-dlq", item(id=id_, text="a secret"))
    assert office.look() == {"mail-dlq": 2}
    (line,) = logged(log)
    assert (line["level"], line["queue"], line["letters"]) == ("ERROR", "mail-dlq", 2)
    assert (line["id"], line["event_type"], line["receives"]) == ("m-1", "mail", 1)
    assert line["cause"] == {
        "code": "misconfigured",
        "message": "the sender is not verified; fix the cause, then put it back",
    }
    assert line["sent_at"].endswith("Z")
    assert line["message_id"]
    assert "secret" not in str(log())
    assert "vincent" not in str(log())


def test_a_later_pass_reads_the_ledger_items_of_marked_messages_and_does_not_write_them(
    office: Office,
) -> None:
    office.put_claimed("mail-dlq", 23)
    office.look()
    office.meddle()
    office.look("mail-dlq")
    assert office.dynamodb.names() == ["batch_get_item"] * 3
    assert office.marked("mail-dlq") == 23


def test_every_dead_letter_is_still_in_the_queue_and_visible_after_a_pass(office: Office) -> None:
    office.put("mail-dlq", *(item(id=f"m-{number}") for number in range(23)))
    office.put("fax-dlq.fifo", {"fax_id": "f-1"}, {"fax_id": "f-2"})
    assert office.look()["fax-dlq.fifo"] == 2
    assert (office.visible("mail-dlq"), office.visible("fax-dlq.fifo")) == (23, 2)
    assert not {name for name in office.sqs.names() if name.startswith(("delete", "send", "purge"))}


def test_dead_letters_stay_hidden_during_a_pass_so_that_each_is_received_once(
    office: Office,
) -> None:
    hidden: list[int] = []

    def receive(real: Callable[..., Any], **arguments: Any) -> Any:
        hidden.append(office.visible("mail-dlq"))
        return real(**arguments)

    office.put("mail-dlq", *(item(id=f"m-{number}") for number in range(25)))
    office.meddle(receive_message=receive)
    assert office.look("mail-dlq") == {"mail-dlq": 25}
    assert hidden == [25, 15, 5, 0]


def test_the_visibility_timeout_of_a_dead_letter_exceeds_the_functions_remaining_time(office: Office) -> None:
    office.put("mail-dlq", item())
    office.look("mail-dlq", remaining=lambda: 41_500)
    receives = [arguments for name, arguments in office.sqs.calls if name == "receive_message"]
    assert {arguments["VisibilityTimeout"] for arguments in receives} == {42 + 30}


def test_a_pass_ends_if_sqs_returns_the_same_dead_letter_repeatedly(office: Office, log: Log) -> None:
    received: list[str] = []

    def receive(real: Callable[..., Any], **arguments: Any) -> Any:
        reply = real(**{**arguments, "VisibilityTimeout": 0})
        received.extend(message["ReceiptHandle"] for message in reply["Messages"])
        return reply

    office.put("mail-dlq", item())
    office.meddle(receive_message=receive)
    assert office.look("mail-dlq") == {"mail-dlq": 1}
    assert office.sqs.names().count("receive_message") == 1 + SEEN_AGAIN
    assert [line["letters"] for line in logged(log)] == [1]
    receipts = [
        entry["ReceiptHandle"]
        for name, arguments in office.sqs.calls
        if name == "change_message_visibility_batch"
        for entry in arguments["Entries"]
    ]
    assert receipts == received[-1:]
    assert len(set(received)) == 1 + SEEN_AGAIN


def test_a_pass_reaches_the_end_of_a_dead_letter_queue_only_if_a_receive_returns_nothing(
    office: Office,
) -> None:
    office.put("mail-dlq", *(item(id=f"m-{number}") for number in range(12)))
    sqs: Any = office.sqs
    queue = DeadLetterQueue(sqs, "mail-dlq", office.urls["mail-dlq"], 0)
    assert [len(queue.receive(60)), queue.ended] == [10, False]
    assert [len(queue.receive(60)), queue.ended] == [2, False]
    assert [len(queue.receive(60)), queue.ended, queue.complete()] == [0, True, True]
    queue.put_back()
    assert [len(queue.receive(-30)), queue.ended, queue.complete()] == [0, False, False]


def test_a_dead_letter_mark_in_the_ledger_leaves_the_messages_other_details_unchanged(
    office: Office, aws: Aws
) -> None:
    claim = claimed(office.ledger, mail())
    office.ledger.release(claim, "retry", "throttled")
    before = aws.item()
    office.clock.advance(7)
    office.put("mail-dlq", item())
    office.look()
    after = aws.item()
    assert after.pop("dead_lettered_at") == NOW_MS + 7000
    changed = {name for name in after if after[name] != before.get(name)}
    assert changed <= {*FAILURE_KEYS, "updatedAt", "ttl"}


def test_a_completed_message_is_not_marked_as_a_dead_letter(office: Office, aws: Aws, log: Log) -> None:
    office.ledger.complete(claimed(office.ledger, mail()), "ses", "p-1")
    office.put("mail-dlq", item())
    office.look()
    assert "dead_lettered_at" not in aws.item()
    assert logged(log)[0]["cause"]["code"] == "completed"


def test_a_dead_lettered_fax_is_marked_in_the_ledger_by_its_fax_id(
    office: Office, aws: Aws, log: Log
) -> None:
    fax = Fax(id="f-1", event_type="fax", to="+16175551234", pdf_url="https://files.example/f.pdf")
    claim = office.ledger.claim(fax)
    assert isinstance(claim, Claimed)
    office.put("fax-dlq.fifo", {"fax_id": "f-1", "to": "+16175551234"})
    office.look()
    assert aws.item("f-1", "fax")["dead_lettered_at"] == NOW_MS
    assert [(line["id"], line["event_type"], line["cause"]["code"]) for line in logged(log)] == [
        ("f-1", "fax", "outcome_unknown")
    ]


@pytest.mark.parametrize(
    ("queue", "body", "code"),
    [
        (
            "webhook-dlq",
            {"webhook_id": "msg_1", "id": "m-1", "event_type": "mail", "name": "sent.1"},
            "callback_refused",
        ),
        ("feedback-dlq", {"source": "twilio", "reference": "bS0x"}, "unrecorded"),
    ],
)
def test_a_dead_lettered_callback_or_event_does_not_mark_its_message(
    office: Office, aws: Aws, log: Log, queue: str, body: dict[str, Any], code: str
) -> None:
    callbacks = {"sent.1": {"status": "failed", "at": NOW_MS, "code": 503, "tries": 20}}
    for event_type in ("mail", "sms"):
        row = {"id": "m-1", "event_type": event_type, "status": "sending", "callbacks": callbacks}
        aws.put(LEDGER, **row, startedAt=NOW_MS)
    before = (aws.item(), aws.item(event_type="sms"))
    office.put(queue, body)
    office.look()
    assert (aws.item(), aws.item(event_type="sms")) == before
    (line,) = logged(log)
    assert (line["id"], line["cause"]["code"]) == ("m-1", code)


def test_a_malformed_dead_letter_is_logged_without_a_message_key(office: Office, log: Log) -> None:
    office.put("mail-dlq", "not JSON")
    office.look()
    (line,) = logged(log)
    assert "id" not in line
    assert line["cause"]["code"] == "malformed"
