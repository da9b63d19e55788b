"""The outcomes of responses by Amazon SES v2."""

import pytest
from botocore.exceptions import ReadTimeoutError

from mailroom.errors import OutcomeUnknown
from mailroom.message.outcome import DayUsedUp, Misconfigured, Outcome, Rejected, Retry, Sent, Unknowable
from tests.support.unit.fakes import Meddler, client_error
from tests.support.unit.ses import Ses, ses_mail
from tests.support.unit.shared import SENDER, Aws, mail

UNVERIFIED = "Email address is not verified. The following identities failed the check in region EU-CENTRAL-1"
TOO_LONG = "Address length is more than 320 bytes long"
TO = {"ToAddresses": ["Ada <ada@example.com>"]}
CONTENT = {"Simple": {"Subject": {"Data": "Hello " + "x" * 300}}}
REQUEST = {"FromEmailAddress": SENDER, "Destination": TO, "Content": CONTENT}


def outcome_at_ses(error: Exception) -> Outcome:
    return ses_mail(Ses(error)).submit(REQUEST)


def test_an_accepted_mail_is_recorded_with_the_message_id_of_ses_and_the_beginning_of_its_subject() -> None:
    client = Ses()
    assert ses_mail(client).submit(REQUEST) == Sent("0107018f-1", {"subject": "Hello " + "x" * 194})
    assert client.requests == [REQUEST]


@pytest.mark.parametrize(
    ("code", "message", "status", "kind"),
    [
        ("TooManyRequestsException", "Maximum sending rate exceeded.", 429, Retry),
        ("ThrottlingException", "Rate exceeded", 400, Retry),
        ("SomethingNew", "slow down", 429, Retry),
        ("MessageRejected", "Address blacklisted", 400, Rejected),
        ("BadRequestException", "Invalid header", 400, Rejected),
        ("BadRequestException", "Illegal address", 400, Rejected),
        ("BadRequestException", "Header too long: 'References'.", 400, Rejected),
        ("BadRequestException", "Address length is more than 320 characters long: 'A'.", 400, Rejected),
        ("BadRequestException", "Local address contains illegal character", 400, Rejected),
        ("BadRequestException", "An unknown reason", 400, Misconfigured),
        ("MessageRejected", "An unknown reason", 400, Misconfigured),
        ("MessageRejected", f"{UNVERIFIED}: {SENDER}", 400, Misconfigured),
        ("MessageRejected", f"{UNVERIFIED}: Ada@example.com, {SENDER}", 400, Misconfigured),
        ("MessageRejected", f"{UNVERIFIED}: Ada@example.com", 400, Rejected),
        ("BadRequestException", "Header section too long.", 400, Rejected),
        ("BadRequestException", f"{TOO_LONG}: 'A <ada@example.com>'.", 400, Rejected),
        ("BadRequestException", f"{TOO_LONG}: 'B <{SENDER}>'.", 400, Misconfigured),
        ("MessageRejected", "Daily message quota exceeded", 400, DayUsedUp),
        ("ThrottlingException", "Daily message quota exceeded", 400, DayUsedUp),
        ("ThrottlingException", "Maximum sending rate exceeded", 400, Retry),
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
        ("AnUnknownCode", "x", 400, Misconfigured),
    ],
)
def test_a_refusal_by_ses_means_an_invalid_mail_a_misconfiguration_a_used_up_quota_or_a_retry(
    code: str, message: str, status: int, kind: type[Outcome]
) -> None:
    outcome = outcome_at_ses(client_error(code, message, status))
    assert isinstance(outcome, kind)
    assert not isinstance(outcome, Sent)
    assert outcome.reason == f"{code}: {message}"


@pytest.mark.parametrize("text", [UNVERIFIED, f"{TOO_LONG}."])
def test_the_refusal_of_an_address_by_ses_is_undecided_if_ses_does_not_quote_the_address(text: str) -> None:
    outcome = outcome_at_ses(client_error("MessageRejected", text))
    assert outcome == Rejected(f"MessageRejected: {text}", undecided=True)


def test_an_exhausted_daily_quota_of_ses_gives_the_outcome_day_used_up() -> None:
    outcome = outcome_at_ses(client_error("LimitExceededException", "Daily message quota exceeded."))
    assert outcome == DayUsedUp("LimitExceededException: Daily message quota exceeded.")


def test_without_a_response_of_ses_the_outcome_is_unknown_and_the_submit_is_not_repeated() -> None:
    client = Ses(ReadTimeoutError(endpoint_url="https://email.example/"))
    with pytest.raises(OutcomeUnknown, match=r"^SES did not answer"):
        ses_mail(client).submit(REQUEST)
    assert len(client.requests) == 1


def test_a_look_up_at_ses_returns_that_the_outcome_is_unknowable() -> None:
    assert ses_mail(Ses()).look_up(mail(), 0, ()) == Unknowable()


def test_a_prepared_mail_is_valid_by_the_api_model_of_ses(aws: Aws) -> None:
    client = Meddler(aws.sesv2)
    request = ses_mail(client).prepare(mail(html="<p>Hi</p>", headers={"X-Team": "post"}, cc="c@example.com"))
    assert isinstance(ses_mail(client).submit(request), Sent)
