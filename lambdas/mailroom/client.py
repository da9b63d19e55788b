"""Client that sends messages from any Python program. Apart from Python, it needs only boto3.

    from mailroom.client import Mailroom

    mailroom = Mailroom("prod")
    mailroom.send({"id": "welcome-17", "event_type": "mail", "to": "ada@example.com", "template": "welcome"})
    mailroom.status("welcome-17")

The client validates an item's key, texts and times. With the extra `check`, it also validates all other rules
that do not depend on a stage's settings. The stage's function `dispatch` checks the remaining rules, and
records an invalid message in the ledger as failed. Sending the same item again, after a crash or a lost
response, is always safe.
"""

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

import boto3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.httpsession import URLLib3Session

from mailroom.aws.dynamo_values import image_of, plain
from mailroom.clock import epoch
from mailroom.errors import Invalid
from mailroom.ledger import cancellation
from mailroom.ledger.status_reader import REMEMBERED_SECONDS, LedgerReader, MessageStatus
from mailroom.ledger.table import LedgerTable
from mailroom.mailbox import DAY, MailboxWriter, Oversize, PutState, error_summary, in_order

if TYPE_CHECKING:
    from boto3.session import Session
    from types_boto3_dynamodb import DynamoDBClient
    from types_boto3_dynamodb.type_defs import TransactWriteItemTypeDef

__all__ = [
    "Ambiguous",
    "ApiRefused",
    "Invalid",
    "Mailroom",
    "MessageStatus",
    "NotCancelled",
    "SendResult",
    "Summary",
]

MAX_PROBLEMS = 1000
"""Maximum number of problems in a summary's list. The summary's counts include all results."""


@dataclass(frozen=True)
class SendResult:
    """Result of sending an item."""

    id: str
    event_type: str
    state: PutState
    """`accepted`: the item is in the mailbox now. `existed`: the mailbox had the identical item. `conflict`:
    another message has this id and event_type, and is unchanged. `refused`: the item is invalid; `error`
    names the attribute. `failed`: AWS could not be reached or denied the request; send the item again."""
    error: str = ""
    """Problem in a sentence; empty if the item is in the mailbox."""

    @property
    def ok(self) -> bool:
        """Whether the message is in the mailbox now."""
        return self.state in {"accepted", "existed"}


@dataclass
class Summary:
    """Counts of the results of many items, by `SendResult.state`."""

    accepted: int = 0
    existed: int = 0
    conflict: int = 0
    refused: int = 0
    failed: int = 0
    problems: list[SendResult] = field(default_factory=list)
    """The first results that are not `ok`, at most MAX_PROBLEMS."""

    @property
    def total(self) -> int:
        """Number of results."""
        return self.accepted + self.existed + self.conflict + self.refused + self.failed

    def add(self, result: SendResult) -> None:
        """Count a result."""
        setattr(self, result.state, getattr(self, result.state) + 1)
        if not result.ok and len(self.problems) < MAX_PROBLEMS:
            self.problems.append(result)


API_SECONDS = 30
"""Seconds after which a request to the HTTP API fails."""
MAX_ID_BYTES = 180
TEXTS = ("send_at", "expires_at", "lane", "time_zone", "topic", "callback_url", "payload_ref")
"""Attributes that are a string in every channel."""
EXAMPLE_TIME = "2026-11-21T09:00:00Z"
"""A valid time."""


class Ambiguous(LookupError):
    """Raised if several messages have the same id; `event_types` lists their event types."""

    def __init__(self, id_: str, event_types: list[str]) -> None:
        super().__init__(f"{id_!r} is the id of several messages; add event_type: {', '.join(event_types)}")
        self.event_types = event_types


class NotCancelled(Exception):
    """Raised if a message cannot be cancelled. `status` is the message's status, or None if the message is
    unknown."""

    def __init__(self, id_: str, status: MessageStatus | None) -> None:
        state = "there is no such message" if status is None else f"it is {status.status}"
        super().__init__(f"{id_!r} was not cancelled: {state}; only a waiting message can be cancelled")
        self.status = status


class ApiRefused(Exception):
    """Raised if the HTTP API refuses a request. `answer` is the response's body, a problem (RFC 9457)."""

    def __init__(self, status: int, answer: Mapping[str, Any]) -> None:
        super().__init__(f"{status}: {answer.get('detail') or answer.get('message')}")
        self.status = status
        self.answer = answer


class Mailroom:
    """Client of a stage: puts messages into its mailbox, and reads their statuses.

    Permissions: dynamodb:PutItem on the mailbox; dynamodb:GetItem and dynamodb:Query on mailbox and ledger;
    to cancel messages, dynamodb:UpdateItem on the ledger; for items over 400 KB and the content of
    attachments, s3:PutObject on the payload bucket. `person` and `choose` call the HTTP API, and need
    execute-api:Invoke on its routes for people, and ssm:GetParameter without `api_url`.
    """

    def __init__(
        self,
        stage: str,
        session: "Session | None" = None,
        *,
        payload_bucket: str | None = None,
        workers: int = 8,
        mailbox_days: int | None = None,
        payload_days: int = 90,
        api_url: str | None = None,
    ) -> None:
        """Create clients for a stage.

        session: credentials and region; by default a new boto3 session.
        payload_bucket: name of the payload bucket; by default it is derived from the number of the account.
        workers: maximum number of concurrent puts of `send_many`.
        mailbox_days: how long an item without ttl stays in the mailbox after its send_at; default: for ever.
            With less than 15 days, dispatch refuses items that wait for a send_at. If the stage has the
            setting `retention.mailbox_days`, the stack's output MailboxTtlSeconds is its value in seconds.
        payload_days: how long the payload bucket keeps an object, the stage's `retention.payload_days`. The
            send_at of an item over 400 KB may be at most this number of days ahead, minus 15.
        api_url: base URL of the HTTP API, for `person` and `choose`; by default the stage's SSM parameter.
        """
        self.stage = stage
        self.workers = workers
        self._session = session or boto3.Session()
        self._payload_bucket = payload_bucket
        self._api_url = api_url
        # Retries are safe: a put that is repeated finds the item of the first try, and returns `existed`.
        retries: Any = {"mode": "standard", "total_max_attempts": 5}
        config = Config(retries=retries, max_pool_connections=workers, user_agent_extra="mailroom-client")
        self._config = config
        dynamodb: DynamoDBClient = self._session.client("dynamodb", config=config)
        self._s3 = s3 = self._session.client("s3", config=config)
        self._writer = MailboxWriter(
            dynamodb,
            f"mailroom-{stage}-mailbox",
            None if mailbox_days is None else mailbox_days * DAY,
            oversize=Oversize(s3, lambda: self._bucket, payload_days * DAY),
        )
        self._dynamodb, self._ledger = dynamodb, f"mailroom-{stage}-ledger"
        self._reader = LedgerReader(dynamodb, self._ledger, f"mailroom-{stage}-mailbox")

    def person(self, recipient: str) -> dict[str, Any]:
        """Return what a person has opted out of, and the reason of each suppression: the response to `GET
        /people` of the HTTP API. Raises ApiRefused and botocore's errors."""
        return self._people("GET", recipient)

    def choose(self, recipient: str, topics: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
        """Opt a person out of topics, or in again, and return the response to `PATCH /people`. Repeating the
        call is harmless. Raises ApiRefused and botocore's errors.

            mailroom.choose("ada@example.com", {"news": {"state": "out"}})
        """
        return self._people("PATCH", recipient, json.dumps({"topics": topics}))

    def _people(self, method: str, recipient: str, body: str | None = None) -> dict[str, Any]:
        url = f"{self._url}/people?{urlencode({'recipient': recipient}, quote_via=quote)}"
        request = AWSRequest(method, url, {"Content-Type": "application/json"}, body)
        credentials: Any = self._session.get_credentials()  # `add_auth` raises an error for None
        SigV4Auth(credentials, "execute-api", self._session.region_name).add_auth(request)
        response = URLLib3Session(timeout=API_SECONDS).send(request.prepare())
        answer: dict[str, Any] = json.loads(response.content)
        if response.status_code != 200:
            raise ApiRefused(response.status_code, answer)
        return answer

    @cached_property
    def _url(self) -> str:
        """Base URL of the HTTP API, by default from the parameter of the stage."""
        if self._api_url:
            return self._api_url
        ssm = self._session.client("ssm", config=self._config)
        return ssm.get_parameter(Name=f"/mailroom-{self.stage}/api-url")["Parameter"]["Value"]

    @cached_property
    def _bucket(self) -> str:
        """Name of the payload bucket, by default the name that the stage's stacks give it."""
        if self._payload_bucket:
            return self._payload_bucket
        account = self._session.client("sts", config=self._config).get_caller_identity()["Account"]
        return f"mailroom-{self.stage}-payloads-{account}-{self._session.region_name}"

    def send(self, item: Mapping[str, Any], *, if_new: bool = True) -> SendResult:
        """Put an item into the mailbox. Problems, including AWS's errors, are in the result, and not raised.

        An attachment of a mail may have its `content` as bytes, besides its `filename`, instead of a `ref`.
        The content is put into the payload bucket first.

        `if_new=False` replaces the item that has the same key. Dispatch handles a new item, but not its
        replacement. So the replacement has an effect only if the message waits for a send_at that was more
        than 2 minutes ahead. At the send_at of the first item, the replacement is read. If its send_at is
        later, the message waits again; if it is earlier, it is ignored. A message with a shorter wait is sent
        with its previous content, and a message that was sent is not sent again.
        """
        try:
            item = self._prepared(item)
        except Invalid as fault:
            return SendResult(str(item.get("id")), str(item.get("event_type")), "refused", str(fault))
        except (ClientError, BotoCoreError) as error:
            return SendResult(item["id"], item["event_type"], "failed", error_summary(error))
        result = self._writer.put(item, if_new=if_new)
        return SendResult(item["id"], item["event_type"], result.state, result.error)

    def entry(self, item: Mapping[str, Any]) -> "TransactWriteItemTypeDef":
        """Return the message as an entry of your own `TransactWriteItems`: the message is put if, and only
        if, your transaction commits. `mailroom docs send-in-a-transaction` has examples, and cancelled
        transactions.

            boto3.client("dynamodb").transact_write_items(TransactItems=[order, mailroom.entry(confirmation)])

        The entry has the shape of boto3's low-level client. The transaction needs dynamodb:PutItem on the
        mailbox, as `send` does. Content over 400 KB and attachments' `content` are put into the payload
        bucket now, even if the transaction is cancelled later. Raises `Invalid`, whose `field` is the invalid
        attribute, and botocore's errors.
        """
        return self._writer.entry(self._prepared(item))

    def _prepared(self, item: Mapping[str, Any]) -> Mapping[str, Any]:
        """Check the item, put its attachments' `content` into the payload bucket, and return the item with a
        `ref` instead. Raises Invalid and botocore's errors."""
        _check(item)
        if isinstance(attachments := item.get("attachments"), list):
            if item["event_type"] == "mail":
                _check_contents(attachments)
            item = {**item, "attachments": [self._upload(attachment) for attachment in attachments]}
        _check_contract(item)
        return item

    def _upload(self, attachment: Any) -> Any:
        if not isinstance(attachment, Mapping) or not isinstance(attachment.get("content"), bytes):
            return attachment
        # The key is a hash of the content, so that an item sent again is identical to the first one.
        key = f"attachments/{hashlib.sha256(attachment['content']).hexdigest()}"
        self._s3.put_object(Bucket=self._bucket, Key=key, Body=attachment["content"])
        attributes = {name: value for name, value in attachment.items() if name != "content"}
        return {"filename": "attachment", **attributes, "ref": f"s3://{self._bucket}/{key}"}

    def send_many(
        self,
        items: Iterable[Mapping[str, Any]],
        progress: Callable[[int], None] | None = None,
        *,
        on_result: Callable[[SendResult], None] | None = None,
    ) -> Summary:
        """Put the items of an iterable of any length, `workers` at a time and without loading them all.

        `progress` is called with the number of finished items after every item, `on_result` with the result
        of every item, in their order. Both are called in the calling thread. Send the items that failed
        again: the summary lists them.

            summary = mailroom.send_many(items(), progress=lambda done: print(done, end="\\r"))
            assert not summary.problems, summary.problems[0]
        """
        summary = Summary()
        for result in in_order(self.send, items, self.workers):
            summary.add(result)
            if on_result is not None:
                on_result(result)
            if progress is not None:
                progress(summary.total)
        return summary

    def status(self, id: str, event_type: str | None = None) -> MessageStatus | None:  # noqa: A002
        """Return the status of a message, or None if neither ledger nor mailbox has the message.

        `ready` means that the message is in the mailbox but not in the ledger: it is not claimed yet. The
        ledger deletes a message after `retention.ledger_days` (90 or more). An older message may have been
        sent, and is `ready` again, or `forgotten` if its `send_at`, `expires_at` or `ttl` proves its age. Do
        not send a message again because of either status.

        Raises Ambiguous if messages of several channels have this id and `event_type` is missing, and
        botocore's errors.
        """
        statuses = self._reader.find(id, event_type)
        if len(statuses) > 1:
            raise Ambiguous(id, [status.event_type for status in statuses])
        return statuses[0] if statuses else None

    def cancel(self, id: str, event_type: str | None = None) -> MessageStatus:  # noqa: A002
        """Cancel a message that waits for its time, and return its new status. Repeating the cancellation is
        harmless.

        The cancellation and a sender's claim are conditional writes, and only one of them succeeds. So a
        cancelled message is not sent. Raises NotCancelled if the message is unknown or does not wait;
        Ambiguous and botocore's errors as `status` does.
        """
        status = self.status(id, event_type)
        if status is not None:
            ledger = LedgerTable(self._dynamodb, self._ledger, REMEMBERED_SECONDS)
            if cancellation.cancel(ledger, self._reader, status, time.time()):
                status = self.status(id, status.event_type)
        if status is None or status.status != "cancelled":
            raise NotCancelled(id, status)
        return status


def _check(item: Mapping[str, Any]) -> None:
    """Raise Invalid for a key, a text or a time that is invalid in every channel."""
    for name in ("id", "event_type"):
        value = item.get(name)
        if not isinstance(value, str) or not value:
            raise Invalid(name, "is missing or not a string; add it as a string")
    length = len(item["id"].encode("utf-8", "replace"))
    if length > MAX_ID_BYTES:
        raise Invalid("id", f"is {length} bytes long; use at most {MAX_ID_BYTES}")
    for name in TEXTS:
        value = item.get(name)
        if value is not None and not isinstance(value, str):
            raise Invalid(name, f"expected a string, got {type(value).__name__}")
    for name in ("send_at", "expires_at"):
        try:
            epoch(item.get(name) or EXAMPLE_TIME)
        except (ValueError, OverflowError):
            problem = f"{item[name]!r:.60} is not an ISO 8601 time; use one like {EXAMPLE_TIME}"
            raise Invalid(name, problem) from None


def _check_contents(attachments: Iterable[Any]) -> None:
    """Raise Invalid if the `content` of a mail's attachment is not bytes."""
    for index, attachment in enumerate(attachments):
        content = attachment.get("content", b"") if isinstance(attachment, Mapping) else b""
        if not isinstance(content, bytes):
            problem = f"must be bytes, not {type(content).__name__}; convert it, or use a ref"
            raise Invalid(f"attachments[{index}].content", problem)


def _check_contract(item: Mapping[str, Any]) -> None:
    """Raise Invalid for an item that is invalid in its channel, for example because of its address. Items of
    a stage's own channels, and text messages to a number without a country code, are not checked here,
    because only the stage can check them."""
    contracts, parse = _contracts()
    national = item["event_type"] == "sms" and not str(item.get("to")).startswith("+")
    if item["event_type"] in contracts and not national:
        parse(plain(image_of(item)), contracts)


@cache
def _contracts() -> tuple[Mapping[str, Any], Any]:
    """Return the classes of messages by `event_type`, and the function that parses an item. Without the
    packages of the extra `check`, the mapping is empty."""
    try:
        # The modules are imported by their names as text, because a program without the extra cannot import
        # them.
        parse = import_module("mailroom.message.message").parse
        return import_module("mailroom.channels.contracts").CONTRACTS, parse
    except ImportError:
        return {}, None
