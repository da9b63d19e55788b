"""The adapter of all fax providers: numbers, the PDF's URL, and evidence."""

from urllib.parse import parse_qs, urlsplit

import pytest

from mailroom.errors import Invalid
from mailroom.message.outcome import Evidence, NotFound, Sent, Unknowable
from tests.support.unit.fax import LINE, PDF, SENDERS, FakeLine, fax
from tests.support.unit.fax_post import fax_adapter_at
from tests.support.unit.shared import BUCKET, NOW_MS, Aws


def test_a_fax_request_has_the_normalised_number_the_stages_first_sender_and_the_attempts_reference(
    aws: Aws,
) -> None:
    request = fax_adapter_at(FakeLine(), aws).prepare(fax(to="+1 (617) 555-1234", attempt=3))
    assert (request.to, request.sender, request.media_url) == (LINE, SENDERS[0], PDF)
    assert request.reference == "Zi0x.3"


@pytest.mark.parametrize("sender", [SENDERS[1], "+1 202-555-0101"])
def test_the_sender_of_a_fax_may_be_any_spelling_of_one_of_the_stages_fax_numbers(
    aws: Aws, sender: str
) -> None:
    request = fax_adapter_at(FakeLine(), aws).prepare(fax(**{"from": sender}))
    assert request.sender == SENDERS[1]


def test_a_fax_whose_sender_is_not_a_fax_number_of_the_stage_is_refused(aws: Aws) -> None:
    with pytest.raises(Invalid, match=rf"from: is not among .*; use one of \{SENDERS[0]}, \{SENDERS[1]}$"):
        fax_adapter_at(FakeLine(), aws).prepare(fax(**{"from": LINE}))


def test_a_pdf_in_the_payload_bucket_gets_a_new_url_that_expires(aws: Aws) -> None:
    aws.s3.put_object(Bucket=BUCKET, Key="faxes/f 1.pdf", Body=b"%PDF")
    adapter = fax_adapter_at(FakeLine(), aws, media_seconds=1800)
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
def test_a_fax_whose_pdf_is_missing_or_outside_the_payload_bucket_is_refused_as_invalid(
    aws: Aws, ref: str, sentence: str
) -> None:
    with pytest.raises(Invalid, match=f"payload_ref: .*{sentence}"):
        fax_adapter_at(FakeLine(), aws).prepare(fax(pdf_url=..., payload_ref=ref))


@pytest.mark.parametrize(
    ("listed", "other_ids", "evidence"),
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
def test_a_look_up_finds_the_fax_if_exactly_one_listed_fax_belongs_to_no_other_message(
    aws: Aws, listed: list[str], other_ids: tuple[str, ...], evidence: Evidence
) -> None:
    assert fax_adapter_at(FakeLine(finds=listed), aws).open().look_up(fax(), NOW_MS, other_ids) == evidence


def test_the_look_up_of_a_fax_searches_from_the_start_of_the_attempt_minus_the_clock_skew(aws: Aws) -> None:
    line = FakeLine()
    adapter = fax_adapter_at(line, aws, clock_skew_seconds=2.5)
    adapter.open().look_up(fax(attempt=2, pdf_url=..., payload_ref=f"s3://{BUCKET}/gone.pdf"), NOW_MS, ())
    assert line.searches == [(LINE, "Zi0x.2", NOW_MS / 1000 - 2.5)]
