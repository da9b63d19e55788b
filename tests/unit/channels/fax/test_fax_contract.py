"""The contract of a fax, and the two forms of a body in its queue."""

from typing import Any

import pytest

from mailroom.channels.fax.contract import Fax, item_of
from mailroom.errors import Invalid, Malformed
from mailroom.message.message import parse
from tests.support.unit.fax import LINE, PDF, TOLD, fax, fax_body, fax_item
from tests.support.unit.shared import BUCKET, Item

NUMBER = "is not a number in international form; use + and country code: +16175551234"
ONCE = "pdf_url: is set, and so is payload_ref; remove one of them"
MISSING = "pdf_url: is missing, and so is payload_ref; set one of them"
NOT_HTTPS = "pdf_url: is not an https URL; use https://host/file.pdf"


@pytest.mark.parametrize("to", [LINE, "+1 (617) 555-1234", "+1-617-555-1234"])
def test_all_spellings_of_a_number_have_the_same_fax_line(to: str) -> None:
    assert (fax(to=to).line, fax(to=to).group, fax(to=to).recipient) == (LINE, LINE, LINE)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"to": ...}, "to: is missing; give one fax number"),
        ({"to": None}, "to: is missing; give one fax number"),
        ({"to": ""}, f"to: {NUMBER}"),
        ({"to": "617-555-1234"}, f"to: {NUMBER}"),
        (
            {"to": "vincent@example.com"},
            'to: has letters ("vincent"); write digits alone, such as +16175551234',
        ),
        ({"to": [LINE]}, "to: expected a string"),
        ({"to": 16175551234}, "to: expected a string"),
        ({"from": "2025550100"}, f"from: {NUMBER}"),
        ({"pdf_url": ...}, MISSING),
        ({"payload_ref": f"s3://{BUCKET}/f-1.pdf"}, ONCE),
        ({"pdf_url": "http://files.example/f-1.pdf"}, NOT_HTTPS),
        ({"pdf_url": "ftp://files.example/f-1.pdf"}, NOT_HTTPS),
        ({"pdf_url": "https://"}, NOT_HTTPS),
        ({"pdf_url": "https://files.example/a b.pdf"}, NOT_HTTPS),
        ({"pdf_url": "https://files.example/a.pdf\n"}, NOT_HTTPS),
        ({"pdf_url": "https://files.example/" + "x" * 2000}, NOT_HTTPS),
        ({"pdf_url": ""}, NOT_HTTPS),
        ({"callback_url": "ftp://app.example"}, "callback_url: is not an https URL"),
        ({"attempt": 0}, "attempt: "),
        ({"attempt": "2"}, "attempt: expected a number"),
        ({"retry_count": -1}, "retry_count: "),
        ({"retry_count": "2"}, "retry_count: expected a number"),
        ({"retry_count": 1.5}, "retry_count: "),
    ],
)
def test_an_invalid_fax_is_refused_with_the_field_and_the_remedy_in_the_error(
    changes: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(Invalid) as caught:
        fax(**changes)
    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize("attributes", [{}, {"attempt": 7, "topic": "ballots"}])
def test_a_queue_body_with_a_fax_id_becomes_a_mailbox_item_with_the_same_attributes(attributes: Item) -> None:
    body = fax_body(**attributes)
    assert item_of(body) == fax_item(callback_url=TOLD, **attributes)
    assert body == fax_body(**attributes)


def test_a_queue_body_that_is_already_a_mailbox_item_is_not_changed() -> None:
    assert item_of(fax_item(fax_id="other")) == fax_item(fax_id="other")


@pytest.mark.parametrize(
    "body", [fax_body(fax_id=...), fax_body(fax_id=""), fax_body(fax_id=7), fax_body(fax_id=None), {}]
)
def test_a_queue_body_without_a_fax_id_is_malformed(body: Item) -> None:
    with pytest.raises(Malformed, match="is not a fax: `fax_id` is missing"):
        item_of(body)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, {"pdf_url": PDF}),
        ({"from": "+12025550101"}, {"pdf_url": PDF, "from": "+12025550101"}),
        (
            {"pdf_url": ..., "payload_ref": "s3://b/k", "expires_at": "2026-12-01T00:00:00Z"},
            {"payload_ref": "s3://b/k", "expires_at": "2026-12-01T00:00:00Z"},
        ),
        ({"retry_count": 0}, {"pdf_url": PDF}),
        ({"retry_count": 7}, {"pdf_url": PDF, "retry_count": 7}),
    ],
)
def test_the_attributes_that_a_retry_of_a_fax_needs_are_kept_for_the_ledger(
    changes: Item, expected: Item
) -> None:
    assert fax(**changes).kept == expected


def test_each_attempt_of_each_fax_has_a_different_deduplication_id() -> None:
    ids, attempts = ("f-1", "f-11", "f-2"), (1, 2, 11)
    assert len({fax(id=id_, attempt=attempt).duplicate for id_ in ids for attempt in attempts}) == 9


def test_copies_of_a_fax_have_the_same_deduplication_id_in_all_spellings_of_the_number() -> None:
    body = parse(item_of(fax_body(to="+1 617 555 1234")), {"fax": Fax})
    assert body.duplicate == fax().duplicate


@pytest.mark.parametrize("id_", ["f", "f" * 180, "ü" * 90, "a b/c"])
def test_the_deduplication_id_of_a_fax_is_valid_for_sqs(id_: str) -> None:
    duplicate = fax(id=id_).duplicate
    assert len(duplicate) <= 128
    assert duplicate.isalnum()
