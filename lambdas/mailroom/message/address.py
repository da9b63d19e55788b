"""Mail addresses, in the forms that SES accepts and with nothing that could smuggle a header in; telephone
numbers, in the one form that names a line: E.164."""

import re
from contextlib import suppress
from email.errors import MessageError
from email.utils import formataddr
from functools import lru_cache

_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LOCAL = re.compile(rf"{_ATOM}(?:\.{_ATOM})*")
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_DOMAIN = re.compile(rf"(?:{_LABEL}\.)+{_LABEL}")
# No two of its parts may match the same character: a long text of spaces would take minutes.
_NAMED = re.compile(r'(?:"(?P<quoted>(?:[^"\\]|\\.)*)"\s*|(?P<name>[^"<>]*))<(?P<address>[^<>]*)>')
_MAX_LENGTH = 998
"""Characters of a name and its address: a line of a header has no more (RFC 5322, 2.1.1). Without a bound a
name could be larger than an item of the ledger, which has it too."""
_MAX_DOMAIN = 253
"""Characters of a domain (RFC 1035); in other letters than ASCII's it has fewer."""
_ENCODED = "xn--"
"""How a part of a domain begins that stands for other letters than ASCII's."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_WORD = re.compile(r"[^\W\d_](?:[A-Za-z]|[^\x00-\x7f\d\s]){0,19}")
"""A word beside a number, or its beginning: vowels of some scripts are no letters, but marks."""
_ARGENTINIAN = re.compile(r"\+54(9?)([1-8][0-9]{9})")
_MEXICAN = re.compile(r"\+521(?=[0-9]{10}$)")
_TRUNK = "0|1|8|06|80"
"""Trunk prefixes of all countries: `phonenumbers` knows which country has which. Mexico's mobiles had a 1
until 2019, and carriers still write senders with it (ITU's notification T0202 of August 2019; Twilio's "SMS
guidelines for Mexico"). Longer prefixes name carriers or services, and are refused."""


def has_control(text: str) -> bool:
    """True where the text holds a control character or line break: none may reach a header."""
    return _CONTROL.search(text) is not None


def split(text: str) -> tuple[str, str]:
    """The display name (or "") and the bare address of `a@b.example` or `Name <a@b.example>`.

    A name may be quoted (RFC 5322) and encoded (RFC 2047), as `email.utils.formataddr` writes it. The domain
    comes back in ASCII (IDNA 2008). Raises ValueError with what would be right: SES takes no non-ASCII local
    part, and RFC 5321 allows 64 characters before the @ and 254 in all.
    """
    if has_control(text):
        raise ValueError("holds a line break or control character; use one line of plain text")
    text = text.strip()
    named = _NAMED.fullmatch(text)
    local, at, domain = (named["address"] if named else text).strip().rpartition("@")
    if not at or not _LOCAL.fullmatch(local) or len(local) > 64:
        raise ValueError("is not a mail address; use name@domain.example")
    # Its encoding looks at each letter several times over: what no name can be is not encoded.
    ascii_domain = _ascii(domain) if len(domain) <= _MAX_DOMAIN else ""
    if not _DOMAIN.fullmatch(ascii_domain) or len(local) + 1 + len(ascii_domain) > 254:
        raise ValueError("is not a mail address: its domain is not valid; use name@domain.example")
    if len(text) > _MAX_LENGTH:
        raise ValueError(f"has {len(text)} characters; use at most {_MAX_LENGTH}, the name included")
    return _name(named) if named else "", f"{local}@{ascii_domain}"


def _name(named: re.Match[str]) -> str:
    """Return the display name, unquoted and decoded. Takes a short text only: decoding is not linear."""
    quoted = named["quoted"]
    name = (named["name"] if quoted is None else re.sub(r"\\(.)", r"\1", quoted)).strip()
    if "=?" in name and name.isascii():
        from email.header import decode_header, make_header  # for encoded names alone

        # In an unknown charset, or with a line break in it, a name stays as it is: in ASCII, and harmless.
        with suppress(MessageError, LookupError, ValueError):
            decoded = str(make_header(decode_header(name))).strip()
            if decoded.encode() and not has_control(decoded):
                return decoded
    return name


@lru_cache(maxsize=256)  # checked on the way in, built on the way out
def normalise(text: str) -> str:
    """The address as it goes to SES: name encoded for a header, domain in ASCII. Raises ValueError."""
    name, address = split(text)
    return formataddr((name, address)) if name else address


@lru_cache(maxsize=256)  # asked for by the claim, by the suppression list and by the way out
def bare(text: str) -> str:
    """An address without a name and in lower case, as the suppression list and events have it. Raises
    ValueError."""
    return split(text)[1].lower()


def spellings(recipient: str) -> tuple[str, ...]:
    """Return the names that tables may have for a recipient, the canonical form first.

    A mobile of Argentina is called with a 9 after +54, and texted with or without it (libphonenumber's FAQ,
    "Why is this number from Argentina …"); no fixed line has the same ten digits. The number goes out as it
    came: a call to a fixed line must not have the 9.
    """
    if mobile := _ARGENTINIAN.fullmatch(recipient):
        return recipient, f"+54{'' if mobile[1] else '9'}{mobile[2]}"
    return (recipient,)


def readable(domain: str) -> str:
    """A domain in its own letters, as its owner knows it; as it is where it has no others."""
    if _ENCODED not in domain:
        return domain
    import idna  # 6 ms, for those alone that meet such a domain

    try:
        return idna.decode(domain)
    except UnicodeError:
        return domain


def _ascii(domain: str) -> str:
    if domain.isascii():
        return domain
    import idna

    try:
        # IDNA 2008, mapped by UTS 46 as browsers do it: ß stays ß, which is another domain than ss.
        return idna.encode(domain, uts46=True, std3_rules=True).decode("ascii")
    except UnicodeError:
        return ""


@lru_cache(maxsize=256)  # checked on the way in, used on the way out
def to_e164(text: str, region: str | None = None) -> str:
    """`+1 (617) 555-1234` as `+16175551234`. Raises ValueError with what would be right.

    A number needs its country: without one, the same digits are different lines in different places. With a
    `region` (ISO 3166, such as US) a number may also be written as it is dialled there.
    Whether it is in service is for the provider to say: numbers are assigned faster than tables of them.

    The digits are those of the text, in whatever script, with the country's code, and without trunk and
    international prefix: `phonenumbers` alone would make digits of letters, drop carriers' codes and add
    areas, and the number would be somebody else's.
    """
    if word := _WORD.search(text):
        raise ValueError(f'has letters ("{word[0]}"); write digits alone, such as +16175551234')
    import phonenumbers  # 40 ms and 3 MB, for those alone that send to numbers

    with suppress(phonenumbers.NumberParseException):
        first = phonenumbers.parse(text, region or None)
        # Read again, so that a number's form is the same however often it is read: one zero goes a time.
        line = _MEXICAN.sub("+52", phonenumbers.format_number(first, phonenumbers.PhoneNumberFormat.E164))
        number = phonenumbers.parse(line)
        # `is_possible_number` lets local numbers pass, without their area code: nobody can call those.
        possible = phonenumbers.is_possible_number_with_reason(number)
        code, national = number.country_code or 0, phonenumbers.national_significant_number(number)
        if possible == phonenumbers.ValidationResult.IS_POSSIBLE and _is_of(text, code, national, region):
            return f"+{code}{national}"
    there = f"as dialled in {region}, or " if region else ""
    raise ValueError(f"is not a number {there}in international form; use + and country, such as +16175551234")


def _is_of(text: str, code: int, national: str, region: str | None) -> bool:
    """Whether a text has the digits of the number with this country code, and besides prefixes no others.

    Argentina writes a 9 before a mobile's area for calls from abroad, and 15 after it at home (the same FAQ).
    """
    from phonenumbers import PhoneMetadata

    here = PhoneMetadata.metadata_for_region(region or "")
    prefix = rf"(?:(?:{here.international_prefix if here else ''})?{code})?(?:{_TRUNK})?"
    areas = (3, 4, 5) if code == 54 and national.startswith("9") else ()
    forms = [national, *(f"{national[1:area]}15{national[area:]}" for area in areas)]
    digits = "".join(str(int(each)) for each in text if each.isdecimal())
    return any(digits.endswith(form) and re.fullmatch(prefix, digits[: -len(form)]) for form in forms)
