"""Amazon SES v2: what each of its answers means."""

import pytest
from botocore.exceptions import ConnectTimeoutError, EndpointConnectionError, ReadTimeoutError

from mailroom.errors import OutcomeUnknown
from mailroom.message.outcome import DayUsedUp, Misconfigured, Outcome, Rejected, Retry, Sent, Unknowable
from tests.support.unit.fakes import Meddler, client_error
from tests.support.unit.ses import Ses, adapter
from tests.support.unit.shared import SENDER, Aws, mail

REQUEST = {"FromEmailAddress": SENDER, "Content": {"Simple": {"Subject": {"Data": "Hello " + "x" * 300}}}}


def submitted(answer: Exception | None) -> Outcome:
    return adapter(Ses(answer)).submit(REQUEST)


def test_an_accepted_mail_is_sent_under_ses_own_id_and_the_ledger_gets_the_beginning_of_its_subject() -> None:
    client = Ses()
    assert adapter(client).submit(REQUEST) == Sent("0107018f-1", {"subject": "Hello " + "x" * 194})
    assert client.requests == [REQUEST]


@pytest.mark.parametrize(
    ("code", "message", "status", "outcome"),
    [
        ("TooManyRequestsException", "Maximum sending rate exceeded.", 429, Retry),
        ("ThrottlingException", "Rate exceeded", 400, Retry),
        ("SomethingNew", "slow down", 429, Retry),
        ("MessageRejected", "Address blacklisted", 400, Rejected),
        ("BadRequestException", "Invalid header", 400, Rejected),
        ("BadRequestException", "Illegal address", 400, Rejected),
        ("BadRequestException", "Local address contains illegal character", 400, Rejected),
        ("BadRequestException", "Nobody knows this one", 400, Misconfigured),
        ("MessageRejected", "Nobody knows this one", 400, Misconfigured),
        (
            "MessageRejected",
            "Email address is not verified. The following identities failed",
            400,
            Misconfigured,
        ),
        ("AccountSuspendedException", "suspended", 400, Misconfigured),
        ("SendingPausedException", "paused", 400, Misconfigured),
        ("MailFromDomainNotVerifiedException", "MAIL FROM", 400, Misconfigured),
        ("NotFoundException", "Configuration set <mailroom-test> does not exist", 404, Misconfigured),
        ("AccessDeniedException", "no ses:SendEmail", 403, Misconfigured),
        ("UnrecognizedClientException", "token", 403, Misconfigured),
        ("InvalidClientTokenId", "token", 403, Misconfigured),
        ("ExpiredTokenException", "token", 403, Misconfigured),
        ("SignatureDoesNotMatch", "clock", 403, Misconfigured),
        ("IncompleteSignature", "x", 400, Misconfigured),
        ("NobodyKnowsThisOne", "x", 400, Misconfigured),
    ],
)
def test_a_refusal_proves_that_nothing_was_sent_and_says_whose_fault_it_is(
    code: str, message: str, status: int, outcome: type[Outcome]
) -> None:
    found = submitted(client_error(code, message, status))
    assert isinstance(found, outcome)
    assert not isinstance(found, Sent)
    assert found.reason == f"{code}: {message}"


def test_an_exhausted_daily_quota_is_nobodys_fault_and_costs_no_try() -> None:
    found = submitted(client_error("LimitExceededException", "Daily message quota exceeded."))
    assert found == DayUsedUp("LimitExceededException: Daily message quota exceeded.")


@pytest.mark.parametrize(
    "error",
    [EndpointConnectionError(endpoint_url="https://email.example/"), ConnectTimeoutError(endpoint_url="x")],
)
def test_without_a_connection_nothing_was_sent(error: Exception) -> None:
    found = submitted(error)
    assert isinstance(found, Retry)
    assert found.reason.startswith("SES cannot be reached: ")


@pytest.mark.parametrize(
    "error",
    [
        client_error("InternalFailure", status=500),
        client_error("ServiceUnavailable", status=503),
        client_error("TooManyRequestsException", status=503),
        ReadTimeoutError(endpoint_url="https://email.example/"),
    ],
)
def test_a_server_error_or_no_answer_means_that_nobody_knows(error: Exception) -> None:
    with pytest.raises(OutcomeUnknown, match=r"^SES (answered 50|did not answer)"):
        submitted(error)


def test_ses_is_never_asked_twice_for_one_submit() -> None:
    client = Ses(client_error("ServiceUnavailable", status=503))
    with pytest.raises(Exception, match="ServiceUnavailable"):
        adapter(client).submit({})
    assert len(client.requests) == 1


def test_ses_has_no_look_up() -> None:
    assert adapter(Ses()).look_up(mail(), 0, ()) == Unknowable()


def test_what_is_prepared_is_what_the_service_takes(aws: Aws) -> None:
    client = Meddler(aws.sesv2)
    request = adapter(client).prepare(mail(html="<p>Hi</p>", headers={"X-Team": "post"}, cc="c@example.com"))
    assert isinstance(adapter(client).submit(request), Sent)
