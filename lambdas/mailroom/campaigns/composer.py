"""Function `compose`: puts one item into the mailbox for each person of a campaign, even if a chunk is
composed repeatedly."""

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

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
from mailroom.ledger.items import ERASED_AT
from mailroom.ledger.ledger import Ledger
from mailroom.ledger.run_states import STOPPED
from mailroom.ledger.status_reader import REMEMBERED_SECONDS
from mailroom.mailbox import MailboxWriter, PutResult, in_order
from mailroom.message import CAMPAIGN_START
from mailroom.message.message import CampaignStart, Key, encode, parse
from mailroom.recipients.choices import Preferences
from mailroom.telemetry import count, logger

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

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
            mailbox=MailboxWriter(
                clients.dynamodb(), settings.mailbox_table, settings.mailbox_ttl_seconds, composes=True
            ),
            ledger=Ledger.of(settings),
            runs=Runs(clients.dynamodb(), settings.runs_table),
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
        chunk = msgspec.convert({**request, "start": 0}, Chunk)
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
        run = self._run(chunk)
        if chunk.start < run.valid_from:
            logger.info("the run was stopped or started again", recipients=len(chunk.recipients))
            return
        is_later = len(run.starts) > 1
        if remaining() < COMPOSE_KEPT_BACK_SECONDS * 1000:
            raise Unfinished("the remaining time is too short; the chunk is retried")
        drafted = self.drafter.drafts(definition, chunk, remaining)
        tally = Counter(left_out=len(drafted.left_out), failed=len(drafted.failed))
        drafts = []
        start = CampaignStart(run.campaign, run.run, chunk.start)
        for draft in (self._of_run(draft, run, start) for draft in drafted.drafts):
            if (blocked := draft.blocked) is None:
                drafts.append(draft)
                continue
            # The reason is recorded in the ledger, unless the message was sent before.
            tally["opted_out"] += 1
            item = draft.item
            to = item.get("to") or item.get("email")
            self.ledger.leave_out(_key(draft), to, item.get("topic"), blocked.code, blocked.sentence, start)
        # Messages of an earlier start may be in the mailbox, in queues and in the ledger.
        results = self._restarted(drafts, start) if is_later else self._put(drafts)
        self._tally(drafts, results, tally)
        if not (is_later and tally["failed"]):  # a chunk that comes back is counted when it is done
            self._count(chunk, tally)
        if tally["failed"]:
            raise Unfinished(f"{tally['failed']} of {len(chunk.recipients)} were not composed or not put")

    def _run(self, chunk: Chunk) -> Run:
        """Return the run of a chunk. Raises UnknownRun if it is missing, or if the ledger may have forgotten
        who got messages of its earlier starts."""
        run = self.runs.read(chunk.campaign, chunk.run)
        if run is None:
            raise UnknownRun(
                f"run {chunk.run} of {chunk.campaign} is unknown; use mailroom restore campaign-runs: a "
                "new start would create other ids, and send to all people again"
            )
        if len(run.starts) > 1 and self.clock() > run.begun_at + REMEMBERED_SECONDS:
            raise UnknownRun(
                f"run {chunk.run} of {chunk.campaign} began over {REMEMBERED_SECONDS // 86_400} days ago, so "
                "the ledger may have forgotten who got its messages; start a run of another name"
            )
        return run

    def _of_run(self, draft: Draft, run: Run, start: CampaignStart) -> Draft:
        """Return the draft with the id that the run gives the person's message, with its start, and with the
        version of its template at that start."""
        of_run = {"id": run.id_of(draft.key), CAMPAIGN_START: structs.asdict(start)}
        draft = structs.replace(draft, item={**draft.item, **of_run})
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

    def _put(self, drafts: Sequence[Draft]) -> list[PutResult]:
        return self.mailbox.put_all([draft.item for draft in drafts], self.puts_at_once)

    def _tally(self, drafts: Sequence[Draft], results: Sequence[PutResult], tally: Counter[str]) -> None:
        """Count the results of the puts. An item that does not fit into DynamoDB counts as failed and is
        retried, like an item that AWS did not accept. The campaign is at fault, so no outcome is written into
        the ledger."""
        for draft, result in zip(drafts, results, strict=True):
            match result.state:
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

    def _restarted(self, drafts: Sequence[Draft], start: CampaignStart) -> list[PutResult]:
        """Put the messages of a later start that the people of the present audience still have to get, and
        return the results. After a crash, the next try repeats what may be missing. Raises Unfinished."""
        items = self.ledger.items(_key(draft) for draft in drafts)
        entries: dict[str, list[Entry]] = {url: [] for url in self.queues.values()}

        def restart(draft: Draft) -> PutResult:
            return self._restart(draft, items.get(_key(draft), {}), start, entries)

        results = [*in_order(restart, drafts, self.puts_at_once)]
        for url, batch in entries.items():
            if batch and queues.send(self.sqs, url, batch):
                raise Unfinished("SQS did not accept all messages of a later start; the chunk is retried")
        return results

    def _restart(
        self, draft: Draft, item: Mapping[str, Any], start: CampaignStart, entries: Mapping[str, list[Entry]]
    ) -> PutResult:
        """Put a message of a later start; `item` is its ledger item, or {}. The ledger is written first, so
        that copies from earlier starts are dropped, whether they are received before or after this write.
        `dispatch` queues a new item; an item that replaces another is added to `entries` by its queue."""
        step = _next_step(item, start)
        if step == "leave":
            return PutResult("existed")
        if step == "wait":
            return PutResult("failed", "a worker has its message of an earlier start")
        try:
            message = parse(draft.item, self.drafter.contracts)
        except Invalid:
            # `dispatch` rejects a new item, and records the reason. Any other message stays as it is.
            return self.mailbox.put(draft.item)
        attempt: int | None = int(item.get("attempts", 0)) + 1
        if step == "restart":
            attempt = self.ledger.restart(_key(draft), item, start)
        if attempt is None:
            return PutResult("failed", "its message of an earlier start has changed just now")
        result, queued = self.mailbox.replace({**draft.item, "attempt": attempt})
        if queued is not None:
            attributes = {"channel": message.event_type, "type": message.kind}
            wait = math.ceil((message.due() or 0.0) - self.clock())
            # SQS limits the delay. A message with a longer wait is queued without a delay, and its worker
            # holds it.
            delay = wait if 0 < wait <= queues.MAX_DELAY_SECONDS else 0
            entries[self.queues[message.event_type]].append(
                Entry(draft.key, encode(queued), attributes, delay, message.group)
            )
        return result


def _key(draft: Draft) -> Key:
    return Key(draft.item["id"], draft.item["event_type"])


def _next_step(item: Mapping[str, Any], start: CampaignStart) -> Literal["restart", "queue", "wait", "leave"]:
    """Return what a later start has to do with a message, by its ledger item: prepare its next attempt, only
    queue the attempt that this start has prepared, wait for a worker of an earlier start, or leave it."""
    if not item:
        return "restart"
    latest = item.get(CAMPAIGN_START, {}).get("start", 0)
    if latest > start.start:
        # A copy of this start would be cancelled, and its attempt is that of the later start.
        return "leave"
    is_own = latest == start.start
    if "completedAt" in item:
        is_stopped = item["status"] == "cancelled" and item.get("error", {}).get("code") == STOPPED
        return "restart" if is_stopped and not is_own and ERASED_AT not in item else "leave"
    is_claimed = "startedAt" in item
    if is_own:
        # The attempt may have been prepared before a crash, and then not queued.
        return "queue" if item["status"] == "retrying" and not is_claimed else "leave"
    if is_claimed or "unsettled_tries" in item or "provider_id" in item:
        # An operator decides about a dead letter that may have been sent.
        return "leave" if "dead_lettered_at" in item else "wait"
    return "restart"
