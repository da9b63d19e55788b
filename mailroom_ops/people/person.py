"""The person to erase, in all spellings; and items in DynamoDB's own form: what they have of a person, and
the same without it."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from mailroom.aws.dynamo_values import Value
from mailroom.channels.contracts import CHANNELS, CONTRACTS
from mailroom.ledger.erasure import ERASED
from mailroom.message.address import bare, forms_of, readable, spellings, to_e164
from mailroom_ops.shared.screen import Refused

Kind = Literal["mail", "number", "device", "id"]
"""An `id` is a recipient of a channel that has no place in PERSONAL."""
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
names of its entries; `email` is any text where there is a `to`."""
PERSONAL = tuple(name for name, each in CHANNELS.items() if each.personal)
"""Channels whose items say in PEOPLE whom they are for. Those of others say so in what their contract calls
`addressing` as well."""
WHERE = ("line", "endpoint_arn")
"""Attributes of the ledger for the destination of a message with one recipient."""
_NOTHING: Value = {"NULL": True}


class Person:
    """`recipient` is the one form that messages are compared with. `region` is where numbers without their
    country are dialled in this stage ("": every number needs its country).

    A `channel` that is not PERSONAL makes the recipient an `id`: only recipients of the channel's
    messages are compared with it, character by character, and texts that mention it are not looked for.
    Raises Refused.
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
            # The suppression list has the token behind the name of its application.
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
        named = image.get("event_type", image.get("channel"))
        return not self.channel or named in (None, {"S": self.channel})

    def may_be_in(self, id_: str) -> bool:
        """Whether `id_`, of one of their own messages, may name them, with anything before and after."""
        return any(each.removeprefix("+").casefold() in id_.casefold() for each in spellings(self.recipient))

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
    """Finds the person in a text, but not a longer address that contains the person's. An id may be short and
    mean something else in a text, so it is found in none."""
    if kind == "id":
        return re.compile(r"(?!)")
    if kind == "mail":
        local, _, domain = recipient.rpartition("@")
        names = {re.escape(each) for each in (domain, readable(domain))}
        text = rf"(?<![\w.+-]){re.escape(local)}(?:@|%40)(?:{'|'.join(sorted(names))})(?![\w-]|\.\w)"
        return re.compile(text, re.IGNORECASE)
    if kind == "number":
        digits = "|".join(_BETWEEN.join(each.removeprefix("+")) for each in spellings(recipient))
        return re.compile(rf"(?<!\d)\+?(?:{digits})(?!\d)")
    return re.compile(rf"(?<![\w-]){re.escape(recipient)}(?![\w-])")


def role_of(image: Image, person: Person) -> Role | None:
    """Return how a message, in either table, concerns the person, or None if unrelated."""
    if not person.may_be_of(image):
        return None
    people = [each for name in _whom(image) for each in _people(name, image[name])]
    named = [person.is_named_by(each) for each in people]
    if any(person.is_named_by(each) for name in WHERE for each in texts(image.get(name, _NOTHING))):
        return "whole"
    if any(named):
        return "whole" if all(named) else "part"
    return "mention" if mentioned(image, person) else None


def mentioned(image: Image, person: Person) -> bool:
    """Whether any text of it mentions the person."""
    return any(person.is_in(each) for each in texts({"M": image}))


def mentioned_beside_keys(image: Image, person: Person) -> bool:
    """Whether any text beside the key, which cannot be changed, mentions the person."""
    return mentioned({name: value for name, value in image.items() if name not in KEYS}, person)


def without(image: Image, person: Person) -> dict[str, Value]:
    """The message without this recipient, and without any mention of them save in its key. Where only
    those in cc are left of a mail, it goes to them; those in bcc are never made visible."""
    left: dict[str, Value] = {}
    whom, names = _whom(image), _names(image, person)
    for name, value in image.items():
        if name in KEYS:
            left[name] = value
            continue
        kept = _others(name, value, person) if name in whom else value
        if kept is not None:
            left[names[name]] = redacted(kept, person)
    if _lost_its_to(image, left) and _has(left, "cc"):
        left["to"] = left.pop("cc")
    return left


def hides_all(image: Image, person: Person) -> bool:
    """Whether a mail without this recipient would be left only to those in bcc: that cannot be sent."""
    return _lost_its_to(image, without(image, person))


def redacted(value: Value, person: Person) -> Value:
    """A value without any mention of the person."""
    ((kind, held),) = value.items()
    match kind:
        case "S":
            return {"S": person.out_of(held)}
        case "N":
            return {"S": ERASED} if person.is_in(held) else value
        case "L":
            return {"L": [redacted(each, person) for each in held]}
        case "M":
            names = _names(held, person)
            return {"M": {names[name]: redacted(each, person) for name, each in held.items()}}
        case "SS":
            return {"SS": sorted(_names(held, person).values())}
        case "NS":
            others = [each for each in held if not person.is_in(each)]
            return {"NS": others} if others else {"S": ERASED}
    return value


def texts(value: Value) -> Iterator[str]:
    """Yield the texts in a value, names of maps' entries among them, and numbers."""
    ((kind, held),) = value.items()
    match kind:
        case "S" | "N":
            yield held
        case "SS" | "NS":
            yield from held
        case "L":
            for each in held:
                yield from texts(each)
        case "M":
            for name, each in held.items():
                yield name
                yield from texts(each)


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
    """Whether a mail has nobody any more in what says first of all whom it is for."""
    if old.get("event_type") != {"S": "mail"} or _has(new, "to"):
        return False
    return _has(old, "to") or (_has(old, "email") and not _has(new, "email"))


def _names(names: Iterable[str], person: Person) -> dict[str, str]:
    """Each name without any mention of the person; no two become one, so they are numbered."""
    new = {each: each for each in names if not person.is_in(each)}
    taken = set(new)
    for each in sorted(set(names) - taken):
        name, number = person.out_of(each), 1
        new[each] = name
        while new[each] in taken:
            number += 1
            new[each] = f"{name} {number}"
        taken.add(new[each])
    return new


def _people(name: str, value: Value) -> Iterator[str]:
    if name == "recipients":
        yield from value.get("M", {})
    else:
        yield from texts(value)


def _others(name: str, value: Value, person: Person) -> Value | None:
    """Return the recipients except this one, or None if the list is empty then."""
    if name == "recipients" and "M" in value:
        return {"M": {who: each for who, each in value["M"].items() if not person.is_named_by(who)}}
    if "L" in value:
        left = [each for each in value["L"] if not any(map(person.is_named_by, texts(each)))]
        return {"L": left} if left else None
    if "SS" in value:
        left = [each for each in value["SS"] if not person.is_named_by(each)]
        return {"SS": left} if left else None
    return None if any(map(person.is_named_by, texts(value))) else value
