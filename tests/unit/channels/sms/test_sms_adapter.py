"""What all SMS providers have in common: the text, its segments, media, credentials and evidence."""

from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import boto3
import pytest

from mailroom.aws import clients
from mailroom.channels.sms.adapter import SmsAdapter
from mailroom.channels.sms.aws import AwsSms
from mailroom.channels.sms.twilio import TwilioSms
from mailroom.channels.sms.twilio_account import TwilioAccount, account_of
from mailroom.errors import Invalid, InvalidRequest, InvalidSecret
from mailroom.message.outcome import Misconfigured, NotFound, Sent, Unknowable
from tests.support import ROOT
from tests.support.unit.fakes import client_error, why_not
from tests.support.unit.shared import BUCKET, NOW_MS, Aws
from tests.support.unit.sms import FROM, IN_BUCKET, MEDIA, TO, FakeSms, adapter, settings, sms

TEMPLATES = str(ROOT / "templates" / "sms")
ACCOUNT = '{"account_sid": "AC1", "auth_token": "t-1"}'


def refusal(of: SmsAdapter, **changes: Any) -> str:
    with pytest.raises(Invalid) as refused:
        of.prepare(sms(**changes))
    return str(refused.value)


def test_the_request_has_the_number_the_text_and_our_reference() -> None:
    request = adapter().prepare(sms(to="+1 (555) 555-0100", text="Hello ", attempt=2))
    assert (request.to, request.text, request.reference) == (TO, "Hello ", "cy0x.2")
    assert (request.media, request.expires) == ((), None)
    assert request.facts == {"segments": 1, "encoding": "GSM-7"}


def test_the_region_of_the_settings_counts() -> None:
    contract = adapter(default_region="US").contract
    assert contract.default_region == "US"
    assert adapter().contract.default_region == ""


def test_when_a_message_expires_is_told_in_seconds() -> None:
    assert adapter().prepare(sms(expires_at="2026-11-21T09:00:00Z")).expires == NOW_MS / 1000


def test_a_template_is_rendered_without_the_line_break_at_its_end(tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "body.txt").write_text("Your code:\n{{ code }} & more\n\n")
    request = adapter(templates=str(tmp_path)).prepare(sms(text=..., template="code", code=4711))
    assert request.text == "Your code:\n4711 & more"


@pytest.mark.parametrize("comment", ["two\r\nlines", "two\rlines", "two\nlines", "two\u2028lines"])
def test_line_breaks_of_a_templates_variable_are_plain(tmp_path: Path, comment: str) -> None:
    (tmp_path / "note").mkdir()
    (tmp_path / "note" / "body.txt").write_bytes(b"New\tcomment:\r\n{{ comment }}\r\n")
    request = adapter(templates=str(tmp_path)).prepare(sms(text=..., template="note", comment=comment))
    assert request.text == "New comment:\ntwo\nlines"


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("{{ nobody }}", "nobody: is missing; code/body.txt uses it, so the item must have it"),
        ("{{ '' }}", "template: comes out empty; write something"),
        ("{{ 'x' * 1601 }}", "template: has 1601 characters; use at most 1600"),
        ("a\0b", "template: holds a control character"),
        ("{{ 'x' * 460 }}", "template: takes 4 segments in GSM-7; use at most 3"),
    ],
)
def test_a_template_that_comes_out_wrong_is_named(tmp_path: Path, source: str, sentence: str) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "body.txt").write_text(source)
    found = refusal(adapter(templates=str(tmp_path)), text=..., template="code")
    assert found.startswith(sentence)


def test_an_unknown_template_is_refused_with_those_there_are() -> None:
    found = refusal(adapter(templates=TEMPLATES), text=..., template="welcome")
    assert found == "template: 'welcome' is unknown; use one of: default"


def test_our_own_template_is_one_segment() -> None:
    message = sms(text=..., template="default", first_name="Ada", last_name="Lovelace")
    request = adapter(templates=TEMPLATES).prepare(message)
    assert request.text == "Dear Ada Lovelace, there is a message for you."
    assert request.facts == {"segments": 1, "encoding": "GSM-7"}


def test_a_text_that_is_too_long_for_the_stage_is_refused() -> None:
    assert refusal(adapter(max_segments=1), text="a" * 161).startswith("text: takes 2 segments in GSM-7")


def test_media_may_go_alone_and_have_no_segments() -> None:
    request = adapter().prepare(sms(text=..., media_urls=[MEDIA]))
    assert (request.text, request.media, request.facts) == ("", (MEDIA,), {})
    assert adapter(max_segments=1).prepare(sms(text="a" * 500, media_urls=[MEDIA])).facts == {}


def test_media_of_our_bucket_get_a_url_of_limited_life_that_is_made_now(aws: Aws) -> None:
    aws.s3.put_object(Bucket=BUCKET, Key="cat.jpg", Body=b"cat")
    request = adapter(aws=aws).prepare(sms(media_urls=[MEDIA, IN_BUCKET]))
    first, second = request.media
    url = urlsplit(second)
    assert first == MEDIA
    assert url.path.endswith("/cat.jpg")
    assert parse_qs(url.query)["X-Amz-Expires"] == ["1800"]


@pytest.mark.parametrize(
    ("ref", "sentence"),
    [
        (f"s3://{BUCKET}/none.jpg", "does not exist; put the object before the message"),
        ("s3://elsewhere/cat.jpg", "is outside the payload bucket"),
    ],
)
def test_media_that_are_not_there_are_named_by_their_place(aws: Aws, ref: str, sentence: str) -> None:
    found = refusal(adapter(aws=aws), media_urls=[MEDIA, ref])
    assert found.startswith("media_urls[1]: ")
    assert sentence in found


def test_aws_reads_one_object_of_our_bucket_by_itself(aws: Aws) -> None:
    of_aws = adapter(aws=aws, sms_provider="aws")
    assert of_aws.prepare(sms(media_urls=[IN_BUCKET])).media == (IN_BUCKET,)
    for wrong in (MEDIA, "s3://elsewhere/cat.jpg"):
        assert refusal(of_aws, media_urls=[wrong]).startswith("media_urls[0]: ")
    assert refusal(of_aws, media_urls=[IN_BUCKET] * 2) == "media_urls: has 2 entries; AWS takes one a message"


def test_a_look_up_asks_for_what_was_sent_since_then_less_the_clocks_skew() -> None:
    provider = FakeSms(found=Sent("SM1"))
    assert adapter(provider).open().look_up(sms(media_urls=[IN_BUCKET]), NOW_MS, {"SM9"}) == Sent("SM1")
    ((request, since, known),) = provider.searches
    assert (request.to, request.text, request.media) == (TO, "Your table is ready", (IN_BUCKET,))
    assert since == NOW_MS / 1000 - 60
    assert known == {"SM9"}


def test_a_look_up_knows_what_stands_in_the_payload(aws: Aws) -> None:
    aws.s3.put_object(Bucket=BUCKET, Key="s-1.json", Body=b'{"text": "from the payload"}')
    provider = FakeSms()
    message = sms(text=..., payload_ref=f"s3://{BUCKET}/s-1.json")
    assert adapter(provider, aws).open().look_up(message, NOW_MS, ()) == NotFound()
    assert provider.searches[0][0].text == "from the payload"


def test_a_look_up_tells_whether_its_text_may_have_been_worded_otherwise(aws: Aws) -> None:
    aws.s3.put_object(Bucket=BUCKET, Key="s-1.json", Body=b'{"template": "default"}')
    of_template = sms(text=..., template="default", first_name="Ada", last_name="Lovelace")
    in_payload = sms(text=..., payload_ref=f"s3://{BUCKET}/s-1.json", first_name="Ada", last_name="Lovelace")
    for message, kind in ((sms(), False), (of_template, True), (in_payload, True)):
        provider = FakeSms()
        adapter(provider, aws, templates=TEMPLATES).open().look_up(message, NOW_MS, ())
        assert provider.searches[0][0].exact is not kind


def test_without_its_payload_or_template_nobody_knows_what_was_sent(aws: Aws) -> None:
    gone = sms(text=..., payload_ref=f"s3://{BUCKET}/gone.json")
    assert adapter(FakeSms(found=Sent("SM1")), aws).open().look_up(gone, NOW_MS, ()) == Unknowable()
    renamed = sms(text=..., template="renamed")
    provider = FakeSms(found=Sent("SM1"))
    assert adapter(provider, templates=TEMPLATES).open().look_up(renamed, NOW_MS, ()) == Unknowable()
    assert provider.searches == []


class Opening:
    """Opens providers, one after the other, and counts."""

    def __init__(self, *providers: FakeSms | Exception) -> None:
        self._left = list(providers)
        self.count = 0

    def __call__(self) -> FakeSms:
        self.count += 1
        one = self._left.pop(0)
        if isinstance(one, Exception):
            raise one
        return one


def opened(*providers: FakeSms | Exception) -> tuple[SmsAdapter, Opening]:
    opening = Opening(*providers)
    made = adapter()
    made._open = opening
    return made, opening


def test_a_provider_is_opened_once_and_not_before_there_is_a_message() -> None:
    of, opening = opened(FakeSms())
    request = of.prepare(sms())
    assert opening.count == 0
    assert [of.open().submit(request) for _ in range(3)] == [Sent("SM1")] * 3
    assert opening.count == 1


def test_a_provider_that_refused_us_is_opened_anew_for_the_next_message() -> None:
    of, opening = opened(FakeSms(Misconfigured("401")), FakeSms(Sent("SM2")))
    request = of.prepare(sms())
    assert [of.open().submit(request) for _ in range(3)] == [Misconfigured("401"), Sent("SM2"), Sent("SM2")]
    assert opening.count == 2


def test_a_look_up_that_failed_opens_the_provider_anew() -> None:
    of, opening = opened(FakeSms(found=TimeoutError("slow")), FakeSms(found=Sent("SM2")))
    with pytest.raises(TimeoutError):
        of.open().look_up(sms(), NOW_MS, ())
    assert of.open().look_up(sms(), NOW_MS, ()) == Sent("SM2")
    assert opening.count == 2


def test_a_request_that_cannot_be_made_is_a_fault_of_ours_and_the_mended_secret_is_read() -> None:
    of, opening = opened(FakeSms(InvalidRequest("cannot be asked: x")), FakeSms(Sent("SM2")))
    request = of.prepare(sms())
    assert of.open().submit(request) == Misconfigured("twilio cannot be asked: x")
    assert of.open().submit(request) == Sent("SM2")
    assert opening.count == 2


def test_without_credentials_nothing_was_sent() -> None:
    of, _ = opened(InvalidSecret("no secret"), client_error("AccessDeniedException"), FakeSms())
    request = of.prepare(sms())
    assert why_not(of) == Misconfigured("no secret")
    assert isinstance(why_not(of), Misconfigured)
    assert of.open().account == "twilio/ours"
    assert of.open().submit(request) == Sent("SM1")


@pytest.mark.parametrize("fault", [KeyError("private"), LookupError("private"), RecursionError("private")])
def test_credentials_that_cannot_be_used_are_a_fault_of_ours_and_nothing_was_sent(fault: Exception) -> None:
    of, _ = opened(fault, fault, FakeSms())
    request = of.prepare(sms())
    reason = f"the SMS provider's secret cannot be used: {type(fault).__name__}"
    assert (why_not(of), why_not(of)) == (Misconfigured(reason), Misconfigured(reason))
    assert of.open().account == "twilio/ours"
    assert of.open().submit(request) == Sent("SM1")


def test_the_account_is_known_as_soon_as_its_credentials_can_be_read() -> None:
    of, _ = opened(InvalidSecret("no secret"), FakeSms())
    assert (why_not(of), of.open().account) == (Misconfigured("no secret"), "twilio/ours")


def test_the_settings_choose_the_provider(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "sms", lambda seconds: ("client", seconds))
    secret = boto3.client("secretsmanager").create_secret(Name="twilio", SecretString=ACCOUNT)["ARN"]
    twilio = SmsAdapter.of(settings(twilio_secret_arn=secret))
    of_aws = SmsAdapter.of(settings(sms_provider="aws"))
    assert (twilio.provider, of_aws.provider) == ("twilio", "aws")
    assert isinstance(twilio._opened(), TwilioSms)
    assert isinstance(of_aws._opened(), AwsSms)


def test_an_account_logs_in_by_its_api_key_where_there_is_one() -> None:
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
def test_a_secret_of_the_wrong_shape_says_what_to_put_and_nothing_of_itself(text: str) -> None:
    with pytest.raises(InvalidSecret, match="Twilio's secret") as refused:
        account_of(text)
    assert "private" not in str(refused.value)
    assert refused.value.__cause__ is None


def test_an_account_does_not_show_its_credentials() -> None:
    assert "t-1" not in repr(TwilioAccount("AC1", "t-1"))
    assert FROM not in repr(account_of(ACCOUNT))
