"""Exceptions of the library, ordered by what they prove about a message; and the limits of JSON.

DynamoDB's modules have two more: ConditionFailed (`aws.dynamo_updates`), and UnprocessedKeys for unfinished
work (`aws.dynamo_batches`). ParseError and AnswerTooLong are in the modules that catch them,
`campaigns.file_formats` and `http.https`.

    Invalid                  fault of the message: it can never be sent until the producer corrects it
    Malformed                a record without a usable key: nothing can be recorded, so it is a dead letter
      UnknownRun             a campaign's record without its run
    RequestFailed            a request to another party has no usable response
      NotSent                proves that nothing was sent
        NotReady             in message.outcome: the message cannot be sent now, for the reason in `outcome`
        ConnectError         no connection, which may pass
        InvalidRequest       the URL or a header is invalid, now and at every later try
      OutcomeUnknown         proves nothing: the message may have been sent
    ClaimLost                another worker has claimed the message or the page since
    InvalidSecret            fault of the stage: a key or credentials, unusable until somebody replaces them
    Unfinished               work that has to be repeated, and that does no harm if it is
      Contention             other workers changed the same item at each try
    HttpError                a request to our HTTP APIs is refused, with a status
    ApiError                 in api.answers: the API of messages refuses a request, with a problem as body
    Ambiguous, NotCancelled  in client: answers to the producers' client
"""

import re
from collections.abc import Container, Iterable
from decimal import Clamped, Context, Inexact, Overflow, Rounded, Subnormal
from typing import Any

MAX_FIELD = 200
MAX_PROBLEM = 1000


class Invalid(ValueError):
    """A fault of the message, which can never be sent until the producer corrects it.

    `field` is the invalid attribute (`headers.X-Team`, `to[3]`). `problem` explains the fault and its remedy.
    Together they are the sentence in the ledger. Both are cut to a length that a person reads, however long
    the text that they quote.
    """

    def __init__(self, field: str, problem: str) -> None:
        self.field = field[:MAX_FIELD]
        self.problem = problem[:MAX_PROBLEM]
        super().__init__(f"{self.field}: {self.problem}")

    def attribute(self, names: Container[str]) -> str:
        """Return the invalid attribute without an index, so that faults can be counted by attribute: one of
        the contract's `names`, or `variable`."""
        name = re.split(r"[.\[]", self.field, maxsplit=1)[0]
        return name if name in names or name == "item" else "variable"


class Malformed(ValueError):
    """A queue record without a usable key. The record cannot be matched to a ledger item, so it becomes a
    dead letter."""


class UnknownRun(Malformed):
    """A chunk of recipients whose campaign run is missing: the chunk is made up, or its run was lost. The ids
    of a chunk's messages come only from its run."""


class RequestFailed(Exception):
    """A request to another party without a usable response. The text of an HTTP error begins with the
    server's name, and never contains a URL."""


class NotSent(RequestFailed):
    """Proof that a request sent nothing."""


class ConnectError(NotSent, ConnectionError):
    """A connection that could not be opened, also because the name of its host does not resolve. A later try
    may succeed."""


class InvalidRequest(NotSent):
    """A request that cannot be made, because its URL or a header is invalid. A later try fails as well. The
    text of the error explains what would be valid."""


class OutcomeUnknown(RequestFailed):
    """A request whose effect is unknown: its response is missing or cannot be read."""


class ClaimLost(RuntimeError):
    """Another worker has claimed the message or the page: the lease ended before the outcome was recorded."""


class InvalidSecret(RuntimeError):
    """A secret of the stage that cannot be used: it is missing, cannot be read, or does not have the valid
    form. The text of the error describes that form, and never quotes the secret."""


class Unfinished(RuntimeError):
    """Work that is only partly done. Its record or event is delivered again, and finished parts are not
    repeated."""


class Contention(Unfinished):
    """A conditional write that failed at each try, because other workers changed the item meanwhile."""


class HttpError(Exception):
    """A request to one of Mailroom's HTTP APIs that gets the response `status`. The reason is for the log,
    and never quotes the request."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


NUMBERS = Context(prec=38, Emin=-130, Emax=125, traps=[Inexact, Rounded, Overflow, Subnormal, Clamped])
"""Context with DynamoDB's bounds of a number: 38 digits, 1E-130 to 1E+125. Without bounds, the text of
1E+999999999 would take gigabytes. boto3's own context has other exponents."""
MAX_VARIABLES_BYTES = 128 * 1024
"""Maximum number of bytes of a templated message as JSON, because its attributes are the template's
variables. The limit bounds the work of every template. Gmail cuts off a mail's HTML at 102 KB."""
MAX_DEPTH = 500
"""Maximum number of levels of lists and maps in a JSON body. An item of DynamoDB has 32 at most. Code that
recurses once for each level must not exceed Python's limit: that would be an error of Mailroom, and end the
batch."""


def check_variables(field: str, size: int) -> None:
    """Raise Invalid if the variables of a template have too many bytes as JSON."""
    if size > MAX_VARIABLES_BYTES:
        raise Invalid(
            field,
            f"has {size} bytes, and a template reads at most {MAX_VARIABLES_BYTES}; leave out what it does "
            "not use, or render it yourself and put subject, html and text into a payload",
        )


def too_deep(text: str | bytes, value: Any, levels: int = MAX_DEPTH) -> bool:
    """Return whether `value`, decoded from the JSON `text`, has more than so many `levels`."""
    brackets = (b"[", b"{") if isinstance(text, bytes) else ("[", "{")
    if sum(map(text.count, brackets)) <= levels:  # type: ignore[arg-type] # few brackets, so few levels
        return False
    return lies_too_deep(value, levels)


def lies_too_deep(value: Any, levels: int = MAX_DEPTH) -> bool:
    """Return whether a value of JSON has more than so many `levels` of lists and maps."""
    level = [value]
    for _ in range(levels):
        level = [inner for outer in level for inner in _inside(outer) if isinstance(inner, dict | list)]
        if not level:
            return False
    return True


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
