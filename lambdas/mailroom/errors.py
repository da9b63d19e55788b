"""Faults that a person can act on, and one that any JSON may have."""

import re
from collections.abc import Container, Iterable
from decimal import Clamped, Context, Inexact, Overflow, Rounded, Subnormal
from typing import Any

MAX_FIELD = 200
MAX_PROBLEM = 1000


class Invalid(ValueError):
    """A message that can never be sent as it is: the producer's to correct.

    `field` is the attribute at fault (`headers.X-Team`, `to[3]`), `problem` says what is wrong and what
    would be right; together they are the sentence that stands in the ledger. Neither is longer than a person
    reads, however long the text that they quote.
    """

    def __init__(self, field: str, problem: str) -> None:
        self.field = field[:MAX_FIELD]
        self.problem = problem[:MAX_PROBLEM]
        super().__init__(f"{self.field}: {self.problem}")

    def attribute(self, names: Container[str]) -> str:
        """The attribute of an item at fault, without an index, so that faults can be counted by it: one of
        the contract's `names`, or `variable`."""
        name = re.split(r"[.\[]", self.field, maxsplit=1)[0]
        return name if name in names or name == "item" else "variable"


class Malformed(ValueError):
    """A record without a usable key: no ledger item can be written for it, so only a person can tell."""


class Unsendable(RuntimeError):
    """No such request can be made: its URL or a header is wrong, and stays so until somebody fixes the
    setting or the secret. Nothing went out. The sentence follows the other side's name."""


class ClaimLost(RuntimeError):
    """Another worker holds the message now: this one's lease was over before it recorded an outcome."""


NUMBERS = Context(prec=38, Emin=-130, Emax=125, traps=[Inexact, Rounded, Overflow, Subnormal, Clamped])
"""DynamoDB's bounds of a number: 38 digits, 1E-130 to 1E+125. To write 1E+999999999 as text takes gigabytes.
boto3 has such a context too, with other exponents."""
MAX_DEPTH = 500
"""How deep lists and maps of a body may lie in each other. An item of DynamoDB has 32 levels. What reads one
level by one call of Python must not run out of calls: that would be a fault of ours, and end the batch."""


def too_deep(text: str | bytes, value: Any) -> bool:
    """Whether `value`, which the JSON text `text` says, has more than MAX_DEPTH levels."""
    brackets = (b"[", b"{") if isinstance(text, bytes) else ("[", "{")
    if sum(map(text.count, brackets)) <= MAX_DEPTH:  # type: ignore[arg-type] # nearly always; texts have few of them
        return False
    return lies_too_deep(value)


def lies_too_deep(value: Any) -> bool:
    """Whether a value of JSON has more than MAX_DEPTH levels of lists and maps."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [inner for each in level for inner in _inside(each) if isinstance(inner, dict | list)]
        if not level:
            return False
    return True


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
