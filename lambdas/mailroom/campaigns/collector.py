"""Function `collect`: reads a page of an audience, queues its people for the function `compose`, and queues
the next page for itself.

An invocation reads only one page, however large the audience is. The function sends messages to its own
queue, so Lambda's recursive loop detection is off for it.
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
"""Seconds until the queue should deliver the record again, or None for a record that is done."""
LOGGED_FAULTS = 20
CLAIM_AGAIN_SECONDS = 1
"""Seconds until the queue delivers the record of a page again whose claim was lost."""
LOOK_BACK = 0
"""Page number in the queue message by which `collect` checks later whether the messages of a run's first page
have failed."""
LOOKS = 6
"""Maximum number of further checks of a first page whose messages still lack an outcome. The first check is
FIRST_LOOK_SECONDS after the page, and the second is as many seconds after the first. Then the wait doubles
each time, so that the last check is about a quarter of an hour after the page."""
FIRST_LOOK_SECONDS = 15
Source = Callable[[Definition], Audience]


class Collector(Struct, frozen=True):
    """Handler of the collect queue's records."""

    campaigns: Mapping[str, Definition]
    source: Source
    """Function that returns the audience for the definition of a campaign."""
    runs: Runs
    sqs: "SQSClient"
    queue_url: str
    audience_queue_url: str
    databases: Connections | None = None
    rooms: Mapping[str, PageRoom] = MappingProxyType({})
    """Checks of the daily budget, for the channels with a daily limit."""
    versions: CurrentVersions | None = None
    """Versions of templates, or None for a stage without published templates."""
    tallies: Tallies | None = None
    """Counts of a run's messages by status, or None for a stage without search, because only the search index
    has them."""
    clock: Clock = time.time

    @classmethod
    def of(cls, settings: CollectSettings) -> "Collector":
        """Build the collector from the settings of the function."""
        runs = Runs(clients.dynamodb(), settings.runs_table, lease=settings.lease_seconds)
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
        """Handle a batch. Returns the records that the queue must deliver again, as batch item failures."""
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
        """Return a page for an operator's dry run: the number of people, the faults of invalid entries, the
        cursor of the next page, and a few people as samples. Writes and queues no data. Raises Invalid for a
        campaign that is not deployed, and Malformed for an invalid name of a run."""
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
        """Return the people of a page in chunks, the faults of invalid entries, and the next page's
        cursor."""
        answer = self.source(definition).page(page)
        chunks, too_large = chunked(answer.recipients, definition.recipients_per_message)
        return chunks, [*answer.faults, *too_large], answer.cursor

    def _take(self, record: Mapping[str, Any]) -> Wait:
        try:
            request = collect_body(record["body"])
            definition = deployed(self.campaigns, request.campaign)
        except (Malformed, Invalid) as fault:
            return self._dead("not a request for a page", reason=str(fault), message_id=record["messageId"])
        logger.append_keys(campaign=request.campaign, run=request.run)
        try:
            if isinstance(request, Next) and request.page == LOOK_BACK:
                return self._look_back(definition, request)
            return self._requested(definition, request)
        finally:
            logger.remove_keys(["campaign", "run"])

    def _requested(self, definition: Definition, request: Start | Next) -> Wait:
        if isinstance(request, Start):
            request = self._begun(definition, request)
        match self.runs.claim(request.campaign, request.run, request.start, request.page):
            case PageClaim() as claim:
                return self._claimed(definition, claim, request)
            case InProgress(seconds):
                return seconds + 1
            case Unsent(run, cursor):
                # The worker that collected this page crashed before it queued the next page.
                self._send_next(run, request.page + 1, cursor)
            case PageOutOfSequence():
                return self._dead("the page before this one was not collected", page=request.page)
            case Passed(reason):
                logger.info("page needs no further work", page=request.page, why=reason)
        return None

    def _begun(self, definition: Definition, start: Start) -> Next:
        """Begin a run, and return the request for its first page."""
        templates = None if self.versions is None else self.versions.of(definition.channel)
        of_start = (start.campaign, start.run, start.start)
        if self.runs.begin(*of_start, start.scheduled_at, templates):
            logger.info("run begins")
            count("RunsBegun")
        return Next(*of_start, 1)

    def _claimed(self, definition: Definition, claim: PageClaim, request: Next) -> Wait:
        try:
            self._collect(definition, claim, request)
        except ClaimLost as lost:
            # This is not an error: the run was stopped or restarted meanwhile, or another worker has claimed
            # the page. The next claim reads the run's state.
            logger.info("page is left to others, or its run stopped", page=request.page, reason=str(lost))
            return CLAIM_AGAIN_SECONDS
        except Invalid as fault:
            # The campaign is at fault and not an entry, so a person has to correct the campaign.
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
        again = None if run.paused else self._again(definition)
        if run.paused or again is not None:
            # The page is queued as a new message, so that the wait does not use up a receive.
            self._send_next(run, request.page, request.cursor, LOOK_AGAIN_SECONDS)
            self.runs.release(claim, "", until=again)
            logger.info("the page is not collected yet", page=request.page, until=again)
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
            # Only the first start of a run checks its messages later. After a restart, messages that had
            # failed before would be counted, although they prove nothing about the corrected campaign.
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
        """Stop the run if each message of its first page has failed, because then the campaign is at fault.
        The record becomes a dead letter, which sets off an alarm."""
        run = self.runs.read(request.campaign, request.run)
        if self.tallies is None or run is None or run.start != request.start:
            return None
        if run.state == "stopped":
            # The run was stopped by an operator, or by an earlier delivery of this record. In the second case
            # the record must still become a dead letter.
            return self._dead("run is stopped", reason=run.trouble) if run.trouble else None
        counts = self.tallies.of_run(run.campaign, run.run, run.begun_at)
        failed = counts.pop("failed", 0)
        if counts.keys() - {"suppressed", "scheduled"}:
            return None  # at least one message was sent
        without = run.opted_out + run.left_out + run.failed + run.conflicts
        if failed and failed + without >= min(run.recipients, definition.page_size):
            trouble = (
                f"each of its first {failed} messages has failed; see `mailroom messages list --reasons`"
            )
            self.runs.stop(run.campaign, run.run, trouble=trouble)
            return self._dead("run is stopped", reason=trouble)
        if request.cursor < LOOKS:
            # While the run is paused, its messages get no outcome, so this check is not counted.
            looks = request.cursor + (not run.paused)
            self._send_next(run, LOOK_BACK, looks, FIRST_LOOK_SECONDS << request.cursor)
        return None

    def _again(self, definition: Definition) -> float | None:
        """Return the approximate time (epoch seconds) at which the daily budget has capacity for the next
        page, or None if the page may be collected at once."""
        room = self.rooms.get(definition.channel)
        again = None if room is None else room.again(definition, self.clock())
        if again is not None:
            count("PagesWaitForDay")
        return again

    def _send_people(self, run: Run, chunks: list[list[Recipient]]) -> None:
        # The claim of the page requires that its start is the latest, so `valid_from` is the start's number.
        bodies = [
            encode(Chunk(run.campaign, run.run, run.scheduled_at, run.valid_from, chunk)) for chunk in chunks
        ]
        # The message group makes the queue fair, so that a large campaign does not delay a small one.
        entries = [Entry(str(number), body, group=run.campaign) for number, body in enumerate(bodies)]
        if failed := queues.send(self.sqs, self.audience_queue_url, entries):
            raise OSError(f"SQS did not accept {len(failed)} of {len(entries)} messages; the page is retried")

    def _send_next(self, run: Run, page: int, cursor: Any, delay: int = 0) -> None:
        body = encode(Next(run.campaign, run.run, run.start, page, cursor))
        if queues.send(self.sqs, self.queue_url, [Entry("next", body, delay=delay)]):
            raise OSError("SQS did not accept the message for the next page")

    def _dead(self, sentence: str, **details: object) -> float:
        """Log a fault that no retry can fix, and return the wait by which the record soon becomes a dead
        letter."""
        logger.error(sentence, extra=details)
        count("CollectMalformed")
        return queues.AT_ONCE


def _room(settings: CollectSettings, channel: str, limit: DayLimit) -> PageRoom:
    budget = Budget(clients.dynamodb(), settings.budgets_table, channel, limit.per_day, limit.reserve)
    return PageRoom(budget, clients.sqs(), limit.queue_url, settings.audience_queue_url)


def _reason(error: Exception) -> str:
    """Return the text of an error for operators. Texts of Mailroom's errors and codes of AWS are quoted. Of
    other errors only the class is named, because their texts may quote a query."""
    if isinstance(error, ClientError):
        code, call = error.response["Error"]["Code"], error.operation_name
        return f"AWS refused {call} ({code}): allow collect to call it, or correct the name in campaign.toml"
    if isinstance(error, (ConnectError, LookupError)) and not isinstance(error, KeyError):
        return str(error)
    return type(error).__name__
