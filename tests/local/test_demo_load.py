"""The demo's messages: their recipients do what is expected of them, at the simulators."""

from collections import Counter
from typing import Any

import pytest

from mailroom.channels.contracts import contracts_of
from mailroom.channels.sms.text import segments_of
from mailroom.errors import Invalid
from mailroom.message.message import parse
from lab.demo.load import faxes, mails, pushes
from lab.demo.plan import DemoFacts, DemoPlan
from lab.harness.expected import Expected
from mailroom_local.providers import fax
from mailroom_local.providers.ses_events import Address
from mailroom_local.providers.sms import answer_to, course_of, is_silent, refusal_of
from mailroom_local.providers.sns import WORDS

APPLICATION = "arn:aws:sns:us-east-1:000000000000:app/GCM/mailroom-local"
TOPIC = "arn:aws:sns:us-east-1:000000000000:mailroom-local-news"
DEVICES = {
    token: f"arn:aws:sns:us-east-1:000000000000:endpoint/GCM/mailroom-local/{number:08}"
    for number, (_, token) in enumerate(pushes.registered())
}
FACTS = DemoFacts(20, 10, {pushes.ANDROID: APPLICATION}, [TOPIC])
PLAN = DemoPlan.of(FACTS, DEVICES, "http://127.0.0.1:1", "payloads")
EVERY = [*PLAN.mails, *PLAN.others, *PLAN.day, *PLAN.again]
SMS = [each for each in PLAN.others if each.channel == "sms"]
FAXES = [each for each in PLAN.others if each.channel == "fax"]
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
    assert len({each.key for each in EVERY}) == len(EVERY)
    by_channel = Counter(each.channel for each in EVERY)
    assert by_channel["mail"] > 500
    assert 30 <= by_channel["sms"] <= 40
    assert 20 <= by_channel["push"] <= 30
    ends = {"failed", "suppressed", "sent", "undelivered", "delivered", "bounced", "complained"}
    assert {each.status for each in EVERY} == ends


@pytest.mark.parametrize("message", mails.returning(), ids=lambda each: each.item["id"])
def test_a_returning_mail_ends_as_its_address_makes_it(message: Expected) -> None:
    to = message.item["to"]
    for recipient in [to] if isinstance(to, str) else to:
        expected = message.recipients.get(recipient, message.status)
        assert ENDINGS[Address.of(recipient).course] == expected


@pytest.mark.parametrize("message", SMS, ids=lambda each: each.item["id"])
def test_an_sms_ends_as_its_number_makes_it(message: Expected) -> None:
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
    (found,) = [each for each in SMS if is_silent(each.item["to"])]
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
    for message in SMS:
        text = message.item.get("text")
        if text is not None and "segments" in message.facts:
            assert segments_of(text).facts == message.facts


def test_no_word_in_a_good_token_chooses_anything() -> None:
    good = [token for tokens in (*pushes.BY_ARN.values(), *pushes.TOKENS.values()) for token in tokens]
    assert not [token for token in good if any(word in token for word in WORDS)]
    assert "disabled" in pushes.DISABLED
    assert "throttled-once" in pushes.THROTTLED


def test_topics_are_pushed_to_where_the_stage_has_any() -> None:
    assert [each.address for each in PLAN.others if each.address == TOPIC] == [TOPIC]
    assert len(pushes.pushes(DEVICES, [])) == len(pushes.pushes(DEVICES, [TOPIC])) - 1


def test_the_second_messages_go_to_those_whom_the_first_ones_have_put_on_the_list() -> None:
    assert {(each.address, each.channel) for each in PLAN.again} <= PLAN.suppressed.keys()
    assert {each.status for each in PLAN.again} == {"suppressed"}
    firsts = Counter(each.address for each in [*PLAN.mails, *PLAN.others])
    assert all(firsts[each.address] >= 1 for each in PLAN.again)


def test_of_each_kind_some_ask_to_be_told_and_all_faxes_do() -> None:
    asking = Counter(each.channel for each in EVERY if "callback_url" in each.item)
    assert asking == {"mail": 9, "sms": 6, "push": 6, "fax": len(FAXES)}
    told = {each.id: each.callbacks for each in EVERY}
    assert told["sms-unreachable"] == [
        ("sent", "SMS sent successfully"),
        ("undelivered", "SMS could not be delivered"),
    ]
    assert told["returns-bounce-0"][1] == ("bounced", "Mail bounced")
    assert [each.callbacks[0][0] for each in PLAN.mails if each.reason and each.callbacks] == ["failed"]


def test_the_faxes_are_60_to_12_numbers_and_one_to_none() -> None:
    lines = [each.arrives_at for each in FAXES if each.arrives_at]
    assert len(lines) == len(FAXES) - 1 == 60
    assert set(lines) == set(faxes.NUMBERS)
    assert len(faxes.NUMBERS) == 12


@pytest.mark.parametrize(
    ("line", "courses"),
    [
        (faxes.BUSY, ["busy", "busy", "busy"]),
        (faxes.TWICE, ["busy", "busy", "delivered"]),
        (faxes.SLOW, ["slow"]),
        (faxes.LOST, ["lost", "delivered"]),
        (faxes.BROKEN, ["failed", "delivered"]),
        *((line, ["delivered"]) for line in (*faxes.GOOD, *faxes.UPSTREAM)),
    ],
)
def test_the_numbers_do_what_the_demo_expects_of_them(line: str, courses: list[str]) -> None:
    assert [fax.course_of(line, nth + 1) for nth in range(len(courses))] == courses
    assert fax.refusal_of(line, 1) is None
    assert fax.refusal_of(faxes.REFUSING, 9) == "invalid"
    assert fax.refusal_of(faxes.THROTTLED, 1) == "throttled"
