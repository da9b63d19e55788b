"""From the feedback queue into the ledger and the suppression list."""

import itertools
import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mailroom.channels.sms.contract import Sms, sms_in
from mailroom.environment import FEEDBACK_KEPT_BACK_SECONDS, FeedbackSettings
from mailroom.feedback.consumer import Feedback
from mailroom.ledger.claims import Claimed
from mailroom.ledger.ledger import Ledger
from mailroom.recipients.choices import Addressee, Choices, Preferences, Suppressions
from tests.support import bodies
from tests.support.bodies import TOPIC, by_sns, ses
from tests.support.unit.events import failures, plenty, sqs_event
from tests.support.unit.fakes import Meddler, client_error, failing
from tests.support.unit.shared import LEASE, LEDGER, SUPPRESSIONS, TTL, Aws, FakeClock, claimed, mail

ADA, EVE = "ada@example.com", "eve@example.com"
Counted = Callable[[], dict[str, float]]
Log = Callable[[], list[dict[str, Any]]]
_ids = itertools.count()


class Desk:
    """The function with its ledger, its list and its queue."""

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

    def handle(self, *told: str, remaining: Callable[[], int] = plenty) -> list[str]:
        """The records that must come back."""
        return failures(self._feedback.handle(sqs_event(*told), remaining))


@pytest.fixture
def desk(aws: Aws, clock: FakeClock) -> Desk:
    return Desk(aws, clock)


def _sent(ledger: Ledger, id_: str = "m-1", **attributes: Any) -> None:
    ledger.complete(claimed(ledger, mail(id_, **{"to": ADA, **attributes})), "ses", "ses-1")


def _text(ledger: Ledger, id_: str = "s-1") -> None:
    claim = claimed(ledger, Sms(id=id_, event_type="sms", to="+16175551234", text="Hi"))
    ledger.complete(claim, "twilio", "SM1")


def test_a_delivery_is_recorded_with_its_times(desk: Desk, ledger: Ledger, aws: Aws) -> None:
    _sent(ledger)
    assert desk.handle(by_sns(ses("Delivery", "m-1", second=2))) == []
    found = aws.item()
    assert found["status"] == "delivered"
    assert found["deliveredAt"] == found["sentAt"] + 2000


def test_a_hard_bounce_is_recorded_and_marks_its_recipient(desk: Desk, ledger: Ledger, aws: Aws) -> None:
    _sent(ledger)
    assert desk.handle(by_sns(ses("Bounce", "m-1"))) == []
    found = aws.item()
    assert (found["status"], found["bounce_type"]) == ("bounced", "Permanent")
    assert found["error"]["message"] == "hard bounce (General): smtp; 550 5.1.1"
    (mark,) = desk.list.find("mail", [ADA]).values()
    assert (mark.reason, mark.message_id) == ("bounce", "m-1")


@pytest.mark.parametrize("to", [ADA, EVE, [ADA, EVE]])
@pytest.mark.parametrize("kind", ["Bounce", "Complaint"])
def test_what_becomes_of_a_redirected_mail_is_recorded_and_marks_nobody(
    desk: Desk, ledger: Ledger, aws: Aws, to: str | list[str], kind: str
) -> None:
    claim = ledger.claim(mail(to=to), redirected_to=EVE)
    assert isinstance(claim, Claimed)
    ledger.complete(claim, "ses", "ses-1")
    assert desk.handle(by_sns(ses(kind, "m-1", EVE, to=[EVE]))) == []
    assert aws.item()["status"] == {"Bounce": "bounced", "Complaint": "complained"}[kind]
    assert desk.list.find("mail", [ADA, EVE]) == {}


def test_a_landline_that_got_a_redirected_text_is_not_marked(desk: Desk, ledger: Ledger, aws: Aws) -> None:
    text = Sms(id="s-1", event_type="sms", to="+16175551234", text="Hi")
    claim = ledger.claim(text, redirected_to="+12025550199")
    assert isinstance(claim, Claimed)
    ledger.complete(claim, "twilio", "SM1", line="+12025550199")
    for to in ("+12025550199", "+16175551234"):
        assert desk.handle(bodies.twilio("undelivered", "s-1", To=to, ErrorCode="30006")) == []
    assert aws.item("s-1", "sms")["status"] == "undelivered"
    assert desk.list.find("sms", ["+12025550199", "+16175551234"]) == {}


def test_an_out_of_office_reply_leaves_a_delivered_mail_delivered_and_marks_nobody(
    desk: Desk, ledger: Ledger, aws: Aws
) -> None:
    _sent(ledger)
    reply = by_sns(ses("Bounce", "m-1", bounceType="Transient"))
    desk.handle(reply, by_sns(ses("Delivery", "m-1")))
    assert aws.item()["status"] == "delivered"
    assert desk.list.find("mail", [ADA]) == {}


def test_events_of_one_mail_in_a_batch_are_one_write(aws: Aws, clock: FakeClock, ledger: Ledger) -> None:
    _sent(ledger)
    client = Meddler(aws.dynamodb)
    told = [by_sns(ses(kind, "m-1")) for kind in ("Delivery", "Send", "Open", "Send")]
    Desk(aws, clock, client).handle(*told)
    assert client.names() == ["update_item"]


def test_the_send_event_completes_a_mail_whose_sender_crashed(desk: Desk, ledger: Ledger, aws: Aws) -> None:
    claimed(ledger, mail(to=ADA))
    desk.handle(by_sns(ses("Send", "m-1", provider_id="ses-9")))
    assert (aws.item()["status"], aws.item()["provider_id"]) == ("sent", "ses-9")


def test_an_event_that_comes_before_its_sender_knows_loses_nothing(
    desk: Desk, ledger: Ledger, aws: Aws
) -> None:
    claim = claimed(ledger, mail(to=ADA))
    desk.handle(by_sns(ses("Delivery", "m-1")))
    ledger.complete(claim, "ses", "ses-1")
    assert (aws.item()["status"], aws.item()["provider_id"], aws.item()["attempts"]) == (
        "delivered",
        "ses-1",
        1,
    )


def test_an_event_about_an_unknown_message_is_dropped_logged_and_counted(
    desk: Desk, aws: Aws, log: Log, counted: Counted
) -> None:
    assert desk.handle(by_sns(ses("Bounce", "nobody-knows"))) == []
    assert aws.item("nobody-knows") == {}
    assert desk.list.find("mail", [ADA]) == {}
    assert counted() == {"Events": 1, "EventsForeign": 1}
    assert [line["found"] for line in log()] == ["Foreign"]


def test_a_complaint_about_an_earlier_life_moves_nothing_and_still_marks_who_complained(
    desk: Desk, ledger: Ledger, aws: Aws, counted: Counted
) -> None:
    _sent(ledger)
    ledger.reopen(mail().key, aws.item())
    assert desk.handle(by_sns(ses("Complaint", "m-1"))) == []
    assert aws.item()["status"] == "retrying"
    assert list(desk.list.find("mail", [ADA])) == [ADA]
    assert counted()["EventsOutdated"] == 1


def test_a_callback_posted_again_after_the_lifting_does_not_undo_it(
    desk: Desk, ledger: Ledger, clock: FakeClock
) -> None:
    _text(ledger)
    number = "+16175551234"
    captured: dict[str, Any] = {"ErrorCode": "30006"}
    desk.handle(bodies.twilio("undelivered", "s-1", at=0, **captured))
    clock.now = bodies.SENT.timestamp() + 3600
    assert desk.list.lift(number, "sms")
    # Twilio's callbacks carry no time: the one that is posted again comes with that of its coming.
    desk.handle(bodies.twilio("undelivered", "s-1", at=7_200_000, **captured))
    assert desk.list.find("sms", [number]) == {}


NUMBER = "+16175551234"


def test_a_stop_puts_its_sender_on_the_list_and_a_start_takes_them_off(
    desk: Desk, aws: Aws, counted: Counted
) -> None:
    assert desk.handle(bodies.text("stop")) == []
    (mark,) = desk.list.find("sms", [NUMBER]).values()
    assert (mark.reason, mark.detail, mark.message_id) == ("stop", "STOP sent to +12025550123", "")
    assert counted() == {"TextsStop": 1}
    assert desk.handle(bodies.text("start", at=1)) == []
    assert desk.list.find("sms", [NUMBER]) == {}
    assert aws.dynamodb.scan(TableName=LEDGER)["Items"] == []


FORMS = [
    ("+5215512345678", "+525512345678"),  # Mexico, as carriers name senders
    ("+525512345678", "+52 1 55 1234 5678"),
    ("+5491123456789", "+54 11 2345-6789"),  # Argentina: with and without the 9 of mobiles
    ("+541123456789", "+54 11 15 2345-6789"),
    ("whatsapp:+16175551234", "(617) 555-1234"),  # Twilio's form for other channels
]


@pytest.mark.parametrize(("sender", "to"), FORMS)
def test_a_stop_from_any_form_of_a_number_counts_for_every_other_and_a_start_ends_it(
    desk: Desk, aws: Aws, sender: str, to: str
) -> None:
    addressee = Addressee(sms_in("US")(id="s-1", event_type="sms", to=to, text="Hi").recipient)
    choices = Choices(desk.list, Preferences(aws.dynamodb, "unused"))
    assert desk.handle(bodies.text("stop", number=sender)) == []
    assert choices.find("sms", [addressee])[addressee].code == "suppressed"
    assert desk.handle(bodies.text("start", number=sender, at=1)) == []
    assert choices.find("sms", [addressee]) == {}


@pytest.mark.parametrize(("sender", "to"), FORMS)
def test_a_start_ends_the_refusal_of_a_text_to_another_form_of_the_number(
    desk: Desk, aws: Aws, ledger: Ledger, sender: str, to: str
) -> None:
    message = sms_in("US")(id="s-1", event_type="sms", to=to, text="Hi")
    ledger.complete(claimed(ledger, message), "twilio", "SM1")
    desk.handle(bodies.twilio("failed", "s-1", ErrorCode="21610", To=sender))
    addressee = Addressee(message.recipient)
    choices = Choices(desk.list, Preferences(aws.dynamodb, "unused"))
    assert choices.find("sms", [addressee])[addressee].code == "suppressed"
    desk.handle(bodies.text("start", number=sender, at=1000))
    assert choices.find("sms", [addressee]) == {}


def test_a_stop_whose_number_cannot_be_read_soon_reaches_the_dead_letters_and_its_neighbours_are_heeded(
    desk: Desk, log: Log
) -> None:
    told = {"originationNumber": "hidden-4711", "destinationNumber": "+12125550101", "inboundMessageId": "1"}
    unread = (bodies.text("stop", number="hidden-4711"), by_sns({**told, "messageBody": "STOP"}))
    assert desk.handle(unread[0], bodies.text("stop"), unread[1], bodies.text("stop", number="")) == [
        *("r-0", "r-2", "r-3")
    ]
    assert NUMBER in desk.list.find("sms", [NUMBER])
    waits = [entry["VisibilityTimeout"] for _, call in desk.sqs.calls for entry in call["Entries"]]
    assert waits == [0, 0, 0]
    assert "4711" not in str(log())


def test_of_a_batch_the_latest_text_counts_and_a_replayed_start_ends_no_later_stop(desk: Desk) -> None:
    texts = [bodies.text("stop", at=2000), bodies.text("start", at=1000), bodies.text("stop", at=0)]
    assert desk.handle(*texts) == []
    assert desk.handle(bodies.text("start", at=1000)) == []
    assert NUMBER in desk.list.find("sms", [NUMBER])


def test_a_text_to_a_number_at_aws_counts_by_the_stages_own_words(aws: Aws, clock: FakeClock) -> None:
    desk = Desk(aws, clock, stop_words=["arrêt"])
    said = {"originationNumber": NUMBER, "destinationNumber": "+12125550101", "inboundMessageId": "1"}
    texts = (by_sns({**said, "messageBody": each}) for each in ("ARRÊT", "merci", "non"))
    assert desk.handle(*texts) == []
    assert desk.list.find("sms", [NUMBER])[NUMBER].detail == "STOP sent to +12125550101"


@pytest.mark.parametrize("wish", ["stop", "start"])
def test_a_text_that_cannot_be_written_comes_back_and_its_neighbours_are_taken_in(
    aws: Aws, clock: FakeClock, ledger: Ledger, log: Log, wish: str
) -> None:
    _sent(ledger)
    outage = failing(client_error("InternalServerError", status=500))
    client = Meddler(
        aws.dynamodb,
        update_item=lambda real, **arguments: (
            outage(real, **arguments) if arguments["TableName"] == SUPPRESSIONS else real(**arguments)
        ),
    )
    desk = Desk(aws, clock, client)
    assert desk.handle(bodies.text(wish), by_sns(ses("Delivery", "m-1"))) == ["r-0"]
    assert aws.item()["status"] == "delivered"
    assert NUMBER not in str(log())
    assert desk.handle(bodies.text(wish)) == []


def test_a_text_for_which_no_time_is_left_comes_back(desk: Desk) -> None:
    assert desk.handle(bodies.text("stop"), remaining=lambda: FEEDBACK_KEPT_BACK_SECONDS * 1000 - 1) == [
        "r-0"
    ]
    assert desk.list.find("sms", [NUMBER]) == {}


def test_a_refusal_that_a_callback_tells_of_marks_who_opted_out_and_a_start_ends_that(
    desk: Desk, ledger: Ledger, aws: Aws
) -> None:
    _text(ledger)
    desk.handle(bodies.twilio("failed", "s-1", ErrorCode="21610"))
    assert aws.item("s-1", "sms")["status"] == "undelivered"
    assert desk.list.find("sms", [NUMBER])[NUMBER].reason == "stop"
    desk.handle(bodies.text("start", at=1000))
    assert desk.list.find("sms", [NUMBER]) == {}


def test_a_complaint_that_may_be_any_of_several_people_shuts_nobody_out(
    desk: Desk, ledger: Ledger, aws: Aws
) -> None:
    _sent(ledger, to=[ADA, EVE])
    desk.handle(by_sns(ses("Complaint", "m-1", ADA, EVE, to=[ADA, EVE])))
    assert aws.item()["status"] == "complained"
    assert desk.list.find("mail", [ADA, EVE]) == {}


def test_a_malformed_record_soon_reaches_the_dead_letters_and_its_neighbours_are_taken_in(
    desk: Desk, ledger: Ledger, aws: Aws, log: Log
) -> None:
    _sent(ledger)
    returned = desk.handle("not json", by_sns(ses("Delivery", "m-1")), '{"eventType": 7}')
    assert returned == ["r-0", "r-2"]
    assert aws.item()["status"] == "delivered"
    waits = [entry["VisibilityTimeout"] for _, call in desk.sqs.calls for entry in call["Entries"]]
    assert waits == [0, 0]
    assert ADA not in str(log())


def test_another_programs_mail_over_our_configuration_set_is_no_dead_letter(desk: Desk) -> None:
    anothers = ses("Delivery", "m-1")
    anothers["mail"] |= {"headers": [{"name": "X-Correlation-ID", "value": "req/7"}], "tags": {}}
    assert desk.handle(by_sns(anothers)) == []


def test_an_event_of_ours_that_cannot_be_understood_is_a_dead_letter(desk: Desk) -> None:
    ours = ses("Delivery", "m-1")
    del ours["delivery"]
    assert desk.handle(by_sns(ours)) == ["r-0"]


def test_an_event_of_a_foreign_topic_is_not_believed(desk: Desk, ledger: Ledger, aws: Aws) -> None:
    _sent(ledger)
    foreign = by_sns(
        ses("Bounce", "m-1"), topic="arn:aws:sns:eu-central-1:999999999999:mailroom-test-feedback"
    )
    assert desk.handle(foreign) == ["r-0"]
    assert aws.item()["status"] == "sent"


def test_a_batch_of_events_in_one_record_is_taken_in_but_for_what_is_malformed(
    desk: Desk, ledger: Ledger, aws: Aws
) -> None:
    _sent(ledger)
    body = json.dumps([ses("Delivery", "m-1"), {"eventType": 7}])
    assert desk.handle(body) == ["r-0"]
    assert aws.item()["status"] == "delivered"


def test_while_dynamodb_is_away_every_record_comes_back_and_nothing_is_lost(
    aws: Aws, clock: FakeClock, ledger: Ledger
) -> None:
    _sent(ledger)
    away = client_error("InternalServerError", status=500)
    desk = Desk(aws, clock, Meddler(aws.dynamodb, update_item=failing(away)))
    told = [by_sns(ses(kind, "m-1")) for kind in ("Delivery", "Send")]
    assert desk.handle(*told) == ["r-0", "r-1"]
    assert desk.sqs.calls == []  # they wait out their visibility
    assert desk.handle(*told) == []
    assert aws.item()["status"] == "delivered"


def test_a_mark_that_could_not_be_made_is_made_when_the_event_comes_again(
    aws: Aws, clock: FakeClock, ledger: Ledger
) -> None:
    _sent(ledger)
    away = client_error("InternalServerError", status=500)

    def marks_fail(real: Callable[..., Any], **arguments: Any) -> Any:
        if arguments["TableName"] == SUPPRESSIONS and left:
            raise left.pop()
        return real(**arguments)

    left = [away]
    desk = Desk(aws, clock, Meddler(aws.dynamodb, update_item=marks_fail))
    bounce = by_sns(ses("Bounce", "m-1"))
    assert desk.handle(bounce) == ["r-0"]
    assert desk.handle(bounce) == []
    assert list(desk.list.find("mail", [ADA])) == [ADA]


def test_what_the_time_does_not_suffice_for_comes_back(desk: Desk, ledger: Ledger, aws: Aws) -> None:
    for id_ in ("m-1", "m-2"):
        _sent(ledger, id_)
    left = iter([FEEDBACK_KEPT_BACK_SECONDS * 1000, FEEDBACK_KEPT_BACK_SECONDS * 1000 - 1])
    told = [by_sns(ses("Delivery", id_)) for id_ in ("m-1", "m-2")]
    assert desk.handle(*told, remaining=lambda: next(left)) == ["r-1"]
    assert (aws.item("m-1")["status"], aws.item("m-2")["status"]) == ("delivered", "sent")


def test_an_event_cannot_mark_somebody_to_whom_the_message_did_not_go(desk: Desk, ledger: Ledger) -> None:
    _sent(ledger, to=[ADA, EVE])
    desk.handle(by_sns(ses("Bounce", "m-1", "victim@example.com", to=["victim@example.com", ADA])))
    desk.handle(by_sns(ses("Complaint", "m-1", "victim@example.com")))
    assert desk.list.find("mail", ["victim@example.com", ADA, EVE]) == {}


def test_of_several_recipients_only_the_one_that_bounced_is_marked(
    desk: Desk, ledger: Ledger, aws: Aws
) -> None:
    _sent(ledger, to=[f"Ada <{ADA.upper()}>", EVE])
    both = [ADA, EVE]
    desk.handle(by_sns(ses("Bounce", "m-1", EVE, to=both)), by_sns(ses("Delivery", "m-1", ADA, to=both)))
    assert list(desk.list.find("mail", both)) == [EVE]
    statuses = {each: entry["status"] for each, entry in aws.item()["recipients"].items()}
    assert statuses == {ADA: "delivered", EVE: "bounced"}


def test_a_landline_is_marked_and_the_text_message_undelivered(desk: Desk, ledger: Ledger, aws: Aws) -> None:
    _text(ledger)
    desk.handle(bodies.twilio("undelivered", "s-1", ErrorCode="30006"), bodies.twilio("sent", "s-1"))
    found = aws.item("s-1", "sms")
    assert (found["status"], found["error_code"]) == ("undelivered", "30006")
    assert list(desk.list.find("sms", ["+16175551234"])) == ["+16175551234"]


def test_a_callback_cannot_mark_a_number_that_is_not_its_messages(desk: Desk, ledger: Ledger) -> None:
    _text(ledger)
    desk.handle(bodies.twilio("undelivered", "s-1", ErrorCode="30006", To="+12025550123"))
    assert desk.list.find("sms", ["+12025550123", "+16175551234"]) == {}


def test_a_replayed_callback_changes_nothing(desk: Desk, ledger: Ledger, aws: Aws) -> None:
    _text(ledger)
    early = bodies.twilio("sent", "s-1")
    desk.handle(early, bodies.twilio("delivered", "s-1", at=5))
    done = aws.item("s-1", "sms")
    assert desk.handle(early, early) == []
    assert aws.item("s-1", "sms") == done


def test_a_thousand_shuffled_and_doubled_events_end_right(desk: Desk, ledger: Ledger, aws: Aws) -> None:
    ways: dict[str, tuple[list[tuple[str, dict[str, Any]]], str]] = {
        "delivered": ([("Send", {}), ("Delivery", {})], "delivered"),
        "bounced": ([("Send", {}), ("DeliveryDelay", {}), ("Bounce", {})], "bounced"),
        "complained": ([("Send", {}), ("Delivery", {}), ("Open", {}), ("Complaint", {})], "complained"),
        "away": ([("Send", {}), ("Delivery", {}), ("Bounce", {"bounceType": "Transient"})], "delivered"),
        "full": ([("Send", {}), ("Bounce", {"bounceType": "Transient"})], "undelivered"),
        "rejected": ([("Send", {}), ("Reject", {})], "undelivered"),
    }
    told: list[str] = []
    expected: dict[str, str] = {}
    for number in range(45):
        for name, (events, status) in ways.items():
            id_ = f"{name}-{number}"
            expected[id_] = status
            claim = claimed(ledger, mail(id_, to=f"{id_}@example.com"))
            if number % 3:  # of every third the sender has crashed
                ledger.complete(claim, "ses", "ses-1")
            told += [by_sns(ses(kind, id_, f"{id_}@example.com", **section)) for kind, section in events] * (
                1 + number % 2
            )
    assert len(told) > 1_000
    random.Random(4).shuffle(told)
    for start in range(0, len(told), 50):
        assert desk.handle(*told[start : start + 50]) == []
    assert {id_: aws.item(id_)["status"] for id_ in expected} == expected
    assert all(aws.item(id_)["attempts"] == 1 for id_ in expected)
    marked = {each.recipient.partition("-")[0] for each in desk.list.listed()}
    assert marked == {"bounced", "complained"}


KINDS = ("Send", "Delivery", "Bounce", "Complaint", "DeliveryDelay", "Open", "Reject")
PARTLY = st.tuples(st.sampled_from(KINDS), st.sampled_from([(ADA,), (EVE,), (ADA, EVE)]))


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data(), st.lists(PARTLY, min_size=1, max_size=6))
def test_whatever_the_order_and_the_batches_a_mail_to_several_ends_the_same(
    aws: Aws, clock: FakeClock, ledger: Ledger, data: st.DataObject, events: list[Any]
) -> None:
    both = [ADA, EVE]

    def end(order: list[Any], batch: int) -> dict[str, Any]:
        id_ = f"any-{next(_ids)}"
        _sent(ledger, id_, to=both)
        desk = Desk(aws, clock)
        told = [by_sns(ses(kind, id_, *named, to=both)) for kind, named in order]
        for start in range(0, len(told), batch):
            assert desk.handle(*told[start : start + batch]) == []
        unordered = ("id", "history", "claim_token")
        return {name: value for name, value in aws.item(id_).items() if name not in unordered}

    shuffled = data.draw(st.permutations(events + data.draw(st.lists(st.sampled_from(events), max_size=3))))
    assert end(events, len(events)) == end(shuffled, data.draw(st.integers(1, 4)))


def test_a_crashed_senders_mail_is_not_sent_again_once_its_event_is_in(
    desk: Desk, ledger: Ledger, clock: FakeClock
) -> None:
    claimed(ledger, mail(to=ADA))
    desk.handle(by_sns(ses("DeliveryDelay", "m-1")))
    clock.advance(LEASE + 1)
    assert type(ledger.claim(mail(to=ADA))).__name__ == "Completed"
