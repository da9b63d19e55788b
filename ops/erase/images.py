"""Items in DynamoDB's own form: what they have of a person, and the same without it."""

from collections.abc import Iterator, Mapping
from typing import Literal

from mailroom.dynamo import Value
from mailroom.erasure import ERASED
from ops.erase.person import Person

Image = Mapping[str, Value]
Role = Literal["whole", "part", "mention"]
"""A message to the person alone; to others as well; to others, with the person named in it somewhere."""

KEYS = ("id", "event_type")
PEOPLE = ("to", "email", "cc", "bcc", "recipients")
"""Whom a message is for, in the mailbox or in the ledger. `recipients` has them as names of its entries."""
WHERE = ("line", "endpoint_arn")
"""Where the ledger says that a message went, which has one recipient then."""


def role_of(image: Image, person: Person) -> Role | None:
    """What a message, in either table, has to do with the person; None: nothing."""
    people = [each for name in PEOPLE if name in image for each in _people(name, image[name])]
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
    """The same without the key, which cannot be changed."""
    return mentioned({name: value for name, value in image.items() if name not in KEYS}, person)


def without(image: Image, person: Person) -> dict[str, Value]:
    """The message without this recipient, and without any mention of them save in its key."""
    left: dict[str, Value] = {}
    for name, value in image.items():
        if name in KEYS:
            left[name] = value
            continue
        kept = _others(name, value, person) if name in PEOPLE else value
        if kept is not None:
            left[name] = redacted(kept, person)
    return left


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
            return {"M": {person.out_of(name): redacted(each, person) for name, each in held.items()}}
        case "SS":
            return {"SS": sorted({person.out_of(each) for each in held})}
    return value


def texts(value: Value) -> Iterator[str]:
    """All texts in a value, names of maps' entries among them, and numbers."""
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


_NOTHING: Value = {"NULL": True}


def _people(name: str, value: Value) -> Iterator[str]:
    if name == "recipients":
        yield from value.get("M", {})
    else:
        yield from texts(value)


def _others(name: str, value: Value, person: Person) -> Value | None:
    """The recipients but this one; None: there are none."""
    if name == "recipients" and "M" in value:
        return {"M": {who: each for who, each in value["M"].items() if not person.is_named_by(who)}}
    if "L" in value:
        left = [each for each in value["L"] if not any(map(person.is_named_by, texts(each)))]
        return {"L": left} if left else None
    return None if any(map(person.is_named_by, texts(value))) else value
