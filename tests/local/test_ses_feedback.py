"""Events of the SES simulator about mails, in SES's own JSON: by address, shuffled, doubled and early."""

import json
from collections import Counter

import pytest

from mailroom.errors import Malformed
from mailroom.feedback.reader import read
from mailroom.message.outcome import Status
from mailroom_local.providers.ses_feedback import VALIDATED
from tests.support import ROOT
from tests.support.local.feedback import SENDER, SET, TOPIC
from tests.support.local.ses_feedback import FeedbackBench, reading, simulator_address, summary

GUIDE = ROOT / "tests" / "support" / "unit" / "events_of_ses"
"""The examples of SES's developer guide."""


@pytest.mark.parametrize(
    ("name", "told", "statuses"),
    [
        ("success", [("Delivery",), ("Send",)], {"sent", "delivered"}),
        ("anything-else", [("Delivery",), ("Send",)], {"sent", "delivered"}),
        ("bounce", [("Bounce", "Permanent", "General"), ("Send",)], {"sent", "bounced"}),
        ("complaint", [("Complaint",), ("Delivery",), ("Send",)], {"sent", "delivered", "complained"}),
        (
            "suppressionlist",
            [("Bounce", "Permanent", "OnAccountSuppressionList"), ("Send",)],
            {"sent", "bounced"},
        ),
        (
            "ooto",
            [("Bounce", "Transient", "General"), ("Delivery",), ("Send",)],
            {"sent", "delivered", "undelivered"},
        ),
        (
            "soft",
            [("Bounce", "Transient", "MailboxFull"), ("DeliveryDelay",), ("Send",)],
            {"sent", "undelivered"},
        ),
        ("reject", [("Reject",), ("Send",)], {"sent", "undelivered"}),
    ],
)
@pytest.mark.parametrize("label", ["", "+7", "+a.b-c"])
def test_a_simulator_address_determines_the_events_of_its_mail(
    name: str, told: list[tuple[str, ...]], statuses: set[Status], label: str
) -> None:
    bench = FeedbackBench()
    bench.accept(simulator_address(name + label))
    events = bench.settle()
    assert summary(events) == told
    assert {each.status for event in events for each in reading(event)} - {None} == statuses
    assert all(each.key.id == "a" for event in events for each in reading(event))


def test_the_label_soft_causes_a_soft_bounce_only_for_an_address_of_the_simulators_domain() -> None:
    bench = FeedbackBench()
    bench.accept(simulator_address("success+7.soft"))
    assert ("Bounce", "Transient", "MailboxFull") in summary(bench.settle())
    bench = FeedbackBench()
    bench.accept("bounce+soft@example.com")
    assert summary(bench.settle()) == [("Delivery",), ("Send",)]


@pytest.mark.parametrize(
    ("name", "section", "example"),
    [
        ("success", "send", "send"),
        ("success", "delivery", "delivery"),
        ("bounce", "bounce", "bounce"),
        ("complaint", "complaint", "complaint"),
        ("soft", "deliveryDelay", "delivery_delay"),
        ("reject", "reject", "reject"),
    ],
)
def test_an_event_has_the_fields_of_the_example_in_the_developer_guide_of_ses(
    name: str, section: str, example: str
) -> None:
    bench = FeedbackBench()
    bench.accept(simulator_address(name))
    (ours,) = [each for each in bench.settle() if section in each]
    guides = json.loads((GUIDE / f"{example}.json").read_text())
    assert ours.keys() == guides.keys()
    assert set(guides["mail"]) - set(ours["mail"]) == set()
    further = {
        "remoteMtaIp",
        "reportingMTA",
        "complaintSubType",
    }  # in the guide's contents, not in its examples
    assert ours[section].keys() | further == guides[section].keys() | further
    for field, value in guides[section].items():
        if isinstance(value, list) and isinstance(value[0], dict):
            assert ours[section][field][0].keys() == value[0].keys()


def test_an_event_contains_the_addresses_the_headers_and_the_tags_of_its_mail() -> None:
    bench = FeedbackBench()
    bench.accept("Ada <ada@example.com>", cc=["c@example.com"], bcc=["b@example.com"])
    mail = bench.settle()[0]["mail"]
    assert mail["destination"] == ["ada@example.com", "c@example.com", "b@example.com"]
    assert (mail["timestamp"], mail["messageId"], mail["source"]) == (
        "2026-11-21T09:00:00.250Z",
        "m-1",
        SENDER,
    )
    assert {"name": "X-Correlation-ID", "value": "YQ"} in mail["headers"]
    assert not mail["headersTruncated"]
    assert (mail["tags"]["correlation"], mail["tags"]["ses:configuration-set"]) == (["YQ"], [SET])
    assert mail["commonHeaders"] == {
        "from": [SENDER],
        "to": ["Ada <ada@example.com>"],
        "cc": ["c@example.com"],
        "messageId": "m-1",
        "subject": "Hello",
    }


def test_an_event_with_truncated_headers_identifies_its_message_by_its_tags() -> None:
    bench = FeedbackBench()
    bench.accept(simulator_address("bounce+truncated.1"))
    for event in bench.settle():
        mail = event["mail"]
        assert mail["headersTruncated"]
        assert "X-Correlation-ID" not in {each["name"] for each in mail["headers"]}
        assert [each.key.id for each in reading(event)] == ["a"]


def test_the_ses_simulator_reports_events_of_each_recipient_of_a_mail_to_several() -> None:
    bench = FeedbackBench()
    bench.accept(
        "ada@example.com", simulator_address("bounce+several"), bcc=[simulator_address("complaint+several")]
    )
    events = bench.settle()
    assert Counter(each["eventType"] for each in events) == {
        "Send": 1,
        "Delivery": 2,
        "Bounce": 1,
        "Complaint": 1,
    }
    outcomes = {(each.status, each.recipients) for event in events for each in reading(event)}
    assert ("bounced", (simulator_address("bounce+several"),)) in outcomes
    assert ("delivered", ("ada@example.com",)) in outcomes
    assert ("complained", (simulator_address("complaint+several"),)) in outcomes


def test_the_ses_simulator_rejects_a_mail_for_all_its_recipients_if_it_rejects_it_for_one() -> None:
    bench = FeedbackBench()
    bench.accept("ada@example.com", simulator_address("reject"))
    assert summary(bench.settle()) == [("Reject",), ("Send",)]


def test_a_hard_bounce_or_complaint_suppresses_its_recipient_and_a_later_mail_bounces() -> None:
    bench = FeedbackBench()
    for name in ("bounce", "complaint", "ooto", "soft", "success"):
        bench.accept(simulator_address(f"{name}+1"))
    listed = {
        name
        for name in ("bounce", "complaint", "ooto", "soft", "success")
        if simulator_address(f"{name}+1") in bench.suppressed
    }
    assert listed == {"bounce", "complaint"}
    bench.settle()
    bench.emulated.batches.clear()
    bench.accept(simulator_address("Complaint+1"), message_id="m-2")
    assert summary(bench.settle()) == [("Bounce", "Permanent", "OnAccountSuppressionList"), ("Send",)]


def test_the_ses_simulator_publishes_events_in_batches_of_ten_some_of_them_reordered_or_doubled() -> None:
    bench = FeedbackBench()
    for number in range(100):
        bench.accept(f"{number}@example.com", message_id=f"m-{number}")
    bench.settle(1)
    came = [(each["mail"]["messageId"], each["eventType"]) for each in bench.emulated.events]
    times = Counter(came)
    assert (len(times), set(times.values())) == (200, {1, 2})
    assert 5 < len(came) - 200 < 50
    assert max(map(len, bench.emulated.batches)) == 10
    overtaken = [key for key, _ in came if came.index((key, "Delivery")) < came.index((key, "Send"))]
    assert 20 < len(set(overtaken)) < 80


def test_some_ses_events_precede_the_response_to_the_submit_and_the_label_early_makes_all_do_so() -> None:
    bench = FeedbackBench()
    for number in range(100):
        bench.accept(f"{number}@example.com", message_id=f"m-{number}")
    early = bench.emulated.events
    assert 0 < len({each["mail"]["messageId"] for each in early}) < 20
    assert {each["eventType"] for each in early} == {"Send"}
    bench = FeedbackBench()
    bench.accept(simulator_address("bounce+early"))
    assert {each["eventType"] for each in bench.emulated.events} == {"Send", "Bounce"}


def test_events_that_the_emulator_refuses_are_published_again() -> None:
    bench = FeedbackBench()
    bench.accept("ada@example.com")
    bench.emulated.failures = 2
    assert (bench.settle(), bench.settle()) == ([], [])
    assert len(bench.settle()) == 2


def test_the_ses_simulator_publishes_only_the_event_types_of_an_enabled_event_destination() -> None:
    bench = FeedbackBench(wanted=["BOUNCE", "DELIVERY_DELAY"])
    bench.accept(simulator_address("soft"))
    assert {each["eventType"] for each in bench.settle()} == {"Bounce", "DeliveryDelay"}
    bench = FeedbackBench(enabled=False)
    bench.accept(simulator_address("soft"))
    bench.accept(simulator_address("soft"), configuration_set=None)
    assert bench.settle() == []


def test_a_new_topic_first_gets_a_validation_notice_which_is_not_json() -> None:
    bench = FeedbackBench()
    bench.accept("ada@example.com")
    bench.accept("eve@example.com")
    bench.settle()
    texts = [text for batch in bench.emulated.batches for text in batch]
    assert (texts[0], texts.count(VALIDATED)) == (VALIDATED, 1)
    assert read(json.dumps({"Type": "Notification", "TopicArn": TOPIC, "Message": VALIDATED}), [TOPIC]) == []
    with pytest.raises(Malformed):
        read(json.dumps({"Type": "Notification", "TopicArn": TOPIC, "Message": "else"}), [TOPIC])
