"""The SNS simulator in front of the emulator, with boto3: what is pushed is kept, and tokens choose."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError, HTTPClientError

from tests.support.local.feedback import TOPIC, FeedbackStage, running_feedback

ANDROID = "arn:aws:sns:us-east-1:000000000000:app/GCM/mailroom-local"
IOS = "arn:aws:sns:us-east-1:000000000000:app/APNS_SANDBOX/mailroom-local"
FCM = {"fcmV1Message": {"message": {"notification": {"title": "Hi", "body": "There"}}}}
MESSAGE = json.dumps({"default": "There", "GCM": json.dumps(FCM)})


@pytest.fixture(scope="module")
def push_stage(url: str) -> Iterator[FeedbackStage]:
    with running_feedback(url) as stage:
        for platform in ("GCM", "APNS_SANDBOX"):
            stage.sns.create_platform_application(
                Name="mailroom-local", Platform=platform, Attributes={"PlatformCredential": "x"}
            )
        yield stage


def endpoint(stage: FeedbackStage, token: str, application: str = ANDROID) -> str:
    answer = stage.sns.create_platform_endpoint(PlatformApplicationArn=application, Token=token)
    return str(answer["EndpointArn"])


def publish_error(stage: FeedbackStage, target: str, **more: Any) -> tuple[str, int, str]:
    with pytest.raises(ClientError) as caught:
        stage.sns.publish(**{"TargetArn": target, "Message": MESSAGE, "MessageStructure": "json"} | more)
    error = caught.value.response
    # SNS's errors are modelled: the name of the class is that of the shape.
    assert type(caught.value).__name__ in dir(stage.sns.exceptions)
    return error["Error"]["Code"], error["ResponseMetadata"]["HTTPStatusCode"], error["Error"]["Message"]


def test_the_sns_simulator_gives_a_device_token_one_endpoint_whose_arn_has_the_form_of_sns(
    push_stage: FeedbackStage,
) -> None:
    made = endpoint(push_stage, "tok-1")
    assert made.startswith("arn:aws:sns:us-east-1:000000000000:endpoint/GCM/mailroom-local/")
    assert endpoint(push_stage, "tok-1") == made
    attributes = push_stage.sns.get_endpoint_attributes(EndpointArn=made)["Attributes"]
    assert (attributes["Token"], attributes["Enabled"]) == ("tok-1", "true")
    with pytest.raises(ClientError, match=f"Endpoint {made} already exists with the same Token"):
        push_stage.sns.create_platform_endpoint(
            PlatformApplicationArn=ANDROID, Token="tok-1", CustomUserData="x"
        )


def test_a_push_to_an_endpoint_is_stored_with_the_parsed_payload_of_each_platform(
    push_stage: FeedbackStage,
) -> None:
    made = endpoint(push_stage, "tok-2")
    name = "AWS.SNS.MOBILE.FCM.TTL"
    answer = push_stage.sns.publish(
        TargetArn=made,
        Message=MESSAGE,
        MessageStructure="json",
        MessageAttributes={name: {"DataType": "String", "StringValue": "60"}},
    )
    (kept,) = [each for each in push_stage.inbox("push") if each["to"] == made]
    assert kept["provider_id"] == answer["MessageId"]
    assert kept["content"] == {
        "subject": "There",
        "platform": "GCM",
        "token": "tok-2",
        "payloads": {"default": "There", "GCM": FCM},
        "attributes": {name: "60"},
    }


def test_a_push_to_a_topic_is_stored_and_delivered_to_its_subscribers(push_stage: FeedbackStage) -> None:
    push_stage.sns.publish(TopicArn=TOPIC, Message="plain")
    (kept,) = [each for each in push_stage.inbox("push") if each["to"] == TOPIC]
    assert (kept["content"]["subject"], kept["content"]["platform"]) == ("plain", "topic")
    assert push_stage.heard(1) == ["plain"]


def test_a_push_to_a_disabled_endpoint_is_refused_each_time(push_stage: FeedbackStage) -> None:
    disabled, switched = endpoint(push_stage, "disabled-7"), endpoint(push_stage, "tok-3")
    push_stage.sns.set_endpoint_attributes(EndpointArn=switched, Attributes={"Enabled": "false"})
    for target in (disabled, switched, disabled):
        assert publish_error(push_stage, target) == ("EndpointDisabled", 400, "Endpoint is disabled")
    assert not [each for each in push_stage.inbox("push") if each["to"] in {disabled, switched}]


@pytest.mark.parametrize(
    ("word", "error"), [("throttled", ("Throttled", 429)), ("error", ("InternalError", 500))]
)
def test_the_token_of_an_endpoint_determines_which_pushes_to_it_are_refused(
    push_stage: FeedbackStage, word: str, error: tuple[str, int]
) -> None:
    always, once = endpoint(push_stage, f"{word}-1"), endpoint(push_stage, f"{word}-once-1")
    assert [publish_error(push_stage, always)[:2] for _ in range(2)] == [error, error]
    assert publish_error(push_stage, once)[:2] == error
    assert push_stage.sns.publish(TargetArn=once, Message="x")["MessageId"]
    assert [each["to"] for each in push_stage.inbox("push") if each["to"] in {always, once}] == [once]


def test_the_token_lost_answer_breaks_the_connection_after_its_push_was_accepted(
    push_stage: FeedbackStage,
) -> None:
    target = endpoint(push_stage, "lost-answer-once")
    with pytest.raises(HTTPClientError):
        push_stage.sns.publish(TargetArn=target, Message="x")
    push_stage.sns.publish(TargetArn=target, Message="x")
    assert len([each for each in push_stage.inbox("push") if each["to"] == target]) == 2


def test_a_push_to_a_missing_endpoint_or_topic_is_refused_as_by_sns(push_stage: FeedbackStage) -> None:
    gone = endpoint(push_stage, "tok-4")
    push_stage.sns.delete_endpoint(EndpointArn=gone)
    code, status, message = publish_error(push_stage, gone)
    assert (code, status) == ("InvalidParameter", 400)
    assert "No endpoint found" in message
    with pytest.raises(ClientError, match="NotFound"):
        push_stage.sns.publish(TopicArn=TOPIC + "-not", Message="x")


def test_the_sns_simulator_accepts_only_hexadecimal_tokens_of_at_most_400_characters_for_ios(
    push_stage: FeedbackStage,
) -> None:
    assert "/APNS_SANDBOX/" in endpoint(push_stage, "ab12" * 16, IOS)
    for token in ("not-hexadecimal", "a" * 401):
        with pytest.raises(ClientError, match="hexadecimal"):
            endpoint(push_stage, token, IOS)


@pytest.mark.parametrize(
    ("message", "sentence"),
    [("{", "failed to parse"), ("[]", "failed to parse"), ('{"GCM": "{}"}', "No default entry")],
)
def test_the_sns_simulator_refuses_a_push_whose_message_is_not_json_or_lacks_a_default_entry(
    push_stage: FeedbackStage, message: str, sentence: str
) -> None:
    code, _, said = publish_error(push_stage, endpoint(push_stage, "tok-5"), Message=message)
    assert (code, sentence in said) == ("InvalidParameter", True)
