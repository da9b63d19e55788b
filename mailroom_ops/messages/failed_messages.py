"""Reads the messages that failed, bounced, were not delivered, or caused a complaint. The ledger's index of
failures has a few partitions for each status."""

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import Struct

from mailroom.ledger.items import DEAD_LETTER, FAILURE_KEYS, FAILURE_SHARDS, FAILURES
from mailroom.ledger.status_reader import MessageStatus, of_ledger
from mailroom.message.outcome import CODES, FAILED
from mailroom.search.finder import Filter, newest_of
from mailroom.telemetry import impersonal
from mailroom_ops.messages.views import first_recipient, since_of
from mailroom_ops.shared.deployed_stage import name

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

ROUND = 150
"""Maximum number of messages that are read from a partition of the index at once."""

# Unlike the logger's pattern, this one also matches an address without a domain. A match starts at the
# beginning of a word and never backtracks: otherwise the time for a long word without an @ would grow with
# the square of its length.
_WORD = r"[^\s@'\"<>,;()]"
_ADDRESS = re.compile(rf"(?<!{_WORD})({_WORD}){_WORD}*+@")
_TOKEN = re.compile(r"[A-Za-z0-9_:/.+=-]{25,}")
_QUOTED = re.compile(r"'[^']*'")
_VARYING = re.compile(r"'[^']*'|\"[^\"]*\"|[^\s@]{0,64}@\S*|…?\d+")
"""Pattern of the parts in which the sentences about two messages differ if they have the same reason: values,
addresses and numbers."""
_KEPT = 4
"""Number of last characters of a token that remain readable when it is masked."""


class Failure(Struct, frozen=True):
    """Message that failed, bounced, was not delivered or caused a complaint, or another message with the
    reason why it was not sent. A missing text is empty."""

    at: str
    """Time when the message reached its status (ISO 8601)."""
    id: str
    event_type: str
    status: str
    to: str
    reason: str
    message: str
    attempts: int
    field: str = ""
    """Name of the invalid attribute, or `variable` for a variable of the template."""
    template: str = ""
    campaign: str = ""
    domain: str = ""
    """Domain of a mail's recipient; of several ones, the first for whom the mail failed."""

    @property
    def day(self) -> str:
        """Day of the status (UTC)."""
        return self.at[:10]

    @property
    def sentence(self) -> str:
        """Message without values, addresses and numbers: equal for messages that failed for one reason."""
        return sentence_of(self.message)

    @property
    def why(self) -> str:
        """Reason, followed by the invalid attribute in brackets."""
        return f"{self.reason} ({self.field})" if self.field else self.reason


class FailureFilter(Filter, frozen=True):
    """Filter of failures by attributes of `Failure`. An empty field matches every failure. `since` and
    `until` are times of the failure."""

    reason: str = ""
    field: str = ""
    day: str = ""
    domain: str = ""
    sentence: str = ""
    compared: ClassVar[tuple[str, ...]] = (*Filter.compared, "reason", "field", "day", "domain", "sentence")
    statuses: ClassVar[tuple[str, ...]] = FAILED


def sentence_of(message: str) -> str:
    """Return an error message without values, addresses and numbers, as in `Failure.sentence`."""
    return _VARYING.sub("…", message)


def choose(client: "DynamoDBClient", stage: str, criteria: FailureFilter, *, full: bool) -> Iterator[Failure]:
    """Yield the failures that a filter matches, the newest first. Addresses and numbers are masked unless
    `full` is true."""
    listed = (failure_of(message, full=full) for message in failed(client, stage, criteria))
    return (failure for failure in listed if criteria.takes(failure))


def recipient(to: str | list[str] | None) -> str:
    """Return the first of the recipients, masked, and the number of further ones."""
    return _masked(first_recipient(to))


def failed(client: "DynamoDBClient", stage: str, criteria: FailureFilter) -> Iterator[MessageStatus]:
    """Yield the messages that may match the status and the times of a filter, the newest first. They are read
    as the caller takes them, so the first ones cost one round of calls."""
    statuses = [criteria.status] if criteria.status in FAILED else FAILED
    cursor: str | None = ""
    while cursor is not None:
        items, end = failed_round(client, stage, statuses, criteria.span(cursor))
        yield from (of_ledger(item) for item in items if item[FAILURE_KEYS[1]] != cursor)
        cursor = end


def failed_round(
    client: "DynamoDBClient", stage: str, statuses: Sequence[str], span: tuple[str, str]
) -> tuple[list[dict[str, Any]], str | None]:
    """Return the newest ledger items with one of the statuses, which failed in a span, and the sort key at
    which further ones follow; see `newest_of`."""
    partitions = [f"{status}#{shard}" for status in statuses for shard in range(FAILURE_SHARDS)]
    request = {"TableName": name(stage, "ledger"), "IndexName": FAILURES, "Limit": ROUND}
    return newest_of(client, request, FAILURE_KEYS, partitions, span)


def failure_of(message: MessageStatus, *, full: bool) -> Failure:
    """Return a message as a Failure. Addresses and numbers are masked unless `full` is true."""
    to, (reason, text, field) = message.to, _error(message)
    several = [to] if isinstance(to, str) else to or [""]
    recipients = ", ".join(several) if full else recipient(to)
    text = text if full else masked_error(reason, text)
    wrong = (address for address, entry in message.recipients.items() if entry.get("status") in FAILED)
    return Failure(
        since_of(message) or "",
        message.id,
        message.event_type,
        DEAD_LETTER if "dead_lettered_at" in message.times else message.status,
        recipients,
        reason,
        text,
        message.attempts,
        field,
        message.template or "",
        message.campaign or "",
        next(wrong, several[0]).rpartition("@")[2].rstrip("> ").lower()
        if message.event_type == "mail"
        else "",
    )


def _error(message: MessageStatus) -> tuple[str, str, str]:
    has_ended = "completedAt" in message.times
    error = (message.error if has_ended else message.trouble) or message.error or {}
    codes = (message.details.get(name) for name in CODES.get(message.status, ()))
    unknown = "unknown" if message.status in FAILED else message.waits_for
    reason = next(filter(None, codes), error.get("code", unknown))
    return str(reason), error.get("message", ""), error.get("field", "")


def masked_error(reason: str, message: str) -> str:
    """Return an error message with recipients masked. Mailroom's own messages, whose reason is `invalid`,
    quote values of the item: these are masked, because other numbers in the message are times, files or
    examples. In a provider's message only addresses are masked here: numbers were masked before it was
    stored."""
    if reason != "invalid":
        return _ADDRESS.sub(r"\1***@", message)
    return _QUOTED.sub(lambda quoted: _masked(quoted[0]), message)


def _masked(text: str) -> str:
    """Mask every address, number and token in a text."""
    # Tokens are masked before numbers: the number in an ARN would be masked first, and hide that it is an
    # ARN.
    return impersonal(_TOKEN.sub(_masked_token, _ADDRESS.sub(r"\1***@", text)))


def _masked_token(match: re.Match[str]) -> str:
    """Mask a device token, or the ARN of a device. Host names are not masked, as they identify no person."""
    token = match[0]
    is_name = "://" in token or (token.islower() and "." in token and ":" not in token)
    return token if is_name else f"***{token[-_KEPT:]}"
