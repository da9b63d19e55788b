"""Function `compose`: puts one item into the mailbox for each person of a campaign, even if a chunk is
composed repeatedly."""

import math
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct, structs

from mailroom.aws import clients, queues
from mailroom.aws.queues import Entry
from mailroom.campaigns.definition import Definition, Modules, deployed, read
from mailroom.campaigns.drafts import Draft, Drafter, expiry
from mailroom.campaigns.queue_bodies import Chunk, as_json, chunk_of
from mailroom.campaigns.runs import Run, Runs
from mailroom.campaigns.sources import databases_of
from mailroom.channels.contracts import contracts_of
from mailroom.clock import Clock
from mailroom.content.versions import DEPLOYED, unbound
from mailroom.environment import COMPOSE_KEPT_BACK_SECONDS, ComposeSettings
from mailroom.errors import Invalid, Malformed, Unfinished, UnknownRun
from mailroom.ledger.ledger import Ledger
from mailroom.ledger.run_states import REASON, STOPPED
from mailroom.mailbox import MailboxWriter, PutState
from mailroom.message.message import Key, encode, parse
from mailroom.recipients.choices import Preferences
from mailroom.telemetry import count, logger

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

_PRESENT = ("accepted", "existed", "conflict")
"""Results of a put after which the item is in the mailbox. Even a message whose put was `accepted` may have
been cancelled when the run was stopped: its earlier item in the mailbox may have expired since."""
PUTS_AT_ONCE = 8
"""Number of concurrent puts, because DynamoDB does not support batches of conditional puts."""
_METRICS = {
    "composed": "Composed",
    "existed": "ComposedBefore",
    "conflicts": "ComposeConflicts",
    "opted_out": "OptedOut",
    "left_out": "LeftOut",
    "failed": "ComposeFailed",
    "expired": "ComposeExpired",
}


class Composer(Struct, frozen=True):
    """Handler of the audience queue's records."""

    campaigns: Mapping[str, Definition]
    drafter: Drafter
    mailbox: MailboxWriter
    ledger: Ledger
    runs: Runs
    sqs: "SQSClient"
    queue_url: str
    queues: Mapping[str, str]
    """URLs of the bulk lanes' queues, by channel."""
    puts_at_once: int = PUTS_AT_ONCE
    clock: Clock = time.time

    @classmethod
    def of(cls, settings: ComposeSettings) -> "Composer":
        """Build the composer from the settings of the function."""
        drafter = Drafter(
            Modules(),
            Preferences.of(settings.preferences_table),
            contracts_of(settings.default_region),
            databases_of(settings.databases),
        )
        return cls(
            read(Path(settings.campaigns)),
            drafter,
            mailbox=MailboxWriter(clients.dynamodb(), settings.mailbox_table, settings.mailbox_ttl_seconds),
            ledger=Ledger.of(settings),
            runs=Runs(clients.dynamodb(), settings.runs_table, ttl=settings.run_ttl_seconds),
            sqs=clients.sqs(),
            queue_url=settings.queue_url,
            queues=settings.queues,
        )

    def handle(self, event: Mapping[str, Any], remaining: Callable[[], int]) -> dict[str, Any]:
        """Handle a batch. Returns the records that the queue must deliver again, as batch item failures.
        `remaining` is Lambda's `get_remaining_time_in_millis`."""
        back: list[str] = []
        dead: list[tuple[str, float]] = []
        for record in event["Records"]:
            try:
                chunk = chunk_of(record["body"])
                definition = deployed(self.campaigns, chunk.campaign)
                composed = self._composed(definition, chunk, remaining)
            except (Malformed, Invalid) as fault:
                logger.error(
                    "not composed, but a dead letter", reason=str(fault), message_id=record["messageId"]
                )
                count("ComposeMalformed")
                dead.append((record["receiptHandle"], queues.AT_ONCE))
                back.append(record["messageId"])
                continue
            if not composed:
                back.append(record["messageId"])
        queues.set_visibility(self.sqs, self.queue_url, dead)
        return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in back]}

    def dry_run(self, request: Mapping[str, Any], remaining: Callable[[], int]) -> dict[str, Any]:
        """Return the items for an operator's dry run. It also returns the keys of people who have opted out,
        for whom the campaign's module composes no message, or for whom the module fails. Puts no item. Raises
        Invalid for a campaign that is not deployed."""
        chunk = msgspec.convert(request, Chunk)
        drafted = self.drafter.drafts(deployed(self.campaigns, chunk.campaign), chunk, remaining)
        answer = {
            "items": [draft.item for draft in drafted.drafts if draft.blocked is None],
            "opted_out": [draft.key for draft in drafted.drafts if draft.blocked is not None],
            "left_out": drafted.left_out,
            "failed": drafted.failed,
        }
        return as_json(answer)

    def _composed(self, definition: Definition, chunk: Chunk, remaining: Callable[[], int]) -> bool:
        """Compose a chunk, and return whether it is done. Raises only UnknownRun; other errors are logged,
        because they must not end the batch."""
        logger.append_keys(campaign=chunk.campaign, run=chunk.run)
        try:
            self._compose(definition, chunk, remaining)
        except UnknownRun:
            raise
        except Exception:  # noqa: BLE001 - logged; the queue keeps the record until its visibility ends
            logger.exception("not composed; it goes back to the queue")
            count("ComposeErrors")
            return False
        finally:
            logger.remove_keys(["campaign", "run"])
        return True

    def _compose(self, definition: Definition, chunk: Chunk, remaining: Callable[[], int]) -> None:
        expires = expiry(definition, chunk.scheduled_at)
        if expires is not None and expires <= self.clock():
            logger.warning("the messages of a chunk have expired", recipients=len(chunk.recipients))
            self._count(chunk, Counter(expired=len(chunk.recipients)))
            return
        run = self.runs.read(chunk.campaign, chunk.run)
        if run is None:
            raise UnknownRun(
                f"run {chunk.run} of {chunk.campaign} is unknown; use mailroom restore campaign-runs: a "
                "new start would create other ids, and send to all people again"
            )
        if run.state == "stopped":
            logger.info("the run is stopped", recipients=len(chunk.recipients))
            return
        if remaining() < COMPOSE_KEPT_BACK_SECONDS * 1000:
            raise Unfinished("the remaining time is too short; the chunk is retried")
        drafted = self.drafter.drafts(definition, chunk, remaining)
        tally = Counter(left_out=len(drafted.left_out), failed=len(drafted.failed))
        drafts = []
        for draft in (self._of_run(draft, run) for draft in drafted.drafts):
            if (blocked := draft.blocked) is None:
                drafts.append(draft)
                continue
            # The reason is recorded in the ledger, unless the message was sent before.
            tally["opted_out"] += 1
            item = draft.item
            to = item.get("to") or item.get("email")
            key = Key(item["id"], item["event_type"])
            self.ledger.leave_out(key, to, item.get("topic"), blocked.code, blocked.sentence)
        self._put(drafts, run, tally)
        self._count(chunk, tally)
        if tally["failed"]:
            raise Unfinished(f"{tally['failed']} of {len(chunk.recipients)} were not composed or not put")

    def _of_run(self, draft: Draft, run: Run) -> Draft:
        """Return the draft with the id that the run gives the person's message, and with the version of its
        template at the start of the run."""
        draft = structs.replace(draft, item={**draft.item, "id": run.id_of(draft.key)})
        if run.templates is None:
            return draft
        try:
            message = parse(draft.item, self.drafter.contracts)
        except Invalid:
            return draft  # dispatch will reject the item, and record the reason
        name = unbound(message)
        if name is None:
            return draft
        version = run.templates.get(name, DEPLOYED)
        return structs.replace(draft, item={**draft.item, "template_version": version})

    def _count(self, chunk: Chunk, tally: Counter[str]) -> None:
        self.runs.count(chunk.campaign, chunk.run, tally)
        for name, value in tally.items():
            if value:
                count(_METRICS[name], value)

    def _put(self, drafts: Sequence[Draft], run: Run, tally: Counter[str]) -> None:
        """Put the items into the mailbox. An item that does not fit into DynamoDB counts as failed and is
        retried, like an item that AWS did not accept. The campaign is at fault, so no outcome is written into
        the ledger."""
        results = self.mailbox.put_all([draft.item for draft in drafts], self.puts_at_once)
        states = {draft.key: result.state for draft, result in zip(drafts, results, strict=True)}
        if run.stopped_by:
            states |= self._resume(run, [draft for draft in drafts if states[draft.key] in _PRESENT], states)
        for draft, result in zip(drafts, results, strict=True):
            match states[draft.key]:
                case "accepted":
                    tally["composed"] += 1
                case "existed":
                    tally["existed"] += 1
                case "conflict":
                    logger.error("not put, because another message has its id", key=draft.key)
                    tally["conflicts"] += 1
                case _:
                    logger.warning("not put into the mailbox", key=draft.key, reason=result.error)
                    tally["failed"] += 1

    def _resume(
        self, run: Run, drafts: Sequence[Draft], states: Mapping[str, PutState]
    ) -> dict[str, PutState]:
        """Reopen and queue the messages that were cancelled when the run was stopped, with the content of
        this start. Returns their new states by key. After a crash, the next try queues the messages that were
        reopened but not queued. Raises Unfinished."""
        keys = {draft.key: Key(draft.item["id"], draft.item["event_type"]) for draft in drafts}
        items = self.ledger.items(keys.values())
        resumed: dict[str, PutState] = {}
        entries = defaultdict[str, list[Entry]](list)
        for draft in drafts:
            key = keys[draft.key]
            try:
                message = parse(draft.item, self.drafter.contracts)
            except Invalid as fault:
                # The message stays cancelled until a later start, because an invalid message must not be
                # queued.
                logger.error("the composed message is invalid", key=draft.key, field=fault.field)
                continue
            changed = states[draft.key] == "conflict"
            attempt = self._next_attempt(key, items.get(key, {}), run, changed=changed)
            if attempt is None:
                continue
            if changed and self.mailbox.put(draft.item, if_new=False).error:
                raise Unfinished("a reopened message was not put; the chunk is retried")
            body = encode({**draft.item, "attempt": attempt})
            attributes = {"channel": key.event_type, "type": message.kind}
            wait = math.ceil((message.due() or 0.0) - self.clock())
            # SQS limits the delay. A message with a longer wait is queued without a delay, and its worker
            # holds it.
            delay = wait if 0 < wait <= queues.MAX_DELAY_SECONDS else 0
            entry = Entry(str(len(resumed)), body, attributes, delay, message.group)
            entries[self.queues[key.event_type]].append(entry)
            resumed[draft.key] = "existed"
        for url, batch in entries.items():
            if queues.send(self.sqs, url, batch):
                raise Unfinished("SQS did not accept all reopened messages; the chunk is retried")
        return resumed

    def _next_attempt(self, key: Key, item: Mapping[str, Any], run: Run, *, changed: bool) -> int | None:
        """Reopen a message that was cancelled when the run was stopped, or that waits with other content
        (`changed`). Returns the number of its next attempt, or None for any other message. If a message was
        reopened before and is not claimed, it may be missing from its queue, so its attempt is returned as
        well."""
        status, code = item.get("status"), item.get("error", {}).get("code")
        if changed and status == "scheduled" and self.ledger.cancel(key, REASON, code=STOPPED):
            item = {**item, "status": "cancelled", "attempts": int(item.get("attempts", 0)) + 1}
            return self.ledger.reopen(key, item, run.started_by)
        if status == "cancelled" and code == STOPPED:
            return self.ledger.reopen(key, item, run.started_by)
        if status == "retrying" and "startedAt" not in item:
            return int(item["attempts"]) + 1
        return None
