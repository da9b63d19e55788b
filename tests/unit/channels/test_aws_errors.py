"""Proofs in an error of an AWS call about the message, for SES, SNS and AWS End User Messaging alike."""

import pytest
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    ReadTimeoutError,
)

from mailroom.delivery.adapter import not_sent
from mailroom.errors import OutcomeUnknown
from mailroom.message.outcome import Misconfigured, Outcome, Rejected, Retry
from tests.support.unit.fakes import client_error


def outcome_of(error: ClientError | BotoCoreError) -> Outcome:
    return not_sent("SES", error, lambda _: Rejected("no"))


@pytest.mark.parametrize(
    ("error", "kind", "reason"),
    [
        (EndpointConnectionError(endpoint_url="https://x/"), Retry, "SES cannot be reached: "),
        (ConnectTimeoutError(endpoint_url="https://x/"), Retry, "SES cannot be reached: "),
        (NoCredentialsError(), Misconfigured, "SES: "),
        (client_error("MessageRejected", status=400), Rejected, "no"),
    ],
)
def test_a_message_was_not_sent_if_aws_is_unreachable_or_refuses_it_or_credentials_are_missing(
    error: ClientError | BotoCoreError, kind: type[Outcome], reason: str
) -> None:
    outcome = outcome_of(error)
    assert isinstance(outcome, kind)
    assert isinstance(outcome, Retry | Misconfigured | Rejected)
    assert outcome.reason.startswith(reason)


@pytest.mark.parametrize(
    "error",
    [
        client_error("InternalFailure", status=500),
        client_error("ThrottlingException", status=503),
        client_error("ConflictException", status=502),
        ReadTimeoutError(endpoint_url="https://x/"),
    ],
)
def test_after_a_server_error_or_without_a_response_the_outcome_is_unknown(
    error: ClientError | BotoCoreError,
) -> None:
    with pytest.raises(OutcomeUnknown, match=r"^SES (answered 50|did not answer)"):
        outcome_of(error)
