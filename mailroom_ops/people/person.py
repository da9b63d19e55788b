"""The person to erase, in all spellings; and items in DynamoDB's own form: the data of a person in them, and
the items without this data."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from mailroom.aws.dynamo_values import Value
from mailroom.channels.contracts import CHANNELS, CONTRACTS
from mailroom.ledger.erasure import ERASED
from mailroom.message.address import bare, forms_of, readable, spellings, to_e164
from mailroom_ops.shared.screen import Refused

Kind = Literal["mail", "number", "device", "id"]
"""Kinds of recipients. An `id` is a recipient of a channel outside PERSONAL."""
_DEVICE = re.compile(r"[!-~]{16,2048}")
"""Shorter ones are typing errors rather than tokens, and would be found all over the place."""
_BETWEEN = r"[\s().\-]{0,3}"
"""Characters that people write between the digits of a number."""
Image = Mapping[str, Value]
Role = Literal["whole", "part", "mention"]
"""A message only to the person; to others as well; to others, with the person named in it somewhere."""

KEYS = ("id", "event_type")
PEOPLE = ("to", "email", "cc", "bcc", "recipients")
"""Attributes that name a message's recipients, in the mailbox or in the ledger. `recipients` has them as
names of its entries; beside a `to`, `email` is any text."""
PERSONAL = tuple(name for name, each in CHANNELS.items() if each.personal)
"""Channels whose items say in PEOPLE whom they are for. Those of others say so in what their contract calls
`addressing` as well."""
WHERE = ("line", "endpoint_arn")
"""Attributes of the ledger for the destination of a message with one recipient."""
_NOTHING: Value = {"NULL": True}


class Person:
    """Person to erase. `recipient` is the form that messages are compared with. Without a `region`, in which
    numbers without their country are dialled, every number needs its country.

    A `channel` outside PERSONAL makes the recipient an `id`: only recipients of the channel's messages are
    compared with it, character by character, and texts that mention it are not looked for. Raises Refused.
    """

    def __init__(self, typed: str, region: str = "", channel: str = "") -> None:
        if channel and channel not in CONTRACTS:
            raise Refused(f"there is no channel {channel!r:.40}; there are: {', '.join(CONTRACTS)}")
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
        """Whether a recipient, as an item has it, is this one. What cannot be read as a recipient at all
        names whom it mentions."""
        if self.kind == "id":
            return value == self.recipient
        if self.kind == "device":
            # The suppression list has a device's token behind the name of its application, as NAME#TOKEN.
            return value == self.recipient or value.endswith(f"#{self.recipient}")
        try:
            read = bare(value) if self.kind == "mail" else to_e164(value, self._region)
        except ValueError:
            return self.is_in(value)
        return read in spellings(self.recipient)

    def is_in(self, text: str) -> bool:
        """Whether a text mentions them."""
        return self._pattern.search(text) is not None

    def may_be_of(self, image: Mapping[str, Value]) -> bool:
        """Whether an item may be about them: it names no channel, or theirs."""
        channel = image.get("event_type", image.get("channel"))
        return not self.channel or channel in (None, {"S": self.channel})

    def may_be_in(self, id_: str) -> bool:
        """Whether `id_`, of one of their own messages, may name them, with anything before and after."""
        forms = (form.removeprefix("+").casefold() for form in spellings(self.recipient))
        return any(form in id_.casefold() for form in forms)

    def out_of(self, text: str) -> str:
        """Return the text without the person's spellings."""
        return self._pattern.sub(ERASED, text)


def _read(typed: str, region: str) -> tuple[Kind, str]:
    """Text with an @ is an address; the rest is a number, or else a device's token or an endpoint's ARN."""
    form = forms_of(typed, region)[0]
    try:
        return ("mail", bare(form)) if "@" in form else ("number", to_e164(form))
    except ValueError:
        if "@" not in typed and _DEVICE.fullmatch(typed) and not typed.lstrip("+").isdigit():
            return "device", typed
    raise Refused(
        f"{typed!r:.80} is no mail address, no number such as +16175551234, no device's token and no "
        "endpoint's ARN. For a recipient of another channel name it with --channel"
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
    """Return how a message, in either table, concerns the person, or None if unrelated."""
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
    """Whether any text of it mentions the person."""
    return any(person.is_in(text) for text in texts({"M": image}))


def mentioned_beside_keys(image: Image, person: Person) -> bool:
    """Whether any text beside the key, which cannot be changed, mentions the person."""
    return mentioned({name: value for name, value in image.items() if name not in KEYS}, person)


def without(image: Image, person: Person) -> dict[str, Value]:
    """The message without this recipient, and without any mention of them save in its key. Where only
    those in cc are left of a mail, it goes to them; those in bcc are never made visible."""
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
    """Whether a mail without this recipient would be left only to those in bcc: that cannot be sent."""
    return _lost_its_to(image, without(image, person))


def redacted(value: Value, person: Person) -> Value:
    """A value without any mention of the person."""
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
    """Yield the texts in a value, names of maps' entries among them, and numbers."""
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
    """The attributes that say whom it is for."""
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
    """Each name without any mention of the person; no two become one, so they are numbered."""
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
    """Return the recipients except this one, or None if the list is empty then."""
    if name == "recipients" and "M" in value:
        return {"M": {to: entry for to, entry in value["M"].items() if not person.is_named_by(to)}}
    if "L" in value:
        remaining = [part for part in value["L"] if not any(map(person.is_named_by, texts(part)))]
        return {"L": remaining} if remaining else None
    if "SS" in value:
        remaining = [recipient for recipient in value["SS"] if not person.is_named_by(recipient)]
        return {"SS": remaining} if remaining else None
    return None if any(map(person.is_named_by, texts(value))) else value
