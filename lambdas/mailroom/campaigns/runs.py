"""The table of runs: how far a campaign's runs have come. Every verb is one conditional write.

A page is claimed before it is read, like a message before it is sent: queues deliver twice, and two workers
on one page would each send on the next one, so that there would be two chains of pages from there on.
"""

import hmac
import re
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from secrets import randbelow, token_hex
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Struct, convert, field

from mailroom.aws.dynamo_updates import ConditionFailed, Update, update, values_of
from mailroom.aws.dynamo_values import Sets, Value, image_of, number, plain, string, strings
from mailroom.campaigns.audience import Cursor, Fault
from mailroom.clock import Clock, epoch, iso, milliseconds
from mailroom.errors import ClaimLost, Malformed
from mailroom.ledger.claims import InProgress
from mailroom.telemetry import impersonal

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

State = Literal["collecting", "collected", "stopped", "expired"]
"""stopped: by an operator, or by itself because each message of its first page has failed. expired: its
messages are sent no more, so it stopped by itself."""

BY_ITSELF = "the run itself"
"""Value of `stopped_by` of a run that has stopped by itself."""
MAX_FAULTS = 20
"""Sentences about bad entries that a run keeps; the rest is counted."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9:._-]{0,39}", re.ASCII)


class Run(Struct, frozen=True, kw_only=True):
    """How far one run has come. `start` is the id of its latest start, `starts` are all that it had; pages,
    recipients (collected), refused and faults are of the latest. `composed` counts all messages that the run
    ever put into the mailbox; existed, conflicts, opted_out, left_out, failed and expired are those that its
    latest start did not put, and may count one twice that was composed again after a crash."""

    campaign: str
    run: str
    scheduled_at: str
    start: str
    state: State
    begun_at: int
    """Time of the first start, in epoch seconds. Each id has it: it tells the run from an earlier one of the
    same name."""
    id_secret: str
    """128 random bits in hexadecimal, made by the first start. Who knows them can use the ids of the run's
    messages before the run does. So no id, no queue message and no command shows them."""
    starts: tuple[str, ...] = ()
    next_page: int = 1
    claimed_page: int = 0
    cursor: str | None = None
    pages: int = 0
    recipients: int = 0
    refused: int = 0
    faults: tuple[str, ...] = ()
    trouble: str = ""
    """Why the page that is next was not collected; of a run that is stopped, why it is."""
    composed: int = 0
    existed: int = 0
    conflicts: int = 0
    """Messages that were not put because another message has their id: a fault of the run."""
    opted_out: int = 0
    left_out: int = 0
    failed: int = 0
    expired: int = 0
    startedAt: int | None = None  # noqa: N815 - the tables' own word
    claim_token: str | None = None
    templates: dict[str, int] | None = None
    """The versions of templates that its messages have, by name; None: those that count when each is
    queued."""
    started_by: str = ""
    """The operator of the latest start; "": a schedule."""
    stopped_by: str = ""
    paused: str = ""
    """Since when, by whom and why the run is paused; empty if it is not."""
    updatedAt: str = ""  # noqa: N815

    @property
    def phase(self) -> State | Literal["paused"]:
        """State of the run for people: `paused` until it goes on."""
        return "paused" if self.paused else self.state

    def id_of(self, key: str) -> str:
        """Make the id of a person's message, by the person's key: the same at each start of the run. Nobody
        can compute it without `id_secret`, not even from other ids of the run, which recipients see in their
        mails. Half of the digest is enough (RFC 2104, section 5). `run_of` and `begun_of` read the id."""
        proof = hmac.digest(self.id_secret.encode(), key.encode(), sha256)[:16]
        return f"{self.campaign}#{self.run}#{key}#{self.begun_at:08x}{proof.hex()}"


def name_of(scheduled_at: str) -> str:
    """The name of the run of a time: `2026-11-18T13:00Z`. Raises Malformed for what is no ISO 8601 time."""
    try:
        moment = datetime.fromtimestamp(epoch(scheduled_at), UTC)
    except (ValueError, OverflowError):
        raise Malformed(f"scheduled_at {scheduled_at!r:.60} is no ISO 8601 time") from None
    return f"{moment:%Y-%m-%dT%H:%MZ}"


def canonical(name: str) -> str:
    """A run's name, in which a time has a single spelling: two would be two runs. Raises Malformed."""
    try:
        return name_of(name) if "T" in name else checked(name)
    except Malformed:
        return checked(name)


def checked(name: str) -> str:
    """The name of a run, which becomes part of each message's id. Raises Malformed."""
    if not _NAME.fullmatch(name):
        raise Malformed(f"run {name!r:.60} is no name; use up to 40 letters, digits, and : . _ -")
    return name


class PageClaim(Struct, frozen=True):
    """A page of a run is this worker's; `run` is the run as it stood before."""

    run: Run
    page: int
    token: str


class Unsent(Struct, frozen=True):
    """The page is collected, and no worker has claimed the next one: its message may never have been sent."""

    run: Run
    cursor: Cursor


class Passed(Struct, frozen=True):
    """Nothing is to be done: `why` is superseded, or the state of a run that is over."""

    why: str


class PageOutOfSequence(Struct, frozen=True):
    """No page before this one leads up to it: the page is made up, or its run was forgotten."""


ClaimResult = PageClaim | InProgress | Unsent | Passed | PageOutOfSequence


_COUNTS = ("composed", "existed", "conflicts", "opted_out", "left_out", "failed", "expired")
_FRESH = ("pages", "recipients", "refused", *_COUNTS[1:])
_OWN = "claim_token = :own AND next_page = :page"
_SLOTS = 8
"""Attributes that remember a last count. Workers share them by chance, so two that count at once mostly do
not meet; an attribute for each worker would let the item grow with the run."""
MAX_TROUBLE = 500
"""Characters of the sentence."""


BEGUN = "begun"
"""The table's index of each campaign's runs by the time of their first start."""


class Runs(Struct, frozen=True):
    """The runs of one stage. `lease` is how long a worker may hold a page before it counts as crashed, `ttl`
    how long a run's item lives after its last change (None: as long as it did before); both in seconds."""

    client: "DynamoDBClient"
    table: str
    lease: float = 0
    ttl: float | None = None
    clock: Clock = time.time
    counted: str = field(default_factory=lambda: f"counted_{randbelow(_SLOTS)}")
    """The attribute of this worker's last count."""

    def read(self, campaign: str, run: str) -> Run | None:
        """A run; None: there is none."""
        reply = self.client.get_item(TableName=self.table, Key=_key(campaign, run), ConsistentRead=True)
        return convert(plain(reply["Item"]), Run) if "Item" in reply else None

    def of_campaign(self, campaign: str, most: int = 10) -> list[Run]:
        """The latest runs of a campaign, by the time of their first start, the newest first."""
        reply = self.client.query(
            TableName=self.table,
            IndexName=BEGUN,
            KeyConditionExpression="campaign = :campaign",
            ExpressionAttributeValues={":campaign": string(campaign)},
            ScanIndexForward=False,
            Limit=most,
        )
        runs = (self.read(campaign, item["run"]["S"]) for item in reply["Items"])
        return [run for run in runs if run is not None]

    def begin(
        self,
        campaign: str,
        run: str,
        start: str,
        scheduled_at: str,
        by: str = "",
        templates: Mapping[str, int] | None = None,
    ) -> bool:
        """Start a run, or start it anew from its first page, which ends the chain of an earlier start. False
        where this start is known already. The first start decides what a run calls now, and its ids. `by` is
        the operator who starts it ("": a schedule); `templates` are the versions that its messages have, by
        the templates' names (None: those that count when each is queued)."""
        return self._try(
            campaign,
            run,
            f"""SET scheduled_at = if_not_exists(scheduled_at, :scheduled_at), #start = :start,
                begun_at = if_not_exists(begun_at, :begun_at),
                id_secret = if_not_exists(id_secret, :id_secret),
                started_by = :by, templates = :templates,
                #state = :collecting, next_page = :first, claimed_page = :zero, faults = :none,
                {", ".join(f"{each} = :zero" for each in _FRESH)}
            REMOVE startedAt, claim_token, #cursor, trouble, paused
            ADD starts :starts""",
            "attribute_not_exists(starts) OR NOT contains(starts, :start)",
            {
                ":scheduled_at": string(scheduled_at),
                ":start": string(start),
                ":begun_at": number(int(self.clock())),
                ":id_secret": string(token_hex(16)),
                ":by": string(by),
                ":templates": image_of({"templates": templates})["templates"],
                ":starts": {"SS": [start]},
                ":collecting": string("collecting"),
                ":first": number(1),
                ":zero": number(0),
                ":none": strings([]),
            },
        )

    def claim(self, campaign: str, run: str, start: str, page: int) -> ClaimResult:
        """Take a page for this worker, or learn why not."""
        now, token = milliseconds(self.clock()), token_hex(16)
        try:
            item = self._write(
                campaign,
                run,
                "SET startedAt = :now, claim_token = :token, claimed_page = :page",
                """#start = :start AND #state = :collecting AND next_page = :page
                AND (attribute_not_exists(startedAt) OR startedAt <= :lease_over)""",
                {
                    ":now": number(now),
                    ":token": string(token),
                    ":page": number(page),
                    ":start": string(start),
                    ":collecting": string("collecting"),
                    ":lease_over": number(now - int(self.lease * 1000)),
                },
                "ALL_NEW",
            )
            return PageClaim(convert(item, Run), page, token)
        except ConditionFailed as failed:
            if not failed.item:
                return PageOutOfSequence()
            found = convert(failed.item, Run)
            if found.claim_token == token:  # the SDK's second try met its own first
                return PageClaim(found, page, token)
            return self._not_taken(found, start, page, now)

    def _not_taken(self, found: Run, start: str, page: int, now: int) -> ClaimResult:
        if found.start != start:
            return Passed("superseded")
        if found.state != "collecting":
            return Passed(found.state)
        if found.next_page < page:
            return PageOutOfSequence()
        if found.next_page > page:
            never_had = found.next_page == page + 1 and found.claimed_page <= page
            if not never_had:
                return Passed("superseded")
            return Unsent(found, msgspec.json.decode(found.cursor) if found.cursor is not None else None)
        held = (found.startedAt or 0) + int(self.lease * 1000) - now
        return InProgress(max(0.0, held / 1000))

    def advance(
        self, claim: PageClaim, cursor: Cursor | None, recipients: int, faults: Sequence[Fault]
    ) -> None:
        """The page's people are on their way; `cursor` is where the next page begins (None: it was the last).
        Raises ClaimLost where another worker has taken the page since."""
        before = claim.run
        # A run is kept for months, and no erasure looks for people here.
        kept = [*before.faults, *(impersonal(f"{each}") for each in faults)][:MAX_FAULTS]
        values: Sets = {
            ":next": number(claim.page + 1),
            ":pages": number(before.pages + 1),
            ":recipients": number(before.recipients + recipients),
            ":refused": number(before.refused + len(faults)),
            ":faults": strings(kept),
            **self._own(claim),
        }
        if cursor is None:
            goes_on, gone = "#state = :collected", ", #cursor"
            values[":collected"] = string("collected")
        else:
            goes_on, gone = "#cursor = :cursor", ""
            values[":cursor"] = string(msgspec.json.encode(cursor).decode())
        try:
            self._write(
                before.campaign,
                before.run,
                f"""SET next_page = :next, pages = :pages, recipients = :recipients, refused = :refused,
                    faults = :faults, {goes_on}
                REMOVE startedAt, claim_token, trouble{gone}""",
                _OWN,
                values,
            )
        except ConditionFailed as failed:
            # The SDK's second try, after the answer to the first was lost.
            if failed.item.get("next_page") != claim.page + 1 or failed.item.get("start") != before.start:
                raise ClaimLost("the page was taken by another worker, or its run was started anew") from None

    def release(self, claim: PageClaim, trouble: str, state: State | None = None) -> None:
        """The page was not collected, and `trouble` says why: the next delivery claims the page at once, or
        ends if the run is over by this `state`."""
        over: Sets = {} if state is None else {"state": string(state)}
        released = Update(
            {"trouble": string(trouble[:MAX_TROUBLE]), **over}, removes=("startedAt", "claim_token")
        )
        values = {**released.values, **self._own(claim)}
        self._try(claim.run.campaign, claim.run.run, released.expression, _OWN, values)

    def stop(self, campaign: str, run: str, by: str, *, trouble: str = "") -> bool:
        """Let nothing more of a run be collected, composed or sent. A worker that is collecting a page does
        not pass the page on. Returns False if there is no such run, or if it is stopped already. `by` is the
        operator who stops it, or BY_ITSELF; `trouble` says why."""
        token = token_hex(16)
        values: Sets = {":token": string(token), ":by": string(by), ":trouble": string(trouble)}
        try:
            self._write(
                campaign,
                run,
                "SET #state = :stopped, stop_token = :token, stopped_by = :by, trouble = :trouble "
                "REMOVE startedAt, claim_token, paused",
                "attribute_exists(campaign) AND #state <> :stopped",
                {":stopped": string("stopped"), **values},
            )
        except ConditionFailed as failed:
            # Where it is our own: the SDK's second try, after the answer to the first was lost.
            return failed.item.get("stop_token") == token
        return True

    def pause(self, campaign: str, run: str, words: str) -> bool:
        """Let nothing of a run be collected, composed or sent for as long as its pause has `words`: with an
        empty text the run goes on. Returns False if there is no such run, or if it is stopped."""
        condition = "attribute_exists(campaign) AND #state <> :stopped"
        values: Sets = {":words": string(words), ":stopped": string("stopped")}
        return self._try(campaign, run, "SET paused = :words", condition, values)

    def count(self, campaign: str, run: str, counts: Mapping[str, int]) -> None:
        """Add to what was composed; nothing where the run's item is gone. The SDK's second try, after the
        answer to the first was lost, is known by its token, and adds nothing."""
        added: Sets = {name: number(value) for name, value in counts.items() if value and name in _COUNTS}
        if added:
            grow = ", ".join(f"{name} = if_not_exists({name}, :zero) + :{name}" for name in added)
            self._try(
                campaign,
                run,
                f"SET {self.counted} = :token, {grow}",
                f"""attribute_exists(campaign)
                AND (attribute_not_exists({self.counted}) OR {self.counted} <> :token)""",
                {":token": string(token_hex(8)), ":zero": number(0), **values_of(added)},
            )

    def _own(self, claim: PageClaim) -> Sets:
        return {":own": string(claim.token), ":page": number(claim.page)}

    def _try(self, campaign: str, run: str, expression: str, condition: str, values: Sets) -> bool:
        try:
            self._write(campaign, run, expression, condition, values)
        except ConditionFailed:
            return False
        return True

    def _write(
        self,
        campaign: str,
        run: str,
        expression: str,
        condition: str,
        values: Sets,
        returns: Literal["NONE", "ALL_NEW"] = "NONE",
    ) -> dict[str, Any]:
        """One update, which also dates the item. Raises ConditionFailed."""
        now = self.clock()
        dates: Sets = {"updatedAt": string(iso(now))}
        if self.ttl is not None:
            dates["ttl"] = number(now + self.ttl)
        expression = f"{Update(dates).expression}, {expression.removeprefix('SET ')}"
        dated = {**values_of(dates), **values}
        return update(
            self.client, self.table, _key(campaign, run), expression, condition, dated, returns=returns
        )


def _key(campaign: str, run: str) -> dict[str, Value]:
    return {"campaign": string(campaign), "run": string(run)}
