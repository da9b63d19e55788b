"""Collect: reads a page of an audience, and queues its people for compose and the next page for collect.

An invocation never has more than a page of people, however large the audience is. Each message leads to the
next, so Lambda's loop detection is off for this function.
"""

import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec
from botocore.exceptions import ClientError
from msgspec import Struct, structs

from mailroom.aws import clients, queues
from mailroom.aws.queues import Entry
from mailroom.budget import Budget
from mailroom.campaigns.audience import Audience, Connections, Cursor, Fault, Page, Recipient
from mailroom.campaigns.definition import Definition, Modules, deployed, read
from mailroom.campaigns.drafts import expiry
from mailroom.campaigns.queue_bodies import Chunk, Next, PageRequest, Start, as_json, chunked, collect_body
from mailroom.campaigns.room import LOOK_AGAIN_SECONDS, PageRoom
from mailroom.campaigns.runs import (
    BY_ITSELF,
    MAX_FAULTS,
    PageClaim,
    PageOutOfSequence,
    Passed,
    Run,
    Runs,
    Unsent,
    checked,
)
from mailroom.campaigns.sources import audience_of, databases_of
from mailroom.clock import Clock, iso
from mailroom.content.versions import CurrentVersions, versions_of
from mailroom.environment import CollectSettings, DayLimit
from mailroom.errors import ClaimLost, ConnectError, Invalid, Malformed
from mailroom.ledger.claims import InProgress
from mailroom.message.message import encode
from mailroom.search.campaign_tallies import Tallies
from mailroom.telemetry import count, logger

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

Wait = float | None
"""Seconds until the record should come back, or None for a record that is done."""
LOGGED_FAULTS = 20
GO_ON_SECONDS = 60
"""Seconds from the new start of a stopped run to its first page. By then each worker that has read that the
run is stopped has cancelled its message, so that the run finds the message and sends it."""
CLAIM_AGAIN_SECONDS = 1
"""Seconds until the record of a page whose claim was lost comes back."""
LOOK_BACK = 0
"""Page of the message by which a run looks back at what became of its first page."""
LOOKS = 6
"""Maximum number of further looks back at a first page whose messages are under way. The first waits
FIRST_LOOK_SECONDS, and each one twice as long as the one before, so that the last is a quarter of an hour
after the page."""
FIRST_LOOK_SECONDS = 15
Source = Callable[[Definition], Audience]


class Collector(Struct, frozen=True):
    """Works for the collect queue."""

    campaigns: Mapping[str, Definition]
    source: Source
    """Function that returns the audience of a campaign."""
    runs: Runs
    sqs: "SQSClient"
    queue_url: str
    audience_queue_url: str
    databases: Connections | None = None
    rooms: Mapping[str, PageRoom] = MappingProxyType({})
    """Rooms of the channels with a limit of the day."""
    versions: CurrentVersions | None = None
    """Versions of templates, or None for a stage without published templates."""
    tallies: Tallies | None = None
    """Counts of how a run's messages ended, or None for a stage without search, which counts them."""
    clock: Clock = time.time

    @classmethod
    def of(cls, settings: CollectSettings) -> "Collector":
        """Make the collector of a function with these settings."""
        runs = Runs(
            clients.dynamodb(),
            settings.runs_table,
            lease=settings.lease_seconds,
            ttl=settings.run_ttl_seconds,
        )
        return cls(
            read(Path(settings.campaigns)),
            partial(audience_of, Modules()),
            runs,
            sqs=clients.sqs(),
            queue_url=settings.queue_url,
            audience_queue_url=settings.audience_queue_url,
            databases=databases_of(settings.databases),
            rooms={name: _room(settings, name, limit) for name, limit in settings.limits.items()},
            versions=versions_of(settings.templates_bucket),
            tallies=Tallies(clients.dynamodb(), settings.search_table) if settings.search_table else None,
        )

    def handle(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Handle a batch. Returns the records that must come back."""
        back, waits = [], []
        for record in event["Records"]:
            try:
                wait = self._take(record)
            except Exception:  # noqa: BLE001 - logged; the queue keeps the record until its visibility ends
                logger.exception("page not collected; it goes back to the queue")
                count("CollectErrors")
                back.append(record["messageId"])
                continue
            if wait is not None:
                back.append(record["messageId"])
                waits.append((record["receiptHandle"], wait))
        queues.set_visibility(self.sqs, self.queue_url, waits)
        return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in back]}

    def dry_run(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return a page for an operator's dry run: the number of people, the faults of other entries, the
        cursor of the next page, and a few people. Writes and queues no data. Raises Invalid for a campaign
        that is not deployed, and Malformed for a bad run."""
        wanted_page = msgspec.convert(request, PageRequest)
        definition = deployed(self.campaigns, wanted_page.campaign)
        page = Page(
            wanted_page.cursor,
            definition.page_size,
            checked(wanted_page.run),
            wanted_page.scheduled_at,
            self.databases,
        )
        chunks, faults, cursor = self._read(definition, page)
        people = [person for chunk in chunks for person in chunk]
        answer = {
            "recipients": len(people),
            "cursor": cursor,
            "refused": len(faults),
            "faults": [str(fault) for fault in faults[:MAX_FAULTS]],
            "samples": [structs.asdict(person) for person in people[: wanted_page.samples]],
        }
        return as_json(answer)

    def _read(self, definition: Definition, page: Page) -> tuple[list[list[Recipient]], list[Fault], Cursor]:
        """Return the people of a page in chunks, the faults of other entries, and the next page's cursor."""
        answer = self.source(definition).page(page)
        chunks, too_large = chunked(answer.recipients, definition.recipients_per_message)
        return chunks, [*answer.faults, *too_large], answer.cursor

    def _take(self, record: Mapping[str, Any]) -> Wait:
        try:
            request = collect_body(record["body"])
            definition = deployed(self.campaigns, request.campaign)
        except (Malformed, Invalid) as fault:
            return self._dead("not a page of a campaign", reason=str(fault), message_id=record["messageId"])
        logger.append_keys(campaign=request.campaign, run=request.run)
        try:
            if isinstance(request, Next) and request.page == LOOK_BACK:
                return self._look_back(definition, request)
            return self._requested(definition, request)
        finally:
            logger.remove_keys(["campaign", "run"])

    def _requested(self, definition: Definition, request: Start | Next) -> Wait:
        if isinstance(request, Start):
            first = self._begun(definition, request)
            if first is None:
                return None
            request = first
        match self.runs.claim(request.campaign, request.run, request.start, request.page):
            case PageClaim() as claim:
                return self._claimed(definition, claim, request)
            case InProgress(seconds):
                return seconds + 1
            case Unsent(run, cursor):
                # The worker that collected this page crashed before it queued the next page.
                self._send_next(run, request.page + 1, cursor)
            case PageOutOfSequence():
                return self._dead("no run leads up to this page", page=request.page)
            case Passed(reason):
                logger.info("page is over", page=request.page, why=reason)
        return None

    def _begun(self, definition: Definition, start: Start) -> Next | None:
        """Begin a run, and return its first page. Returns None for a stopped run, whose first page waits."""
        templates = None if self.versions is None else self.versions.of(definition.channel)
        of_start = (start.campaign, start.run, start.start)
        if self.runs.begin(*of_start, start.scheduled_at, start.by, templates):
            logger.info("run begins")
            count("RunsBegun")
        run = self.runs.read(start.campaign, start.run)
        if run is None or not run.stopped_by or run.start != start.start:
            return Next(*of_start, 1)
        self._send_next(run, 1, None, GO_ON_SECONDS)
        return None

    def _claimed(self, definition: Definition, claim: PageClaim, request: Next) -> Wait:
        try:
            self._collect(definition, claim, request)
        except ClaimLost as lost:
            # The run was stopped or started anew meanwhile, which is no error. The next claim reads its state.
            logger.info("page is not passed on", page=request.page, reason=str(lost))
            return CLAIM_AGAIN_SECONDS
        except Invalid as fault:
            # The fault is in the campaign and not in an entry, so a person has to correct the campaign.
            self.runs.release(claim, str(fault))
            return self._dead("page cannot be collected", page=request.page, reason=str(fault))
        except Exception as error:
            self.runs.release(claim, f"page {request.page}: {_reason(error)}; see the log of collect")
            raise
        return None

    def _collect(self, definition: Definition, claim: PageClaim, request: Next) -> None:
        run = claim.run
        expires = expiry(definition, run.scheduled_at)
        if expires is not None and expires <= self.clock():
            trouble = f"its messages are not sent any more: they expired at {iso(expires)}"
            self.runs.release(claim, trouble, "expired")
            logger.warning("run has expired", page=request.page)
            return
        if trouble := self._obstacle(definition, run):
            self._wait(claim, request, trouble)
            return
        if request.page > definition.max_pages:
            raise Invalid("max_pages", f"{definition.max_pages} pages were collected; raise it to go on")
        page = Page(request.cursor, definition.page_size, run.run, run.scheduled_at, self.databases)
        chunks, faults, cursor = self._read(definition, page)
        for fault in faults[:LOGGED_FAULTS]:
            logger.warning("no message for an entry of the audience", reason=str(fault))
        if faults:
            count("AudienceRefused", len(faults))
        self._send_people(run, chunks)
        if request.page == 1 and len(run.starts) == 1 and self.tallies is not None:
            # Only the first start of a run checks its messages later. After another start, messages that
            # failed before would be counted, although they prove nothing about the present campaign.
            self._send_next(run, LOOK_BACK, 0, FIRST_LOOK_SECONDS)
        # The cursor is stored before the next page is queued. If the next page is not queued, the next
        # delivery of this page queues it.
        people = sum(map(len, chunks))
        self.runs.advance(claim, cursor, people, faults)
        count("Collected", people)
        if cursor is None:
            logger.info("audience is collected", recipients=run.recipients + people)
        else:
            self._send_next(run, request.page + 1, cursor)

    def _look_back(self, definition: Definition, request: Next) -> Wait:
        """Stop the run if each message of its first page has failed. Then the campaign is at fault, and the
        record becomes a dead letter, whose alarm tells people."""
        run = self.runs.read(request.campaign, request.run)
        if self.tallies is None or run is None or run.start != request.start:
            return None
        if run.state == "stopped":
            # An operator stopped the run, or an earlier delivery of this record, which fails until it is a
            # dead letter.
            return self._dead("run is stopped", reason=run.trouble) if run.trouble else None
        counts = self.tallies.of_run(run.campaign, run.run, run.begun_at)
        failed = counts.pop("failed", 0)
        if counts.keys() - {"suppressed", "scheduled"}:
            return None  # at least one message was sent
        without = run.opted_out + run.left_out + run.failed + run.conflicts
        if failed and failed + without >= min(run.recipients, definition.page_size):
            trouble = f"each of its first {failed} messages has failed; mailroom failures says why"
            self.runs.stop(run.campaign, run.run, BY_ITSELF, trouble=trouble)
            return self._dead("run is stopped", reason=trouble)
        if request.cursor < LOOKS:
            # While the run is paused, its messages get no outcome, so this check does not count.
            looks = request.cursor + (not run.paused)
            self._send_next(run, LOOK_BACK, looks, FIRST_LOOK_SECONDS << request.cursor)
        return None

    def _obstacle(self, definition: Definition, run: Run) -> str:
        """Return the reason why a page of the run may not be collected yet; empty if it may."""
        if run.paused:
            return "its run was paused"
        room = self.rooms.get(definition.channel)
        again = None if room is None else room.again(definition, self.clock())
        if again is None:
            return ""
        count("PagesWaitForDay")
        minute = f"{iso(again)[:16]}Z"
        return f"it waits for the day's quota of {definition.channel}, until about {minute}"

    def _wait(self, claim: PageClaim, request: Next, trouble: str) -> None:
        """Let a page wait that may not be collected yet: as a new message, so that no receive counts."""
        self._send_next(claim.run, request.page, request.cursor, LOOK_AGAIN_SECONDS)
        self.runs.release(claim, trouble)
        logger.info("the page is not collected yet", page=request.page, reason=trouble)

    def _send_people(self, run: Run, chunks: list[list[Recipient]]) -> None:
        bodies = [encode(Chunk(run.campaign, run.run, run.scheduled_at, chunk)) for chunk in chunks]
        # The message group makes the queue fair, so that a large campaign does not delay a small one.
        entries = [Entry(str(number), body, group=run.campaign) for number, body in enumerate(bodies)]
        if failed := queues.send(self.sqs, self.audience_queue_url, entries):
            raise OSError(f"SQS did not take {len(failed)} of {len(entries)} messages; the page comes again")

    def _send_next(self, run: Run, page: int, cursor: Any, delay: int = 0) -> None:
        body = encode(Next(run.campaign, run.run, run.start, page, cursor))
        if queues.send(self.sqs, self.queue_url, [Entry("next", body, delay=delay)]):
            raise OSError("SQS did not take the next page's message")

    def _dead(self, sentence: str, **details: object) -> float:
        """Log a fault that time does not mend; the record becomes a dead letter at once."""
        logger.error(sentence, extra=details)
        count("CollectMalformed")
        return queues.AT_ONCE


def _room(settings: CollectSettings, channel: str, limit: DayLimit) -> PageRoom:
    budget = Budget(clients.dynamodb(), settings.budgets_table, channel, limit.per_day, limit.reserve)
    return PageRoom(budget, clients.sqs(), limit.queue_url, settings.audience_queue_url)


def _reason(error: Exception) -> str:
    """Return the text of an error that an operator may read: sentences of ours and codes of AWS. Other errors
    are named by their class, because their sentences may quote a query."""
    if isinstance(error, ClientError):
        code, call = error.response["Error"]["Code"], error.operation_name
        return f"AWS refused {call} ({code}): let collect do that, or correct the name in campaign.toml"
    if isinstance(error, (ConnectError, LookupError)) and not isinstance(error, KeyError):
        return str(error)
    return type(error).__name__
