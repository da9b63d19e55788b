"""Proofs in a provider's list of messages, in which a look-up searches for a message.

The rule: a look-up answers that a message was never sent only if each entry is certainly another message. A
provider may alter numbers and texts in its list, to protect personal data or for technical reasons, but not
ids and times. So a number or a text that is missing, masked, cut or in another form is not a proof.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from mailroom.message.outcome import Evidence, NotFound, Sent, Unknowable

Entry = dict[str, Any]

_NUMBER = re.compile(r"\+[1-9][0-9]{6,14}")
_SHORT_CODE = re.compile(r"[0-9]{3,8}")
_ADDRESS_ELSEWHERE = re.compile(r"(?:whatsapp|messenger|sips?):")
"""Pattern of a recipient of another service. Twilio can send a text as RCS, so rcs: is not one."""
_MASK = re.compile(r"(?i)[*•●█■]|([x#_])\1|redact|remov|delet")


def is_masked(listed: object) -> bool:
    """Return whether a listed number is missing, cut to a few characters, or masked like +1617555XXXX."""
    if not isinstance(listed, str) or _MASK.search(listed):
        return True
    return len(listed) < 7 and not _SHORT_CODE.fullmatch(listed)


def is_other_number(listed: object, number: str) -> bool:
    """Return whether a listed number is certainly another one. Zeros at its end may be a mask, and its
    country code may be missing."""
    if isinstance(listed, str) and _ADDRESS_ELSEWHERE.match(listed):
        return True
    if not isinstance(listed, str) or not _NUMBER.fullmatch(listed):
        return False
    return not number.startswith(listed.rstrip("0")) and not number.endswith(listed[1:])


def is_other_text(listed: object, *submitted: str) -> bool:
    """Return whether a listed text is certainly another one than `submitted`, in each of its forms. It may be
    a part of the submitted text, or the submitted text with an addition."""
    part = listed.rstrip(".…") if isinstance(listed, str) else ""
    if not part or _MASK.search(part):
        return False
    return not any(part in text or (text and text in part) for text in submitted)


def search(
    by_number: Iterable[Entry], pages: Iterator[list[Entry]], judge: Callable[[Iterable[Entry]], Evidence]
) -> Evidence:
    """Return the evidence in a provider's list.

    `by_number`: the list's entries with the recipient's number. `pages`: the whole list. `judge`: function
    that returns the evidence in entries.

    The provider's filter by number misses a number that the provider has masked. So before the look-up
    answers that the message was never sent, it reads the first page of the whole list. If a recipient there
    is masked, the list by number is not a proof.
    """
    evidence = judge(by_number)
    if not isinstance(evidence, NotFound):
        return evidence
    page = next(pages)
    evidence = judge(page)
    masked = any(entry.get("direction") != "inbound" and is_masked(entry.get("to")) for entry in page)
    return Unknowable() if masked and isinstance(evidence, NotFound) else evidence


def single(candidates: list[tuple[str, bool]]) -> Evidence:
    """Return the evidence in entries that may be the requested message: the id of each, and whether it was
    compared with unaltered fields. If there are several, another program uses the account too, and any of
    them may be the message."""
    if len(candidates) == 1 and candidates[0][1]:
        return Sent(candidates[0][0])
    return Unknowable() if candidates else NotFound()
