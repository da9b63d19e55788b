"""Attributes that are not in a contract: variables of a template, or mistakes."""

import re
from typing import Any

import pytest

from mailroom.channels.contracts import CONTRACTS
from mailroom.channels.fax.contract import item_of
from mailroom.errors import Invalid
from mailroom.message.message import parse

VALID: dict[str, dict[str, Any]] = {
    "mail": {"to": "ada@example.com", "subject": "Hello", "text": "Hi"},
    "sms": {"to": "+16175551234", "text": "Hi"},
    "push": {"to": "device-token", "platform": "android", "title": "Hi"},
    "fax": {"to": "+16175551234", "pdf_url": "https://files.example/a.pdf"},
    "webhook": {"url": "https://hooks.example.com/a", "payload": {}},
}
VITAL = [(channel, name) for channel, contract in CONTRACTS.items() for name in contract.vital]


SMALL: dict[str, Any] = {"id": "m-1", "event_type": "mail", "to": "ada@example.com", "template": "welcome"}


def channel_item(channel: str, **variables: Any) -> dict[str, Any]:
    return {"id": "m-1", "event_type": channel, **VALID[channel], **variables}


def camel(name: str) -> str:
    first, *words = name.split("_")
    return first + "".join(map(str.title, words))


def spellings(name: str) -> set[str]:
    return {camel(name), name.replace("_", "-"), name.upper(), name.replace("_", ""), name.title()} - {name}


@pytest.mark.parametrize(("channel", "name"), VITAL)
def test_another_spelling_or_word_for_a_vital_attribute_is_refused_with_the_right_name(
    channel: str, name: str
) -> None:
    for wrong in spellings(name) | {*CONTRACTS[channel].vital[name]}:
        with pytest.raises(Invalid) as caught:
            parse(channel_item(channel, **{wrong: "x"}), CONTRACTS)
        assert str(caught.value) == f"{wrong}: is not used here; did you mean `{name}`?"


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        *(("exipres_at", "expires_at"), ("expire_at", "expires_at"), ("expries_ta", "expires_at")),
        *(("sned_at", "send_at"), ("snd_at", "send_at"), ("send_att", "send_at"), ("sendAt", "send_at")),
        *(("attachment", "attachments"), ("atachment", "attachments"), ("attatchment", "attachments")),
        *(("relpy_to", "reply_to"), ("replyto", "reply_to"), ("callbak_ulr", "callback_url")),
        *(("payloadref", "payload_ref"), ("paylod_rf", "payload_ref"), ("CC", "cc"), ("Bcc", "bcc")),
    ],
)
def test_a_vital_attribute_with_one_or_two_typing_errors_is_reported_as_misspelt(
    wrong: str, name: str
) -> None:
    assert parse({**SMALL, wrong: "x"}, CONTRACTS).misspelt() == {wrong: name}


def test_a_short_attribute_name_or_one_with_three_typing_errors_is_not_reported_as_misspelt() -> None:
    names = ("exprs_t", "attachs", "callback", "payload", "sent_to", "reply", "abc", "ccc", "bc")
    assert parse({**SMALL, **dict.fromkeys(names, "x")}, CONTRACTS).misspelt() == {}


def test_a_very_long_attribute_name_is_not_reported_as_misspelt() -> None:
    names = ["send_at" * 50_000, *(f"expires_at_{number}" * 3 for number in range(20_000))]
    assert parse(channel_item("mail", **dict.fromkeys(names, "x")), CONTRACTS).misspelt() == {}


EVERYDAY = """
    account_id action_url address address_line_1 age agenda amount app_name attempts author avatar_url balance
    bank bill_number birthday body_text booking brand browser building button_text cart_items cart_total
    category change_url city code comment comments company contact country coupon currency customer
    customer_id customer_name date date_of_birth days_left deadline delivery_date department description
    device discount discount_code display_name district download_url due_date duration emails end_date
    event event_date event_name expiry expiry_date extra faq_url feedback_url field file_name
    first_name firstName footer form form_url friend full_name gender gift greeting group group_name
    headline help_url hero_image hotel id_number image image_url intro invitation_url invoice_date
    invoice_number invoice_url ip_address items job_title language last_login last_name lastName line_items
    link links list location login_url logo_url manager members message messages method middle_name month
    name new_followers next_step nickname note notes number offer offers option order order_date order_id
    order_number order_total page partner password_reset_url payment payment_method people period person
    phone phone_number photo pickup_date plan points poster postcode preferences_url price prices product
    product_name products profile_url project promo_code province quantity question rating reason
    receipt_url recipe reference region renewal_date reset_url restaurant room salutation score seat seats
    sender_name sendgrid_category session shipping_address shop size sku source start_date state status
    store street summary support_email surname tags tax team team_name terms_url texts ticket tickets time
    title_line total topics total_price tracking_number tracking_url transaction_id trial_end type uid unit
    unit_price unsubscribe_link update user user_id user_name userName username valid_until vat venue
    verification_code verify_url version video_url visitor vote voucher warranty website week weekday
    welcome_text winner year your_name zip zip_code
        accepted_at arrival attached attendees card_last4 cc_brand cc_last4 created_at data delivered_at
    delivery     delivery_window ended_at ends_at end_at expiration_date expired expiry_month
    fallback_url free_until from_name     header header_image icon items_count lane_name locales media
    opened_at opening_hours paid_at payload_id     preheader priority read_at received_at refund_url
    replied_at reply_by sent_at sent_by sent_on shipped_at     signature starts_at subjects
    template_name templates time_left time_slot timezone topics_list tz updated_at     url urls
    valid_for windows
""".split()  # noqa: SIM905 - a list would have a line each


@pytest.mark.parametrize("channel", CONTRACTS)
def test_common_names_of_template_variables_are_not_reported_as_misspelt_attributes(channel: str) -> None:
    assert len(EVERYDAY) > 150
    names = (name for name in EVERYDAY if name not in CONTRACTS[channel].__struct_encode_fields__)
    assert parse(channel_item(channel, **dict.fromkeys(names, "x")), CONTRACTS).misspelt() == {}


@pytest.mark.parametrize("payload", [{}, {"payload_ref": "s3://bucket/key"}])
def test_a_misspelt_attribute_is_accepted_if_a_mails_template_or_payload_may_use_it(
    payload: dict[str, str],
) -> None:
    mail = {"id": "m-1", "event_type": "mail", "to": "a@example.com", "sendAt": "x", **payload}
    message = parse(mail, CONTRACTS)
    assert (message.may_use, message.misspelt()) == (True, {"sendAt": "send_at"})


def test_a_column_of_an_audience_is_not_reported_as_a_misspelt_attribute_whatever_its_name() -> None:
    columns = {"expires": "soon", "scheduled_at": "noon"}
    mail = parse({**SMALL, **columns, "sendAt": "x", "audience_columns": [*columns]}, CONTRACTS)
    assert mail.misspelt() == {"sendAt": "send_at"}


def test_internal_attribute_names_are_never_suggested_as_the_right_spelling() -> None:
    message = parse(channel_item("mail", attempts="3", variable="x", payloadPrefix="y"), CONTRACTS)
    assert message.misspelt() == {}


def test_the_attributes_of_the_smallest_mail_and_of_a_gateway_fax_are_not_reported_as_misspelt() -> None:
    names = {"email": "ldg55d@example.com", "first_name": "Vincent", "last_name": "Lee"}
    mail = parse({"id": "2026ldg55d", "event_type": "mail", **names}, CONTRACTS)
    fax = {"fax_id": "abc123", "to": "+16175551234", "pdf_url": "https://some-url.example/file.pdf"}
    sent = parse(item_of({**fax, "callback_url": "https://some-url.example/endpoint"}), CONTRACTS)
    assert (mail.misspelt(), sent.misspelt()) == ({}, {})


def test_attributes_that_a_template_does_not_use_are_reported_including_the_subject() -> None:
    attributes = {"to": "a@example.com", "template": "welcome", "subject": "Hi", "name": "Ada", "shoe": 7}
    message = parse({"id": "m-1", "event_type": "mail", **attributes}, CONTRACTS)
    assert sorted(message.unused({"name"})) == ["shoe", "subject"]
    assert sorted(message.unused({"name", "shoe", "subject"})) == []


@pytest.mark.parametrize("locale", ["fr", "fr-CA", "zh-Hant-TW", "de-CH-1996", "es-419", "FR-ca"])
def test_a_locale_that_is_a_language_tag_is_valid(locale: str) -> None:
    parse({"id": "m-1", "event_type": "mail", "to": "a@example.com", "locale": locale}, CONTRACTS)


def test_a_locale_with_an_underscore_is_read_as_a_language_tag_in_the_message_and_its_variables() -> None:
    item = {"id": "m-1", "event_type": "mail", "to": "a@example.com", "locale": "pt_BR"}
    message = parse(item, CONTRACTS)
    assert (message.locale, message.variables["locale"]) == ("pt-BR", "pt-BR")  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "locale", ["fr CA", "", "f", "french", "fr-", "fr-CA ", "fr-../x", "../../x", "fr/CA"]
)
def test_a_locale_that_is_not_a_language_tag_is_refused(locale: str) -> None:
    problem = f"locale: {locale!r} is not a language tag; use one like fr or fr-CA"
    with pytest.raises(Invalid, match=re.escape(problem)):
        parse({"id": "m-1", "event_type": "mail", "to": "a@example.com", "locale": locale}, CONTRACTS)
