"""The ledger: one item a message, saying what became of it. Every verb is one conditional write.

Two writes a message are the floor of an idempotent sender, `claim` and `complete`; stay there.
"""

import time
from collections.abc import Callable, Mapping
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Literal

from mailroom import clients
from mailroom.claim import Claim, Claimed, refused
from mailroom.clock import Clock, iso, milliseconds
from mailroom.dynamo import Change, ConditionFailed, Sets, Value, number, string, strings, update
from mailroom.environment import Common
from mailroom.errors import ClaimLost
from mailroom.message import Key, Message, key_of
from mailroom.status import Status, before

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

MAX_HISTORY = 50
"""Entries in `history`: the 20 attempts of a fax and what its provider says of them; about 2.5 KB."""
MAX_ERROR = 500
"""Characters of an error's message: an item stays near one write unit."""

_OWN = "claim_token = :own AND attribute_not_exists(completedAt)"
_UNTOUCHED = "attribute_not_exists(startedAt) AND attribute_not_exists(completedAt)"
_WAITING = f"{_UNTOUCHED} AND attribute_not_exists(claim_token)"  # a token outlives its claim's release
_FREE = "(attribute_not_exists(startedAt) OR startedAt <= :lease_expired)"
_NEXT = f"{_FREE} AND attribute_not_exists(completedAt) AND attempts = :ended"
_FIRST = _NEXT.replace("attempts = :ended", "(attribute_not_exists(attempts) OR attempts = :ended)")
_PRIOR_START = {"prior_start": "if_not_exists(startedAt, {value})"}
_HISTORY = {"history": "list_append(if_not_exists({name}, :no_history), {value})"}
_SENDING, _NEVER = string("sending"), number(0)
_NO_HISTORY: Value = {"L": []}
_ROOM = number(MAX_HISTORY)


class Ledger:
    """The verbs. `lease` is how long a worker may hold a message before it counts as crashed, `ttl` how
    long an item lives after its last change; both in seconds."""

    def __init__(
        self,
        client: "DynamoDBClient",
        table: str,
        *,
        lease: float,
        ttl: float,
        clock: Clock,
        new_token: Callable[[], str] = lambda: token_hex(16),
    ) -> None:
        self._client = client
        self._table = table
        self._lease_ms = int(lease * 1000)
        self._ttl = ttl
        self._clock = clock
        self._new_token = new_token

    @classmethod
    def of(cls, settings: Common, lease: float = 0) -> "Ledger":
        """The ledger that a function's settings name; who never claims needs no lease."""
        table, ttl = settings.ledger_table, settings.ledger_ttl_seconds
        return cls(clients.dynamodb(), table, lease=lease, ttl=ttl, clock=time.time)

    def claim(self, message: Message) -> Claim:
        """Take the message for this worker, or learn why not."""
        now, token = self._now_ms(), self._new_token()
        change = Change(
            {
                **_about(message.recipient, message.callback_url),
                "status": _SENDING,
                "claim_token": string(token),
                # What stood here before: a claim whose answer was lost still tells of an earlier crash.
                "prior_start": _NEVER,
                "startedAt": number(now),
            },
            _FIRST if message.attempt == 1 else _NEXT,
            {":lease_expired": number(now - self._lease_ms), ":ended": number(message.attempt - 1)},
            forms=_PRIOR_START,
        )
        try:
            old = self._write(message.key, change, returns="ALL_OLD")
        except ConditionFailed as failed:
            found = failed.item
            # The SDK's second try met its own first; an event that completed it in between still counts.
            if found.get("claim_token") == token and "completedAt" not in found:
                return _claimed(message.key, token, found, found.get("prior_start"))
            return refused(found, message.attempt, now, self._lease_ms)
        return _claimed(message.key, token, old, old.get("startedAt"))

    def checkpoint(self, claim: Claimed, provider: str, provider_id: str) -> None:
        """Keep the provider's id before waiting on it: from here on the attempt is resumed, never resent."""
        self._write_own(claim, Change(_provider(provider, provider_id), _OWN))

    def complete(self, claim: Claimed, provider: str, provider_id: str) -> None:
        """The provider accepted it. After an `observe` of the same fact only the provider's id is added."""
        end = self._end(claim.key, "sent", _provider(provider, provider_id), _OWN, adds=("attempts",))
        try:
            found = self._write_own(claim, end, "sent")
        except ClaimLost as lost:
            raise ClaimLost(f"accepted as {provider_id}, but {lost}") from None
        if found and found.get("provider_id") != provider_id:
            merge = Change(_provider(provider, provider_id), "claim_token = :own", _own(claim))
            self._write(claim.key, merge)

    def fail(self, claim: Claimed, code: str, message: str) -> None:
        """It will not be sent, by its own fault or its recipient's; `message` says what would be right."""
        end = self._end(claim.key, "failed", _error(code, message), _OWN, adds=("attempts",))
        self._write_own(claim, end, "failed", code)

    def release(self, claim: Claimed) -> None:
        """Proved not sent: the next delivery claims at once and knows of no unknown outcome."""
        self._write_own(claim, Change({}, _OWN, removes=("startedAt",)))

    def hand_back(self, claim: Claimed) -> None:
        """Not over yet: the next delivery claims at once and resumes from the checkpoint."""
        self._write_own(
            claim, Change({}, f"{_OWN} AND attribute_exists(provider_id)", removes=("startedAt",))
        )

    def retry_later(self, claim: Claimed, code: str, message: str) -> None:
        """The attempt ended without success; the next one is claimed with `attempt` + 1."""
        sets: Sets = {**_error(code, message), "status": string("retrying")}
        # Held still: an SDK's second try, after a lost answer, must not count the attempt twice.
        held = f"{_OWN} AND attribute_exists(startedAt)"
        change = Change(sets, held, removes=("startedAt", "provider_id"), adds=("attempts",))
        self._write_own(claim, change, "retrying", code)

    def observe(
        self,
        key: Key,
        status: Status,
        *,
        accepted: bool,
        provider_id: str | None = None,
        facts: Mapping[str, Value] | None = None,
    ) -> bool:
        """A provider's event. False where no item exists: foreign, or long over (a claim precedes a submit).

        `accepted`: the event proves that the provider has the message, which completes it. `facts`
        (`deliveredAt`, `bounce_type`) are kept where they are new. The status moves forward or not at all.
        """
        known: Sets = {**(facts or {})}
        if provider_id is not None:
            known["provider_id"] = string(provider_id)
        if accepted:
            known["completedAt"] = number(self._now_ms())
        only_new = dict.fromkeys(known, "if_not_exists({name}, {value})")
        earlier = {f":before{at}": string(each) for at, each in enumerate(before(status))}
        forward = f"#status IN ({', '.join(earlier)})"
        moved = {**known, "status": string(status)}
        try:
            self._write(key, Change(moved, forward, earlier, only_new, removes=("failed_on",)), status)
        except ConditionFailed as failed:
            if not failed.item:
                return False
            self._write(key, Change(known, "attribute_exists(id)", forms=only_new))
        return True

    def refuse(self, item: Mapping[str, Any], code: str, message: str) -> bool:
        """Record an item that can never be sent, before any claim. False where the ledger has it already.

        Nothing but the item's key needs to be right.
        """
        to, callback_url = item.get("to") or item.get("email"), item.get("callback_url")
        about = _about(_short(to), _short(callback_url))
        key = key_of(item)
        return self._try(
            key, self._end(key, "failed", {**about, **_error(code, message)}, _UNTOUCHED), "failed", code
        )

    def schedule(self, key: Key, due: float) -> bool:
        """It waits for its time, `due` in epoch seconds. False where it is past waiting."""
        sets: Sets = {
            "status": string("scheduled"),
            "scheduledFor": string(iso(due)),
            "ttl": number(due + self._ttl),
        }
        return self._try(key, Change(sets, _WAITING))

    def cancel(self, key: Key, message: str) -> bool:
        """Its producer took it back while it waited for its time. False where it is past waiting."""
        waiting = f"{_WAITING} AND attribute_exists(id)"
        end = self._end(key, "cancelled", _error("cancelled", message), waiting)
        return self._try(key, end, "cancelled")

    def reopen(self, key: Key) -> int | None:
        """An operator's resend: clear the outcome. The number of the next attempt; None: no outcome yet.

        The generation enters `webhook-id`, so that the second life's callbacks are no repeats of the first's.
        """
        change = Change(
            {"status": string("retrying")},
            "attribute_exists(completedAt)",
            removes=(
                "completedAt",
                "startedAt",
                "provider_id",
                "error",
                "failed_on",
                "dead_lettered_at",
            ),
            adds=("generation",),
        )
        try:
            new = self._write(key, change, "retrying", "reopened", returns="ALL_NEW")
        except ConditionFailed:
            return None
        return int(new.get("attempts", 0)) + 1

    def _now_ms(self) -> int:
        return milliseconds(self._clock())

    def _end(
        self, key: Key, status: Status, sets: Sets, condition: str, adds: tuple[str, ...] = ()
    ) -> Change:
        """The change that gives a message its outcome; failures enter the sparse index by day and channel."""
        now = self._clock()
        sets["status"] = string(status)
        sets["completedAt"] = number(milliseconds(now))
        if status == "failed":
            sets["failed_on"] = string(f"{iso(now)[:10]}#{key.event_type[:40]}")
        return Change(sets, condition, adds=adds)

    def _write_own(
        self, claim: Claimed, change: Change, entry: Status | None = None, code: str | None = None
    ) -> dict[str, Any]:
        """Write as the claim's holder. What stood there where it was done already ({}: written now).

        Raises ClaimLost where another worker has claimed the message since.
        """
        change.values = {**change.values, **_own(claim)}
        try:
            return self._write(claim.key, change, entry, code)
        except ConditionFailed as failed:
            if failed.item.get("claim_token") != claim.token:
                raise ClaimLost("another worker has claimed the message since") from None
            return failed.item

    def _try(self, key: Key, change: Change, entry: Status | None = None, code: str | None = None) -> bool:
        try:
            self._write(key, change, entry, code)
        except ConditionFailed:
            return False
        return True

    def _write(
        self,
        key: Key,
        change: Change,
        entry: Status | None = None,
        code: str | None = None,
        returns: Literal["NONE", "ALL_OLD", "ALL_NEW"] = "NONE",
    ) -> dict[str, Any]:
        """One update, with a line in the bounded history where `entry` names one. Raises ConditionFailed.

        A full history is no reason to lose the fact itself: then it is written without its line.
        """
        now = self._clock()
        change.sets["updatedAt"] = string(iso(now))
        change.sets.setdefault("ttl", number(now + self._ttl))
        where = {"id": string(key.id), "event_type": string(key.event_type)}
        condition, values = change.condition, change.values
        if entry is not None:
            _note(change, entry, code, now)
        try:
            return update(self._client, self._table, where, change, returns)
        except ConditionFailed as failed:
            if entry is None or len(failed.item.get("history", ())) < MAX_HISTORY:
                raise
            del change.sets["history"]
            change.condition, change.values = condition, values
            return update(self._client, self._table, where, change, returns)


def _claimed(key: Key, token: str, item: Mapping[str, Any], since: int | None) -> Claimed:
    return Claimed(key, token, since=since or None, provider_id=item.get("provider_id"))


def _about(to: str | list[str] | None, callback_url: str | None) -> Sets:
    sets: Sets = {}
    if to:
        sets["to"] = strings(to)
    if callback_url:
        sets["callback_url"] = string(callback_url)
    return sets


def _short(value: object) -> str | None:
    """A string that leaves room for the reason: the mailbox's item may fill all of DynamoDB's 400 KB."""
    return value if isinstance(value, str) and len(value) <= 2048 else None


def _provider(provider: str, provider_id: str) -> Sets:
    return {"provider": string(provider), "provider_id": string(provider_id)}


def _error(code: str, message: str) -> Sets:
    return {"error": {"M": {"code": string(code), "message": string(message[:MAX_ERROR])}}}


def _own(claim: Claimed) -> Sets:
    return {":own": string(claim.token)}


def _note(change: Change, status: Status, code: str | None, now: float) -> None:
    """Add a line for the history, on condition that there is room for it."""
    line = {"at": number(milliseconds(now)), "status": string(status)}
    if code is not None:
        line["code"] = string(code)
    change.sets["history"] = {"L": [{"M": line}]}
    change.condition = f"({change.condition}) AND (attribute_not_exists(history) OR size(history) < :room)"
    change.values = {**change.values, ":no_history": _NO_HISTORY, ":room": _ROOM}
    change.forms = {**change.forms, **_HISTORY}
