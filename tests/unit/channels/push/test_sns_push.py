"""Push notifications by Amazon SNS: requests, endpoints of tokens, and outcomes of responses."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.exceptions import ReadTimeoutError

from mailroom.aws import clients
from mailroom.errors import Invalid, OutcomeUnknown
from mailroom.message.outcome import Misconfigured, NotReady, Outcome, Rejected, Retry, Sent
from mailroom.providers.sns.sender import SnsPush
from tests.support.unit.aws_models import problems
from tests.support.unit.fakes import client_error
from tests.support.unit.push import (
    ANDROID,
    APPLICATIONS,
    ENDPOINT,
    IOS_ENDPOINT,
    TOKEN,
    TOPIC,
    Sns,
    payloads,
    push,
    push_adapter,
)
from tests.support.unit.shared import NOW, Aws

TO_TOKEN = {"to": TOKEN, "platform": "android"}
OTHER = ENDPOINT.replace("0f5e8a3c", "9f5e8a3c")
EXISTS = (
    f"Invalid parameter: Token Reason: Endpoint {OTHER} already exists with the same Token, "
    "but different attributes."
)
TARGET = "Invalid parameter: TargetArn Reason: is wrong"
NO_ENDPOINT = "Invalid parameter: TargetArn Reason: No endpoint found for the target arn specified"


@pytest.fixture(autouse=True)
def _fresh_client() -> Iterator[None]:
    clients.sns.cache_clear()
    yield
    clients.sns.cache_clear()


def published(**changes: Any) -> dict[str, Any]:
    """Send a push. Return the arguments of the call that publishes it."""
    sns = Sns()
    sns_push = push_adapter(sns)
    assert isinstance(sns_push.submit(sns_push.prepare(push(**changes))), Sent)
    name, arguments = sns.calls[-1]
    assert name == "publish"
    return arguments


def outcome_at_sns(*errors: Exception, **changes: Any) -> Outcome:
    sns_push = push_adapter(Sns(publish=list(errors)))
    return sns_push.submit(sns_push.prepare(push(**changes)))


def assert_kind(outcome: Outcome, kind: type[Outcome]) -> None:
    """Check the class of an outcome that does not mark its endpoint as gone."""
    assert isinstance(outcome, kind)
    assert not (isinstance(outcome, Rejected) and outcome.gone)


@pytest.mark.parametrize(
    ("to", "name", "platforms"),
    [
        (ENDPOINT, "TargetArn", {"GCM"}),
        (IOS_ENDPOINT, "TargetArn", {"APNS"}),
        (TOPIC, "TopicArn", {"GCM", "APNS", "APNS_SANDBOX"}),
    ],
)
def test_a_push_to_an_endpoint_has_its_platforms_payload_and_a_push_to_a_topic_has_all_payloads(
    to: str, name: str, platforms: set[str]
) -> None:
    arguments = published(to=to)
    assert arguments[name] == to
    assert len({"TargetArn", "TopicArn"} & set(arguments)) == 1
    assert arguments["MessageStructure"] == "json"
    assert set(payloads(arguments["Message"])) == {"default"} | platforms


@pytest.mark.parametrize(
    "changes",
    [{}, {"to": TOPIC}, TO_TOKEN, {"expires_at": "2026-11-21T10:00:00Z", "data": {"a": 1}}],
)
def test_each_push_request_is_valid_by_the_api_model_of_sns(changes: dict[str, Any]) -> None:
    assert problems("sns", "Publish", published(**changes)) == ""


@pytest.mark.parametrize(
    ("expires_at", "seconds"),
    [
        ("2026-11-21T09:01:00Z", "60"),
        ("2026-11-21T08:00:00Z", "1"),
        ("2027-11-21T09:00:00Z", "2419200"),
    ],
)
def test_the_time_to_live_of_a_push_ends_when_the_push_expires(expires_at: str, seconds: str) -> None:
    attributes = published(expires_at=expires_at)["MessageAttributes"]
    assert attributes["AWS.SNS.MOBILE.FCM.TTL"]["StringValue"] == seconds
    assert "AWS.SNS.MOBILE.FCM.TTL" not in published()["MessageAttributes"]


@pytest.mark.parametrize("content", [{}, {"title": ..., "body": ..., "data": {"a": "1"}}])
@pytest.mark.parametrize(
    ("expires_at", "seconds"),
    [("2026-11-21T09:01:00Z", 60), ("2026-11-21T08:00:00Z", 1), ("2027-11-21T09:00:00Z", 2_419_200)],
)
def test_a_push_that_fcm_passes_to_an_ios_app_expires_when_the_message_expires(
    content: dict[str, Any], expires_at: str, seconds: int
) -> None:
    fcm = payloads(published(expires_at=expires_at, **content)["Message"])["GCM"]
    headers = fcm["fcmV1Message"]["message"]["apns"]["headers"]
    assert headers["apns-expiration"] == str(int(NOW) + seconds)
    fcm = payloads(published(**content)["Message"])["GCM"]
    assert "apns-expiration" not in fcm["fcmV1Message"]["message"]["apns"]["headers"]


def test_an_endpoint_is_created_for_a_device_token_before_the_push_and_the_outcome_has_its_arn() -> None:
    sns = Sns()
    sns_push = push_adapter(sns)
    request = sns_push.prepare(push(**TO_TOKEN))
    assert sns.calls == [("create_platform_endpoint", {"PlatformApplicationArn": ANDROID, "Token": TOKEN})]
    assert problems("sns", "CreatePlatformEndpoint", sns.calls[0][1]) == ""
    assert sns_push.submit(request) == Sent("sns-1", {"endpoint_arn": ENDPOINT})
    assert sns.calls[1][1]["TargetArn"] == ENDPOINT
    assert set(payloads(sns.calls[1][1]["Message"])) == {"default", "GCM"}


def test_the_outcome_of_a_push_to_an_endpoint_does_not_contain_the_endpoint_arn() -> None:
    assert outcome_at_sns() == Sent("sns-1")


def test_an_existing_endpoint_of_a_device_token_is_used_even_if_its_attributes_differ() -> None:
    sns = Sns(create=[client_error("InvalidParameter", EXISTS)])
    sns_push = push_adapter(sns)
    assert sns_push.submit(sns_push.prepare(push(**TO_TOKEN))) == Sent("sns-1", {"endpoint_arn": OTHER})
    assert sns.calls[-1][1]["TargetArn"] == OTHER


@pytest.mark.parametrize(
    ("code", "text", "status", "kind"),
    [
        ("InvalidParameter", "Invalid parameter: Token Reason: too long", 400, Rejected),
        ("InvalidParameterException", "Invalid parameter: Token", 400, Rejected),
        ("InvalidParameter", "Invalid parameter: PlatformApplicationArn Reason: x", 400, Misconfigured),
        ("NotFound", "PlatformApplication does not exist", 404, Misconfigured),
        ("AuthorizationError", "not authorized", 403, Misconfigured),
        ("Throttled", "Rate exceeded", 429, Retry),
        ("Throttling", "Rate exceeded", 400, Retry),
    ],
)
def test_a_push_is_not_published_if_an_endpoint_cannot_be_created_for_its_device_token(
    code: str, text: str, status: int, kind: type[Outcome]
) -> None:
    sns = Sns(create=[client_error(code, text, status)])
    with pytest.raises(NotReady) as caught:
        push_adapter(sns).prepare(push(**TO_TOKEN))
    assert_kind(caught.value.outcome, kind)
    assert [name for name, _ in sns.calls] == ["create_platform_endpoint"]


def test_after_a_server_error_while_creating_an_endpoint_the_push_is_not_published() -> None:
    sns = Sns(create=[client_error("InternalError", status=500)])
    with pytest.raises(Exception, match="InternalError"):
        push_adapter(sns).prepare(push(**TO_TOKEN))
    assert len(sns.calls) == 1


def test_an_endpoint_is_not_created_for_a_push_that_is_too_large() -> None:
    sns = Sns()
    with pytest.raises(Invalid, match=r"^body: makes a payload of"):
        push_adapter(sns).prepare(push(**TO_TOKEN, body="x" * 5000))
    assert sns.calls == []


@pytest.mark.parametrize(
    ("to", "sentence"),
    [
        (ENDPOINT.replace("shop-android", "other"), "is an endpoint of an application"),
        (ENDPOINT.replace("123456789012", "210987654321"), "is an endpoint of an application"),
        (ENDPOINT.replace("eu-central-1", "us-east-1"), "is an endpoint of an application"),
        (ENDPOINT.replace("GCM", "APNS"), "is an endpoint of an application"),
        (f"{TOPIC}-secret", "is not one of this stage's topics"),
    ],
)
def test_a_push_to_an_endpoint_or_topic_of_another_stage_is_refused(to: str, sentence: str) -> None:
    with pytest.raises(Invalid, match=f"^to: {sentence}"):
        push_adapter(Sns()).prepare(push(to=to))


@pytest.mark.parametrize("to", [ENDPOINT, TOPIC])
def test_a_push_to_an_arn_of_another_aws_region_is_refused(to: str) -> None:
    sns = Sns()
    reason = "^to: is in region eu-central-1, but the stage is not; use an ARN in us-east-1"
    assert ":eu-central-1:" in to
    with pytest.raises(Invalid, match=reason):
        push_adapter(sns, region="us-east-1").prepare(push(to=to))
    assert sns.calls == []
    push_adapter(sns, region="eu-central-1").prepare(push(to=to))


def test_the_push_adapter_takes_its_aws_region_from_the_sns_client_and_refuses_other_arns(
    aws: Aws, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "sns", lambda _: boto3.client("sns", region_name="us-east-1"))
    settings: Any = SimpleNamespace(submit_seconds=9.0, platform_applications=APPLICATIONS, topics=[TOPIC])
    with pytest.raises(Invalid, match="use an ARN in us-east-1"):
        SnsPush.of(settings).prepare(push())


@pytest.mark.parametrize("changes", [{}, TO_TOKEN])
@pytest.mark.parametrize(
    ("code", "text", "status"),
    [
        ("EndpointDisabled", "Endpoint is disabled", 400),
        ("EndpointDisabledException", "Endpoint is disabled", 400),
        ("NotFound", "Endpoint does not exist", 404),
        ("InvalidParameter", NO_ENDPOINT, 400),
    ],
)
def test_a_push_to_a_disabled_or_deleted_endpoint_is_rejected_and_the_endpoint_is_reported_as_gone(
    changes: dict[str, Any], code: str, text: str, status: int
) -> None:
    outcome = outcome_at_sns(client_error(code, text, status), **changes)
    assert isinstance(outcome, Rejected)
    assert outcome.gone
    assert outcome.reason == f"{code.removesuffix('Exception')}: {text}"


@pytest.mark.parametrize(
    ("to", "code", "text", "status", "kind"),
    [
        (ENDPOINT, "InvalidParameter", "Invalid parameter: Message too long", 400, Rejected),
        (ENDPOINT, "InvalidParameterValue", "x", 400, Misconfigured),
        (ENDPOINT, "ParameterValueInvalid", "x", 400, Misconfigured),
        (ENDPOINT, "ValidationException", "x", 400, Misconfigured),
        (TOPIC, "InvalidParameter", "Invalid parameter: TopicArn", 400, Misconfigured),
        (ENDPOINT, "InvalidParameter", f"{TARGET}: the region is another", 400, Misconfigured),
        (ENDPOINT, "InvalidParameterException", TARGET, 400, Misconfigured),
        (ENDPOINT, "InvalidParameterValue", TARGET, 400, Misconfigured),
        (TOPIC, "NotFound", "Topic does not exist", 404, Misconfigured),
        (ENDPOINT, "PlatformApplicationDisabled", "disabled", 400, Misconfigured),
        (ENDPOINT, "AuthorizationError", "no sns:Publish", 403, Misconfigured),
        (TOPIC, "KMSAccessDenied", "key", 400, Misconfigured),
        (TOPIC, "KMSDisabled", "key", 400, Misconfigured),
        (TOPIC, "KMSThrottling", "key", 400, Retry),
        (ENDPOINT, "SomethingNew", "x", 400, Misconfigured),
        (ENDPOINT, "Throttled", "Rate exceeded", 400, Retry),
        (ENDPOINT, "SomethingNew", "slow down", 429, Retry),
    ],
)
def test_an_error_of_sns_decides_between_an_invalid_push_a_wrong_configuration_and_a_retry(
    to: str, code: str, text: str, status: int, kind: type[Outcome]
) -> None:
    assert_kind(outcome_at_sns(client_error(code, text, status), to=to), kind)


def test_without_a_response_of_sns_the_outcome_is_unknown_and_the_submit_is_not_repeated() -> None:
    sns = Sns(publish=[ReadTimeoutError(endpoint_url="https://x/")])
    sns_push = push_adapter(sns)
    request = sns_push.prepare(push())
    with pytest.raises(OutcomeUnknown, match=r"^SNS did not answer"):
        sns_push.submit(request)
    assert len(sns.calls) == 1


def test_the_contract_of_the_push_adapter_has_the_stages_platform_applications() -> None:
    assert push_adapter(Sns()).contract.applications == tuple(APPLICATIONS)
