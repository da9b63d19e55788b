"""The proof in the responses of providers, and the redaction of their reasons."""

import pytest

from mailroom.errors import OutcomeUnknown
from mailroom.http.provider_api import body_of, epoch, refusal, retry_after, text_of
from mailroom.message.outcome import Misconfigured, Outcome, Rejected, Retry
from mailroom.telemetry import redact
from tests.support.unit.shared import NOW


@pytest.mark.parametrize(
    ("status", "own", "outcome"),
    [
        (429, False, Retry("why", 0)),
        (401, False, Misconfigured("why")),
        (402, False, Misconfigured("why")),
        (403, False, Misconfigured("why")),
        (404, False, Misconfigured("why")),
        (400, False, Misconfigured("why")),
        (422, False, Misconfigured("why")),
        (418, False, Misconfigured("why")),
        (400, True, Rejected("why")),
        (422, True, Rejected("why")),
    ],
)
def test_a_refusal_rejects_the_message_only_if_its_code_is_on_the_providers_list(
    status: int, own: bool, outcome: Outcome
) -> None:
    assert refusal(status, {}, "why", own=own) == outcome


@pytest.mark.parametrize("status", [204, 301, 303, 408, 500, 502, 503, 504])
def test_a_response_whose_status_is_not_a_refusal_leaves_the_outcome_unknown(status: int) -> None:
    with pytest.raises(OutcomeUnknown, match="why"):
        refusal(status, {}, "why", own=True)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, 0),
        ({"retry-after": "7"}, 7),
        ({"retry-after": " 120 "}, 120),
        ({"x-ratelimit-reset": "3"}, 3),
        ({"retry-after": "9", "x-ratelimit-reset": "3"}, 9),
        ({"retry-after": "soon"}, 0),
        ({"retry-after": "inf"}, 0),
        ({"retry-after": "-5"}, 0),
        ({"retry-after": "Mon, 01 Jan 99999999999999999999 00:00:00 GMT"}, 0),
        ({"retry-after": "Mon, 01 Jan 2026 00:00:00 +99999999999999999999"}, 0),
        ({"retry-after": "1766826000000"}, 0),
        ({"retry-after": "Sat, 21 Nov 2026 09:01:30 GMT", "date": "Sat, 21 Nov 2026 09:00:00 GMT"}, 90),
        ({"retry-after": "Sat, 21 Nov 2026 08:59:00 GMT", "date": "Sat, 21 Nov 2026 09:00:00 GMT"}, 0),
        ({"retry-after": "Sat, 21 Nov 2026 09:01:30 GMT"}, 0),
    ],
)
def test_the_wait_before_a_retry_is_read_from_the_headers_of_a_response(
    headers: dict[str, str], seconds: float
) -> None:
    assert retry_after(headers) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-21T09:00:00Z",
        "2026-11-21T10:00:00+01:00",
        "2026-11-21T09:00:00",
        "2026-11-21T09:00:00.000000Z",
        "Sat, 21 Nov 2026 09:00:00 +0000",
    ],
)
def test_a_date_in_a_response_is_read_in_every_format_that_providers_use(text: str) -> None:
    assert epoch(text) == NOW


def test_an_invalid_date_in_a_response_leaves_the_outcome_unknown() -> None:
    with pytest.raises(OutcomeUnknown):
        epoch("yesterday")


@pytest.mark.parametrize("text", ["", "<html>", "[1]", '"text"', "null", "[" * 9000])
def test_a_response_that_is_not_a_json_object_leaves_the_outcome_unknown(text: str) -> None:
    with pytest.raises(OutcomeUnknown, match="200"):
        body_of(200, text)


@pytest.mark.parametrize("answer", [{}, {"sid": None}, {"sid": ""}, {"sid": 7}])
def test_a_missing_or_invalid_value_in_a_response_leaves_the_outcome_unknown(
    answer: dict[str, object],
) -> None:
    with pytest.raises(OutcomeUnknown, match="sid"):
        text_of(answer, "sid")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("The number +15555550123 is invalid", "The number …23 is invalid"),
        ("call (555) 555-0123 now", "call (…23 now"),
        ("no PDF at https://bucket.s3.amazonaws.com/a.pdf?X-Amz-Signature=1f", "no PDF at (URL)"),
        ("code 21211, 20 of 300", "code 21211, 20 of 300"),
        ("x" * 400, "x" * 299 + "…"),
    ],
)
def test_phone_numbers_and_urls_are_redacted_from_the_reason_of_a_provider(text: str, shown: str) -> None:
    assert redact(text) == shown
