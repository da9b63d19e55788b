"""The adapter of all SMS providers: the text, its segments, media, credentials and evidence."""

from pathlib import Path
from typing import Any
from unittest.mock import Mock
from urllib.parse import parse_qs, urlsplit

import boto3
import pytest

from mailroom.aws import clients
from mailroom.channels.sms.adapter import SmsAdapter
from mailroom.content.payloads import Payloads
from mailroom.environment import SmsSender
from mailroom.errors import Invalid, InvalidRequest, InvalidSecret
from mailroom.message.outcome import Misconfigured, NotFound, Sent, Unknowable
from mailroom.providers import provider
from mailroom.providers.aws_sms.sender import AwsSms
from mailroom.providers.twilio.account import TwilioAccount, account_of
from mailroom.providers.twilio.sender import TwilioSms
from tests.support import ROOT
from tests.support.unit.fakes import client_error, why_not
from tests.support.unit.shared import BUCKET, NOW_MS, Aws
from tests.support.unit.sms import FROM, IN_BUCKET, MEDIA, TO, FakeSms, sms, sms_adapter_of, sms_settings

TEMPLATES = str(ROOT / "templates" / "sms")
ACCOUNT = '{"account_sid": "AC1", "auth_token": "t-1"}'


def refusal_of_sms(sms_adapter: SmsAdapter, **changes: Any) -> str:
    with pytest.raises(Invalid) as caught:
        sms_adapter.prepare(sms(**changes))
    return str(caught.value)


def test_an_sms_request_has_the_number_the_text_and_the_reference_of_the_message() -> None:
    request = sms_adapter_of().prepare(sms(to="+1 (555) 555-0100", text="Hello ", attempt=2))
    assert (request.to, request.text, request.reference) == (TO, "Hello ", "cy0x.2")
    assert (request.media, request.expires) == ((), None)
    assert request.facts == {"segments": 1, "encoding": "GSM-7"}


def test_the_contract_of_the_sms_adapter_has_the_default_region_of_the_settings() -> None:
    assert sms_adapter_of(default_region="US").contract.default_region == "US"
    assert sms_adapter_of().contract.default_region == ""


def test_the_expiry_of_an_sms_request_is_in_epoch_seconds() -> None:
    assert sms_adapter_of().prepare(sms(expires_at="2026-11-21T09:00:00Z")).expires == NOW_MS / 1000


def test_a_text_from_a_template_omits_the_line_break_at_the_templates_end(tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "body.txt").write_text("Your code:\n{{ code }} & more\n\n")
    request = sms_adapter_of(templates=str(tmp_path)).prepare(sms(text=..., template="code", code=4711))
    assert request.text == "Your code:\n4711 & more"


@pytest.mark.parametrize("comment", ["two\r\nlines", "two\rlines", "two\nlines", "two\u2028lines"])
def test_line_breaks_in_a_template_variable_become_newlines(tmp_path: Path, comment: str) -> None:
    (tmp_path / "note").mkdir()
    (tmp_path / "note" / "body.txt").write_bytes(b"New\tcomment:\r\n{{ comment }}\r\n")
    request = sms_adapter_of(templates=str(tmp_path)).prepare(sms(text=..., template="note", comment=comment))
    assert request.text == "New comment:\ntwo\nlines"


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("{{ name }}", "name: is missing; code/body.txt:1 uses it, so the message must have it"),
        ("{{ '' }}", "template: is empty or has only spaces; add text"),
        ("{{ 'x' * 1601 }}", "template: has 1601 characters; use at most 1600"),
        ("a\0b", "template: holds a control character"),
        ("{{ 'x' * 460 }}", "template: takes 4 segments in GSM-7; use at most 3"),
    ],
)
def test_a_message_whose_template_renders_an_invalid_text_is_refused_with_the_reason(
    tmp_path: Path, source: str, sentence: str
) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "body.txt").write_text(source)
    assert refusal_of_sms(sms_adapter_of(templates=str(tmp_path)), text=..., template="code").startswith(
        sentence
    )


def test_the_error_about_an_unknown_template_lists_the_names_of_all_templates() -> None:
    reason = refusal_of_sms(sms_adapter_of(templates=TEMPLATES), text=..., template="welcome")
    assert reason == "template: 'welcome' is unknown; use one of: default"


def test_a_text_from_the_default_template_fits_into_one_segment() -> None:
    message = sms(text=..., template="default", first_name="Ada", last_name="Lovelace")
    request = sms_adapter_of(templates=TEMPLATES).prepare(message)
    assert request.text == "Dear Ada Lovelace, there is a message for you."
    assert request.facts == {"segments": 1, "encoding": "GSM-7"}


def test_a_text_over_the_stages_segment_limit_is_refused() -> None:
    assert refusal_of_sms(sms_adapter_of(max_segments=1), text="a" * 161).startswith(
        "text: takes 2 segments in GSM-7"
    )


def test_a_message_with_media_needs_no_text_and_is_not_counted_in_segments() -> None:
    request = sms_adapter_of().prepare(sms(text=..., media_urls=[MEDIA]))
    assert (request.text, request.media, request.facts) == ("", (MEDIA,), {})
    assert sms_adapter_of(max_segments=1).prepare(sms(text="a" * 500, media_urls=[MEDIA])).facts == {}


def test_media_in_the_payload_bucket_get_a_new_url_that_expires(aws: Aws) -> None:
    aws.s3.put_object(Bucket=BUCKET, Key="cat.jpg", Body=b"cat")
    request = sms_adapter_of(aws=aws).prepare(sms(media_urls=[MEDIA, IN_BUCKET]))
    first, second = request.media
    url = urlsplit(second)
    assert first == MEDIA
    assert url.path.endswith("/cat.jpg")
    assert parse_qs(url.query)["X-Amz-Expires"] == ["1800"]


def test_the_key_of_media_in_the_payload_bucket_may_have_blanks(aws: Aws) -> None:
    aws.s3.put_object(Bucket=BUCKET, Key="pub/a cat.jpg", Body=b"cat")
    ref = f"s3://{BUCKET}/pub/a cat.jpg"
    (url,) = sms_adapter_of(aws=aws).prepare(sms(media_urls=[ref])).media
    assert urlsplit(url).path.endswith("/pub/a%20cat.jpg")
    assert by_aws(aws).prepare(sms(media_urls=[ref])).media == (ref,)


@pytest.mark.parametrize(
    ("ref", "sentence"),
    [
        (f"s3://{BUCKET}/none.jpg", "does not exist; put the object before the message"),
        ("s3://elsewhere/cat.jpg", "is outside the payload bucket"),
    ],
)
def test_the_refusal_of_media_missing_or_outside_the_payload_bucket_names_their_list_index(
    aws: Aws, ref: str, sentence: str
) -> None:
    reason = refusal_of_sms(sms_adapter_of(aws=aws), media_urls=[MEDIA, ref])
    assert reason.startswith("media_urls[1]: ")
    assert sentence in reason


def test_a_message_sent_by_aws_may_have_one_media_object_which_must_be_in_the_payload_bucket(
    aws: Aws,
) -> None:
    aws_sms = by_aws(aws)
    assert aws_sms.prepare(sms(media_urls=[IN_BUCKET])).media == (IN_BUCKET,)
    for url in (MEDIA, "s3://elsewhere/cat.jpg"):
        assert refusal_of_sms(aws_sms, media_urls=[url]).startswith("media_urls[0]: ")
    words = "media_urls: has 2 entries; the provider allows only 1"
    assert refusal_of_sms(aws_sms, media_urls=[IN_BUCKET] * 2) == words


def test_a_look_up_asks_the_sms_provider_for_the_request_since_the_try_minus_the_clock_skew() -> None:
    provider = FakeSms(finds=Sent("SM1"))
    assert sms_adapter_of(provider).open().look_up(sms(media_urls=[IN_BUCKET]), NOW_MS, {"SM9"}) == Sent(
        "SM1"
    )
    ((request, since, other_ids),) = provider.searches
    assert (request.to, request.text, request.media) == (TO, "Your table is ready", (IN_BUCKET,))
    assert since == NOW_MS / 1000 - 60
    assert other_ids == {"SM9"}


def test_a_look_up_searches_for_the_text_that_the_messages_payload_contains(aws: Aws) -> None:
    aws.s3.put_object(Bucket=BUCKET, Key="s-1.json", Body=b'{"text": "from the payload"}')
    provider = FakeSms()
    message = sms(text=..., payload_ref=f"s3://{BUCKET}/s-1.json")
    assert sms_adapter_of(provider, aws).open().look_up(message, NOW_MS, ()) == NotFound()
    assert provider.searches[0][0].text == "from the payload"


def test_a_look_up_does_not_expect_the_exact_text_if_the_message_uses_a_template(aws: Aws) -> None:
    aws.s3.put_object(Bucket=BUCKET, Key="s-1.json", Body=b'{"template": "default"}')
    of_template = sms(text=..., template="default", first_name="Ada", last_name="Lovelace")
    in_payload = sms(text=..., payload_ref=f"s3://{BUCKET}/s-1.json", first_name="Ada", last_name="Lovelace")
    for message, exact in ((sms(), True), (of_template, False), (in_payload, False)):
        provider = FakeSms()
        sms_adapter_of(provider, aws, templates=TEMPLATES).open().look_up(message, NOW_MS, ())
        assert provider.searches[0][0].exact is exact


def test_a_look_up_of_a_message_whose_payload_or_template_is_missing_returns_unknowable(aws: Aws) -> None:
    provider = FakeSms(finds=Sent("SM1"))
    session = sms_adapter_of(provider, aws, templates=TEMPLATES).open()
    for content in ({"payload_ref": f"s3://{BUCKET}/missing.json"}, {"template": "renamed"}):
        assert session.look_up(sms(text=..., **content), NOW_MS, ()) == Unknowable()
    assert provider.searches == []


def adapter_of(settings: SmsSender) -> SmsAdapter:
    """Return the adapter as the handler creates it."""
    return SmsAdapter.of(settings, provider(settings.sms_provider))


def by_aws(aws: Aws) -> SmsAdapter:
    """Return an adapter whose provider reads media from the payload bucket."""
    return SmsAdapter(
        sms_settings(sms_provider="aws"), FakeSms, Payloads(aws.s3, BUCKET), media_from_bucket=1
    )


def opening(*providers: FakeSms | Exception) -> tuple[SmsAdapter, Mock]:
    """Return an adapter whose provider opens as listed, in turn, and the mock that opens it."""
    sms_adapter = sms_adapter_of()
    sms_adapter._open = Mock(side_effect=providers)
    return sms_adapter, sms_adapter._open


def test_the_sms_providers_secret_is_read_again_after_a_request_that_could_not_be_made() -> None:
    sms_adapter, open_ = opening(FakeSms(InvalidRequest("cannot be called: x")), FakeSms(Sent("SM2")))
    request = sms_adapter.prepare(sms())
    assert sms_adapter.open().submit(request) == Misconfigured("twilio cannot be called: x")
    assert sms_adapter.open().submit(request) == Sent("SM2")
    assert open_.call_count == 2


def test_the_sms_adapter_sends_as_soon_as_the_credentials_of_its_account_can_be_read() -> None:
    sms_adapter, _ = opening(InvalidSecret("no secret"), client_error("AccessDeniedException"), FakeSms())
    assert why_not(sms_adapter) == Misconfigured("no secret")
    assert isinstance(why_not(sms_adapter), Misconfigured)
    assert sms_adapter.open().account == "twilio/ours"
    assert sms_adapter.open().submit(sms_adapter.prepare(sms())) == Sent("SM1")


@pytest.mark.parametrize("fault", [KeyError("private"), LookupError("private"), RecursionError("private")])
def test_the_error_about_invalid_credentials_does_not_quote_them(fault: Exception) -> None:
    sms_adapter, _ = opening(fault)
    reason = f"the SMS provider's secret cannot be used: {type(fault).__name__}"
    assert why_not(sms_adapter) == Misconfigured(reason)


def test_the_setting_sms_provider_chooses_the_provider(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "sms", lambda seconds: ("client", seconds))
    secret = boto3.client("secretsmanager").create_secret(Name="twilio", SecretString=ACCOUNT)["ARN"]
    twilio = adapter_of(sms_settings(twilio_secret_arn=secret))
    aws_sms = adapter_of(sms_settings(sms_provider="aws"))
    assert (twilio.provider, aws_sms.provider) == ("twilio", "aws")
    assert isinstance(twilio._opened(), TwilioSms)
    assert isinstance(aws_sms._opened(), AwsSms)


def test_a_twilio_account_with_an_api_key_logs_in_with_that_key() -> None:
    assert account_of(ACCOUNT).login == ("AC1", "t-1")
    pair = '{"account_sid": "AC1", "auth_token": "t-1", "api_key": "SK1", "api_key_secret": "s-1"}'
    assert account_of(pair).login == ("SK1", "s-1")
    assert account_of(pair).account_sid == "AC1"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "xJ3kPlaceholder",
        "[]",
        '{"account_sid": "AC1"}',
        '{"account_sid": "AC1", "auth_token": ""}',
        '{"account_sid": "", "auth_token": "private"}',
        '{"account_sid": "AC1", "auth_token": 7}',
        '{"account_sid": "AC1", "auth_token": "private", "api_key": "SK1"}',
        '{"account_sid": "AC1", "auth_token": "private", "api_key_secret": "private"}',
        pytest.param('{"private": ' + "[" * 100_000, id="nested too deeply"),
    ],
)
def test_the_error_about_a_wrong_secret_does_not_quote_the_secret(text: str) -> None:
    with pytest.raises(InvalidSecret, match="Twilio's secret") as caught:
        account_of(text)
    assert "private" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_the_repr_of_an_account_hides_the_credentials() -> None:
    assert "t-1" not in repr(TwilioAccount("AC1", "t-1"))
    assert FROM not in repr(account_of(ACCOUNT))
