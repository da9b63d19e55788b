"""The real adapters of SMS and pushes as clients of the simulators: each outcome is taken for what it is."""

from collections.abc import Iterator
from typing import Any

import pytest

from mailroom.channels.push.contract import push_to
from mailroom.channels.sms.contract import SmsRequest
from mailroom.errors import OutcomeUnknown
from mailroom.message.message import parse
from mailroom.message.outcome import NotFound, NotReady, Outcome, Rejected, Retry, Sent, Unknowable
from mailroom.providers.sns.sender import SnsPush
from mailroom.providers.twilio.account import TwilioAccount
from mailroom.providers.twilio.sender import TwilioSms
from mailroom_local.providers.twilio import ACCOUNT_SID, AUTH_TOKEN, REDACTING_SID
from tests.support.local.fax import NOW
from tests.support.local.feedback import FeedbackStage, running_feedback
from tests.support.local.twilio import SENDER, Bench, number, running_twilio_bench
from tests.support.unit.sms import sms_settings

BENCH = running_twilio_bench
APPLICATIONS = {
    "android": "arn:aws:sns:us-east-1:000000000000:app/GCM/mailroom-local",
    "ios": "arn:aws:sns:us-east-1:000000000000:app/APNS_SANDBOX/mailroom-local",
}
TOPIC = "arn:aws:sns:us-east-1:000000000000:mailroom-local-news"


def twilio_at_bench(bench: Bench, account_sid: str = ACCOUNT_SID) -> TwilioSms:
    callbacks = "https://api.example/callbacks/twilio"
    sender = sms_settings(sms_base_url=f"{bench.url}/twilio", sms_sender=SENDER, callback_url=callbacks)
    return TwilioSms(TwilioAccount(account_sid, AUTH_TOKEN), sender, bench.clock)


def sms_request(ending: str = "60", text: str = "Hello, Zoë") -> SmsRequest:
    return SmsRequest(number(ending), text, ("https://example.com/a.png",), "aGk", NOW + 600)


def test_an_accepted_sms_is_in_the_inbox_with_every_field_of_its_request(bench: Bench) -> None:
    outcome = twilio_at_bench(bench).submit(sms_request())
    (kept,) = bench.inbox.all()
    assert isinstance(outcome, Sent)
    assert outcome.provider_id == kept.provider_id
    assert kept.content["text"] == "Hello, Zoë"
    assert kept.content["media_urls"] == ["https://example.com/a.png"]
    assert kept.content["callback"] == "https://api.example/callbacks/twilio/aGk"
    assert kept.content["validity_seconds"] == 600


@pytest.mark.parametrize(
    ("ending", "kind"),
    [
        ("40", Rejected),
        ("41", Rejected),
        ("42", Rejected),
        ("43", Rejected),
        ("50", Retry),
        ("51", Retry),
        ("30", Sent),
    ],
)
def test_each_response_of_twilio_to_a_submit_becomes_its_outcome(
    bench: Bench, ending: str, kind: type[Outcome]
) -> None:
    assert isinstance(twilio_at_bench(bench).submit(sms_request(ending)), kind)


@pytest.mark.parametrize(("ending", "there"), [("52", False), ("53", True), ("54", True), ("57", True)])
def test_the_look_up_at_twilio_after_an_unknown_outcome_finds_the_message_if_it_was_accepted(
    bench: Bench, ending: str, there: bool
) -> None:
    adapter, request = twilio_at_bench(bench), sms_request(ending)
    with pytest.raises(OutcomeUnknown):
        adapter.submit(request)
    found = adapter.find(request, NOW - 60, ())
    if there:
        assert isinstance(found, Sent)
        assert [found.provider_id] == [each.provider_id for each in bench.inbox.all()]
        assert isinstance(adapter.find(request, NOW - 60, {found.provider_id}), NotFound)
    else:
        assert isinstance(found, NotFound)


def test_a_look_up_in_a_redacting_twilio_account_finds_a_message_only_until_it_is_sent(bench: Bench) -> None:
    adapter, request = twilio_at_bench(bench, REDACTING_SID), sms_request("57")
    with pytest.raises(OutcomeUnknown):
        adapter.submit(request)
    found = adapter.find(request, NOW - 60, ())
    assert isinstance(found, Sent)
    bench.wait(1)
    assert adapter.find(request, NOW - 60, ()) == Unknowable()
    assert adapter.find(request, NOW - 60, {found.provider_id}) == Unknowable()
    assert twilio_at_bench(bench).find(request, NOW - 60, ()) == found


@pytest.fixture(scope="module")
def simulated_stage(url: str) -> Iterator[FeedbackStage]:
    with running_feedback(url) as stage:
        for platform in ("GCM", "APNS_SANDBOX"):
            stage.sns.create_platform_application(
                Name="mailroom-local", Platform=platform, Attributes={"PlatformCredential": "x"}
            )
        stage.sns.create_topic(Name="mailroom-local-news")
        yield stage


def pushed(stage: FeedbackStage, to: str, **item: Any) -> Outcome:
    """Return the outcome of a push at the simulator."""
    adapter = SnsPush(stage.sns, applications=APPLICATIONS, topics=[TOPIC])
    whole = {"id": "p", "event_type": "push", "to": to, "title": "Hi", "body": "There", **item}
    message = parse(whole, {"push": push_to(APPLICATIONS)})
    return adapter.submit(adapter.prepare(message))


def test_send_push_creates_an_endpoint_for_a_device_token_and_sends_the_platforms_payload(
    simulated_stage: FeedbackStage,
) -> None:
    for name, token in (("android", "a-device"), ("ios", "ab" * 32)):
        outcome = pushed(simulated_stage, token, platform=name, data={"order": 7})
        assert isinstance(outcome, Sent)
        (kept,) = [
            each for each in simulated_stage.inbox("push") if each["provider_id"] == outcome.provider_id
        ]
        assert (kept["to"], kept["content"]["token"]) == (outcome.facts["endpoint_arn"], token)
        payloads = kept["content"]["payloads"]
        if name == "android":
            message = payloads["GCM"]["fcmV1Message"]["message"]
            assert (message["notification"]["title"], message["data"]) == ("Hi", {"order": "7"})
        else:
            assert payloads["APNS_SANDBOX"]["aps"]["alert"] == {"title": "Hi", "body": "There"}
            assert payloads["APNS_SANDBOX"]["order"] == 7


def test_a_push_by_arn_is_published_to_the_endpoint_or_the_topic(simulated_stage: FeedbackStage) -> None:
    made = simulated_stage.sns.create_platform_endpoint(
        PlatformApplicationArn=APPLICATIONS["android"], Token="by-arn"
    )["EndpointArn"]
    for target in (made, TOPIC):
        assert isinstance(pushed(simulated_stage, target), Sent)
        assert [each for each in simulated_stage.inbox("push") if each["to"] == target]


@pytest.mark.parametrize(
    ("token", "gone"), [("disabled-9", True), ("not-hexadecimal", False), ("throttled-9", None)]
)
def test_a_refused_push_becomes_the_outcome_that_sns_documents(
    simulated_stage: FeedbackStage, token: str, gone: bool | None
) -> None:
    try:
        outcome = pushed(simulated_stage, token, platform="ios" if gone is False else "android")
    except NotReady as refused:  # SNS made no endpoint of the token
        outcome = refused.outcome
    if gone is None:
        assert isinstance(outcome, Retry)
    else:
        assert isinstance(outcome, Rejected)
        assert outcome.gone is gone


def test_a_push_to_a_deleted_endpoint_is_rejected_as_gone(simulated_stage: FeedbackStage) -> None:
    made = simulated_stage.sns.create_platform_endpoint(
        PlatformApplicationArn=APPLICATIONS["android"], Token="to-be-deleted"
    )["EndpointArn"]
    simulated_stage.sns.delete_endpoint(EndpointArn=made)
    outcome = pushed(simulated_stage, made)
    assert isinstance(outcome, Rejected)
    assert outcome.gone
