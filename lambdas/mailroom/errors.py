"""Exceptions of the library, ordered by what they prove about a message, limits of JSON values and keys, and
counts in sentences.

DynamoDB's modules have two more: ConditionFailed (`aws.dynamo_updates`), and UnprocessedKeys for unfinished
work (`aws.dynamo_batches`). ParseError and AnswerTooLong are in the modules that catch them,
`campaigns.file_formats` and `http.https`.

    Invalid                  the message is invalid: it can never be sent until the producer corrects it
    Malformed                a record without a valid key: it cannot be recorded, so it is a dead letter
      UnknownRun             a campaign's record without its run
    RequestFailed            a request to another party has no usable response
      NotSent                proves that the request sent nothing
        NotReady             in message.outcome: the message cannot be sent now, for the reason in `outcome`
        ConnectError         the connection failed; a later try may succeed
        InvalidRequest       the URL or a header is invalid, now and at every later try
      OutcomeUnknown         the effect is unknown: the message may have been sent
    ClaimLost                another worker has claimed the message or page, or its run ended
    InvalidSecret            a secret of the stage is invalid, until an operator corrects it
    Unfinished               work that has to be repeated; the repetition is harmless
      Contention             other workers changed the same item at each try
    HttpError                a request to our HTTP APIs is refused, with a status
    ApiError                 in api.answers: the API of messages refuses a request, with a problem as body
    Ambiguous, NotCancelled  in client: results of the producers' client
"""

import re
from collections.abc import Container, Iterable
from decimal import Clamped, Context, Inexact, Overflow, Rounded, Subnormal
from typing import Any

MAX_FIELD = 200
MAX_PROBLEM = 1000
MAX_KEY_BYTES = {"id": 2048, "event_type": 1024}
"""Maximum number of bytes of a partition key and of a sort key in DynamoDB, by attribute of the ledger
item."""


def quantity(count: int, noun: str, plural: str = "") -> str:
    """Return a count with its noun, such as `1 message` or `2,000 messages`. `plural` is the noun's plural if
    it is irregular, or if a verb follows the noun."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def can_be_key(partition: str, sort: str | None = None) -> bool:
    """Return whether a table can hold an item with this partition key and, if it is given, this sort key.
    DynamoDB refuses every request for another key."""
    try:
        parts = [part.encode() for part in (partition, sort) if part is not None]
    except UnicodeEncodeError:  # half of a surrogate pair, such as a byte of a terminal that is not UTF-8
        return False
    return all(0 < len(part) <= bound for part, bound in zip(parts, MAX_KEY_BYTES.values(), strict=False))


class Invalid(ValueError):
    """Error of an invalid message, which can never be sent until the producer corrects it.

    `field` is the invalid attribute (`headers.X-Team`, `to[3]`). `problem` describes the error and its
    remedy. Together they are the sentence in the ledger. Both are cut to a maximum length, because they may
    quote long texts.
    """

    def __init__(self, field: str, problem: str) -> None:
        self.field = field[:MAX_FIELD]
        self.problem = problem[:MAX_PROBLEM]
        super().__init__(f"{self.field}: {self.problem}")

    def attribute(self, names: Container[str]) -> str:
        """Return the invalid attribute without an index, so that faults can be counted by attribute: one of
        the contract's `names`, `item` for the whole item, or `variable` for any other attribute."""
        name = re.split(r"[.\[]", self.field, maxsplit=1)[0]
        return name if name in names or name == "item" else "variable"


class Malformed(ValueError):
    """Error of a queue record without a valid key. The record cannot be matched to a ledger item, so it
    becomes a dead letter."""


class UnknownRun(Malformed):
    """Error of a chunk of recipients whose campaign run is missing in the table of runs. The ids of the
    chunk's messages cannot be computed without the run."""


class RequestFailed(Exception):
    """Error of a request to a provider or another server. The text of an HTTP error never contains a URL, and
    callers put the server's name before it."""


class NotSent(RequestFailed):
    """Error which proves that a request was not sent."""


class ConnectError(NotSent, ConnectionError):
    """Error of a connection that could not be opened, for example because its host name does not resolve. A
    later try may succeed."""


class InvalidRequest(NotSent):
    """Error of a request that cannot be made, because its URL or a header is invalid. A later try would fail
    as well. The text of the error describes the valid form."""


class OutcomeUnknown(RequestFailed):
    """Error of a request whose effect is unknown, because its response is missing or invalid."""


class ClaimLost(RuntimeError):
    """Error of a worker whose lease ended before it recorded the outcome, so that another worker has claimed
    the message or the page, or whose run was stopped or restarted meanwhile."""


class InvalidSecret(RuntimeError):
    """Error of a secret of the stage that is missing, cannot be read or has an invalid form. The text of the
    error describes the valid form, and never quotes the secret."""


class Unfinished(RuntimeError):
    """Error of work that is only partly done. The record or event is delivered again, and finished parts are
    not repeated."""


class Contention(Unfinished):
    """Error of a conditional write that failed at each try, because other workers changed the item at the
    same time."""


class HttpError(Exception):
    """Error of an invalid request to one of the HTTP APIs of Mailroom, which gets the response `status`. The
    reason is for the log, and never quotes the request."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


NUMBERS = Context(prec=38, Emin=-130, Emax=125, traps=[Inexact, Rounded, Overflow, Subnormal, Clamped])
"""Decimal context with DynamoDB's limits of numbers: 38 digits, 1E-130 to 1E+125. Without limits, the text of
1E+999999999 would take gigabytes. boto3's own context has other exponents."""
MAX_VARIABLES_BYTES = 128 * 1024
"""Maximum number of bytes of a templated message as JSON, because its attributes are the template's
variables. The limit also limits the work of a template. Gmail cuts off a mail's HTML at 102 KB."""
MAX_DEPTH = 500
"""Maximum number of levels of lists and maps in a JSON body. A DynamoDB item has at most 32. The limit
prevents recursive code from exceeding Python's recursion limit, which would make the whole batch fail."""


def check_variables(field: str, size: int) -> None:
    """Raise Invalid if the variables of a template have too many bytes as JSON."""
    if size > MAX_VARIABLES_BYTES:
        raise Invalid(
            field,
            f"has {size} bytes, but a template may have at most {MAX_VARIABLES_BYTES}; remove unused "
            "attributes, or render it yourself and put subject, html and text into a payload",
        )


def too_deep(text: str | bytes, value: Any, levels: int = MAX_DEPTH) -> bool:
    """Return whether `value`, decoded from the JSON `text`, has more than `levels` nested levels."""
    array, map_ = (b"[", b"{") if isinstance(text, bytes) else ("[", "{")
    if text.count(array) + text.count(map_) <= levels:  # type: ignore[arg-type] # few brackets, so few levels
        return False
    return lies_too_deep(value, levels)


def lies_too_deep(value: Any, levels: int = MAX_DEPTH) -> bool:
    """Return whether a JSON value has more than `levels` nested levels of lists and maps."""
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
