"""What the simulated fax numbers do.

The last two digits of a number that ends in 555 01xx choose; every other number takes every fax. `First`
and `twice` count the submits of one document (its URL without a signature) to one number.

| 555 01… | what happens                                                                             |
|---------|------------------------------------------------------------------------------------------|
| 10      | busy                                                                                     |
| 11      | no answer                                                                                |
| 12      | busy twice, then delivered                                                               |
| 13      | delivered, slowly                                                                        |
| 14      | accepted and delivered, but the first answer is lost: the connection breaks              |
| 15      | refused as an invalid number (SignalWire 400, Telnyx 422)                                |
| 16      | throttled first (429), then delivered                                                    |
| 17      | a server error first (500, nothing accepted), then delivered                             |
| 18      | accepted, then failed by the line                                                        |
| 19      | accepted, then failed because the PDF cannot be fetched                                  |
| 20      | accepted, and stays queued until somebody cancels it                                     |
| 21      | accepted, then failed: nobody has this number                                            |
| 22      | the account is refused (403)                                                             |
| 23      | failed by the line once, then delivered                                                  |
| others  | delivered                                                                                |
"""

import re
from typing import Literal
from urllib.parse import parse_qsl, urlencode, urlsplit

Refusal = Literal["invalid", "throttled", "error", "forbidden"]
Course = Literal[
    "delivered", "busy", "no-answer", "slow", "lost", "failed", "unreachable", "stuck", "unallocated"
]

REFUSED: dict[str, Refusal] = {"15": "invalid", "22": "forbidden"}
REFUSED_FIRST: dict[str, Refusal] = {"16": "throttled", "17": "error"}
COURSES: dict[str, Course] = {
    "10": "busy",
    "11": "no-answer",
    "13": "slow",
    "18": "failed",
    "19": "unreachable",
    "20": "stuck",
    "21": "unallocated",
}
FOR_SO_MANY: dict[str, tuple[int, Course]] = {"12": (2, "busy"), "14": (1, "lost"), "23": (1, "failed")}

_SIGNATURE = {"awsaccesskeyid", "signature", "expires"}


def refusal(number: str, nth: int) -> Refusal | None:
    """What the provider answers to the n-th submit instead of taking it."""
    ending = _ending(number)
    return REFUSED.get(ending) or (REFUSED_FIRST.get(ending) if nth == 1 else None)


def course(number: str, nth: int) -> Course:
    """How the n-th submit goes on once it is accepted."""
    ending = _ending(number)
    times, at_first = FOR_SO_MANY.get(ending, (0, "delivered"))
    return at_first if nth <= times else COURSES.get(ending, "delivered")


def document(url: str) -> str:
    """The URL without a signature, which is another one at each attempt."""
    parts = urlsplit(url)
    query = [pair for pair in parse_qsl(parts.query, keep_blank_values=True) if not _signs(pair[0].lower())]
    return parts._replace(query=urlencode(query), fragment="").geturl()


def _signs(name: str) -> bool:
    return name in _SIGNATURE or name.startswith("x-amz-")


def _ending(number: str) -> str:
    found = re.search(r"55501(\d\d)$", number)
    return found[1] if found else ""
