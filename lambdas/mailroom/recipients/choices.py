"""Whom nothing may be sent, and why: the suppression list and people's own choices, asked in one read."""

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from mailroom.aws.batch_get import batch_get
from mailroom.aws.dynamo import Sets
from mailroom.clock import iso
from mailroom.message.address import spellings
from mailroom.recipients import preferences, suppressions
from mailroom.recipients.preferences import OptOut, Preferences
from mailroom.recipients.suppressions import Suppression, Suppressions

_WHY = {"bounce": "it bounced", "complaint": "its owner complained", "gone": "its provider dropped it"}


class Wanted(Struct, frozen=True):
    """Whom a message is for, in the one form that the tables know, and what it is about (None: no topic)."""

    recipient: str
    topic: str | None = None


class Unwanted(Struct, frozen=True):
    """Why somebody gets nothing: a `code` for programs, a `sentence` for people."""

    code: str
    sentence: str


class Choices:
    """Both tables of one stage."""

    def __init__(self, suppressed: Suppressions, opted_out: Preferences) -> None:
        self._suppressed = suppressed
        self._opted_out = opted_out

    def find(self, channel: str, wanted: Iterable[Wanted]) -> dict[Wanted, Unwanted]:
        """Those of `wanted` that may not be sent. Of one without a topic nobody can have opted out, so for
        such nothing is read. Raises Unread."""
        asked = list(dict.fromkeys(wanted))
        if not asked:
            return {}
        one, other = self._suppressed.table, self._opted_out.table
        spelt = [(form, each.topic) for each in asked for form in spellings(each.recipient)]
        keys = {one: _once(suppressions.key(form, channel) for form, _ in spelt)}
        topical = _once(preferences.key(form, topic) for form, topic in spelt if topic is not None)
        if topical:
            keys[other] = topical
        items = batch_get(self._suppressed.client, keys)
        listed = {found.recipient: found for found in map(suppressions.suppression_of, items[one]) if found}
        chosen = {
            (found.recipient, found.topic): found
            for found in map(preferences.opt_out_of, items.get(other, ()))
            if found
        }
        return {each: why for each in asked if (why := _why(each, listed, chosen))}


def _why(
    wanted: Wanted, listed: dict[str, Suppression], chosen: dict[tuple[str, str], OptOut]
) -> Unwanted | None:
    forms = spellings(wanted.recipient)
    if suppression := next((listed[form] for form in forms if form in listed), None):
        return Unwanted("suppressed", _suppressed(suppression))
    topical = ((form, wanted.topic) for form in forms if wanted.topic is not None)
    opt_out = next((chosen[pair] for pair in topical if pair in chosen), None)
    return None if opt_out is None else opted_out(opt_out)


def opted_out(found: OptOut) -> Unwanted:
    """What the ledger says of somebody who has opted out."""
    since = iso(found.opted_out_at / 1000)[:10]
    sentence = f"opted out of {found.topic!r} on {since}; whoever opted out can opt in again"
    return Unwanted("opted_out", sentence)


def _suppressed(found: Suppression) -> str:
    since = iso(found.at / 1000)[:10]
    detail = f" ({found.detail})" if found.detail else ""
    return f"on the suppression list since {since}: {_WHY[found.reason]}{detail}; an operator can lift it"


def _once(keys: Iterable[Sets]) -> list[Sets]:
    """DynamoDB refuses a key that is asked for twice: one person may be wanted for several topics."""
    seen: dict[Any, Sets] = {tuple(tuple(value.items()) for value in each.values()): each for each in keys}
    return list(seen.values())
