"""A person in all spellings, and items without the person: what others have in the same item stays."""

import pytest

from mailroom.aws.dynamo_values import image_of, plain
from mailroom_ops.people.person import Person, mentioned, without
from mailroom_ops.shared.screen import Refused

ADA = Person("ada@example.com")
TOKEN = "fcm:APA91bHun4MxP5egoKMwt2KZFBaFUH"


@pytest.mark.parametrize(
    ("typed", "written"),
    [
        ("ada@example.com", "Ada Lovelace <ADA@Example.com>"),
        ("Ada <Ada@Example.Com>", " ada@EXAMPLE.com "),
        ("+1 617 555 1234", "+1 (617) 555-1234"),
        ("+1 617 555 1234", "(617) 555-1234"),
        *((typed, "+541123456789") for typed in ("+54 9 11 2345-6789", "+54 11 15 2345-6789")),
        *((typed, "+54 9 11 2345-6789") for typed in ("+54 11 2345-6789", "+54 11 15 2345-6789")),
        (TOKEN, f"android#{TOKEN}"),
    ],
)
def test_a_recipient_is_recognized_in_every_spelling(typed: str, written: str) -> None:
    assert Person(typed, "US").is_named_by(written)


@pytest.mark.parametrize(
    "other", ["aada@example.com", "ada@example.com.au", "ada@example.co", "x.ada@example.com"]
)
def test_an_address_that_contains_the_persons_address_belongs_to_another_person(other: str) -> None:
    assert not ADA.is_named_by(other)
    assert not ADA.is_in(f"by {other}")


@pytest.mark.parametrize(
    ("typed", "channel", "words"),
    [
        *(
            (text, "", "is not a mail address, a number")
            for text in ("ada", "ada@", "555-1234", "", "1" * 20)
        ),
        ("12345", "pigeon", "--channel: 'pigeon' is not a channel; use one of mail, sms"),
        ("ada@example.com", "mail", "leave --channel out"),
    ],
)
def test_an_erasure_refuses_an_argument_that_is_not_a_recipient_or_does_not_suit_its_channel(
    typed: str, channel: str, words: str
) -> None:
    with pytest.raises(Refused, match=words):
        Person(typed, channel=channel)


def test_an_erasure_removes_the_person_from_a_set_of_recipients_and_keeps_the_others() -> None:
    image = image_of({"id": "m-1", "event_type": "mail", "to": {"ada@example.com", "bob@example.com"}})
    assert without(image, ADA)["to"] == {"SS": ["bob@example.com"]}


def test_two_keys_of_a_map_that_contain_the_persons_address_stay_distinct_after_an_erasure() -> None:
    seen = {"ada@example.com": 1, "ADA@example.com": 2, "erased": 3}
    new = without(image_of({"id": "m-1", "seen": seen}), ADA)
    assert sorted(plain(new)["seen"].values()) == [1, 2, 3]
    assert plain(new)["seen"]["erased"] == 3
    assert not mentioned(new, ADA)


def test_a_set_of_texts_that_mention_the_person_keeps_its_size_after_an_erasure() -> None:
    tags = {"ada@example.com", "ADA@example.com", "x"}
    new = without(image_of({"id": "m-1", "tags": tags}), ADA)
    assert len(new["tags"]["SS"]) == 3
    assert not mentioned(new, ADA)


def test_attributes_whose_name_contains_the_person_are_renamed() -> None:
    new = without(image_of({"id": "m-1", "ada@example.com": "yes", "erased": "no"}), ADA)
    assert sorted(plain(new).values()) == ["m-1", "no", "yes"]
    assert not mentioned(new, ADA)


def test_a_second_redaction_of_an_item_does_not_change_the_item() -> None:
    once = without(image_of({"id": "m-1", "seen": {"ada@example.com": 1, "Ada@example.com": 2}}), ADA)
    assert without(once, ADA) == once


def test_the_persons_number_is_removed_from_a_set_of_numbers() -> None:
    number = Person("+16175551234")
    new = without(image_of({"id": "m-1", "seen": {16175551234, 5}}), number)
    assert new["seen"] == {"NS": ["5"]}


def test_each_form_of_a_number_finds_every_form_of_the_number_in_a_text() -> None:
    for typed in ("+5491123456789", "+541123456789"):
        number = Person(typed)
        assert number.is_in("Call +54 9 11 2345-6789 today")
        assert number.is_in("Call 541123456789")
        assert number.may_be_in("call-541123456789")
        assert number.may_be_in("call-5491123456789")
        assert not number.is_in("Call +54 8 11 2345-6789 or 154112345678900")
