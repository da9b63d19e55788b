"""Items in DynamoDB's own form: what they have of a person, and the same without it."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from mailroom.aws.dynamo import Value
from mailroom.ledger.erasure import ERASED
from ops.erase.person import Person

Image = Mapping[str, Value]
Role = Literal["whole", "part", "mention"]
"""A message to the person alone; to others as well; to others, with the person named in it somewhere."""

KEYS = ("id", "event_type")
PEOPLE = ("to", "email", "cc", "bcc", "recipients")
"""Whom a message is for, in the mailbox or in the ledger. `recipients` has them as names of its entries;
`email` is any text where there is a `to`."""
WHERE = ("line", "endpoint_arn")
"""Where the ledger says that a message went, which has one recipient then."""


def role_of(image: Image, person: Person) -> Role | None:
    """What a message, in either table, has to do with the person; None: nothing."""
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
    """The same without the key, which cannot be changed."""
    return mentioned({name: value for name, value in image.items() if name not in KEYS}, person)


def without(image: Image, person: Person) -> dict[str, Value]:
    """The message without this recipient, and without any mention of them save in its key. Where a mail is
    left to nobody but those in cc, it goes to these; those in bcc are never made visible."""
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
    """Whether a mail without this recipient would be left to those in bcc alone: that cannot be sent."""
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


def _has(image: Image, name: str) -> bool:
    return image.get(name, _NOTHING) != _NOTHING


def _whom(image: Image) -> list[str]:
    """The attributes that say whom it is for."""
    return [name for name in PEOPLE if name in image and not (name == "email" and _has(image, "to"))]


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
    """The recipients but this one; None: there are none."""
    if name == "recipients" and "M" in value:
        return {"M": {who: each for who, each in value["M"].items() if not person.is_kept_as(who)}}
    if "L" in value:
        left = [each for each in value["L"] if not any(map(person.is_named_by, texts(each)))]
        return {"L": left} if left else None
    if "SS" in value:
        left = [each for each in value["SS"] if not person.is_named_by(each)]
        return {"SS": left} if left else None
    return None if any(map(person.is_named_by, texts(value))) else value
