"""Dead letters are told of once, marked in the ledger, and left where they lie."""

from collections.abc import Callable
from typing import Any

import pytest

from mailroom.channels.fax.contract import Fax
from mailroom.dead_letters.passes import KEPT_SECONDS
from mailroom.dead_letters.queue import SEEN_AGAIN, DeadLetterQueue
from mailroom.ledger.claims import Claimed
from tests.support.unit.dead_letter_office import Office, open_office
from tests.support.unit.shared import LEDGER, NOW, NOW_MS, Aws, FakeClock, claimed, item, mail

Log = Callable[[], list[dict[str, Any]]]
Counted = Callable[[], dict[str, float]]


@pytest.fixture
def office(aws: Aws, clock: FakeClock) -> Office:
    return open_office(aws, clock)


def told(log: Log) -> list[dict[str, Any]]:
    """The lines about dead letters."""
    return [dict(line) for line in log() if line["message"] == "dead letter"]


def test_a_letter_is_told_of_in_one_line_with_all_that_a_person_needs_and_without_its_body(
    office: Office, log: Log, counted: Counted
) -> None:
    claim = claimed(office.ledger, mail())
    office.ledger.release(claim, "misconfigured", "the sender is not verified.")
    office.put("mail-dlq", item(text="a secret"))
    assert office.look() == {"mail-dlq": {"seen": 1, "new": 1}}
    (line,) = told(log)
    assert line["level"] == "ERROR"
    assert (line["queue"], line["id"], line["event_type"], line["receives"]) == ("mail-dlq", "m-1", "mail", 1)
    assert line["cause"] == {
        "code": "misconfigured",
        "message": "the sender is not verified; fix that, then put it back",
    }
    assert line["sent_at"].endswith("Z")
    assert line["message_id"]
    assert "secret" not in str(log())
    assert "vincent" not in str(log())
    assert counted() == {"DeadLetters": 1}


def test_what_was_told_is_remembered_for_a_day_longer_than_a_letter_can_lie(office: Office, log: Log) -> None:
    office.put("mail-dlq", item())
    office.look()
    (line,) = told(log)
    (entry,) = office.told()
    assert entry["sent_at"] > 1_600_000_000_000
    assert {name: value for name, value in entry.items() if name != "sent_at"} == {
        "message_id": line["message_id"],
        "queue": "mail-dlq",
        "id": "m-1",
        "event_type": "mail",
        "cause": line["cause"],
        "receives": 1,
        "first_seen": NOW_MS,
        "ttl": int(NOW) + KEPT_SECONDS,
    }
    assert KEPT_SECONDS == 15 * 86400


def test_a_letter_is_told_of_once_over_many_passes_of_new_processes(
    office: Office, log: Log, counted: Counted
) -> None:
    office.put("mail-dlq", *(item(id=f"m-{at}") for at in range(23)))
    for _ in range(3):
        office.look()
        office.clock.advance(3600)
    assert sorted(line["id"] for line in told(log)) == sorted(f"m-{at}" for at in range(23))
    assert {entry["first_seen"] for entry in office.told()} == {NOW_MS}
    assert counted() == {"DeadLetters": 23}


def test_a_pass_over_letters_that_are_known_writes_nothing(office: Office) -> None:
    office.put("mail-dlq", *(item(id=f"m-{at}") for at in range(23)))
    office.look()
    office.meddle()
    office.look("mail-dlq")
    assert office.dynamodb.names() == ["batch_get_item"] * 3


def test_nothing_is_deleted_and_every_letter_can_be_received_at_once_after_a_pass(office: Office) -> None:
    office.put("mail-dlq", *(item(id=f"m-{at}") for at in range(23)))
    office.put("fax-dlq.fifo", {"fax_id": "f-1"}, {"fax_id": "f-2"})
    office.look()
    assert (office.visible("mail-dlq"), office.visible("fax-dlq.fifo")) == (23, 2)
    assert not {name for name in office.sqs.names() if name.startswith(("delete", "send", "purge"))}


def test_letters_stay_hidden_until_the_pass_is_over_so_that_all_are_seen_and_none_is_redriven_meanwhile(
    office: Office,
) -> None:
    hidden: list[int] = []

    def receive(real: Callable[..., Any], **arguments: Any) -> Any:
        hidden.append(office.visible("mail-dlq"))
        return real(**arguments)

    office.put("mail-dlq", *(item(id=f"m-{at}") for at in range(25)))
    office.meddle(receive_message=receive)
    assert office.look("mail-dlq") == {"mail-dlq": {"seen": 25, "new": 25}}
    assert hidden == [25, 15, 5, 0]


def test_a_letter_stays_hidden_a_little_longer_than_its_function_can_run(office: Office) -> None:
    office.put("mail-dlq", item())
    office.look("mail-dlq", remaining=lambda: 41_500)
    asked = [arguments for name, arguments in office.sqs.calls if name == "receive_message"]
    assert {each["VisibilityTimeout"] for each in asked} == {42 + 30}


def test_a_queue_that_hands_out_the_same_letters_again_ends_the_pass_and_the_last_receipt_counts(
    office: Office, log: Log
) -> None:
    handed_out: list[str] = []

    def receive(real: Callable[..., Any], **arguments: Any) -> Any:
        reply = real(**{**arguments, "VisibilityTimeout": 0})
        handed_out.extend(each["ReceiptHandle"] for each in reply["Messages"])
        return reply

    office.put("mail-dlq", item())
    office.meddle(receive_message=receive)
    assert office.look("mail-dlq") == {"mail-dlq": {"seen": 1, "new": 1}}
    assert office.sqs.names().count("receive_message") == 1 + SEEN_AGAIN
    assert len(told(log)) == 1
    receipts = [
        each["ReceiptHandle"]
        for name, arguments in office.sqs.calls
        if name == "change_message_visibility_batch"
        for each in arguments["Entries"]
    ]
    assert receipts == handed_out[-1:]
    assert len(set(handed_out)) == 1 + SEEN_AGAIN


def test_a_pass_has_ended_when_nothing_is_handed_out_and_not_when_only_known_letters_are(
    office: Office,
) -> None:
    office.put("mail-dlq", *(item(id=f"m-{at}") for at in range(12)))
    sqs: Any = office.sqs
    queue = DeadLetterQueue(sqs, "mail-dlq", office.urls["mail-dlq"], 0)
    assert [len(queue.receive(60)), queue.ended] == [10, False]
    assert [len(queue.receive(60)), queue.ended] == [2, False]
    assert [len(queue.receive(60)), queue.ended, queue.complete()] == [0, True, True]
    queue.put_back()
    assert [len(queue.receive(-30)), queue.ended, queue.complete()] == [0, False, False]


def test_what_the_scheduler_said_of_an_earlier_death_is_not_believed_of_a_letter_that_sqs_moved(
    office: Office, log: Log
) -> None:
    source = {"DeadLetterQueueSourceArn": "arn:aws:sqs:us-east-1:123456789012:mailroom-test-scheduled"}

    def receive(real: Callable[..., Any], **arguments: Any) -> Any:
        reply = real(**arguments)
        for each in reply.get("Messages", ()):
            each["Attributes"] |= source
        return reply

    said = {"ERROR_CODE": {"DataType": "String", "StringValue": "AccessDenied"}}
    office.put("scheduled-dlq", {"id": "m-1", "event_type": "mail"}, MessageAttributes=said)
    office.meddle(receive_message=receive)
    office.look()
    office.meddle()
    source.clear()
    office.put("scheduled-dlq", {"id": "m-2", "event_type": "mail"}, MessageAttributes=said)
    office.look()
    causes = {line["id"]: line["cause"]["code"] for line in told(log)}
    assert causes == {"m-1": "undispatched", "m-2": "undelivered"}


def test_a_dead_message_is_marked_in_the_ledger_and_nothing_else_of_it_changes(
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
    assert {name for name in after if after[name] != before.get(name)} <= {"updatedAt", "ttl"}


def test_a_completed_message_is_never_marked(office: Office, aws: Aws, log: Log) -> None:
    office.ledger.complete(claimed(office.ledger, mail()), "ses", "p-1")
    office.put("mail-dlq", item())
    office.look()
    assert "dead_lettered_at" not in aws.item()
    assert told(log)[0]["cause"]["code"] == "completed"


def test_a_redriven_message_loses_its_mark_when_it_is_claimed_and_is_told_of_anew_if_it_dies_again(
    office: Office, aws: Aws, log: Log
) -> None:
    office.ledger.release(claimed(office.ledger, mail()), "retry", "throttled")
    office.put("mail-dlq", item())
    office.look()
    (letter,) = aws.sqs.receive_message(QueueUrl=office.urls["mail-dlq"])["Messages"]
    aws.sqs.delete_message(QueueUrl=office.urls["mail-dlq"], ReceiptHandle=letter["ReceiptHandle"])
    office.clock.advance(60)
    claim = claimed(office.ledger, mail())
    assert "dead_lettered_at" not in aws.item()
    office.ledger.release(claim, "misconfigured", "no such configuration set")
    office.put("mail-dlq", item())  # SQS gives what it redrives a new message id
    office.look()
    assert aws.item()["dead_lettered_at"] == NOW_MS + 60_000
    assert [line["cause"]["code"] for line in told(log)] == ["retry", "misconfigured"]


def test_a_message_of_a_fax_queue_is_marked_by_its_fax_id(office: Office, aws: Aws, log: Log) -> None:
    fax = Fax(id="f-1", event_type="fax", to="+16175551234", pdf_url="https://files.example/f.pdf")
    claim = office.ledger.claim(fax)
    assert isinstance(claim, Claimed)
    office.put("fax-dlq.fifo", {"fax_id": "f-1", "to": "+16175551234"})
    office.look()
    assert aws.item("f-1", "fax")["dead_lettered_at"] == NOW_MS
    assert [(line["id"], line["event_type"], line["cause"]["code"]) for line in told(log)] == [
        ("f-1", "fax", "outcome_unknown")
    ]


@pytest.mark.parametrize(
    ("queue", "body"),
    [
        ("webhook-dlq", {"webhook_id": "msg_1", "id": "m-1", "event_type": "mail", "name": "sent.1"}),
        ("feedback-dlq", {"source": "twilio", "reference": "bS0x"}),
    ],
)
def test_what_only_tells_of_a_message_does_not_mark_it(
    office: Office, aws: Aws, log: Log, queue: str, body: dict[str, Any]
) -> None:
    for event_type in ("mail", "sms"):
        aws.put(LEDGER, id="m-1", event_type=event_type, status="sending", startedAt=NOW_MS)
    before = (aws.item(), aws.item(event_type="sms"))
    office.put(queue, body)
    office.look()
    assert (aws.item(), aws.item(event_type="sms")) == before
    (line,) = told(log)
    assert line["id"] == "m-1"
    assert line["cause"]["code"] in {"callback_unsent", "unrecorded"}


def test_a_dead_callback_says_what_its_endpoint_answered(office: Office, aws: Aws, log: Log) -> None:
    result = {"status": "failed", "at": NOW_MS, "code": 503, "tries": 20}
    aws.put(LEDGER, id="m-1", event_type="mail", status="sent", callbacks={"sent.1": result})
    office.put("webhook-dlq", {"webhook_id": "msg_1", "id": "m-1", "event_type": "mail", "name": "sent.1"})
    office.look()
    (line,) = told(log)
    assert line["cause"] == {
        "code": "callback_refused",
        "message": "callback sent.1 was not taken in 20 tries, the last got HTTP 503; "
        "fix the endpoint, then put it back",
    }


def test_a_letter_that_is_no_message_is_told_of_without_a_key(office: Office, log: Log) -> None:
    office.put("mail-dlq", "not JSON")
    office.look()
    (line,) = told(log)
    assert "id" not in line
    assert line["cause"]["code"] == "malformed"
    assert office.told()[0].keys() & {"id", "event_type"} == set()


def test_what_scheduler_could_not_send_says_why_and_marks_its_message(
    office: Office, aws: Aws, log: Log
) -> None:
    aws.put(LEDGER, id="m-1", event_type="mail", status="scheduled")
    said = {
        "ERROR_CODE": "AWS.SimpleQueueService.NonExistentQueue",
        "ERROR_MESSAGE": "The queue does not exist.",
    }
    attributes = {name: {"DataType": "String", "StringValue": text} for name, text in said.items()}
    body = {"MessageBody": '{"id":"m-1","event_type":"mail"}', "QueueUrl": "https://sqs.example/scheduled"}
    office.put("scheduled-dlq", body, MessageAttributes=attributes)
    office.look()
    (line,) = told(log)
    assert line["cause"]["code"] == "undelivered"
    assert "AWS.SimpleQueueService.NonExistentQueue: The queue does not exist" in line["cause"]["message"]
    assert aws.item()["dead_lettered_at"] == NOW_MS


def test_of_a_fifo_queue_a_pass_sees_the_heads_of_groups_and_holds_none_back(office: Office) -> None:
    office.put("fax-dlq.fifo", *({"fax_id": f"f-{at}"} for at in range(3)))
    assert office.look()["fax-dlq.fifo"]["seen"] == 3
    assert office.visible("fax-dlq.fifo") == 3
