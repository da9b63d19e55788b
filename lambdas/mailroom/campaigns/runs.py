"""Table of campaign runs and their progress. Each method that changes a run makes one conditional write.

A page is claimed before it is collected. A queue may deliver a record twice, and if two workers collected the
same page, each would queue the next page, so that all further pages would be collected twice.
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
from mailroom.errors import ClaimLost, Malformed, can_be_key
from mailroom.ledger.claims import InProgress
from mailroom.telemetry import impersonal

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

State = Literal["collecting", "collected", "stopped", "expired"]
"""State of a run. `stopped`: an operator has stopped the run, or Mailroom has stopped it because each message
of its first page has failed. `expired`: the run has ended early because its messages have expired."""

BY_ITSELF = "the run itself"
"""Name in place of an operator, if Mailroom has paused a run because of its bounces or complaints."""
MAX_FAULTS = 20
"""Maximum number of faults whose texts are stored in a run; further faults are only counted."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9:._-]{0,39}", re.ASCII)


class Run(Struct, frozen=True, kw_only=True):
    """Progress of a run. The counts from `existed` to `expired` are of the latest start. They may count a
    message twice if its chunk was composed again after a crash."""

    campaign: str
    run: str
    scheduled_at: str
    start: str
    """Id of the latest start."""
    valid_from: int
    """Number of the lowest start whose messages are still sent: the time of the latest start or stop in epoch
    milliseconds, and always greater than the numbers before it. The number of the latest start, unless the
    run was stopped since."""
    state: State
    begun_at: int
    """Time of the first start, in epoch seconds. It is a part of each message id, and distinguishes the run
    from an earlier run of the same name."""
    id_secret: str
    """Secret of 128 random bits in hexadecimal, created by the first start. Whoever has the secret could
    compute the ids of the run's messages, and put other messages with these ids before the run does. So no
    id, queue message or command contains the secret."""
    starts: tuple[str, ...] = ()
    """Ids of all starts of the run."""
    next_page: int = 1
    claimed_page: int = 0
    cursor: str | None = None
    pages: int = 0
    """Number of pages that the latest start has collected."""
    recipients: int = 0
    """Number of people that the latest start has collected."""
    refused: int = 0
    faults: tuple[str, ...] = ()
    trouble: str = ""
    """Reason why the next page was not collected, or why the run is stopped."""
    waits_until: str = ""
    """Approximate time (ISO 8601) until which the next page waits for the daily quota; empty if it does not
    wait."""
    composed: int = 0
    """Number of messages that all starts have put into the mailbox."""
    existed: int = 0
    conflicts: int = 0
    """Number of messages that were not put, because another message has the same id. This should not
    happen."""
    opted_out: int = 0
    left_out: int = 0
    failed: int = 0
    expired: int = 0
    earlier_recipients: int = 0
    """Number of people that the starts before the latest one collected together. The next three counts are
    of these starts, too."""
    earlier_refused: int = 0
    earlier_opted_out: int = 0
    earlier_left_out: int = 0
    startedAt: int | None = None  # noqa: N815 - the tables' own word
    claim_token: str | None = None
    templates: dict[str, int] | None = None
    """Versions of the templates of the run's messages, by the template's name. If None, each message gets the
    version that is current when the message is queued."""
    paused: str = ""
    """Time, operator and reason of the pause; empty if the run is not paused."""
    resumed: str = ""
    """Time, operator and reason of the latest resumption; empty if there was none."""
    limits: dict[str, float] = {}
    """Limits above which the run pauses itself again, as shares of its accepted messages by status. A pause
    by itself raises them, and so does each bounce or complaint until somebody resumes or starts the run."""
    updatedAt: str = ""  # noqa: N815

    @property
    def paused_by_itself(self) -> bool:
        """Whether the run is paused because of its bounces or complaints."""
        return self.paused.partition(" by ")[2].startswith(f"{BY_ITSELF}: ")

    @property
    def phase(self) -> State | Literal["paused", "waits for the day"]:
        """State of the run for display: `state`, unless the run is paused or waits for the daily quota."""
        return "paused" if self.paused else "waits for the day" if self.waits_until else self.state

    def id_of(self, key: str) -> str:
        """Return the id of a person's message, which is the same at each start of the run. Without
        `id_secret` the id cannot be computed, even from other ids of the run, which recipients can see in
        their mails. Half of the digest is long enough (RFC 2104, section 5). `begun_of` parses the
        id."""
        proof = hmac.digest(self.id_secret.encode(), key.encode(), sha256)[:16]
        return f"{self.campaign}#{self.run}#{key}#{self.begun_at:08x}{proof.hex()}"


def name_of(scheduled_at: str) -> str:
    """Return the name of the run for a scheduled time, such as `2026-11-18T13:00Z`. Raises Malformed if the
    text is not an ISO 8601 time."""
    try:
        moment = datetime.fromtimestamp(epoch(scheduled_at), UTC)
    except (ValueError, OverflowError):
        raise Malformed(f"scheduled_at {scheduled_at!r:.60} is not an ISO 8601 time") from None
    return f"{moment:%Y-%m-%dT%H:%MZ}"


def canonical(name: str) -> str:
    """Return the name of a run in its canonical form. A name that is a time has several spellings, which
    would otherwise be different runs. Raises Malformed."""
    try:
        return name_of(name) if "T" in name else checked(name)
    except Malformed:
        return checked(name)


def checked(name: str) -> str:
    """Return the name of a run, unchanged. Raises Malformed if it is invalid as a part of message ids."""
    if not _NAME.fullmatch(name):
        raise Malformed(f"run {name!r:.60} is not a valid name; use 1 to 40 letters, digits, : . _ -")
    return name


class PageClaim(Struct, frozen=True):
    """Successful claim of a page: until the lease ends, only this worker may collect the page."""

    run: Run
    """Run before the claim."""
    page: int
    token: str


class Unsent(Struct, frozen=True):
    """Refusal of a claim: the page was collected, but no worker has claimed the next page, so its message may
    never have been queued."""

    run: Run
    cursor: Cursor


class Passed(Struct, frozen=True):
    """Refusal of a claim: the page does not need further work."""

    why: str
    """`superseded`, or the state of a run that has ended."""


class PageOutOfSequence(Struct, frozen=True):
    """Refusal of a claim: the page before it was not collected. Either the page number is wrong, or the run
    is missing in the table."""


ClaimResult = PageClaim | InProgress | Unsent | Passed | PageOutOfSequence


KEPT_SECONDS = 2 * 365 * 86_400
"""Seconds from the last write of a run until it expires: longer than any of its messages may wait."""
_COUNTS = ("composed", "existed", "conflicts", "opted_out", "left_out", "failed", "expired")
_FRESH = ("pages", "recipients", "refused", *_COUNTS[1:])
_ADDED_UP = ", ".join(
    f"earlier_{name} = if_not_exists(earlier_{name}, :zero) + if_not_exists({name}, :zero)"
    for name in ("recipients", "refused", "opted_out", "left_out")
)
"""Part of an update that adds the counts of a start to those of the starts before it."""
_GOES_ON = "attribute_exists(campaign) AND #state <> :stopped"
_OWN = "claim_token = :own AND next_page = :page"
_SLOTS = 8
"""Number of attributes that store the token of a worker's last count. Each worker chooses one of them at
random, so that workers that count at the same time mostly use different ones. With an attribute for each
worker, the item would grow during the run."""
MAX_TROUBLE = 500
"""Maximum number of characters of `trouble`, and of `paused`, which is a key of an index."""


BEGUN = "begun"
"""Name of the index of runs by campaign and by the time of the first start."""
PAUSES = "pauses"
"""Name of the index of paused runs by the text of their pause, which other runs do not have."""


class PausedRun(Struct, frozen=True):
    """Run that is paused. The fields are those of `Run`."""

    campaign: str
    run: str
    paused: str
    begun_at: int


class Runs(Struct, frozen=True):
    """Reads and writes the runs of a stage."""

    client: "DynamoDBClient"
    table: str
    lease: float = 0
    """Seconds for which a claim of a page is valid; after that, its worker counts as crashed."""
    clock: Clock = time.time
    counted: str = field(default_factory=lambda: f"counted_{randbelow(_SLOTS)}")
    """Name of the attribute with the token of this worker's last count."""

    def read(self, campaign: str, run: str) -> Run | None:
        """Return a run, or None if it is unknown."""
        if not can_be_key(campaign, run):
            return None
        response = self.client.get_item(TableName=self.table, Key=_key(campaign, run), ConsistentRead=True)
        return convert(plain(response["Item"]), Run) if "Item" in response else None

    def of_campaign(self, campaign: str, limit: int = 10) -> list[Run]:
        """Return the latest runs of a campaign, newest first by the time of their first start."""
        if not can_be_key(campaign):
            return []
        response = self.client.query(
            TableName=self.table,
            IndexName=BEGUN,
            KeyConditionExpression="campaign = :campaign",
            ExpressionAttributeValues={":campaign": string(campaign)},
            ScanIndexForward=False,
            Limit=limit,
        )
        runs = (self.read(campaign, item["run"]["S"]) for item in response["Items"])
        return [run for run in runs if run is not None]

    def paused(self) -> list[PausedRun]:
        """Return the paused runs of all campaigns, newest first: at most a page, which has thousands."""
        response = self.client.scan(TableName=self.table, IndexName=PAUSES)
        runs = (convert(plain(item), PausedRun) for item in response["Items"])
        return sorted(runs, key=lambda run: run.begun_at, reverse=True)

    def begin(
        self,
        campaign: str,
        run: str,
        start: str,
        scheduled_at: str,
        templates: Mapping[str, int] | None = None,
    ) -> bool:
        """Start a run, or restart it from its first page; pages and messages of earlier starts are then not
        collected, composed and sent any more. The first start decides the run's time and its ids. `templates`
        is stored as `Run.templates`. Returns False if this start was recorded before, or if the run is known
        only by the stop of a lost run: see `stop`."""
        try:
            self._raise_number(
                campaign,
                run,
                f"""SET scheduled_at = if_not_exists(scheduled_at, :scheduled_at), #start = :start,
                begun_at = if_not_exists(begun_at, :begun_at),
                id_secret = if_not_exists(id_secret, :id_secret),
                templates = :templates,
                #state = :collecting, next_page = :first, claimed_page = :zero, faults = :none,
                {", ".join(f"{name} = :zero" for name in _FRESH)}, {_ADDED_UP}
            REMOVE startedAt, claim_token, #cursor, trouble, paused, waits_until
            ADD starts :starts""",
                "attribute_not_exists(campaign) OR attribute_exists(starts) AND NOT contains(starts, :start)",
                {
                    ":scheduled_at": string(scheduled_at),
                    ":start": string(start),
                    ":begun_at": number(int(self.clock())),
                    ":id_secret": string(token_hex(16)),
                    ":templates": image_of({"templates": templates})["templates"],
                    ":starts": {"SS": [start]},
                    ":collecting": string("collecting"),
                    ":first": number(1),
                    ":zero": number(0),
                    ":none": strings([]),
                },
            )
        except ConditionFailed:
            return False
        return True

    def claim(self, campaign: str, run: str, start: str, page: int) -> ClaimResult:
        """Claim a page for this worker. Returns the claim, or the reason why it was refused."""
        now_ms, token = milliseconds(self.clock()), token_hex(16)
        try:
            item = self._write(
                campaign,
                run,
                "SET startedAt = :now, claim_token = :token, claimed_page = :page REMOVE waits_until",
                """#start = :start AND #state = :collecting AND next_page = :page
                AND (attribute_not_exists(startedAt) OR startedAt <= :lease_over)""",
                {
                    ":now": number(now_ms),
                    ":token": string(token),
                    ":page": number(page),
                    ":start": string(start),
                    ":collecting": string("collecting"),
                    ":lease_over": number(now_ms - int(self.lease * 1000)),
                },
                "ALL_NEW",
            )
            return PageClaim(convert(item, Run), page, token)
        except ConditionFailed as failed:
            if not failed.item:
                return PageOutOfSequence()
            current = convert(failed.item, Run)
            if current.claim_token == token:  # the SDK repeated the write; the first one had succeeded
                return PageClaim(current, page, token)
            return self._refusal(current, start, page, now_ms)

    def _refusal(self, current: Run, start: str, page: int, now_ms: int) -> ClaimResult:
        if current.start != start:
            return Passed("superseded")
        if current.state != "collecting":
            return Passed(current.state)
        if current.next_page < page:
            return PageOutOfSequence()
        if current.next_page > page:
            if current.next_page > page + 1 or current.claimed_page > page:
                return Passed("superseded")
            return Unsent(current, None if current.cursor is None else msgspec.json.decode(current.cursor))
        remaining_ms = (current.startedAt or 0) + int(self.lease * 1000) - now_ms
        return InProgress(max(0.0, remaining_ms / 1000))

    def advance(
        self, claim: PageClaim, cursor: Cursor | None, recipients: int, faults: Sequence[Fault]
    ) -> None:
        """Record that the people of a page are queued. `cursor` is the position at which the next page
        begins, or None after the last page. Raises ClaimLost if another worker has claimed the page since, or
        the run was stopped or restarted."""
        before = claim.run
        # Personal data is removed from the faults, because a run is kept for months, and an erasure does not
        # search runs.
        sentences = [*before.faults, *(impersonal(f"{fault}") for fault in faults)][:MAX_FAULTS]
        values: Sets = {
            ":next": number(claim.page + 1),
            ":pages": number(before.pages + 1),
            ":recipients": number(before.recipients + recipients),
            ":refused": number(before.refused + len(faults)),
            ":faults": strings(sentences),
            **self._own(claim),
        }
        if cursor is None:
            progress, removes = "#state = :collected", ", #cursor"
            values[":collected"] = string("collected")
        else:
            progress, removes = "#cursor = :cursor", ""
            values[":cursor"] = string(msgspec.json.encode(cursor).decode())
        try:
            self._write(
                before.campaign,
                before.run,
                f"""SET next_page = :next, pages = :pages, recipients = :recipients, refused = :refused,
                    faults = :faults, {progress}
                REMOVE startedAt, claim_token, trouble{removes}""",
                _OWN,
                values,
            )
        except ConditionFailed as failed:
            # The write may be the SDK's repeat of a write whose response was lost. Then the item has this
            # page's values.
            if failed.item.get("next_page") != claim.page + 1 or failed.item.get("start") != before.start:
                raise ClaimLost("another worker has the page, or its run was stopped or restarted") from None

    def release(
        self, claim: PageClaim, trouble: str, state: State | None = None, until: float | None = None
    ) -> None:
        """Release the claim of a page that was not collected, and store the reason `trouble`. The page can
        then be claimed again at once, unless `state` ends the run. The reason is empty for a page that only
        waits: for the end of its run's pause, or for the daily quota until about `until` (epoch seconds)."""
        sets: Sets = {"trouble": string(trouble[:MAX_TROUBLE])}
        sets |= {} if state is None else {"state": string(state)}
        sets |= {} if until is None else {"waits_until": string(iso(until))}
        released = Update(sets, removes=("startedAt", "claim_token"))
        values = {**released.values, **self._own(claim)}
        self._try(claim.run.campaign, claim.run.run, released.expression, _OWN, values)

    def stop(self, campaign: str, run: str, *, trouble: str = "", lost: bool = False) -> bool:
        """Stop a run: the pages and messages of all its starts are not collected, composed or sent any more.
        A worker that is collecting a page loses its claim. `trouble` is the reason if Mailroom stops the
        run. Returns False if the run is unknown or already stopped.

        With `lost`, an unknown run is recorded as stopped, so that its messages do not wait for it any more.
        Such a run cannot be started: the secret of its ids is lost, so everybody would get a message again.
        """
        token = token_hex(16)
        values: Sets = {
            ":stopped": string("stopped"),
            ":token": string(token),
            ":trouble": string(trouble),
        }
        first = ""
        condition = "attribute_exists(campaign) AND (#state <> :stopped OR attribute_exists(paused))"
        if lost:
            first = "scheduled_at = :empty, #start = :empty, id_secret = :empty, begun_at = :begun_at, "
            condition = "attribute_not_exists(campaign)"
            values |= {":begun_at": number(int(self.clock())), ":empty": string("")}
        try:
            self._raise_number(
                campaign,
                run,
                f"""SET {first}#state = :stopped, stop_token = :token, trouble = :trouble
                REMOVE startedAt, claim_token, paused, waits_until""",
                condition,
                values,
            )
        except ConditionFailed as failed:
            # If the item has this call's token, the SDK repeated the write, and the first write had
            # succeeded.
            return failed.item.get("stop_token") == token
        return True

    def pause(self, campaign: str, run: str, words: str) -> bool:
        """Pause a run. `words` contains the time, the operator and the reason. During a pause, the run's
        pages are not collected, and its messages are not sent. Returns False for an unknown or a stopped
        run."""
        values: Sets = {":words": string(words[:MAX_TROUBLE]), ":stopped": string("stopped")}
        return self._try(campaign, run, "SET paused = :words", _GOES_ON, values)

    def resume(self, campaign: str, run: str, words: str) -> bool:
        """Resume a paused run. `words` are those of `pause`. Returns False for a run that is not paused."""
        values: Sets = {":words": string(words)}
        expression = "SET resumed = :words REMOVE paused"
        return self._try(campaign, run, expression, "attribute_exists(paused)", values)

    def pause_by_itself(self, run: Run, words: str, limits: Mapping[str, float]) -> bool:
        """Pause a run because of its bounces or complaints, and set its `limits`. `run` is the run that the
        caller has read. Returns False if somebody has stopped, paused, resumed or started it since."""
        values: Sets = {
            ":words": string(words),
            ":stopped": string("stopped"),
            ":start": string(run.start),
            ":resumed": string(run.resumed),
            ":limits": image_of({"limits": limits})["limits"],
        }
        try:
            self._write(
                run.campaign,
                run.run,
                "SET paused = :words, limits = :limits",
                f"""{_GOES_ON} AND #start = :start AND attribute_not_exists(paused)
                AND (attribute_not_exists(resumed) OR resumed = :resumed)""",
                values,
            )
        except ConditionFailed as failed:
            return failed.item.get("paused") == words  # the SDK repeated the write; the first one succeeded
        return True

    def set_limits(self, run: Run, limits: Mapping[str, float]) -> None:
        """Set the `limits` of a run, if it still exists."""
        values: Sets = {":limits": image_of({"limits": limits})["limits"]}
        condition = "attribute_exists(campaign)"
        self._try(run.campaign, run.run, "SET limits = :limits", condition, values)

    def count(self, campaign: str, run: str, counts: Mapping[str, int]) -> None:
        """Add to the counts of a run, if the run still exists. A token prevents that the SDK's repeat of the
        write counts twice."""
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

    def _raise_number(self, campaign: str, run: str, expression: str, condition: str, values: Sets) -> None:
        """Update an item, and raise its `valid_from` to the present time, or above its present value if the
        clock of another computer is ahead. Raises ConditionFailed if `condition` is false."""
        new = milliseconds(self.clock())
        while True:
            try:
                self._write(
                    campaign,
                    run,
                    f"SET valid_from = :new, {expression.removeprefix('SET ')}",
                    f"({condition}) AND (attribute_not_exists(valid_from) OR valid_from < :new)",
                    {**values, ":new": number(new)},
                )
            except ConditionFailed as failed:
                latest = int(failed.item.get("valid_from", 0))
                if latest < new:
                    raise
                new = latest + 1
            else:
                return

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
        """Update an item, including its dates. Raises ConditionFailed."""
        moment = self.clock()
        dates: Sets = {"updatedAt": string(iso(moment)), "ttl": number(moment + KEPT_SECONDS)}
        expression = f"{Update(dates).expression}, {expression.removeprefix('SET ')}"
        values = {**values_of(dates), **values}
        return update(
            self.client, self.table, _key(campaign, run), expression, condition, values, returns=returns
        )


def _key(campaign: str, run: str) -> dict[str, Value]:
    return {"campaign": string(campaign), "run": string(run)}
