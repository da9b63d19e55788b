"""Items without a person: what others have in the same item stays, each under a name of its own."""

from mailroom.aws.dynamo_values import image_of, plain
from mailroom_ops.people.person import Person, mentioned, without

ADA = Person("ada@example.com")


def test_two_names_that_hold_the_person_stay_two() -> None:
    seen = {"ada@example.com": 1, "ADA@example.com": 2, "erased": 3}
    new = without(image_of({"id": "m-1", "seen": seen}), ADA)
    assert sorted(plain(new)["seen"].values()) == [1, 2, 3]
    assert plain(new)["seen"]["erased"] == 3
    assert not mentioned(new, ADA)


def test_a_set_keeps_its_size() -> None:
    tags = {"ada@example.com", "ADA@example.com", "x"}
    new = without(image_of({"id": "m-1", "tags": tags}), ADA)
    assert len(new["tags"]["SS"]) == 3
    assert not mentioned(new, ADA)


def test_attributes_that_are_called_after_the_person_are_called_otherwise() -> None:
    new = without(image_of({"id": "m-1", "ada@example.com": "yes", "erased": "no"}), ADA)
    assert sorted(plain(new).values()) == ["m-1", "no", "yes"]
    assert not mentioned(new, ADA)


def test_what_was_redacted_before_stays_as_it_is() -> None:
    once = without(image_of({"id": "m-1", "seen": {"ada@example.com": 1, "Ada@example.com": 2}}), ADA)
    assert without(once, ADA) == once


def test_a_set_of_numbers_loses_the_persons_own() -> None:
    number = Person("+16175551234")
    new = without(image_of({"id": "m-1", "seen": {16175551234, 5}}), number)
    assert new["seen"] == {"NS": ["5"]}


def test_a_number_of_several_forms_is_found_in_a_text_by_each() -> None:
    for typed in ("+5491123456789", "+541123456789"):
        number = Person(typed)
        assert number.is_in("Call +54 9 11 2345-6789 today")
        assert number.is_in("Call 541123456789")
        assert number.may_be_in("call-541123456789")
        assert number.may_be_in("call-5491123456789")
        assert not number.is_in("Call +54 8 11 2345-6789 or 154112345678900")
