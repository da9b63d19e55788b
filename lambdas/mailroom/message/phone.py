"""Telephone numbers, in the one form that names a line: E.164."""

from functools import lru_cache


@lru_cache(maxsize=256)  # checked on the way in, used on the way out
def normalise(text: str, region: str | None = None) -> str:
    """`+1 (617) 555-1234` as `+16175551234`. Raises ValueError with what would be right.

    A number needs its country: without one, the same digits are different lines in different places. With a
    `region` (ISO 3166, such as US) a number may also be written as it is dialled there.
    Whether it is in service is for the provider to say: numbers are assigned faster than tables of them.
    """
    import phonenumbers  # 40 ms and 3 MB, for those alone that send to numbers

    try:
        number = phonenumbers.parse(text, region or None)
    except phonenumbers.NumberParseException:
        number = None
    # `is_possible_number` lets local numbers pass, without their area code: nobody can call those.
    possible = phonenumbers.ValidationResult.IS_POSSIBLE
    if number is None or phonenumbers.is_possible_number_with_reason(number) != possible or number.extension:
        there = f"as dialled in {region}, or " if region else ""
        raise ValueError(
            f"is not a number {there}in international form; use + and country, such as +16175551234"
        )
    return phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)
