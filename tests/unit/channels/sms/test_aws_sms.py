"""The adapter of AWS End User Messaging, with botocore's stub of the service."""

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError
from botocore.session import get_session
from botocore.stub import Stubber

from mailroom.aws import clients
from mailroom.channels.sms.contract import SmsRequest
from mailroom.errors import OutcomeUnknown
from mailroom.message.outcome import Facts, Misconfigured, Outcome, Rejected, Retry, Sent, Unknowable
from mailroom.providers.aws_sms.sender import VALID_SECONDS, AwsSms
from tests.support.unit.aws_models import problems
from tests.support.unit.fakes import client_error
from tests.support.unit.shared import NOW, Aws, FakeClock
from tests.support.unit.sms import FROM, IN_BUCKET, REQUEST, TO, sms_request_with

SET = "mailroom-test"
TEXT = {
    "DestinationPhoneNumber": TO,
    "OriginationIdentity": FROM,
    "MessageBody": "Your table is ready",
    "MessageType": "TRANSACTIONAL",
    "ConfigurationSetName": SET,
    "Context": {"reference": "cy0x"},
}
FACTS: Facts = {"segments": 1, "encoding": "GSM-7"}
WITH_MEDIA = sms_request_with(media=(IN_BUCKET,), facts={})


@pytest.fixture
def stub(aws: Aws) -> Iterator[Stubber]:
    clients.sms.cache_clear()
    with Stubber(clients.sms(10.0)) as stubber:
        yield stubber
        stubber.assert_no_pending_responses()
    clients.sms.cache_clear()


def aws_sms(client: Any, **changes: Any) -> AwsSms:
    return AwsSms(client, **{"sender": FROM, "configuration_set": SET, "clock": FakeClock(), **changes})


class Endpoint:
    """The service as a client that records its requests and fails if a test says so."""

    def __init__(self, error: Exception | None = None) -> None:
        self._error = error
        self.requests: list[tuple[str, dict[str, Any]]] = []

    def send_text_message(self, **arguments: Any) -> dict[str, Any]:
        return self._send("SendTextMessage", arguments)

    def send_media_message(self, **arguments: Any) -> dict[str, Any]:
        return self._send("SendMediaMessage", arguments)

    def _send(self, operation: str, arguments: dict[str, Any]) -> dict[str, Any]:
        self.requests.append((operation, arguments))
        if self._error is not None:
            raise self._error
        return {"MessageId": "aws-1"}


def call_of(sms_request: SmsRequest = REQUEST, **changes: Any) -> tuple[str, dict[str, Any]]:
    """Submit a request. Return the operation and arguments of its one call."""
    client = Endpoint()
    assert isinstance(aws_sms(client, **changes).submit(sms_request), Sent)
    (call,) = client.requests
    return call


def outcome_at_aws(error: Exception) -> Outcome:
    return aws_sms(Endpoint(error)).submit(REQUEST)


def test_a_text_is_submitted_to_aws_in_one_complete_request(stub: Stubber) -> None:
    stub.add_response("send_text_message", {"MessageId": "aws-1"}, TEXT)
    assert aws_sms(stub.client).submit(REQUEST) == Sent("aws-1", FACTS)


def test_a_message_with_media_is_sent_by_the_operation_send_media_message(stub: Stubber) -> None:
    expected = {name: TEXT[name] for name in TEXT if name != "MessageType"} | {"MediaUrls": [IN_BUCKET]}
    stub.add_response("send_media_message", {"MessageId": "aws-2"}, expected)
    assert aws_sms(stub.client).submit(WITH_MEDIA) == Sent("aws-2")


@pytest.mark.parametrize(
    ("sms_request", "changes"),
    [
        (REQUEST, {}),
        (REQUEST, {"sender": "", "configuration_set": ""}),
        (REQUEST, {"sender": "arn:aws:sms-voice:eu-central-1:123456789012:pool/pool-1"}),
        (sms_request_with(expires=NOW + 60, reference="x" * 251), {}),
        (WITH_MEDIA, {}),
        (sms_request_with(media=(IN_BUCKET,), text="", expires=NOW + 10**7), {}),
    ],
)
def test_each_request_fits_the_api_model_of_aws(sms_request: SmsRequest, changes: dict[str, Any]) -> None:
    operation, arguments = call_of(sms_request, **changes)
    assert problems("pinpoint-sms-voice-v2", operation, arguments) == ""
    assert "" not in arguments.values()


def test_the_tests_check_against_the_api_model_of_aws_finds_an_invalid_request() -> None:
    assert "MediaUrls" in problems("pinpoint-sms-voice-v2", "SendMediaMessage", {**TEXT, "MediaUrls": [7]})


def test_without_a_sender_setting_aws_chooses_a_texts_sender_and_a_message_with_media_is_not_sent() -> None:
    assert "OriginationIdentity" not in call_of(sender="")[1]
    client = Endpoint()
    assert isinstance(aws_sms(client, sender="").submit(WITH_MEDIA), Misconfigured)
    assert client.requests == []


@pytest.mark.parametrize(
    ("seconds_left", "valid"), [(-5, 5), (4, 5), (59.9, 59), (259_200, 259_200), (300_000, 259_200)]
)
def test_the_time_to_live_of_a_text_ends_when_the_text_expires(seconds_left: float, valid: int) -> None:
    assert call_of(sms_request_with(expires=NOW + seconds_left))[1]["TimeToLive"] == valid
    assert "TimeToLive" not in call_of()[1]


def test_the_bounds_of_the_time_to_live_equal_the_bounds_in_the_aws_api_model() -> None:
    model = get_session().get_service_model("pinpoint-sms-voice-v2")
    shape = model.shape_for("TimeToLive").metadata
    assert (shape["min"], shape["max"]) == VALID_SECONDS


@pytest.mark.parametrize(
    ("code", "reason", "fields", "kind"),
    [
        ("Conflict", "DESTINATION_PHONE_NUMBER_OPTED_OUT", None, Rejected),
        ("Conflict", "DESTINATION_COUNTRY_BLOCKED_BY_PROTECT_CONFIGURATION", None, Rejected),
        ("Conflict", "DESTINATION_PHONE_NUMBER_BLOCKED_BY_PROTECT_NUMBER_OVERRIDE", None, Rejected),
        ("Conflict", "DESTINATION_PHONE_NUMBER_NOT_VERIFIED", None, Rejected),
        ("Conflict", "NO_ORIGINATION_IDENTITIES_FOUND", None, Rejected),
        ("Conflict", "RESOURCE_NOT_ACTIVE", None, Misconfigured),
        ("Conflict", "A_NEW_ONE", None, Misconfigured),
        ("Conflict", None, None, Misconfigured),
        ("ServiceQuotaExceeded", "MONTHLY_SPEND_LIMIT_REACHED_FOR_TEXT", None, Misconfigured),
        ("ServiceQuotaExceeded", None, None, Misconfigured),
        ("AccessDenied", "ACCOUNT_DISABLED", None, Misconfigured),
        ("ResourceNotFound", None, None, Misconfigured),
        ("Validation", "INVALID_PARAMETER", ["DestinationPhoneNumber"], Rejected),
        ("Validation", "INVALID_PARAMETER", ["destinationPhoneNumber"], Rejected),
        ("Validation", "FIELD_VALIDATION_FAILED", ["MessageBody"], Rejected),
        ("Validation", "FIELD_VALIDATION_FAILED", ["OriginationIdentity"], Misconfigured),
        ("Validation", "FIELD_VALIDATION_FAILED", ["ConfigurationSetName"], Misconfigured),
        ("Validation", "DESTINATION_COUNTRY_BLOCKED", None, Rejected),
        ("Validation", "MEDIA_TYPE_NOT_SUPPORTED", ["MediaUrls"], Rejected),
        ("Validation", "MAXIMUM_SIZE_EXCEEDED", ["MessageBody"], Rejected),
        ("Validation", "MAXIMUM_SIZE_EXCEEDED", [], Misconfigured),
        ("Validation", "FIELD_VALIDATION_FAILED", ["MessageBody", "Context"], Misconfigured),
        ("Validation", "SENDER_ID_NOT_SUPPORTED", ["DestinationPhoneNumber"], Rejected),
        ("Validation", "COUNTRY_NOT_ENABLED", ["OriginationIdentity"], Rejected),
        ("Validation", "INVALID_IDENTITY_FOR_DESTINATION_COUNTRY", None, Rejected),
        ("Validation", "INTERNATIONAL_SENDING_NOT_SUPPORTED", None, Rejected),
        ("Validation", "SENDER_ID_REQUIRES_REGISTRATION", None, Rejected),
        ("Validation", "OTHER", None, Misconfigured),
        ("Validation", None, None, Misconfigured),
        ("Throttling", None, None, Retry),
        ("ANewOne", None, None, Misconfigured),
    ],
)
def test_an_error_of_aws_decides_between_an_invalid_text_a_wrong_configuration_and_a_retry(
    code: str, reason: str | None, fields: list[str] | None, kind: type[Outcome]
) -> None:
    error = client_error(f"{code}Exception", f"about {TO}")
    response: Any = error.response
    if reason is not None:
        response["Reason"] = reason
    if fields is not None:
        response["Fields"] = [{"Name": field, "Message": "no"} for field in fields]
    outcome = outcome_at_aws(error)
    assert isinstance(outcome, kind)
    assert not isinstance(outcome, Sent)
    assert outcome.reason.startswith(f"{code}: about …00")
    assert (reason or "") in outcome.reason or kind is Retry or code == "AccessDenied"
    assert TO not in outcome.reason


def test_the_reason_that_aws_returns_with_a_refusal_is_recorded(stub: Stubber) -> None:
    stub.add_client_error(
        "send_text_message",
        "ConflictException",
        "opted out",
        400,
        modeled_fields={"Message": "opted out", "Reason": "DESTINATION_PHONE_NUMBER_OPTED_OUT"},
    )
    outcome = aws_sms(stub.client).submit(REQUEST)
    assert outcome == Rejected("Conflict: opted out (DESTINATION_PHONE_NUMBER_OPTED_OUT)", opted_out=True)


def test_every_refusal_reason_and_field_in_the_code_exists_in_the_aws_api_model() -> None:
    from mailroom.providers.aws_sms import sender as errors
    from mailroom.providers.aws_sms.refusals import REFUSALS

    model: Any = get_session().get_service_model("pinpoint-sms-voice-v2")
    raised = model.operation_model("SendMediaMessage").error_shapes
    codes = {shape.name.removesuffix("Exception") for shape in raised}
    for shape in raised:
        codes |= {*getattr(shape.members.get("Reason"), "enum", ())}
    assert codes >= REFUSALS.keys()
    members = model.operation_model("SendMediaMessage").input_shape.members
    assert {name.lower() for name in members} >= errors._OWN_FIELDS


def test_without_a_response_of_aws_the_outcome_is_unknown_and_the_submit_is_not_repeated() -> None:
    client = Endpoint(ReadTimeoutError(endpoint_url="https://x/"))
    with pytest.raises(OutcomeUnknown, match=r"^AWS End User Messaging did not answer"):
        aws_sms(client).submit(REQUEST)
    assert len(client.requests) == 1


def test_a_look_up_of_a_text_at_aws_always_returns_unknowable() -> None:
    assert aws_sms(Endpoint()).find(REQUEST, NOW, ()) == Unknowable()
