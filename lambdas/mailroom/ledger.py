"""The ledger: one item a message, saying what became of it. Every verb is one conditional write.

Two writes a message are the floor of an idempotent sender, `claim` and `complete`; stay there.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal
from uuid import uuid4

from mailroom import clients
from mailroom.claim import Claim, Claimed, refused
from mailroom.clock import Clock, iso, milliseconds
from mailroom.dynamo import Change, ConditionFailed, Sets, Value, number, string, strings, update
from mailroom.environment import Common
from mailroom.errors import ClaimLost
from mailroom.message import Key, Message
from mailroom.status import Status, before

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

MAX_HISTORY = 50
"""Entries in `history`: the 20 attempts of a fax and what its provider says of them; about 2.5 KB."""
MAX_ERROR = 500
"""Characters of an error's message: an item stays near one write unit."""

_OWN = "claim_token = :own AND attribute_not_exists(completedAt)"
_UNTOUCHED = "attribute_not_exists(startedAt) AND attribute_not_exists(completedAt)"
_FREE = "(attribute_not_exists(startedAt) OR startedAt <= :lease_expired)"
_IF_NEW = "if_not_exists({name}, {value})"


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
        new_token: Callable[[], str] = lambda: uuid4().hex,
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
        sets: Sets = {
            **_about(message.recipient, message.callback_url),
            "status": string("sending"),
            "claim_token": string(token),
            # What stood here before, so that a claim whose answer was lost still tells of an earlier crash.
            "prior_start": ("if_not_exists(startedAt, {value})", number(0)),
            "startedAt": number(now),
        }
        ended = "attempts = :ended"
        if message.attempt == 1:
            ended = f"(attribute_not_exists(attempts) OR {ended})"
        values = {":lease_expired": number(now - self._lease_ms), ":ended": number(message.attempt - 1)}
        change = Change(sets, f"{_FREE} AND attribute_not_exists(completedAt) AND {ended}", values)
        try:
            old = self._write(message.key, change, returns="ALL_OLD")
        except ConditionFailed as failed:
            found = failed.item
            if found.get("claim_token") == token:  # the SDK's second try met its own first
                return _claimed(message.key, token, found, found.get("prior_start"))
            return refused(found, message.attempt, now, self._lease_ms)
        return _claimed(message.key, token, old, old.get("startedAt"))

    def checkpoint(self, claim: Claimed, provider: str, provider_id: str) -> None:
        """Keep the provider's id before waiting on it: from here on the attempt is resumed, never resent."""
        self._write_own(claim, Change(_provider(provider, provider_id), _OWN))

    def complete(self, claim: Claimed, provider: str, provider_id: str) -> None:
        """The provider accepted it. After an `observe` of the same fact only the provider's id is added."""
        known = _provider(provider, provider_id)
        try:
            found = self._write_own(claim, self._end(claim.key, "sent", known, _OWN, attempts=1), "sent")
        except ClaimLost as lost:
            raise ClaimLost(f"accepted as {provider_id}, but {lost}") from None
        if found and found.get("provider_id") != provider_id:
            self._write(claim.key, Change(known, "claim_token = :own", {":own": string(claim.token)}))

    def fail(self, claim: Claimed, code: str, message: str) -> None:
        """It will not be sent, by its own fault or its recipient's; `message` says what would be right."""
        self._write_own(
            claim, self._end(claim.key, "failed", _error(code, message), _OWN, attempts=1), "failed", code
        )

    def release(self, claim: Claimed) -> None:
        """Proved not sent: the next delivery claims at once and knows of no unknown outcome."""
        self._write_own(claim, Change({}, _OWN, removes=["startedAt"]))

    def hand_back(self, claim: Claimed) -> None:
        """Not over yet: the next delivery claims at once and resumes from the checkpoint."""
        self._write_own(claim, Change({}, f"{_OWN} AND attribute_exists(provider_id)", removes=["startedAt"]))

    def retry_later(self, claim: Claimed, code: str, message: str) -> None:
        """The attempt ended without success; the next one is claimed with `attempt` + 1."""
        sets: Sets = {**_error(code, message), "status": string("retrying")}
        change = Change(sets, _OWN, removes=["startedAt", "provider_id"], adds={"attempts": 1})
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
        known: Sets = {name: (_IF_NEW, fact) for name, fact in (facts or {}).items()}
        if provider_id is not None:
            known["provider_id"] = (_IF_NEW, string(provider_id))
        if accepted:
            known["completedAt"] = (_IF_NEW, number(self._now_ms()))
        earlier = {f":before{at}": string(each) for at, each in enumerate(before(status))}
        forward = f"#status IN ({', '.join(earlier)})"
        change = Change({**known, "status": string(status)}, forward, earlier, removes=["failed_on"])
        try:
            self._write(key, change, status)
        except ConditionFailed as failed:
            if not failed.item:
                return False
            self._write(key, Change(known, "attribute_exists(id)"))
        return True

    def refuse(
        self,
        key: Key,
        code: str,
        message: str,
        *,
        to: str | list[str] | None = None,
        callback_url: str | None = None,
    ) -> bool:
        """Record an item that can never be sent, before any claim. False where the ledger has it already."""
        sets = {**_about(to, callback_url), **_error(code, message)}
        return self._try(key, self._end(key, "failed", sets, _UNTOUCHED), "failed", code)

    def schedule(self, key: Key, due: float) -> bool:
        """It waits for its time, `due` in epoch seconds. False where it is past waiting."""
        sets: Sets = {
            "status": string("scheduled"),
            "scheduledFor": string(iso(due)),
            "ttl": number(due + self._ttl),
        }
        return self._try(key, Change(sets, _UNTOUCHED))

    def cancel(self, key: Key, message: str) -> bool:
        """Its producer took it back while it waited for its time. False where it is past waiting."""
        waiting = f"{_UNTOUCHED} AND attribute_exists(id)"
        end = self._end(key, "cancelled", _error("cancelled", message), waiting)
        return self._try(key, end, "cancelled")

    def reopen(self, key: Key) -> int | None:
        """An operator's resend: clear the outcome. The number of the next attempt; None: no outcome yet.

        The generation enters `webhook-id`, so that the second life's callbacks are no repeats of the first's.
        """
        change = Change(
            {"status": string("retrying")},
            "attribute_exists(completedAt)",
            removes=["completedAt", "startedAt", "provider_id", "error", "failed_on", "dead_lettered_at"],
            adds={"generation": 1},
        )
        try:
            new = self._write(key, change, "retrying", "reopened", returns="ALL_NEW")
        except ConditionFailed:
            return None
        return int(new.get("attempts", 0)) + 1

    def _now_ms(self) -> int:
        return milliseconds(self._clock())

    def _end(self, key: Key, status: Status, sets: Sets, condition: str, attempts: int = 0) -> Change:
        """The change that gives a message its outcome; failures enter the sparse index by day and channel."""
        now = self._clock()
        sets = {**sets, "status": string(status), "completedAt": number(milliseconds(now))}
        if status == "failed":
            sets["failed_on"] = string(f"{iso(now)[:10]}#{key.event_type[:40]}")
        return Change(sets, condition, adds={"attempts": attempts} if attempts else {})

    def _write_own(
        self, claim: Claimed, change: Change, entry: Status | None = None, code: str | None = None
    ) -> dict[str, Any]:
        """Write as the claim's holder. What stood there where it was done already ({}: written now).

        Raises ClaimLost where another worker has claimed the message since.
        """
        change = replace(change, values={**change.values, ":own": string(claim.token)})
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
        lives: Sets = {"updatedAt": string(iso(now)), "ttl": number(now + self._ttl)}
        change = replace(change, sets={**lives, **change.sets})
        where = {"id": string(key.id), "event_type": string(key.event_type)}
        if entry is None:
            return update(self._client, self._table, where, change, returns)
        try:
            return update(self._client, self._table, where, _noted(change, entry, code, now), returns)
        except ConditionFailed as failed:
            if len(failed.item.get("history", ())) < MAX_HISTORY:
                raise
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


def _provider(provider: str, provider_id: str) -> Sets:
    return {"provider": string(provider), "provider_id": string(provider_id)}


def _error(code: str, message: str) -> Sets:
    return {"error": {"M": {"code": string(code), "message": string(message[:MAX_ERROR])}}}


def _noted(change: Change, status: Status, code: str | None, now: float) -> Change:
    line = {"at": number(milliseconds(now)), "status": string(status)}
    if code is not None:
        line["code"] = string(code)
    append = "list_append(if_not_exists({name}, :no_history), {value})"
    return replace(
        change,
        sets={**change.sets, "history": (append, {"L": [{"M": line}]})},
        condition=f"({change.condition}) AND (attribute_not_exists(history) OR size(history) < :max_history)",
        values={**change.values, ":no_history": {"L": []}, ":max_history": number(MAX_HISTORY)},
    )
