"""The demo's messages: their recipients do what is expected of them, at the simulators."""

from collections import Counter
from typing import Any

import pytest

from local.demo.scenarios import Scenario, mails, pushes, sms
from local.demo.scenarios.plan import DemoFacts, DemoPlan
from local.providers.ses_events import Address
from local.providers.sms import BASIC, answer_to, course_of, is_silent, refusal_of, segments
from local.providers.sns import WORDS
from mailroom.channels.contracts import contracts_of
from mailroom.errors import Invalid
from mailroom.message.message import parse

APPLICATION = "arn:aws:sns:us-east-1:000000000000:app/GCM/mailroom-local"
TOPIC = "arn:aws:sns:us-east-1:000000000000:mailroom-local-news"
DEVICES = {
    token: f"arn:aws:sns:us-east-1:000000000000:endpoint/GCM/mailroom-local/{number:08}"
    for number, (_, token) in enumerate(pushes.registered())
}
FACTS = DemoFacts(8, 10, "secret", {pushes.ANDROID: APPLICATION}, [TOPIC])
PLAN = DemoPlan.of(FACTS, DEVICES, "http://127.0.0.1:1")
EVERY = [*PLAN.mails, *PLAN.sms, *PLAN.pushes, *PLAN.again.values()]
CONTRACTS = contracts_of("US")
ENDINGS = {
    ("delivered",): "delivered",
    ("hard",): "bounced",
    ("listed",): "bounced",
    ("delivery",): "delivered",
    ("delivery", "complaint"): "complained",
    ("delivery", "away"): "delivered",
    ("delay", "full"): "undelivered",
    ("reject",): "undelivered",
}


def refusal(item: dict[str, Any]) -> str:
    """What the item's contract says against it; "" where nothing."""
    try:
        parse(item, CONTRACTS)
    except Invalid as invalid:
        return str(invalid)
    return ""


def test_every_message_has_a_key_of_its_own_and_a_status_to_come_to() -> None:
    finals = PLAN.finals()
    assert len(finals) == len(EVERY) + len(PLAN.faxes) + len(PLAN.webhooks)
    by_channel = Counter(event_type for _, event_type in finals)
    assert by_channel["mail"] > 500
    assert 30 <= by_channel["sms"] <= 40
    assert 20 <= by_channel["push"] <= 30
    assert set(finals.values()) == {
        "failed",
        "suppressed",
        "sent",
        "undelivered",
        "delivered",
        "bounced",
        "complained",
    }


@pytest.mark.parametrize("message", mails.returning(), ids=lambda each: each.item["id"])
def test_a_returning_mail_ends_as_its_address_makes_it(message: Scenario) -> None:
    to = message.item["to"]
    for recipient in [to] if isinstance(to, str) else to:
        expected = message.recipients.get(recipient, message.status)
        assert ENDINGS[Address.of(recipient).course] == expected


@pytest.mark.parametrize("message", PLAN.sms, ids=lambda each: each.item["id"])
def test_an_sms_ends_as_its_number_makes_it(message: Scenario) -> None:
    number = message.item["to"]
    refusal = refusal_of(number, 2)
    course, error = course_of(number)
    status = {"failed": "undelivered", "sent": "sent"}.get(course, course)
    if refusal is not None or message.reason:
        assert message.status == ("suppressed" if refusal == "unsubscribed" else "failed")
    else:
        assert message.status == status
    if error is not None:
        assert message.facts["error_code"] == str(error)


def test_one_sms_is_found_by_a_look_up_alone() -> None:
    (found,) = [each for each in PLAN.sms if is_silent(each.item["to"])]
    assert answer_to(found.item["to"], 1) == "lost"


def test_an_item_is_refused_by_its_contract_for_the_reason_that_is_expected() -> None:
    refused = {message.item["id"]: refusal(message.item) for message in EVERY}
    wrong = [
        each.item["id"]
        for each in EVERY
        if refused[each.item["id"]] and (not each.reason or each.reason not in refused[each.item["id"]])
    ]
    assert wrong == []
    assert refused["sms-to-nobody"].startswith("to: ")
    assert refused["push-empty"].startswith("body: ")


def test_the_long_sms_take_the_segments_that_are_expected() -> None:
    for message in PLAN.sms:
        text = message.item.get("text")
        if text is not None and "segments" in message.facts:
            assert segments(text) == message.facts["segments"]
            assert (set(text) <= BASIC) == (message.facts["encoding"] == sms.GSM)


def test_no_word_in_a_good_token_chooses_anything() -> None:
    good = [token for tokens in (*pushes.BY_ARN.values(), *pushes.TOKENS.values()) for token in tokens]
    assert not [token for token in good if any(word in token for word in WORDS)]
    assert "disabled" in pushes.DISABLED
    assert "throttled-once" in pushes.THROTTLED


def test_topics_are_pushed_to_where_the_stage_has_any() -> None:
    assert [each.item["to"] for each in PLAN.pushes if each.item["to"] == TOPIC] == [TOPIC]
    assert len(pushes.pushes(DEVICES, [])) == len(PLAN.pushes) - 1


def test_the_second_messages_go_to_those_whom_the_first_ones_have_put_on_the_list() -> None:
    assert PLAN.suppressing() <= PLAN.suppressed.keys()
    assert {message.status for message in PLAN.again.values()} == {"suppressed"}
    firsts = Counter(each.address for each in [*PLAN.mails, *PLAN.sms, *PLAN.pushes])
    assert all(firsts[message.address] >= 1 for message in PLAN.again.values())


def test_of_each_kind_some_ask_to_be_told() -> None:
    asking = Counter(each.key[1] for each in EVERY if "callback_url" in each.item)
    assert (asking["mail"], asking["sms"], asking["push"]) == (9, 6, 6)
    assert PLAN.callbacks["sms-unreachable"] == [
        ("sent", "SMS sent successfully"),
        ("undelivered", "SMS could not be delivered"),
    ]
    assert PLAN.callbacks["returns-bounce-0"][1] == ("bounced", "Mail bounced")
