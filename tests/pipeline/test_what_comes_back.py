"""SMS, pushes, and what their providers and SES tell afterwards: on the whole stage, over its real ways."""

import json
import time
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import urlencode

import pytest
from twilio.request_validator import RequestValidator

from lab.harness.expected import Item
from mailroom.message.message import Reference
from mailroom.recipients.choices import Suppressions
from mailroom_local.aws import STAGE, LocalSession, patient
from mailroom_local.providers.server import CREDENTIALS
from tests.support.pipeline.campaign import operator
from tests.support.pipeline.items import mail_item
from tests.support.pipeline.shared import Pipeline, until

TWILIO_CREDENTIALS: dict[str, str] = CREDENTIALS["TwilioSecretName"]
LANDLINE = "+12125550132"
NO_CALLBACKS = "+12125550157"
SECONDS = 40.0


def sms_to(id_: str, to: str, **attributes: Any) -> Item:
    return {"id": id_, "event_type": "sms", "to": to, "text": f"Hello from {id_}", **attributes}


def push_to_token(id_: str, token: str, **attributes: Any) -> Item:
    return {"id": id_, "event_type": "push", "to": token, "platform": "android", "title": id_, **attributes}


@pytest.fixture(scope="module", autouse=True)
def _lost(pipeline: Pipeline) -> None:
    """A text message whose answer is lost: its lease ends while the other tests run."""
    pipeline.put(sms_to("lost-text", NO_CALLBACKS))


def accepted_with(pipeline: Pipeline, channel: str, words: str) -> list[Any]:
    """Return the messages with these words that a provider accepted."""
    return [
        each for each in pipeline.accepted() if each["channel"] == channel and words in str(each["content"])
    ]


def callback(
    pipeline: Pipeline, path: str, token: str, fields: dict[str, str], body: bytes | None = None
) -> int:
    """POST as Twilio would, signed with a token for that path; the status of the answer."""
    url = f"{pipeline.output('ApiUrl')}{path}"
    signature = RequestValidator(token).compute_signature(url, fields)
    request = urllib.request.Request(
        url,
        data=urlencode(fields).encode() if body is None else body,
        headers={
            "Content-Type": "application/x-www-form-urlencoded",
            "X-Twilio-Signature": signature,
        },
        method="POST",
    )
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refused:
        return refused.code


def test_the_ledger_item_of_a_delivered_sms_has_its_number_of_segments(pipeline: Pipeline) -> None:
    pipeline.put(sms_to("hello", "(212) 555-0170", text="Привет"))
    pipeline.until_status("delivered", "hello", event_type="sms", seconds=SECONDS)
    row = pipeline.ledger("hello", "sms")
    assert (row["segments"], row["encoding"], row["provider"]) == (1, "UCS-2", "twilio")
    (taken,) = accepted_with(pipeline, "sms", "Привет")
    assert (taken["to"], taken["provider_id"]) == ("+12125550170", row["provider_id"])


def test_an_sms_to_a_landline_is_undelivered_and_the_next_one_is_suppressed(pipeline: Pipeline) -> None:
    pipeline.put(sms_to("landline", LANDLINE))
    pipeline.until_status("undelivered", "landline", event_type="sms", seconds=SECONDS)
    until(lambda: is_suppressed(pipeline, LANDLINE, "sms"), SECONDS, lambda: "not marked")
    pipeline.put(sms_to("landline-again", LANDLINE))
    pipeline.until_status("suppressed", "landline-again", event_type="sms", seconds=SECONDS)
    assert len(accepted_with(pipeline, "sms", "Hello from landline")) == 1


def is_suppressed(pipeline: Pipeline, recipient: str, channel: str) -> bool:
    list_ = Suppressions(pipeline.dynamodb, pipeline.output("SuppressionsTableName"))
    return recipient in list_.find(channel, [recipient])


def test_a_stop_suppresses_sms_until_a_start_and_a_repeated_start_does_not_end_a_later_stop(
    pipeline: Pipeline,
) -> None:
    number = "+12125550176"
    texted(pipeline, number, "Stop.")
    until(lambda: is_suppressed(pipeline, number, "sms"), SECONDS, lambda: "STOP was not heeded")
    pipeline.put(sms_to("stopped", number))
    pipeline.until_status("suppressed", "stopped", event_type="sms", seconds=SECONDS)
    assert "STOP sent to +12025550123" in pipeline.ledger("stopped", "sms")["error"]["message"]
    time.sleep(1.1)  # Twilio's times are whole seconds
    start = texted(pipeline, number, "START")
    until(lambda: not is_suppressed(pipeline, number, "sms"), SECONDS, lambda: "START was not heeded")
    pipeline.put(sms_to("started", number))
    pipeline.until_status("delivered", "started", event_type="sms", seconds=SECONDS)
    time.sleep(1.1)
    texted(pipeline, number, "opt out")
    until(lambda: is_suppressed(pipeline, number, "sms"), SECONDS, lambda: "OPT OUT was not heeded")
    token = TWILIO_CREDENTIALS["auth_token"]
    fields = {"MessageSid": start, "From": number, "To": "+12025550123", "Body": "START"}
    fields["AccountSid"] = TWILIO_CREDENTIALS["account_sid"]
    assert callback(pipeline, "/twilio/inbound", "guessed", fields) == 403
    assert callback(pipeline, "/twilio/inbound", token, fields) == 200
    until(lambda: pipeline.queue_is_empty(pipeline.output("FeedbackQueueUrl")), SECONDS, lambda: "not read")
    assert is_suppressed(pipeline, number, "sms")


def test_a_revoke_that_is_texted_to_a_number_at_aws_suppresses_sms_to_its_sender(pipeline: Pipeline) -> None:
    number = "+12125550177"
    text = {
        "originationNumber": number,
        "destinationNumber": "+12125550101",
        "messageKeyword": "KEYWORD",
        "messageBody": "REVOKE",
        "inboundMessageId": "cae173d2-66b9-564c-8309-21f858e9fb84",
        "previousPublishedMessageId": "",
    }
    topic = pipeline.output("FeedbackTopicArn")
    sns = LocalSession().client("sns", endpoint_url=pipeline.running.endpoints.aws, config=patient())
    sns.publish(TopicArn=topic, Message=json.dumps(text))
    until(lambda: is_suppressed(pipeline, number, "sms"), SECONDS, lambda: "REVOKE was not heeded")


def texted(pipeline: Pipeline, number: str, body: str) -> str:
    """Have the simulated Twilio hand on a text; its id."""
    url = f"{pipeline.running.endpoints.providers}/texts"
    form = urlencode({"From": number, "Body": body}).encode()
    with urllib.request.urlopen(url, data=form, timeout=20) as shown:
        said = json.load(shown)
    assert said["answer"] == 200
    return str(said["sid"])


def test_a_twilio_callback_changes_the_ledger_once_and_only_if_its_signature_is_valid(
    pipeline: Pipeline,
) -> None:
    pipeline.put(sms_to("forged", "+12125550134"))
    pipeline.until_ended("forged", event_type="sms", seconds=SECONDS)
    sid = str(pipeline.ledger("forged", "sms")["provider_id"])
    path = f"/callbacks/twilio/{Reference('forged').text}"
    fields = {
        "MessageSid": sid,
        "MessageStatus": "undelivered",
        "ErrorCode": "30006",
        "AccountSid": TWILIO_CREDENTIALS["account_sid"],
    }
    assert callback(pipeline, path, "guessed", fields) == 403
    assert callback(pipeline, path, TWILIO_CREDENTIALS["auth_token"], fields, b"x" * 70_000) == 413
    assert pipeline.ledger("forged", "sms")["status"] == "sent"
    # The same callback, signed with the account's token, is accepted. A repeat does not change it.
    token = TWILIO_CREDENTIALS["auth_token"]
    assert callback(pipeline, path, token, fields) == 204
    pipeline.until_status("undelivered", "forged", event_type="sms", seconds=SECONDS)
    # The simulator's own callback may come later than all of this.
    until(lambda: "sentAt" in pipeline.ledger("forged", "sms"), SECONDS, lambda: "Twilio told of no sending")
    before = pipeline.ledger("forged", "sms")
    assert callback(pipeline, path, token, fields) == 204
    until(lambda: pipeline.queue_is_empty(pipeline.output("FeedbackQueueUrl")), SECONDS, lambda: "not read")
    assert pipeline.ledger("forged", "sms") == before


def test_a_push_to_an_enabled_token_is_sent_and_a_push_to_a_disabled_token_suppresses_the_token(
    pipeline: Pipeline,
) -> None:
    pipeline.put(push_to_token("pushed", "device-pushed"), push_to_token("off", "device-disabled-off"))
    pipeline.until_ended("pushed", "off", event_type="push", seconds=SECONDS)
    assert pipeline.ledger("pushed", "push")["status"] == "sent"
    assert len(accepted_with(pipeline, "push", "pushed")) == 1
    row = pipeline.ledger("off", "push")
    assert (row["status"], row["error"]["code"]) == ("failed", "rejected")
    assert is_suppressed(pipeline, "android#device-disabled-off", "push")


def test_a_device_that_sns_disabled_gets_pushes_again_after_its_suppression_is_lifted(
    pipeline: Pipeline,
) -> None:
    token = "device-registers-again"
    sns = LocalSession().client("sns", endpoint_url=pipeline.running.endpoints.sns, config=patient())
    applications = [
        each["PlatformApplicationArn"] for each in sns.list_platform_applications()["PlatformApplications"]
    ]
    (android,) = [arn for arn in applications if arn.endswith("app/GCM/mailroom-local")]
    endpoint = sns.create_platform_endpoint(PlatformApplicationArn=android, Token=token)["EndpointArn"]
    sns.set_endpoint_attributes(EndpointArn=endpoint, Attributes={"Enabled": "false"})
    pipeline.put(push_to_token("while-disabled", token))
    pipeline.until_ended("while-disabled", event_type="push", seconds=SECONDS)
    assert is_suppressed(pipeline, f"android#{token}", "push")
    words = ("people", "allow", f"android#{token}", "--channel", "push", "--yes", "--stage", STAGE)
    assert operator(pipeline, *words).exit_code == 0
    pipeline.put(push_to_token("after-the-lift", token))
    pipeline.until_ended("after-the-lift", event_type="push", seconds=SECONDS)
    assert pipeline.ledger("after-the-lift", "push")["status"] == "sent"


@pytest.mark.parametrize(
    ("course", "status", "marked"),
    [
        ("bounce", "bounced", True),
        ("soft", "undelivered", False),
    ],
)
def test_a_mail_to_a_simulator_address_of_ses_gets_the_status_of_that_address(
    pipeline: Pipeline, course: str, status: str, marked: bool
) -> None:
    address = f"{course}+pipeline@simulator.amazonses.com"
    id_ = f"course-{course}"
    pipeline.put(mail_item(id_, email=address))
    pipeline.until_status(status, id_, seconds=SECONDS)
    if marked:
        until(lambda: is_suppressed(pipeline, address, "mail"), SECONDS, lambda: "not marked")
    else:
        assert not is_suppressed(pipeline, address, "mail")


def test_the_ledger_item_of_a_mail_has_the_outcome_of_each_of_its_recipients(pipeline: Pipeline) -> None:
    bounces = "bounce+several@simulator.amazonses.com"
    pipeline.put(mail_item("several", email=["ada@example.com", bounces]))
    pipeline.until_status("bounced", "several", seconds=SECONDS)

    def outcomes() -> dict[str, str]:
        return {
            who: str(entry.get("status")) for who, entry in pipeline.ledger("several")["recipients"].items()
        }

    expected = {"ada@example.com": "delivered", bounces: "bounced"}
    until(lambda: outcomes() == expected, SECONDS, lambda: str(outcomes()))


def test_an_event_of_a_foreign_sns_topic_becomes_a_dead_letter_and_does_not_change_the_message(
    pipeline: Pipeline,
) -> None:
    pipeline.put(mail_item("undisturbed", email="undisturbed@example.com"))
    pipeline.until_status("delivered", "undisturbed", seconds=SECONDS)
    event = {
        "eventType": "Bounce",
        "mail": {
            "timestamp": "2026-11-21T08:00:00.000Z",
            "destination": ["undisturbed@example.com"],
            "headers": [{"name": "X-Correlation-ID", "value": Reference("undisturbed").text}],
        },
        "bounce": {
            "timestamp": "2026-11-21T08:00:01.000Z",
            "bounceType": "Permanent",
            "bouncedRecipients": [{"emailAddress": "undisturbed@example.com"}],
        },
    }
    foreign = "arn:aws:sns:us-east-1:999999999999:mailroom-local-feedback"
    body = json.dumps({"Type": "Notification", "TopicArn": foreign, "Message": json.dumps(event)})
    pipeline.send(pipeline.output("FeedbackQueueUrl"), [body])
    until(
        lambda: body in pipeline.dead_letters(pipeline.output("FeedbackDlqUrl")), SECONDS, lambda: "not there"
    )
    assert pipeline.ledger("undisturbed")["status"] == "delivered"
    assert not is_suppressed(pipeline, "undisturbed@example.com", "mail")


def test_an_sms_with_a_lost_response_and_without_a_callback_is_looked_up_and_not_sent_again(
    pipeline: Pipeline,
) -> None:
    pipeline.until_ended("lost-text", event_type="sms", seconds=60)
    row = pipeline.ledger("lost-text", "sms")
    (taken,) = accepted_with(pipeline, "sms", "Hello from lost-text")
    assert (row["status"], row["provider_id"], row["segments"]) == ("sent", taken["provider_id"], 1)
    pipeline.until_logged(pipeline.output("SendSmsFunctionName"), "an earlier try was accepted")


def test_the_queue_of_provider_events_becomes_empty_after_the_other_tests_of_this_file(
    pipeline: Pipeline,
) -> None:
    url = pipeline.output("FeedbackQueueUrl")
    until(lambda: pipeline.queue_is_empty(url), SECONDS, lambda: "events wait")
