"""Faults that a person can act on."""

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


class Malformed(ValueError):
    """A record without a usable key: no ledger item can be written for it, so only a person can tell."""


class Unsendable(RuntimeError):
    """No such request can be made: its URL or a header is wrong, and stays so until somebody mends the
    setting or the secret. Nothing went out. The sentence follows the other side's name."""


class ClaimLost(RuntimeError):
    """Another worker holds the message now: this one's lease was over before it recorded an outcome."""
