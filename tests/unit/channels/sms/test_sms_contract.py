"""The contract of a text message."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailroom.channels.contracts import CONTRACTS, contracts_of
from mailroom.channels.sms.contract import Sms, sms_in
from mailroom.errors import Invalid
from mailroom.message.message import parse
from tests.support.unit.shared import BUCKET
from tests.support.unit.sms import IN_BUCKET, MEDIA, TO, sms, sms_item

NUMBER = "to: is not a number in international form; use + and country"
MISSING = "text: is missing; set text, template or media_urls"
NO_MEDIA = "is not a URL of media; use https://host/path or s3://bucket/key"


@pytest.mark.parametrize("to", [TO, "+1 (555) 555-0100", "+1-555-555-0100"])
def test_all_spellings_of_a_number_are_the_same_recipient(to: str) -> None:
    message = sms(to=to)
    assert (message.line, message.recipient, message.addressees) == (TO, TO, (TO,))


@pytest.mark.parametrize(
    ("region", "to", "number"),
    [("US", "(555) 555-0100", TO), ("DE", "0171 2345678", "+491712345678"), ("DE", TO, TO)],
)
def test_a_phone_number_may_be_in_national_form_in_a_stage_with_a_default_region(
    region: str, to: str, number: str
) -> None:
    assert sms(region, to=to).addressees == (number,)


def test_the_error_about_an_invalid_phone_number_depends_on_the_stages_default_region() -> None:
    assert sms_in("US") is sms_in("US")
    with pytest.raises(Invalid, match=r"^to: is not a number as dialled in DE, or in international form"):
        sms("DE", to="12")
    with pytest.raises(Invalid, match=NUMBER.replace("+", r"\+")):
        sms(to="(555) 555-0100")


def test_the_stages_default_region_changes_only_how_phone_numbers_of_texts_are_parsed() -> None:
    contracts = contracts_of("US")
    assert parse(sms_item(to="(555) 555-0100"), contracts).recipient == TO
    assert {**contracts, "sms": CONTRACTS["sms"]} == CONTRACTS
    assert list(contracts) == list(CONTRACTS)
    with pytest.raises(Invalid):
        parse(sms_item(to="(555) 555-0100"), contracts_of(""))


def test_the_json_schema_of_texts_does_not_depend_on_the_stages_default_region() -> None:
    assert sms_in("US").__name__ == Sms.__name__
    assert msgspec.json.schema(sms_in("US")) == msgspec.json.schema(Sms)


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({}, "text"),
        ({"text": ..., "template": "default"}, "template"),
        ({"media_urls": [MEDIA]}, "media"),
        ({"text": ..., "media_urls": [MEDIA, IN_BUCKET]}, "media"),
        ({"media_urls": [f"s3://{BUCKET}/a cat (1) ä.jpg"]}, "media"),
        ({"text": ..., "template": "default", "media_urls": [MEDIA]}, "media"),
        ({"text": ..., "payload_ref": f"s3://{BUCKET}/s-1.json"}, "text"),
        ({"text": "a\nb"}, "text"),
        ({"text": "x" * 1600}, "text"),
        ({"text": "schön 👍"}, "text"),
    ],
)
def test_an_sms_may_contain_a_text_a_template_or_media(changes: dict[str, Any], kind: str) -> None:
    assert sms(**changes).kind == kind


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"to": ...}, "to: is missing; give one number in international form"),
        ({"to": ""}, NUMBER),
        ({"to": "vincent@example.com"}, 'to: has letters ("vincent"); write digits alone, such as +1617'),
        ({"to": [TO]}, "to: expected a string"),
        ({"to": 15555550100}, "to: expected a string"),
        ({"text": ...}, MISSING),
        ({"text": None}, MISSING),
        ({"text": ..., "media_urls": []}, MISSING),
        ({"text": ""}, "text: is empty or has only spaces"),
        ({"text": " \n "}, "text: is empty or has only spaces"),
        ({"text": "x" * 1601}, "text: has 1601 characters; use at most 1600"),
        ({"text": "\r\n\t\u2028"}, "text: is empty or has only spaces"),
        ({"text": "a\x1bb"}, "text: holds a control character"),
        ({"text": "a\0"}, "text: holds a control character"),
        ({"template": "default"}, "template: is not allowed together with text; use only one"),
        ({"text": ..., "template": "../mail/default"}, "template: is not a template's name"),
        ({"text": ..., "template": ""}, "template: is not a template's name"),
        ({"media_urls": [MEDIA] * 11}, "media_urls: expected a list of length <= 10"),
        ({"media_urls": MEDIA}, "media_urls: expected a list"),
        ({"media_urls": [MEDIA, 7]}, "media_urls[1]: expected a string"),
        ({"media_urls": [MEDIA, "http://files.example/cat.jpg"]}, f"media_urls[1]: {NO_MEDIA}"),
        ({"media_urls": ["https://files.example/a cat.jpg"]}, f"media_urls[0]: {NO_MEDIA}"),
        ({"media_urls": ["https://"]}, f"media_urls[0]: {NO_MEDIA}"),
        ({"media_urls": ["s3://"]}, f"media_urls[0]: {NO_MEDIA}"),
        ({"media_urls": [""]}, f"media_urls[0]: {NO_MEDIA}"),
        ({"expires_at": "soon"}, "expires_at: "),
    ],
)
def test_an_invalid_sms_is_refused_with_the_field_and_the_remedy_in_the_error(
    changes: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(Invalid) as caught:
        sms(**changes)
    assert str(caught.value).startswith(sentence)


def test_further_attributes_of_an_item_are_variables_of_the_template() -> None:
    message = sms(text=..., template="default", first_name="Ada")
    assert message.variables["first_name"] == "Ada"


BREAKS = ["\n", "\r\n", "\r", "\v", "\f", "\x85", "\u2028", "\u2029"]


@given(st.lists(st.sampled_from([*BREAKS, "\t", "a", " ", "\u2019"]), min_size=1).map("a".join))
def test_in_a_text_all_line_breaks_become_newlines_and_tabs_become_spaces(text: str) -> None:
    plain_text = sms(text=f"{text}a").text
    assert plain_text is not None
    assert set(plain_text) <= set("a \n\u2019")
    assert plain_text.splitlines() == f"{text}a".replace("\t", " ").splitlines()


@pytest.mark.parametrize("end", BREAKS)
def test_the_length_limit_of_a_text_is_checked_after_line_breaks_become_newlines(end: str) -> None:
    assert sms(text=end + "x" * 1599).text == "\n" + "x" * 1599
