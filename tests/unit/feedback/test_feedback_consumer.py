"""Records of the feedback queue change the ledger and the suppression list."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from mailroom.channels.sms.contract import Sms, sms_in
from mailroom.environment import FEEDBACK_KEPT_BACK_SECONDS, FeedbackSettings
from mailroom.feedback.consumer import Feedback
from mailroom.ledger.claims import Claimed
from mailroom.ledger.ledger import Ledger
from mailroom.message.message import CANARY
from mailroom.recipients.choices import Addressee, Choices, Preferences, Suppressions
from tests.support import bodies
from tests.support.bodies import TOPIC, by_sns, ses_body, twilio_callback
from tests.support.unit.events import failures, plenty, sqs_event
from tests.support.unit.fakes import Meddler, client_error, failing
from tests.support.unit.post import Counted, Log
from tests.support.unit.shared import LEDGER, SUPPRESSIONS, TTL, Aws, FakeClock, claimed, mail

ADA, EVE = "ada@example.com", "eve@example.com"
NUMBER = "+16175551234"
_ids = itertools.count()


class Desk:
    """The handler of the feedback queue, with its ledger and its suppression list."""

    def __init__(self, aws: Aws, clock: FakeClock, dynamodb: Any = None, **changes: Any) -> None:
        client = dynamodb or aws.dynamodb
        self.sqs = Meddler(aws.sqs, change_message_visibility_batch=lambda _real, **_arguments: {})
        settings_ = FeedbackSettings(
            ledger_table=LEDGER,
            ledger_ttl_seconds=TTL,
            payload_bucket="unused",
            queue_url="https://sqs.example/feedback",
            suppressions_table=SUPPRESSIONS,
            feedback_topics=[TOPIC],
            default_region="US",
            **changes,
        )
        self.list = Suppressions(client, SUPPRESSIONS, clock)
        ledger = Ledger(client, LEDGER, lease=0, ttl=TTL, clock=clock)
        self._feedback = Feedback(settings_, ledger, self.list, self.sqs)  # type: ignore[arg-type]

    def handle(self, *records: str, remaining: Callable[[], int] = plenty) -> list[str]:
        """Return the ids of the records that SQS must deliver again."""
        return failures(self._feedback.handle(sqs_event(*records), remaining))


@pytest.fixture
def consumer_desk(aws: Aws, clock: FakeClock) -> Desk:
    return Desk(aws, clock)


def _sent(ledger: Ledger, id_: str = "m-1", **attributes: Any) -> None:
    ledger.complete(claimed(ledger, mail(id_, **{"to": ADA, **attributes})), "ses", "ses-1")


def _send_text(ledger: Ledger, id_: str = "s-1") -> None:
    claim = claimed(ledger, Sms(id=id_, event_type="sms", to="+16175551234", text="Hi"))
    ledger.complete(claim, "twilio", "SM1")


def test_a_delivery_event_is_recorded_in_the_ledger_with_its_time(
    consumer_desk: Desk, ledger: Ledger, aws: Aws
) -> None:
    _sent(ledger)
    assert consumer_desk.handle(by_sns(ses_body("Delivery", "m-1", second=2))) == []
    row = aws.item()
    assert row["status"] == "delivered"
    assert row["deliveredAt"] == row["sentAt"] + 2000


def test_a_failed_delivery_by_a_fault_of_the_account_is_logged_and_counted_as_a_misconfiguration(
    consumer_desk: Desk, ledger: Ledger, aws: Aws, log: Log, counted: Counted
) -> None:
    _send_text(ledger)
    assert consumer_desk.handle(twilio_callback("undelivered", "s-1", ErrorCode="30034")) == []
    assert aws.item("s-1", event_type="sms")["status"] == "undelivered"
    (line,) = [line for line in log() if line["level"] == "ERROR"]
    assert line["message"] == "not delivered: the configuration is invalid"
    assert "Unregistered Number" in line["reason"]
    assert counted()["Misconfigured"] == 1


def test_a_failed_delivery_by_a_fault_of_the_recipient_does_not_count_as_a_misconfiguration(
    consumer_desk: Desk, ledger: Ledger, counted: Counted
) -> None:
    _send_text(ledger)
    assert consumer_desk.handle(twilio_callback("undelivered", "s-1", ErrorCode="30003")) == []
    assert counted() == {"Events": 1}


def test_a_hard_bounce_is_recorded_and_suppresses_its_recipient(
    consumer_desk: Desk, ledger: Ledger, aws: Aws
) -> None:
    _sent(ledger)
    assert consumer_desk.handle(by_sns(ses_body("Bounce", "m-1"))) == []
    row = aws.item()
    assert (row["status"], row["bounce_type"]) == ("bounced", "Permanent")
    assert row["error"]["message"] == "hard bounce (General): smtp; 550 5.1.1"
    (mark,) = consumer_desk.list.find("mail", [ADA]).values()
    assert (mark.reason, mark.message_id) == ("bounce", "m-1")


@pytest.mark.parametrize("to", [ADA, EVE, [ADA, EVE]])
@pytest.mark.parametrize("kind", ["Bounce", "Complaint"])
def test_events_of_a_redirected_mail_are_recorded_without_suppressing_a_recipient(
    consumer_desk: Desk, ledger: Ledger, aws: Aws, to: str | list[str], kind: str
) -> None:
    claim = ledger.claim(mail(to=to), redirected_to=EVE)
    assert isinstance(claim, Claimed)
    ledger.complete(claim, "ses", "ses-1")
    assert consumer_desk.handle(by_sns(ses_body(kind, "m-1", EVE, to=[EVE]))) == []
    assert aws.item()["status"] == {"Bounce": "bounced", "Complaint": "complained"}[kind]
    assert consumer_desk.list.find("mail", [ADA, EVE]) == {}


def test_a_landline_that_got_a_redirected_sms_is_not_suppressed(
    consumer_desk: Desk, ledger: Ledger, aws: Aws
) -> None:
    text = Sms(id="s-1", event_type="sms", to="+16175551234", text="Hi")
    claim = ledger.claim(text, redirected_to="+12025550199")
    assert isinstance(claim, Claimed)
    ledger.complete(claim, "twilio", "SM1", line="+12025550199")
    for to in ("+12025550199", "+16175551234"):
        assert (
            consumer_desk.handle(bodies.twilio_callback("undelivered", "s-1", To=to, ErrorCode="30006")) == []
        )
    assert aws.item("s-1", "sms")["status"] == "undelivered"
    assert consumer_desk.list.find("sms", ["+12025550199", "+16175551234"]) == {}


def test_an_out_of_office_reply_neither_undoes_a_delivery_nor_suppresses_the_recipient(
    consumer_desk: Desk, ledger: Ledger, aws: Aws
) -> None:
    _sent(ledger)
    reply = by_sns(ses_body("Bounce", "m-1", bounceType="Transient"))
    consumer_desk.handle(reply, by_sns(ses_body("Delivery", "m-1")))
    assert aws.item()["status"] == "delivered"
    assert consumer_desk.list.find("mail", [ADA]) == {}


def test_all_events_of_a_batch_about_one_mail_are_recorded_in_one_write(
    aws: Aws, clock: FakeClock, ledger: Ledger
) -> None:
    _sent(ledger)
    client = Meddler(aws.dynamodb)
    records = [by_sns(ses_body(kind, "m-1")) for kind in ("Delivery", "Send", "Open", "Send")]
    Desk(aws, clock, client).handle(*records)
    assert client.names() == ["update_item"]


def test_an_event_about_an_unknown_message_is_dropped_logged_and_counted(
    consumer_desk: Desk, aws: Aws, log: Log, counted: Counted
) -> None:
    assert consumer_desk.handle(by_sns(ses_body("Bounce", "unknown"))) == []
    assert aws.item("unknown") == {}
    assert consumer_desk.list.find("mail", [ADA]) == {}
    assert counted() == {"Events": 1, "EventsForeign": 1}
    assert [line["found"] for line in log()] == ["Foreign"]


def test_a_complaint_about_an_earlier_attempt_suppresses_the_recipient_and_keeps_the_status(
    consumer_desk: Desk, ledger: Ledger, aws: Aws, counted: Counted
) -> None:
    _sent(ledger)
    ledger.reopen(mail().key, aws.item())
    assert consumer_desk.handle(by_sns(ses_body("Complaint", "m-1"))) == []
    assert aws.item()["status"] == "retrying"
    assert list(consumer_desk.list.find("mail", [ADA])) == [ADA]
    assert counted()["EventsOutdated"] == 1


def test_a_repeated_callback_does_not_undo_an_operators_removal_from_the_suppression_list(
    consumer_desk: Desk, ledger: Ledger, clock: FakeClock
) -> None:
    _send_text(ledger)
    consumer_desk.handle(bodies.twilio_callback("undelivered", "s-1", at=0, ErrorCode="30006"))
    clock.now = bodies.SENT.timestamp() + 3600
    assert consumer_desk.list.lift(NUMBER, "sms")
    # Twilio's callbacks lack a time, so a repeated one counts as of its repetition.
    consumer_desk.handle(bodies.twilio_callback("undelivered", "s-1", at=7_200_000, ErrorCode="30006"))
    assert consumer_desk.list.find("sms", [NUMBER]) == {}


def test_a_stop_text_puts_its_number_on_the_suppression_list_and_a_later_start_text_removes_it(
    consumer_desk: Desk, aws: Aws, counted: Counted
) -> None:
    assert consumer_desk.handle(bodies.keyword_text("stop")) == []
    (mark,) = consumer_desk.list.find("sms", [NUMBER]).values()
    assert (mark.reason, mark.detail, mark.message_id) == ("stop", "STOP sent to +12025550123", "")
    assert mark.at == bodies.SENT.timestamp() * 1000
    assert counted() == {"TextsStop": 1}
    assert consumer_desk.handle(bodies.keyword_text("start", at=-1)) == []  # an older START, posted again
    assert NUMBER in consumer_desk.list.find("sms", [NUMBER])
    assert consumer_desk.handle(bodies.keyword_text("start", at=1)) == []
    assert consumer_desk.list.find("sms", [NUMBER]) == {}
    assert aws.dynamodb.scan(TableName=LEDGER)["Items"] == []


FORMS = [
    ("+5215512345678", "+525512345678"),  # Mexico, as carriers name senders
    ("+525512345678", "+52 1 55 1234 5678"),
    ("+5491123456789", "+54 11 2345-6789"),  # Argentina: with and without the 9 of mobiles
    ("+541123456789", "+54 11 15 2345-6789"),
    ("whatsapp:+16175551234", "(617) 555-1234"),  # Twilio's form for other channels
]


@pytest.mark.parametrize(("sender", "to"), FORMS)
def test_a_stop_text_suppresses_all_spellings_of_its_number_until_a_start_text(
    consumer_desk: Desk, aws: Aws, sender: str, to: str
) -> None:
    addressee = Addressee(sms_in("US")(id="s-1", event_type="sms", to=to, text="Hi").recipient)
    choices = Choices(consumer_desk.list, Preferences(aws.dynamodb, "unused"))
    assert consumer_desk.handle(bodies.keyword_text("stop", number=sender)) == []
    assert choices.find("sms", [addressee])[addressee].code == "suppressed"
    assert consumer_desk.handle(bodies.keyword_text("start", number=sender, at=1)) == []
    assert choices.find("sms", [addressee]) == {}


@pytest.mark.parametrize(("sender", "to"), FORMS)
def test_a_start_text_ends_an_opt_out_that_was_reported_for_another_spelling_of_its_number(
    consumer_desk: Desk, aws: Aws, ledger: Ledger, sender: str, to: str
) -> None:
    message = sms_in("US")(id="s-1", event_type="sms", to=to, text="Hi")
    ledger.complete(claimed(ledger, message), "twilio", "SM1")
    consumer_desk.handle(bodies.twilio_callback("failed", "s-1", ErrorCode="21610", To=message.recipient))
    assert aws.item("s-1", "sms")["status"] == "undelivered"
    addressee = Addressee(message.recipient)
    choices = Choices(consumer_desk.list, Preferences(aws.dynamodb, "unused"))
    blocked = choices.find("sms", [addressee])[addressee]
    assert (blocked.code, "the recipient opted out" in blocked.sentence) == ("suppressed", True)
    consumer_desk.handle(bodies.keyword_text("start", number=sender, at=1000))
    assert choices.find("sms", [addressee]) == {}


def test_a_text_to_an_aws_number_suppresses_its_phone_number_if_it_is_a_stop_word_of_the_stage(
    aws: Aws, clock: FakeClock
) -> None:
    desk = Desk(aws, clock, stop_words=["arrêt"])
    text = {"originationNumber": NUMBER, "destinationNumber": "+12125550101", "inboundMessageId": "1"}
    texts = (by_sns({**text, "messageBody": words}) for words in ("ARRÊT", "merci", "non"))
    assert desk.handle(*texts) == []
    assert desk.list.find("sms", [NUMBER])[NUMBER].detail == "STOP sent to +12125550101"


def _suppressions_down_once(aws: Aws) -> Meddler:
    """Return a client whose first write to the suppression list fails."""
    outage = failing(client_error("InternalServerError", status=500))

    def update(real: Callable[..., Any], **arguments: Any) -> Any:
        return outage(real, **arguments) if arguments["TableName"] == SUPPRESSIONS else real(**arguments)

    return Meddler(aws.dynamodb, update_item=update)


@pytest.mark.parametrize("wish", ["stop", "start"])
def test_a_stop_or_start_text_that_cannot_be_recorded_is_retried_and_other_events_are_recorded(
    aws: Aws, clock: FakeClock, ledger: Ledger, log: Log, wish: str
) -> None:
    _sent(ledger)
    desk = Desk(aws, clock, _suppressions_down_once(aws))
    assert desk.handle(bodies.keyword_text(wish), by_sns(ses_body("Delivery", "m-1"))) == ["r-0"]
    assert aws.item()["status"] == "delivered"
    assert NUMBER not in str(log())
    assert desk.handle(bodies.keyword_text(wish)) == []


def test_a_complaint_about_several_recipients_suppresses_none_of_them(
    consumer_desk: Desk, ledger: Ledger, aws: Aws
) -> None:
    _sent(ledger, to=[ADA, EVE])
    consumer_desk.handle(by_sns(ses_body("Complaint", "m-1", ADA, EVE, to=[ADA, EVE])))
    assert aws.item()["status"] == "complained"
    assert consumer_desk.list.find("mail", [ADA, EVE]) == {}


@pytest.mark.parametrize(
    "record",
    [
        "not json",
        '{"eventType": 7}',
        by_sns({name: value for name, value in ses_body("Delivery", "m-1").items() if name != "delivery"}),
        by_sns(ses_body("Bounce", "m-1"), topic=TOPIC.replace("123456789012", "999999999999")),
        bodies.keyword_text("stop", number="hidden-4711"),
        bodies.keyword_text("stop", number=""),
    ],
)
def test_a_malformed_or_foreign_record_is_retried_at_once_and_the_rest_of_the_batch_is_recorded(
    consumer_desk: Desk, ledger: Ledger, aws: Aws, log: Log, record: str
) -> None:
    _sent(ledger)
    assert consumer_desk.handle(record, by_sns(ses_body("Delivery", "m-1")), bodies.keyword_text("stop")) == [
        "r-0"
    ]
    assert aws.item()["status"] == "delivered"
    assert [mark.recipient for mark in consumer_desk.list.listed()] == [NUMBER]
    waits = [entry["VisibilityTimeout"] for _, call in consumer_desk.sqs.calls for entry in call["Entries"]]
    assert waits == [0]
    assert not any(text in str(log()) for text in (ADA, "4711"))


def test_all_records_are_retried_while_dynamodb_is_down(aws: Aws, clock: FakeClock, ledger: Ledger) -> None:
    _sent(ledger)
    down = client_error("InternalServerError", status=500)
    desk = Desk(aws, clock, Meddler(aws.dynamodb, update_item=failing(down)))
    records = [by_sns(ses_body(kind, "m-1")) for kind in ("Delivery", "Send")]
    assert desk.handle(*records) == ["r-0", "r-1"]
    assert desk.sqs.calls == []  # the records return after the queue's visibility time-out
    assert desk.handle(*records) == []
    assert aws.item()["status"] == "delivered"


def test_a_bounce_is_retried_and_suppresses_the_recipient_after_the_first_suppression_failed(
    aws: Aws, clock: FakeClock, ledger: Ledger
) -> None:
    _sent(ledger)
    desk = Desk(aws, clock, _suppressions_down_once(aws))
    bounce = by_sns(ses_body("Bounce", "m-1"))
    assert desk.handle(bounce) == ["r-0"]
    assert desk.handle(bounce) == []
    assert list(desk.list.find("mail", [ADA])) == [ADA]


def test_records_that_are_reached_near_the_functions_deadline_are_retried_and_not_recorded(
    consumer_desk: Desk, ledger: Ledger, aws: Aws
) -> None:
    for id_ in ("m-1", "m-2"):
        _sent(ledger, id_)
    reserve_ms = FEEDBACK_KEPT_BACK_SECONDS * 1000
    remaining = iter([reserve_ms, reserve_ms - 1, reserve_ms - 1])
    records = [*(by_sns(ses_body("Delivery", id_)) for id_ in ("m-1", "m-2")), bodies.keyword_text("stop")]
    assert consumer_desk.handle(*records, remaining=lambda: next(remaining)) == ["r-1", "r-2"]
    assert (aws.item("m-1")["status"], aws.item("m-2")["status"]) == ("delivered", "sent")
    assert consumer_desk.list.find("sms", [NUMBER]) == {}


def test_an_event_does_not_suppress_an_address_that_its_message_was_not_sent_to(
    consumer_desk: Desk, ledger: Ledger
) -> None:
    _sent(ledger, to=[ADA, EVE])
    consumer_desk.handle(
        by_sns(ses_body("Bounce", "m-1", "victim@example.com", to=["victim@example.com", ADA]))
    )
    consumer_desk.handle(by_sns(ses_body("Complaint", "m-1", "victim@example.com")))
    assert consumer_desk.list.find("mail", ["victim@example.com", ADA, EVE]) == {}


def test_only_the_recipient_that_bounced_is_suppressed_if_a_mail_has_several_recipients(
    consumer_desk: Desk, ledger: Ledger, aws: Aws
) -> None:
    _sent(ledger, to=[f"Ada <{ADA.upper()}>", EVE])
    to = [ADA, EVE]
    consumer_desk.handle(
        by_sns(ses_body("Bounce", "m-1", EVE, to=to)), by_sns(ses_body("Delivery", "m-1", ADA, to=to))
    )
    assert list(consumer_desk.list.find("mail", to)) == [EVE]
    statuses = {recipient: entry["status"] for recipient, entry in aws.item()["recipients"].items()}
    assert statuses == {ADA: "delivered", EVE: "bounced"}


def test_a_landline_is_suppressed_after_an_undelivered_text(
    consumer_desk: Desk, ledger: Ledger, aws: Aws
) -> None:
    _send_text(ledger)
    consumer_desk.handle(
        bodies.twilio_callback("undelivered", "s-1", ErrorCode="30006"), bodies.twilio_callback("sent", "s-1")
    )
    row = aws.item("s-1", "sms")
    assert (row["status"], row["error_code"]) == ("undelivered", "30006")
    assert list(consumer_desk.list.find("sms", ["+16175551234"])) == ["+16175551234"]


def test_a_callback_does_not_suppress_a_number_that_its_message_was_not_sent_to(
    consumer_desk: Desk, ledger: Ledger
) -> None:
    _send_text(ledger)
    consumer_desk.handle(bodies.twilio_callback("undelivered", "s-1", ErrorCode="30006", To="+12025550123"))
    assert consumer_desk.list.find("sms", ["+12025550123", "+16175551234"]) == {}


@pytest.mark.parametrize(
    ("id_", "kind", "canaries"),
    [(f"{CANARY}1", "Delivery", 1), (f"{CANARY}1", "Send", 0), ("m-1", "Delivery", 0)],
)
def test_a_canary_is_counted_as_delivered_only_if_its_provider_has_delivered_it(
    consumer_desk: Desk, ledger: Ledger, counted: Counted, id_: str, kind: str, canaries: int
) -> None:
    _sent(ledger, id_)
    consumer_desk.handle(by_sns(ses_body(kind, id_)))
    assert counted().get("CanaryDelivered", 0) == canaries


@pytest.mark.parametrize(
    ("kinds", "mails"),
    [
        (("Delivery",), 1),
        (("Send",), 0),
        (("Complaint", "Delivery"), 0),
        (("Delivery", "Send", "Delivery"), 1),
    ],
)
def test_a_mail_is_counted_once_as_delivered_if_its_provider_has_delivered_it(
    consumer_desk: Desk, ledger: Ledger, counted: Counted, kinds: tuple[str, ...], mails: int
) -> None:
    _sent(ledger)
    _send_text(ledger)
    consumer_desk.handle(twilio_callback("delivered", "s-1"))
    consumer_desk.handle(by_sns(ses_body("Delivery", "unknown")))
    for kind in kinds:
        consumer_desk.handle(by_sns(ses_body(kind, "m-1")))
    assert counted().get("MailsDelivered", 0) == mails


def test_a_mail_to_several_recipients_is_counted_once_as_delivered_when_all_of_them_have_it(
    consumer_desk: Desk, ledger: Ledger, counted: Counted
) -> None:
    _sent(ledger, to=[ADA, EVE])
    for recipient, mails in ((ADA, 0), (EVE, 1)):
        consumer_desk.handle(by_sns(ses_body("Delivery", "m-1", recipient, to=[ADA, EVE])))
        assert counted().get("MailsDelivered", 0) == mails
