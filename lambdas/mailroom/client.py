"""Send messages from any Python that has boto3: no CDK, and nothing else of ours.

    from mailroom.client import Mailroom

    mailroom = Mailroom("prod")
    mailroom.send({"id": "welcome-17", "event_type": "mail", "to": "ada@example.com", "template": "welcome"})
    mailroom.status("welcome-17")

An item is checked here for its key alone; dispatch judges the rest, and the ledger says what it thought.
Sending the same again, after a crash or an answer that was lost, is always safe.
"""

import hashlib
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from mailroom.clock import epoch
from mailroom.errors import Invalid
from mailroom.ledger.reader import READY, REMEMBERED_SECONDS, LedgerReader, MessageStatus
from mailroom.ledger.withdrawal import Withdrawals
from mailroom.mailbox import DAY, MailboxWriter, Oversize, PutState, in_order, said

if TYPE_CHECKING:
    from boto3.session import Session
    from types_boto3_dynamodb import DynamoDBClient
    from types_boto3_dynamodb.type_defs import TransactWriteItemTypeDef

__all__ = ["Ambiguous", "Invalid", "Mailroom", "MessageStatus", "NotCancelled", "SendResult", "Summary"]

KEPT_PROBLEMS = 1000
"""How many problems a summary lists; it counts all."""


@dataclass(frozen=True)
class SendResult:
    """What became of one item.

    accepted: it lies in the mailbox. existed: the very same lay there. conflict: its id and event_type stand
    for another message, which stays. refused: it can never be put as it is; `error` names the attribute.
    failed: AWS could not be reached or refused us; send it again.
    """

    id: str
    event_type: str
    state: PutState
    error: str = ""

    @property
    def ok(self) -> bool:
        """Whether the message is in the mailbox now."""
        return self.state in {"accepted", "existed"}


@dataclass
class Summary:
    """How many items there were, and what became of them. `problems` lists the first that are not `ok`."""

    accepted: int = 0
    existed: int = 0
    conflict: int = 0
    refused: int = 0
    failed: int = 0
    problems: list[SendResult] = field(default_factory=list)

    @property
    def total(self) -> int:
        """All items."""
        return self.accepted + self.existed + self.conflict + self.refused + self.failed

    def add(self, result: SendResult) -> None:
        """Count one more."""
        setattr(self, result.state, getattr(self, result.state) + 1)
        if not result.ok and len(self.problems) < KEPT_PROBLEMS:
            self.problems.append(result)


MAX_ID_BYTES = 180


class Ambiguous(LookupError):
    """Raised if several messages have an id; `event_types` says which there are."""

    def __init__(self, id_: str, event_types: list[str]) -> None:
        super().__init__(f"{id_!r} is the id of several messages; name one of {', '.join(event_types)}")
        self.event_types = event_types


class NotCancelled(Exception):
    """Raised if a message cannot be taken back. `status` is where it is; None: there is no such message."""

    def __init__(self, id_: str, status: MessageStatus | None) -> None:
        stands = "there is no such message" if status is None else f"it is {status.status}"
        super().__init__(f"{id_!r} was not cancelled: {stands}; only what waits can be")
        self.status = status


class Mailroom:
    """The mailbox and ledger of one stage, with credentials and region of `session` (default: boto3's).

    It needs dynamodb:PutItem on the mailbox, GetItem and Query on mailbox and ledger; to cancel UpdateItem on
    the ledger; and for items over 400 KB and for attachments' content s3:PutObject on the payload bucket,
    whose name is made from the account's number unless `payload_bucket` gives it. `workers` is how many puts
    `send_many` may have under way.

    `mailbox_days` is for how long an item stays in the mailbox that has no ttl of its own, counted from its
    send_at; None: for ever. With less than 15, dispatch refuses items that wait for a send_at. Where the
    stage bounds that, its output MailboxTtlSeconds says it, in seconds.
    `payload_days` is for how long the payload bucket keeps an object: the stage's `retention.payload_days`.
    An item over 400 KB may wait for 15 days less than that.
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
    ) -> None:
        self.stage = stage
        self.workers = workers
        self._session = session or boto3.Session()
        self._payload_bucket = payload_bucket
        # A retried put finds the item that the first one wrote.
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

    @cached_property
    def _bucket(self) -> str:
        """The payload bucket, as the stage's stacks name it."""
        if self._payload_bucket:
            return self._payload_bucket
        account = self._session.client("sts", config=self._config).get_caller_identity()["Account"]
        return f"mailroom-{self.stage}-payloads-{account}-{self._session.region_name}"

    def send(self, item: Mapping[str, Any], *, if_new: bool = True) -> SendResult:
        """Put one item into the mailbox; never raises for what is wrong with it, nor for AWS's errors.

        A mail's attachment may have its `content` as bytes, beside its `filename`, in place of a `ref`: it is
        put into the payload bucket first.

        `if_new=False` replaces what stands under its key. Dispatch reads new items alone, so that this is
        heeded only where the message waits for a send_at that was more than 15 minutes ahead, and not before
        that old time comes: then the item counts as it stands there, and waits again where its send_at is
        later. An earlier send_at comes too late. What waited for less goes as it was, and what was sent is
        not sent again.
        """
        if fault := _fault(item):
            return SendResult(str(item.get("id")), str(item.get("event_type")), "refused", str(fault))
        try:
            item = self._attached(item)
        except (ClientError, BotoCoreError) as error:
            return SendResult(item["id"], item["event_type"], "failed", said(error))
        written = self._writer.put(item, if_new=if_new)
        return SendResult(item["id"], item["event_type"], written.state, written.error)

    def entry(self, item: Mapping[str, Any]) -> "TransactWriteItemTypeDef":
        """The message as one entry of your own `TransactWriteItems`: it is put if your transaction commits,
        and only then. docs/transactions.md has examples, and what a cancelled transaction answers.

            boto3.client("dynamodb").transact_write_items(TransactItems=[order, mailroom.entry(confirmation)])

        Its shape is the low-level client's. It needs dynamodb:PutItem on the mailbox, as `send` does. Content
        over 400 KB and attachments' `content` are put into the payload bucket now, whatever becomes of the
        transaction. Raises `Invalid`, whose `field` is at fault, for what can never be put, and botocore's
        errors.
        """
        if fault := _fault(item):
            raise fault
        return self._writer.entry(self._attached(item))

    def _attached(self, item: Mapping[str, Any]) -> Mapping[str, Any]:
        """The item, with each attachment's `content` in the payload bucket and named by its `ref`."""
        attachments = item.get("attachments")
        if not isinstance(attachments, list):
            return item
        return {**item, "attachments": [self._kept(each) for each in attachments]}

    def _kept(self, attachment: Any) -> Any:
        if not isinstance(attachment, Mapping) or not isinstance(attachment.get("content"), bytes):
            return attachment
        # Named by its content, so that the same item, sent again, is the same item.
        key = f"attachments/{hashlib.sha256(attachment['content']).hexdigest()}"
        self._s3.put_object(Bucket=self._bucket, Key=key, Body=attachment["content"])
        rest = {name: value for name, value in attachment.items() if name != "content"}
        return {"filename": "attachment", **rest, "ref": f"s3://{self._bucket}/{key}"}

    def send_many(
        self,
        items: Iterable[Mapping[str, Any]],
        progress: Callable[[int], None] | None = None,
        *,
        on_result: Callable[[SendResult], None] | None = None,
    ) -> Summary:
        """Put all of an iterable of any length, a few at a time and never all of it in memory.

        `progress` is told after each how many are done; `on_result` hears of each, in the items' order. Both
        are called here, never in another thread. Items that failed are in the summary: send them again.

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
        """Where a message is; None: there is no such message.

        `ready`: it is in the mailbox, and the ledger does not know it, so nobody has claimed it yet. The
        ledger forgets a message after `retention.ledger_days` (90 or more): one that was put before that may
        have been sent, and is `ready` again, or `forgotten` where its `send_at`, `expires_at` or `ttl` says
        that it is so old. Neither is a reason to send it again.

        Raises Ambiguous where several channels have messages with that id and none was named, and botocore's
        errors.
        """
        found = self._reader.find(id, event_type)
        if len(found) > 1:
            raise Ambiguous(id, [each.event_type for each in found])
        return found[0] if found else None

    def cancel(self, id: str, event_type: str | None = None) -> MessageStatus:  # noqa: A002
        """Take back a message that waits for its time; once more changes nothing. Returns where it is then.

        The ledger's condition and a sender's claim exclude each other, so a message that is cancelled is not
        sent. Raises NotCancelled where there is no such message, or it waits for nothing; Ambiguous and
        botocore's errors as `status`.
        """
        found = self.status(id, event_type)
        if found is not None and found.status in (READY, "scheduled"):
            self._withdraw(found)
            found = self.status(id, found.event_type)
        if found is None or found.status != "cancelled":
            raise NotCancelled(id, found)
        return found

    def _withdraw(self, found: MessageStatus) -> None:
        item = self._reader.item(found.id, found.event_type) or {}
        callback_url = item.get("callback_url")
        due = epoch(found.scheduled_for) if found.scheduled_for else 0.0
        # What is due goes to its sender at once; what waits with its content does so whatever its item says.
        if item and due <= time.time() and not found.waits_with_content:
            return
        Withdrawals(self._dynamodb, self._ledger, REMEMBERED_SECONDS, time.time).withdraw(
            found.id,
            found.event_type,
            to=found.to,
            callback_url=callback_url if isinstance(callback_url, str) else None,
            due=due,
        )


def _fault(item: Mapping[str, Any]) -> Invalid | None:
    """What is wrong with an item's key; None: nothing."""
    for name in ("id", "event_type"):
        value = item.get(name)
        if not isinstance(value, str) or not value:
            return Invalid(name, "is missing, or no string; give one")
    length = len(item["id"].encode("utf-8", "replace"))
    if length > MAX_ID_BYTES:
        return Invalid("id", f"is {length} bytes long; use at most {MAX_ID_BYTES}")
    return None
