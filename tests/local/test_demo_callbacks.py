"""The demo tells right from wrong about callbacks: signatures, repeats, what is missing, what is too much."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from standardwebhooks.webhooks import Webhook

from local.demo.checks.callbacks import CallbackCheck, ReceivedCallback, check_callbacks, read
from local.demo.scenarios import Notice, Scenario, faxes, mails, plan
from local.demo.scenarios.faxes import FaxScenario

KEY = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYqr"
MOST = 20
FAX = FaxScenario("7", "+14155550130", fails=2)
WANTED = {"7": FAX.callbacks(MOST)}
WEBHOOKS = {"w": {"order": 7}}
NOW = datetime(2026, 11, 21, 9, tzinfo=UTC)
"""Long ago: a run may be judged at any time after it."""


def request(
    webhook_id: str, path: str, payload: Any, key: str = KEY, signed: datetime = NOW, received: datetime = NOW
) -> dict[str, Any]:
    """A request as the receiver keeps it."""
    body = json.dumps(payload)
    headers = {
        "webhook-id": webhook_id,
        "webhook-timestamp": str(int(signed.timestamp())),
        "webhook-signature": Webhook(key).sign(webhook_id, signed, body),
    }
    return {
        "path": f"/receiver/ok/{path}",
        "headers": headers,
        "body": body,
        "received_at": received.isoformat(),
    }


def told(nth: int, what: Notice, timestamp: int = 1) -> ReceivedCallback:
    payload = {"fax_id": "7", "status": what[0], "message": what[1], "timestamp": timestamp}
    return ReceivedCallback(f"msg_{nth}", "callbacks", "7", payload, verified=True)


def webhook(payload: Any) -> ReceivedCallback:
    return ReceivedCallback("msg_w", "messages", "w", payload, verified=True)


ALL = [*(told(nth, what, nth) for nth, what in enumerate(FAX.callbacks(MOST))), webhook({"order": 7})]


def check(callbacks: list[ReceivedCallback]) -> CallbackCheck:
    return check_callbacks(callbacks, WANTED, WEBHOOKS)


def test_all_as_it_should_be() -> None:
    result = check(ALL)
    assert (result.received, result.different, result.verified) == (4, 4, 4)
    assert (result.missing, result.webhooks, result.failures) == (0, 1, [])


def test_a_repeat_of_a_webhook_id_is_dropped() -> None:
    result = check([*ALL, ALL[0]])
    assert (result.received, result.different, result.failures) == (5, 4, [])


def test_callbacks_may_arrive_in_another_order_than_their_timestamps_tell() -> None:
    assert check(ALL[::-1]).failures == []


def test_timestamps_that_tell_another_order_are_seen() -> None:
    wrong = [told(nth, what, 9 - nth) for nth, what in enumerate(FAX.callbacks(MOST))]
    assert check([*wrong, ALL[-1]]).failures == [
        "The timestamps of the callbacks about 7 have another order."
    ]


def test_that_it_was_sent_need_not_be_told_where_what_followed_came_first() -> None:
    wanted = {"7": [("sent", "Mail sent"), ("delivered", "Mail delivered")]}
    payload = {"id": "7", "status": "delivered", "message": "Mail delivered", "timestamp": 1}
    delivered = ReceivedCallback("msg_d", "callbacks", "7", payload, verified=True)
    before = payload | {"status": "sent", "message": "Mail sent"}
    sent = ReceivedCallback("msg_s", "callbacks", "7", before, verified=True)
    for came in ([delivered], [sent, delivered], [delivered, sent]):
        assert check_callbacks(came, wanted, {}).failures == []
    assert check_callbacks([sent], wanted, {}).failures == ["7: no callback 'delivered'."]
    late = ReceivedCallback("msg_s", "callbacks", "7", before | {"timestamp": 2}, verified=True)
    assert "another order" in check_callbacks([delivered, late], wanted, {}).failures[0]


def test_a_callback_that_did_not_come_is_missing() -> None:
    result = check(ALL[1:])
    assert result.missing == 1
    assert "7: no callback 'tmp_fail'." in result.failures


def test_a_webhook_that_did_not_come_is_missing() -> None:
    result = check(ALL[:-1])
    assert (result.missing, result.failures) == (1, ["The webhook w did not arrive."])


def test_a_webhook_with_another_payload_is_seen() -> None:
    assert "another payload" in check([*ALL[:-1], webhook({"order": 8})]).failures[0]


def test_the_same_callback_under_two_webhook_ids_is_seen() -> None:
    assert check([*ALL, told(9, FAX.callbacks(MOST)[0])]).failures == [
        "7 had 4 different callbacks instead of 3."
    ]


def test_another_sentence_than_the_contracts_is_seen() -> None:
    wrong = told(0, ("tmp_fail", "It did not work."))
    assert "7: unexpected callback 'tmp_fail': It did not work." in check([wrong, *ALL[1:]]).failures


def test_a_callback_that_nobody_asked_for_is_seen() -> None:
    eve = ReceivedCallback("msg_e", "callbacks", "eve", {}, verified=True)
    assert check([*ALL, eve]).failures == ["No callback about eve was asked for."]


def test_a_signature_by_another_key_is_seen() -> None:
    payload = {"fax_id": "7", "status": "sent"}
    right, wrong = read(
        [request("a", "callbacks/7", payload), request("b", "callbacks/7", payload, "b" * 44)], KEY
    )
    assert (right.verified, right.about, right.kind, right.payload) == (True, "7", "callbacks", payload)
    assert not wrong.verified
    assert "wrong signature" in check([*ALL, wrong]).failures[0]


def test_a_signature_that_was_old_when_it_came_is_seen() -> None:
    payload = {"fax_id": "7", "status": "sent"}
    times = (timedelta(minutes=-6), timedelta(minutes=-4), timedelta(minutes=6))
    came = read([request("a", "callbacks/7", payload, signed=NOW + each) for each in times], KEY)
    assert [each.verified for each in came] == [False, True, False]


def test_a_body_that_was_changed_on_its_way_is_seen() -> None:
    kept = request("a", "callbacks/7", {"status": "sent"})
    (changed,) = read([kept | {"body": kept["body"] + " "}], f"whsec_{KEY}")
    assert not changed.verified


def test_the_words_of_a_fax_that_is_busy_for_ever_are_those_of_the_contract() -> None:
    busy = FaxScenario("b", "+1", fails=MOST, delivered=False)
    said = busy.callbacks(MOST)
    assert len(said) == MOST
    assert said[6] == ("tmp_fail", "Failed to deliver fax (attempt 7 of 20). Fax status: busy")
    assert said[-1] == ("perm_fail", "Failed to deliver fax after 20 tries. Last attempt status: busy")


def test_some_mails_and_every_fax_are_asked_about() -> None:
    providers = "http://127.0.0.1:1"
    mailed = plan.with_callbacks([*mails.good(), *mails.awkward()], providers)
    faxed = faxes.faxes(MOST)
    expected = plan.expected_callbacks(mailed, faxed, MOST)
    told = [message for message in mailed if "callback_url" in message.item]
    assert len(told) == plan.WITH_CALLBACK + 1
    assert len(expected) == len(told) + len(faxed)
    assert [expected[each.key[0]][0][0] for each in told if each.reason] == ["failed"]
    assert expected[told[0].key[0]] == [("sent", "Mail sent successfully"), ("delivered", "Mail delivered")]
    assert all(isinstance(message, Scenario) for message in mailed)


def test_the_webhooks_are_mailbox_items_with_the_payloads_that_must_arrive() -> None:
    items = plan.webhooks("http://127.0.0.1:1")
    assert {item["id"]: item["payload"] for item in items} == plan.PAYLOADS
    assert all(item["url"].endswith(f"/messages/{item['id']}") for item in items)
