"""What all fax providers have in common: credentials, numbers, the PDF's URL, and evidence."""

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from mailroom.channels.fax.adapter import FaxAdapter, FaxProvider
from mailroom.environment import FaxSender
from mailroom.errors import Invalid, InvalidSecret
from mailroom.message.outcome import Evidence, Misconfigured, NotFound, Sent, Unknowable
from tests.support.unit.fakes import why_not
from tests.support.unit.fax import FAX_SETTINGS, LINE, PDF, SENDERS, FakeLine, fax
from tests.support.unit.fax_post import adapter_of
from tests.support.unit.shared import BUCKET, NOW_MS, Aws


def test_the_request_has_the_line_the_first_number_of_ours_and_a_reference_of_the_attempt(aws: Aws) -> None:
    request = adapter_of(FakeLine(), aws).prepare(fax(to="+1 (617) 555-1234", attempt=3))
    assert (request.to, request.sender, request.media_url) == (LINE, SENDERS[0], PDF)
    assert request.reference == "Zi0x.3"


@pytest.mark.parametrize("sender", [SENDERS[1], "+1 202-555-0101"])
def test_a_sender_is_one_of_our_numbers_however_it_is_written(aws: Aws, sender: str) -> None:
    request = adapter_of(FakeLine(), aws).prepare(fax(**{"from": sender}))
    assert request.sender == SENDERS[1]


def test_a_number_that_is_not_ours_sends_nothing(aws: Aws) -> None:
    with pytest.raises(Invalid, match=rf"from: is not among .*; use one of \{SENDERS[0]}, \{SENDERS[1]}$"):
        adapter_of(FakeLine(), aws).prepare(fax(**{"from": LINE}))


def test_a_pdf_of_our_bucket_has_a_url_of_limited_life_that_is_made_anew(aws: Aws) -> None:
    aws.s3.put_object(Bucket=BUCKET, Key="faxes/f 1.pdf", Body=b"%PDF")
    adapter = adapter_of(FakeLine(), aws, media_seconds=1800)
    message = fax(pdf_url=..., payload_ref=f"s3://{BUCKET}/faxes/f 1.pdf")
    url = urlsplit(adapter.prepare(message).media_url)
    assert (url.scheme, url.path.endswith("/faxes/f%201.pdf")) == ("https", True)
    assert BUCKET in url.netloc + url.path
    assert parse_qs(url.query)["X-Amz-Expires"] == ["1800"]
    assert "X-Amz-Signature" in parse_qs(url.query)


@pytest.mark.parametrize(
    ("ref", "sentence"),
    [
        (f"s3://{BUCKET}/missing.pdf", "does not exist; put the object before the message"),
        ("s3://elsewhere/f-1.pdf", "is outside the payload bucket"),
        (f"s3://{BUCKET}/", "is outside the payload bucket"),
        ("f-1.pdf", "is outside the payload bucket"),
    ],
)
def test_a_pdf_that_is_not_there_is_the_faxs_own_fault(aws: Aws, ref: str, sentence: str) -> None:
    with pytest.raises(Invalid, match=f"payload_ref: .*{sentence}"):
        adapter_of(FakeLine(), aws).prepare(fax(pdf_url=..., payload_ref=ref))


@pytest.mark.parametrize(
    ("provider_has", "known", "evidence"),
    [
        ([], (), NotFound()),
        (["p-1"], (), Sent("p-1")),
        (["p-1", "p-2"], (), Unknowable()),
        (["p-1", "p-2"], ("p-1",), Sent("p-2")),
        (["p-1", "p-2"], ("p-2", "p-9"), Sent("p-1")),
        (["p-1", "p-2"], ("p-1", "p-2"), NotFound()),
        (["p-1", "p-2", "p-3"], ("p-1",), Unknowable()),
    ],
)
def test_evidence_is_the_one_fax_that_nobody_else_accounts_for(
    aws: Aws, provider_has: list[str], known: tuple[str, ...], evidence: Evidence
) -> None:
    assert adapter_of(FakeLine(found=provider_has), aws).open().look_up(fax(), NOW_MS, known) == evidence


def test_the_provider_is_asked_for_that_attempt_since_then_less_the_clocks_skew(aws: Aws) -> None:
    line = FakeLine()
    adapter = adapter_of(line, aws, clock_skew_seconds=2.5)
    adapter.open().look_up(fax(attempt=2, pdf_url=..., payload_ref=f"s3://{BUCKET}/gone.pdf"), NOW_MS, ())
    assert line.searches == [(LINE, "Zi0x.2", NOW_MS / 1000 - 2.5)]


def test_the_account_is_the_one_whose_credentials_are_there(aws: Aws) -> None:
    assert adapter_of(FakeLine(), aws).open().account == "fake/ours"


def test_without_credentials_the_account_says_why_nothing_can_be_submitted() -> None:
    def nobody() -> FaxProvider:
        raise InvalidSecret("no secret")

    no_bucket: Any = None
    settings = FaxSender(**FAX_SETTINGS)
    assert why_not(FaxAdapter(settings, nobody, no_bucket)) == Misconfigured("no secret")


def test_a_provider_that_cannot_tell_is_no_evidence_of_anything(aws: Aws) -> None:
    with pytest.raises(TimeoutError):
        adapter_of(FakeLine(found=TimeoutError("slow")), aws).open().look_up(fax(), NOW_MS, ())
