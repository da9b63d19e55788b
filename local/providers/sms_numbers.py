"""What the simulated SMS numbers do.

The last two digits of a number that ends in 555 01xx choose; every other number gets every message. `First`
counts the submits of one content to one number.

| 555 01… | what happens                                                                             |
|---------|------------------------------------------------------------------------------------------|
| 30      | accepted, then undelivered: unreachable handset (30003)                                  |
| 31      | accepted, then undelivered: unknown handset (30005)                                      |
| 32      | accepted, then undelivered: landline or unreachable carrier (30006)                      |
| 33      | accepted, then failed: unknown error (30008)                                             |
| 34      | accepted and sent; the carrier never tells more                                          |
| 40      | refused: no valid number (21211)                                                         |
| 41      | refused: a landline (21614)                                                              |
| 42      | refused: the recipient has unsubscribed (21610)                                          |
| 43      | refused: its country is not permitted (21408)                                            |
| 50      | throttled (429, 20429), each time                                                        |
| 51      | throttled first, then delivered                                                          |
| 52      | a server error first (500, nothing accepted), then delivered                             |
| 53      | accepted and delivered, but the first answer is a server error (500)                     |
| 54      | accepted and delivered, but the first answer is lost: the connection breaks              |
| 55      | accepted and delivered; the answer is slow                                               |
| 56      | a server error (500, nothing accepted), each time                                        |
| 57      | accepted and sent, the first answer is lost, and no status callback ever comes           |
| others  | delivered                                                                                |
"""

import re
from typing import Literal

Refusal = Literal["invalid", "landline", "unsubscribed", "forbidden", "throttled", "error"]
Course = Literal["delivered", "undelivered", "failed", "sent"]
Answer = Literal["at once", "error", "lost", "slow"]

REFUSED: dict[str, Refusal] = {
    "40": "invalid",
    "41": "landline",
    "42": "unsubscribed",
    "43": "forbidden",
    "50": "throttled",
    "56": "error",
}
REFUSED_FIRST: dict[str, Refusal] = {"51": "throttled", "52": "error"}
COURSES: dict[str, tuple[Course, int | None]] = {
    "30": ("undelivered", 30003),
    "31": ("undelivered", 30005),
    "32": ("undelivered", 30006),
    "33": ("failed", 30008),
    "34": ("sent", None),
    "57": ("sent", None),
}
ANSWERED_FIRST: dict[str, Answer] = {"53": "error", "54": "lost", "57": "lost"}
DELIVERED: tuple[Course, int | None] = ("delivered", None)


def refusal(number: str, nth: int) -> Refusal | None:
    """What the provider answers to the n-th submit instead of taking it."""
    ending = _ending(number)
    return REFUSED.get(ending) or (REFUSED_FIRST.get(ending) if nth == 1 else None)


def course(number: str) -> tuple[Course, int | None]:
    """How a message ends once it is accepted, and the error code that says why."""
    return COURSES.get(_ending(number), DELIVERED)


def answer(number: str, nth: int) -> Answer:
    """How the n-th submit is answered once it is accepted."""
    ending = _ending(number)
    if ending == "55":
        return "slow"
    return ANSWERED_FIRST.get(ending, "at once") if nth == 1 else "at once"


def silent(number: str) -> bool:
    """Whether nothing is called back."""
    return _ending(number) == "57"


def _ending(number: str) -> str:
    found = re.search(r"55501(\d\d)$", number)
    return found[1] if found else ""
