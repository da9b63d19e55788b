"""Checks and normal forms of mail addresses and telephone numbers. Mail addresses get the form that SES
accepts, and cannot inject a header. Telephone numbers get the form E.164, which is unique for each number."""

import re
from contextlib import suppress
from email.errors import MessageError
from email.utils import formataddr
from functools import lru_cache

_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LOCAL = re.compile(rf"{_ATOM}(?:\.{_ATOM})*")
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_DOMAIN = re.compile(rf"(?:{_LABEL}\.)+{_LABEL}")
# No two parts of this pattern may match the same character, because otherwise the match of a long text of
# spaces would take minutes.
_NAME_ADDR = re.compile(r'(?:"(?P<quoted>(?:[^"\\]|\\.)*)"\s*|(?P<name>[^"<>]*))<(?P<address>[^<>]*)>')
_MAX_LENGTH = 998
"""Maximum number of characters of a name with its address: the limit of a header line (RFC 5322, 2.1.1). A
ledger item stores the name too, and has a maximum size."""
_MAX_FORMATTED = 320
"""Maximum number of characters of an address with its encoded name. The limit is not in a provider's model.

SES: "Address length is more than 320 characters long" ("bytes long" until 2021; zulip/zulip#17558,
mautic/mautic#7732). Resend: "The email address length is more than 320 characters long." Read on 2026-11-29.
"""
_MAX_DOMAIN = 253
"""Maximum number of characters of a domain in ASCII (RFC 1035). The same domain in Unicode has fewer
characters."""
_ENCODED = "xn--"
"""Prefix of a domain's label that encodes Unicode letters (IDNA)."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_WORD = re.compile(r"[^\W\d_](?:[A-Za-z]|[^\x00-\x7f\d\s]){0,19}")
"""Pattern of a word, up to its first 20 characters, in a text that should be a telephone number. After the
first letter any non-ASCII character may follow, because vowels of some scripts are marks and not letters."""
_ARGENTINIAN = re.compile(r"\+54(9?)([1-8][0-9]{9})")
_MEXICAN = re.compile(r"\+521(?=[0-9]{10}$)")
_TRUNK = "0|1|8|06|80"
"""Trunk prefixes of all countries; `phonenumbers` has the prefix of each country. Mexican mobiles had a 1
until 2019, and carriers still write senders with the 1 (ITU's notification T0202 of August 2019; Twilio's
"SMS guidelines for Mexico"). Longer prefixes, which select carriers or services, are not in this pattern, so
numbers with them are invalid."""


def has_control(text: str) -> bool:
    """Return whether the text contains a control character or a line break, which must never get into a
    header."""
    return _CONTROL.search(text) is not None


def split(text: str) -> tuple[str, str]:
    """Split `a@b.example` or `Name <a@b.example>` into the display name (or "") and the bare address.

    A name may be quoted (RFC 5322) and encoded (RFC 2047), like the output of `email.utils.formataddr`. The
    returned domain is in ASCII (IDNA 2008). Raises ValueError with the valid form. SES accepts only ASCII
    before the @. RFC 5321 allows 64 characters before the @, and 254 in all.
    """
    if has_control(text):
        raise ValueError("holds a line break or control character; use one line of plain text")
    text = text.strip()
    name_addr = _NAME_ADDR.fullmatch(text)
    local, separator, domain = (name_addr["address"] if name_addr else text).strip().rpartition("@")
    if not separator or not _LOCAL.fullmatch(local) or len(local) > 64:
        raise ValueError("is not a mail address; use name@domain.example")
    # The IDNA encoding reads each letter several times, so a text longer than any domain is not encoded.
    ascii_domain = _ascii(domain) if len(domain) <= _MAX_DOMAIN else ""
    if not _DOMAIN.fullmatch(ascii_domain) or len(local) + 1 + len(ascii_domain) > 254:
        raise ValueError("is not a mail address: its domain is not valid; use name@domain.example")
    if len(text) > _MAX_LENGTH:
        raise ValueError(f"has {len(text)} characters; use at most {_MAX_LENGTH}, including the name")
    return _name(name_addr) if name_addr else "", f"{local}@{ascii_domain}"


def _name(name_addr: re.Match[str]) -> str:
    """Return the display name, unquoted and decoded. The text must be short, because the time for decoding
    grows faster than the length."""
    quoted = name_addr["quoted"]
    name = (name_addr["name"] if quoted is None else re.sub(r"\\(.)", r"\1", quoted)).strip()
    if "=?" in name and name.isascii():
        from email.header import decode_header, make_header  # only encoded names need these functions

        # A name in an unknown charset or with an encoded line break stays encoded, which is harmless ASCII.
        with suppress(MessageError, LookupError, ValueError):
            decoded = str(make_header(decode_header(name))).strip()
            decoded.encode()  # raises ValueError for half a surrogate pair
            if not has_control(decoded):
                return decoded
    return name


@lru_cache(maxsize=256)  # cached, because it is called when a message is read and again when it is sent
def normalise(text: str) -> str:
    """Return the address in the form that SES needs: name encoded, domain in ASCII. Raises ValueError."""
    return formatted(*split(text))


def formatted(name: str, address: str) -> str:
    """Return a bare address with its name (or "") as in a header. Raises ValueError if it is too long for a
    provider."""
    if not name:
        return address
    if not name.isascii():
        from email.header import Header  # only encoded names need this class

        # An encoded word has at most 75 characters (RFC 2047, 2).
        name = Header(name, "utf-8", maxlinelen=75).encode(linesep="")
    text = formataddr((name, address))
    if len(text) > _MAX_FORMATTED:
        raise ValueError(f"has {len(text)} characters with its encoded name; use at most {_MAX_FORMATTED}")
    return text


@lru_cache(maxsize=256)  # cached, because it is called for a message's claim, suppression list and submit
def bare(text: str) -> str:
    """Return an address without a name and in lower case, the form of the suppression list and of events.
    Raises ValueError."""
    return split(text)[1].lower()


def spellings(recipient: str) -> tuple[str, ...]:
    """Return the forms in which tables may store a recipient. The canonical form is the first.

    A mobile number of Argentina has a 9 after +54 in calls, and may have it in text messages
    (libphonenumber's FAQ, "Why is this number from Argentina …"). A landline never has the same ten digits as
    a mobile. A message is sent to the number in its item without a change, because the number of a landline
    must not have the 9.
    """
    if mobile := _ARGENTINIAN.fullmatch(recipient):
        return recipient, f"+54{'' if mobile[1] else '9'}{mobile[2]}"
    return (recipient,)


def comparable(recipient: str) -> str:
    """Return a recipient of an item in the form that rows of the search index have: a mail address in lower
    case and without a name, and any other recipient without surrounding spaces."""
    if "@" not in recipient:
        return recipient.strip()
    try:
        return bare(recipient)
    except ValueError:
        return recipient.strip().lower()


def forms_of(typed: str, region: str = "") -> tuple[str, ...]:
    """Return the forms in which tables may store a recipient that an operator has typed: a mail address, a
    telephone number, or a recipient of another channel. The canonical form is the first.

    The text itself is the last form, so that an entry in an unusual form is found, too. `region` is a
    parameter of `to_e164`.
    """
    form = comparable(typed)
    if "@" not in form:
        with suppress(ValueError):
            form = to_e164(form, region or None)
    return tuple(dict.fromkeys((*spellings(form), typed.strip())))


def readable(domain: str) -> str:
    """Return a domain in Unicode, the form that people write. A domain without encoded labels, or with
    invalid ones, is returned unchanged."""
    if _ENCODED not in domain:
        return domain
    import idna  # an import of 6 ms, which only encoded domains need

    try:
        return idna.decode(domain)
    except UnicodeError:
        return domain


def _ascii(domain: str) -> str:
    if domain.isascii():
        return domain
    import idna

    try:
        # The encoding is IDNA 2008 with the mapping of UTS 46, as in browsers: ß stays ß, since ss is a
        # different domain.
        return idna.encode(domain, uts46=True, std3_rules=True).decode("ascii")
    except UnicodeError:
        return ""


@lru_cache(maxsize=256)  # cached, because it is called when a message is read and again when it is sent
def to_e164(text: str, region: str | None = None) -> str:
    """Return a telephone number in E.164, such as `+16175551234` for `+1 (617) 555-1234`. Raises ValueError
    with the valid form.

    A number needs its country code, because the same digits may be different numbers in two countries. With a
    `region` (ISO 3166, such as US) a number may also have the form in which it is dialled in that region.
    Only the provider can check that a number is in service, because tables of assigned numbers are never up
    to date.

    The result has the digits of the text (which may be in any script), with the country code and without
    trunk prefix and international prefix. This is checked, because `phonenumbers` converts letters to digits,
    drops carrier codes and adds area codes, and the number might then belong to another person.
    """
    if word := _WORD.search(text):
        raise ValueError(f'has letters ("{word[0]}"); write digits alone, such as +16175551234')
    import phonenumbers  # an import of 40 ms and 3 MB, which only numbers need

    with suppress(phonenumbers.NumberParseException):
        parsed = phonenumbers.parse(text, region or None)
        e164 = _MEXICAN.sub("+52", phonenumbers.format_number(parsed, phonenumbers.PhoneNumberFormat.E164))
        # The number is parsed again, because parsing removes one leading zero at a time. So a second call
        # with the result returns the same number.
        number = phonenumbers.parse(e164)
        # `is_possible_number` would accept local numbers without an area code, which cannot be called from
        # abroad.
        possible = phonenumbers.is_possible_number_with_reason(number)
        code, national = number.country_code or 0, phonenumbers.national_significant_number(number)
        if possible == phonenumbers.ValidationResult.IS_POSSIBLE and _is_of(text, code, national, region):
            return f"+{code}{national}"
    local = f"as dialled in {region}, or " if region else ""
    raise ValueError(f"is not a number {local}in international form; use + and country code: +16175551234")


def _is_of(text: str, code: int, national: str, region: str | None) -> bool:
    """Return whether the digits of a text are the national digits of the number, after at most the country
    code and prefixes.

    A mobile number of Argentina has a 9 before the area code in calls from abroad, and 15 after the area code
    within the country (libphonenumber's FAQ, see `spellings`).
    """
    from phonenumbers import PhoneMetadata

    metadata = PhoneMetadata.metadata_for_region(region or "")
    prefix = rf"(?:(?:{metadata.international_prefix if metadata else ''})?{code})?(?:{_TRUNK})?"
    areas = (3, 4, 5) if code == 54 and national.startswith("9") else ()
    forms = [national, *(f"{national[1:area]}15{national[area:]}" for area in areas)]
    digits = "".join(str(int(character)) for character in text if character.isdecimal())
    return any(digits.endswith(form) and re.fullmatch(prefix, digits[: -len(form)]) for form in forms)
