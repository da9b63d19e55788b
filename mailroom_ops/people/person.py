"""The person to erase, in all spellings, and functions that find the person's data in items and remove it.
Items are in DynamoDB's own form."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from mailroom.aws.dynamo_values import Value
from mailroom.channels.contracts import CHANNELS, CONTRACTS
from mailroom.ledger.erasure import ERASED
from mailroom.message.address import bare, forms_of, readable, spellings, to_e164
from mailroom_ops.shared.refusals import Refused

Kind = Literal["mail", "number", "device", "id"]
"""Kinds of recipients. An `id` is a recipient of a channel outside PERSONAL."""
_DEVICE = re.compile(r"[!-~]{16,2048}")
"""Pattern of a device token or an ARN. A shorter text is more likely a typing error, and would be found in
many unrelated texts."""
_BETWEEN = r"[\s().\-]{0,3}"
"""Characters that people write between the digits of a number."""
Image = Mapping[str, Value]
Role = Literal["whole", "part", "mention"]
"""Role of the person in a message. whole: the message is only to the person. part: it is to others as well.
mention: it is to others, and mentions the person."""

KEYS = ("id", "event_type")
PEOPLE = ("to", "email", "cc", "bcc", "recipients")
"""Attributes that name a message's recipients, in the mailbox or in the ledger. In `recipients`, they are the
keys of a map. If an item has `to`, its `email` is an ordinary text, not a recipient."""
PERSONAL = tuple(name for name, each in CHANNELS.items() if each.personal)
"""Channels whose items name recipients only in the attributes PEOPLE. Items of other channels also name
recipients in the attributes that the channel's contract lists in `addressing`."""
WHERE = ("line", "endpoint_arn")
"""Attributes of the ledger for the destination of a message with one recipient."""
_NOTHING: Value = {"NULL": True}


class Person:
    """Person to erase. `recipient` is the form with which recipients of messages are compared. Telephone
    numbers without a country code are numbers of `region`; if `region` is empty, every number needs its
    country code.

    With a `channel`, which must not be in PERSONAL, the recipient is an `id`: recipients of this channel's
    messages must be equal to it, and texts are not searched for it. Raises Refused if the channel or the
    recipient is invalid.
    """

    def __init__(self, typed: str, region: str = "", channel: str = "") -> None:
        if channel and channel not in CONTRACTS:
            raise Refused(f"--channel: {channel!r:.40} is not a channel; use one of {', '.join(CONTRACTS)}")
        if channel in PERSONAL:
            raise Refused(
                "--channel is for channels of your own. A person is erased from "
                f"{', '.join(PERSONAL)} together: leave --channel out"
            )
        self._region = region or None
        self.channel = channel
        self.kind: Kind = "id"
        self.recipient = typed.strip()
        if not self.channel or not self.recipient:
            self.kind, self.recipient = _read(self.recipient, region)
        self._pattern = _pattern(self.kind, self.recipient)

    def is_named_by(self, value: str) -> bool:
        """Return whether a recipient in an item is this person. A text that cannot be parsed as a recipient
        is this person if it mentions the person."""
        if self.kind == "id":
            return value == self.recipient
        if self.kind == "device":
            # The suppression list has a device token after the name of its application, as NAME#TOKEN.
            return value == self.recipient or value.endswith(f"#{self.recipient}")
        try:
            read = bare(value) if self.kind == "mail" else to_e164(value, self._region)
        except ValueError:
            return self.is_in(value)
        return read in spellings(self.recipient)

    def is_in(self, text: str) -> bool:
        """Return whether a text mentions the person."""
        return self._pattern.search(text) is not None

    def may_be_of(self, image: Mapping[str, Value]) -> bool:
        """Return whether an item may be about the person. If `channel` is set, items of other channels are
        not."""
        channel = image.get("event_type", image.get("channel"))
        return not self.channel or channel in (None, {"S": self.channel})

    def may_be_in(self, id_: str) -> bool:
        """Return whether the id of one of the person's own messages may contain the recipient, with any text
        before and after it."""
        forms = (form.removeprefix("+").casefold() for form in spellings(self.recipient))
        return any(form in id_.casefold() for form in forms)

    def out_of(self, text: str) -> str:
        """Return the text with ERASED in place of each mention of the person."""
        return self._pattern.sub(ERASED, text)


def _read(typed: str, region: str) -> tuple[Kind, str]:
    """Return the kind and the canonical form of a typed recipient. A text with an @ is an address; another
    text is a number, or else a device token or an endpoint's ARN. Raises Refused."""
    form = forms_of(typed, region)[0]
    try:
        return ("mail", bare(form)) if "@" in form else ("number", to_e164(form))
    except ValueError:
        if "@" not in typed and _DEVICE.fullmatch(typed) and not typed.lstrip("+").isdigit():
            return "device", typed
    raise Refused(
        f"{typed!r:.80} is not a mail address, a number such as +16175551234, a device token or an "
        "endpoint's ARN. For a recipient of another channel, name the channel with --channel"
    )


def _pattern(kind: Kind, recipient: str) -> re.Pattern[str]:
    """Return a pattern that finds the person in a text, but not a longer address that contains the address of
    the person. An id may be short and mean something else in a text, so its pattern finds nothing."""
    if kind == "id":
        return re.compile(r"(?!)")
    if kind == "mail":
        local, _, domain = recipient.rpartition("@")
        names = {re.escape(spelling) for spelling in (domain, readable(domain))}
        text = rf"(?<![\w.+-]){re.escape(local)}(?:@|%40)(?:{'|'.join(sorted(names))})(?![\w-]|\.\w)"
        return re.compile(text, re.IGNORECASE)
    if kind == "number":
        digits = "|".join(_BETWEEN.join(spelling.removeprefix("+")) for spelling in spellings(recipient))
        return re.compile(rf"(?<!\d)\+?(?:{digits})(?!\d)")
    return re.compile(rf"(?<![\w-]){re.escape(recipient)}(?![\w-])")


def role_of(image: Image, person: Person) -> Role | None:
    """Return the role of the person in a message, by its item in either table, or None if it does not concern
    the person."""
    if not person.may_be_of(image):
        return None
    people = [text for name in _whom(image) for text in _people(name, image[name])]
    matches = [person.is_named_by(text) for text in people]
    if any(person.is_named_by(text) for name in WHERE for text in texts(image.get(name, _NOTHING))):
        return "whole"
    if any(matches):
        return "whole" if all(matches) else "part"
    return "mention" if mentioned(image, person) else None


def mentioned(image: Image, person: Person) -> bool:
    """Return whether any text in an item mentions the person."""
    return any(person.is_in(text) for text in texts({"M": image}))


def mentioned_beside_keys(image: Image, person: Person) -> bool:
    """Return whether any text in an item mentions the person, except in the key, which cannot be changed."""
    return mentioned({name: value for name, value in image.items() if name not in KEYS}, person)


def without(image: Image, person: Person) -> dict[str, Value]:
    """Return an item without the person as a recipient, and without mentions of the person except in its
    key. If a mail loses its last recipient in `to`, its recipients in `cc` move to `to`. Recipients in `bcc`
    are never made visible."""
    new_image: dict[str, Value] = {}
    whom, names = _whom(image), _names(image, person)
    for name, value in image.items():
        if name in KEYS:
            new_image[name] = value
            continue
        new_value = _others(name, value, person) if name in whom else value
        if new_value is not None:
            new_image[names[name]] = redacted(new_value, person)
    if _lost_its_to(image, new_image) and _has(new_image, "cc"):
        new_image["to"] = new_image.pop("cc")
    return new_image


def hides_all(image: Image, person: Person) -> bool:
    """Return whether a mail, once the person is removed, would have only recipients in `bcc`, and could not
    be sent."""
    return _lost_its_to(image, without(image, person))


def redacted(value: Value, person: Person) -> Value:
    """Return a value without mentions of the person."""
    ((kind, content),) = value.items()
    match kind:
        case "S":
            return {"S": person.out_of(content)}
        case "N":
            return {"S": ERASED} if person.is_in(content) else value
        case "L":
            return {"L": [redacted(part, person) for part in content]}
        case "M":
            names = _names(content, person)
            return {"M": {names[name]: redacted(part, person) for name, part in content.items()}}
        case "SS":
            return {"SS": sorted(_names(content, person).values())}
        case "NS":
            remaining = [part for part in content if not person.is_in(part)]
            return {"NS": remaining} if remaining else {"S": ERASED}
    return value


def texts(value: Value) -> Iterator[str]:
    """Yield the texts and numbers in a value, including the keys of maps."""
    ((kind, content),) = value.items()
    match kind:
        case "S" | "N":
            yield content
        case "SS" | "NS":
            yield from content
        case "L":
            for part in content:
                yield from texts(part)
        case "M":
            for name, part in content.items():
                yield name
                yield from texts(part)


def _has(image: Image, name: str) -> bool:
    return image.get(name, _NOTHING) != _NOTHING


def _whom(image: Image) -> list[str]:
    """Return the names of the attributes of an item that have its recipients."""
    channel = image.get("event_type", _NOTHING).get("S", "")
    names: tuple[str, ...] = PEOPLE
    if channel in CONTRACTS and channel not in PERSONAL:
        names = (*PEOPLE, *CONTRACTS[channel].addressing)
    return [name for name in names if name in image and not (name == "email" and _has(image, "to"))]


def _lost_its_to(old: Image, new: Image) -> bool:
    """Return whether a mail has lost its last recipient in `to`, or in `email` if it had only that."""
    if old.get("event_type") != {"S": "mail"} or _has(new, "to"):
        return False
    return _has(old, "to") or (_has(old, "email") and not _has(new, "email"))


def _names(names: Iterable[str], person: Person) -> dict[str, str]:
    """Map each name to the name without mentions of the person. Names that would become equal get a
    number."""
    new = {old: old for old in names if not person.is_in(old)}
    used = set(new)
    for old in sorted(set(names) - used):
        name, number = person.out_of(old), 1
        new[old] = name
        while new[old] in used:
            number += 1
            new[old] = f"{name} {number}"
        used.add(new[old])
    return new


def _people(name: str, value: Value) -> Iterator[str]:
    if name == "recipients":
        yield from value.get("M", {})
    else:
        yield from texts(value)


def _others(name: str, value: Value, person: Person) -> Value | None:
    """Return the value of an attribute that names recipients, without this person. If no recipient is left,
    return None, or an empty map for the attribute `recipients`."""
    if name == "recipients" and "M" in value:
        return {"M": {to: entry for to, entry in value["M"].items() if not person.is_named_by(to)}}
    if "L" in value:
        remaining = [part for part in value["L"] if not any(map(person.is_named_by, texts(part)))]
        return {"L": remaining} if remaining else None
    if "SS" in value:
        remaining = [recipient for recipient in value["SS"] if not person.is_named_by(recipient)]
        return {"SS": remaining} if remaining else None
    return None if any(map(person.is_named_by, texts(value))) else value
