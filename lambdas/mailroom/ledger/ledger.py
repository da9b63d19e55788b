"""The ledger: one item a message, saying what became of it. Every verb is one conditional write.

Two writes a message are the floor of an idempotent sender, `claim` and `complete`; stay there.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from mailroom.aws import clients
from mailroom.aws.dynamo import ONCE, Change, ConditionFailed, Sets, image_of, number, plain, string
from mailroom.clock import Clock, iso, milliseconds
from mailroom.environment import Common
from mailroom.errors import ClaimLost
from mailroom.ledger.items import (
    CLEARED_AT_END,
    ERASED_AT,
    PROVIDER_FACTS,
    REDIRECTED_TO,
    UNKNOWN_ACCOUNT,
    Claim,
    Claimed,
    LedgerItems,
    accounts_of,
    addressing_of,
    addressing_of_any,
    each_of,
    error_of,
    facts_of,
    ids_of,
    provider_of,
    tried,
    trouble_of,
    where,
    why_not_claimed,
)
from mailroom.message.message import Key, Message, key_of
from mailroom.message.outcome import Facts, Status

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

_OWN = "claim_token = :own AND attribute_not_exists(completedAt)"
# A token outlives its claim's release.
_UNCLAIMED = " AND ".join(
    f"attribute_not_exists({name})" for name in ("startedAt", "completedAt", "claim_token")
)
_UNCLAIMED_EXISTING = f"{_UNCLAIMED} AND attribute_exists(id)"
_FREE = "(attribute_not_exists(startedAt) OR startedAt <= :lease_expired)"
_NEXT = f"{_FREE} AND attribute_not_exists(completedAt) AND attempts = :ended"
_FIRST = _NEXT.replace("attempts = :ended", "(attribute_not_exists(attempts) OR attempts = :ended)")
_KEPT = dict.fromkeys(("unsettled_since", "callbacks", "recipients"), ONCE)
_CALLBACKS_KEPT = {"callbacks": _KEPT["callbacks"]}
_CLAIM = ("startedAt", "unsettled_since", "unsettled_tries")
"""What goes when it is known what a claim's holder did."""
_SENDING = string("sending")
_SETTLED_BY_OPERATOR = "an operator settled it as failed, for nobody could tell any more how it ended"


class NewClaim(NamedTuple):
    """A claim to make. `account`: where the message is going to be submitted, or NOWHERE; None where nobody
    will be asked what became of it. `redirected_to`: see `Claimed`. `token`: by it a repeat knows its own
    first try."""

    message: Message
    account: str | None
    redirected_to: str | None
    token: str


class Ledger(LedgerItems):
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
        super().__init__(client, table, ttl, clock)
        self._lease_ms = int(lease * 1000)
        self.new_token = new_token

    @classmethod
    def of(cls, settings: Common, lease: float = 0) -> "Ledger":
        """The ledger that a function's settings name; who never claims needs no lease."""
        table, ttl = settings.ledger_table, settings.ledger_ttl_seconds
        return cls(clients.dynamodb(), table, lease=lease, ttl=ttl, clock=time.time)

    def claim(
        self,
        message: Message,
        account: str | None = None,
        redirected_to: str | None = None,
        token: str | None = None,
    ) -> Claim:
        """Take the message for this worker, or learn why not. The arguments are a `NewClaim`'s; without a
        token, the claim gets one."""
        now, wanted = self._now_ms(), NewClaim(message, account, redirected_to, token or self.new_token())
        change = self._claiming(wanted, now)
        try:
            old = self.write(message.key, change, returns="ALL_OLD")
        except ConditionFailed as failed:
            found = failed.item
            # A try before this one has written it: the SDK's, or `claim_new`, whose answer was lost. An event
            # that completed it in between still counts.
            if found.get("claim_token") == wanted.token and "completedAt" not in found:
                return _claimed(wanted, *_before(found, wanted.account))
            return why_not_claimed(found, message.attempt, now, self._lease_ms)
        return _claimed(wanted, old, old.get("unsettled_since"))

    def claim_new(self, wanted: Sequence[NewClaim]) -> list[Claimed | str]:
        """Take first attempts of which the ledger has no item, no key twice, in one call for 25 of them. A
        code where that is not certain: see `insert`. Then `claim` will tell."""
        now = self._now_ms()
        codes = self.write_new([(each.message.key, self._claiming(each, now)) for each in wanted])
        return [code or _claimed(each, {}, None) for each, code in zip(wanted, codes, strict=True)]

    def _claiming(self, wanted: NewClaim, now: int) -> Change:
        message, began = wanted.message, number(now)
        kept, removes = message.kept, ["dead_lettered_at"]  # somebody has put it back on its way
        if wanted.redirected_to is None:
            removes.append(REDIRECTED_TO)
        else:
            redirected = message.redirected(wanted.redirected_to)
            kept = {**redirected.kept, REDIRECTED_TO: wanted.redirected_to}
        return Change(
            {
                **addressing_of(message.recipient, message.callback_url, message.topic),
                **each_of(message.addressees),
                **facts_of(kept),
                "status": _SENDING,
                "claim_token": string(wanted.token),
                # Stays over crashes, until a verb settles what they left open.
                "unsettled_since": began,
                "startedAt": began,
            },
            _FIRST if message.attempt == 1 else _NEXT,
            {":lease_expired": number(now - self._lease_ms), ":ended": number(message.attempt - 1)},
            forms=_KEPT,
            removes=tuple(removes),
            # Each try adds its own: they are counted, and settings may change from one to the next.
            unions={"unsettled_tries": {"SS": [tried(now, wanted.account or UNKNOWN_ACCOUNT)]}},
        )

    def checkpoint(self, claim: Claimed, provider: str, provider_id: str, line: str | None = None) -> None:
        """Keep the provider's id before waiting on it: from here on the attempt is resumed, never resent.

        `line`: what it occupies, such as a fax number; `ids_on_line` then finds it.
        """
        sets = {**provider_of(provider, provider_id), "submittedAt": number(self._now_ms())}
        if line is not None:
            sets["line"] = string(line)
        self._write_own(claim, Change(sets, _OWN, unions=ids_of(provider_id)))

    def complete(
        self,
        claim: Claimed,
        provider: str,
        provider_id: str,
        facts: Facts | None = None,
        line: str | None = None,
    ) -> None:
        """The provider accepted it. After an `observe` of the same fact only what it lacks is added.

        `line`: the number that it went to, where `ids_on_line` has to know of it.
        """
        known: Facts = {"provider": provider, "provider_id": provider_id, **(facts or {})}
        if line is not None:
            known |= {"line": line, "submittedAt": self._now_ms()}
        end = self._end(claim.key, "sent", facts_of(known), _OWN, adds=("attempts",))
        end.removes = (*end.removes, "error")  # an earlier attempt's, which the history keeps
        end.unions = ids_of(provider_id) if line is not None else {}
        try:
            found = self._write_own(claim, end, "sent")
        except ClaimLost as lost:
            raise ClaimLost(f"accepted as {provider_id}, but {lost}") from None
        lacking = {name: value for name, value in known.items() if found.get(name) != value}
        if found and lacking.keys() - {"submittedAt"}:
            merge = Change(facts_of(known), "claim_token = :own", _own(claim), unions=end.unions)
            self.write(claim.key, merge)

    def fail(self, claim: Claimed, code: str, message: str, field: str = "") -> None:
        """Record that the message will not be sent, by its own fault or its recipient's; `message` says what
        would be right, `field` which attribute is at fault."""
        end = self._end(claim.key, "failed", error_of(code, message, field), _OWN, adds=("attempts",))
        self._write_own(claim, end, "failed", code)

    def suppress(self, claim: Claimed, code: str, message: str) -> None:
        """Record that the message will not be sent: no recipient wants it, or can be reached. `message` says
        why."""
        end = self._end(claim.key, "suppressed", error_of(code, message), _OWN, adds=("attempts",))
        self._write_own(claim, end, "suppressed", code)

    def suppress_one(self, claim: Claimed, addressee: str, message: str) -> None:
        """Record that one of several recipients is left out: the others get the message."""
        self.advance(claim.key, addressee, "suppressed", {}, message, claim.token)

    def release(self, claim: Claimed, code: str = "", message: str = "") -> None:
        """Record that the claim's holder has not sent the message: the next delivery claims at once. That
        proves nothing of an earlier try whose outcome is unknown (`claim.since`), so the next delivery hears
        of that try.

        `trouble` says what kept the message from being sent, until it is settled.
        """
        change = Change(trouble_of(code, message), _OWN, removes=_CLAIM)
        if claim.since is not None:
            change.removes = ("startedAt",) if claim.earlier else ("startedAt", "unsettled_tries")
            change.sets |= {"unsettled_tries": {"SS": [*claim.earlier]}} if claim.earlier else {}
        self._write_own(claim, change)

    def hand_back(self, claim: Claimed) -> None:
        """Give up a claim whose fax is not over: the next delivery claims at once and resumes from the
        checkpoint."""
        self._write_own(claim, Change({}, f"{_OWN} AND attribute_exists(provider_id)", removes=_CLAIM))

    def retry_later(self, claim: Claimed, code: str, message: str) -> None:
        """The attempt ended without success; the next one is claimed with `attempt` + 1."""
        sets: Sets = {**error_of(code, message), "status": string("retrying")}
        # Held still: an SDK's second try, after a lost answer, must not count the attempt twice.
        held = f"{_OWN} AND attribute_exists(startedAt)"
        change = Change(sets, held, removes=(*_CLAIM, "provider_id"), adds=("attempts",))
        self._write_own(claim, change, "retrying", code)

    def dead_lettered(self, key: Key) -> dict[str, Any]:
        """Mark a message that lies in a dead-letter queue by `dead_lettered_at`, unless it is completed or
        marked already. That is no verdict, so nothing else changes. Returns the item as it stands; {}: there
        is none."""
        mark = Change(
            {"dead_lettered_at": number(self._now_ms())},
            "attribute_exists(id) AND attribute_not_exists(completedAt)"
            " AND attribute_not_exists(dead_lettered_at)",
        )
        try:
            return self.write(key, mark, returns="ALL_NEW")
        except ConditionFailed as failed:
            return failed.item

    def callbacks(self, key: Key) -> dict[str, Any]:
        """A message's item with only `callbacks`: why they were not taken; {}: nothing is known."""
        reply = self._client.get_item(TableName=self._table, Key=where(key), ProjectionExpression="callbacks")
        return plain(reply.get("Item", {}))

    def refuse(self, item: Mapping[str, Any], code: str, message: str, field: str = "") -> bool:
        """Record an item that can never be sent, before any claim. Nothing but its key needs to be right.

        False where a better copy was claimed before: that one decides, so this record must come back.
        """
        key = key_of(item)
        sets = {**addressing_of_any(item), **error_of(code, message, field)}
        try:
            end = self._end(key, "failed", sets, _UNCLAIMED)
            self.write(key, end, "failed", code)
        except ConditionFailed as failed:
            return "completedAt" in failed.item
        return True

    def schedule(self, message: Message, due: float) -> bool:
        """Record that the message waits for its time, `due` in epoch seconds. False where it is past
        waiting."""
        sets: Sets = {
            **addressing_of(message.recipient, message.callback_url, message.topic),
            "status": string("scheduled"),
            "scheduledFor": string(iso(due)),
            "ttl": self.ttl_after(due),
        }
        return self.try_write(message.key, Change(sets, _UNCLAIMED))

    def cancel(self, key: Key, message: str, since: float = 0) -> bool:
        """Record that the producer took the message back while it waited for its time. False where it is past
        waiting, or was due before `since` (epoch seconds)."""
        in_time = f"{_UNCLAIMED_EXISTING} AND scheduledFor >= :since"
        end = self._end(key, "cancelled", error_of("cancelled", message), in_time)
        end.values = {":since": string(iso(since))}
        return self.try_write(key, end, "cancelled")

    def lose(self, key: Key, message: str) -> bool:
        """Record that the message waited for its time, and that its content is gone. False where it is past
        waiting."""
        end = self._end(key, "failed", error_of("content_gone", message), _UNCLAIMED_EXISTING)
        return self.try_write(key, end, "failed", "content_gone")

    def withdraw(
        self,
        key: Key,
        message: str,
        to: str | list[str] | None = None,
        callback_url: str | None = None,
        due: float = 0,
    ) -> bool:
        """Cancel a message that no worker has claimed, even if the ledger has no item yet. A sender that
        receives the message drops it. `to`, `callback_url` and `due` (epoch seconds) are the message's. False
        if a worker has claimed it, or if it has ended."""
        sets = {**addressing_of(to, callback_url), **error_of("cancelled", message), **self.outliving(due)}
        end = self._end(key, "cancelled", sets, _UNCLAIMED)
        end.forms = _CALLBACKS_KEPT
        return self.try_write(key, end, "cancelled")

    def leave_out(
        self, key: Key, to: str | list[str] | None, topic: str | None, code: str, message: str
    ) -> bool:
        """Record a message that is not put into the mailbox, because its recipient does not want it;
        `message` says so. False where it has an item already, which decides."""
        sets = {**addressing_of(to, None, topic), **error_of(code, message)}
        end = self._end(key, "suppressed", sets, _UNCLAIMED)
        return self.try_write(key, end, "suppressed", code)

    def reopen(self, key: Key, seen: Mapping[str, Any]) -> int | None:
        """An operator's resend: clear the outcome. The number of the next attempt; None: no outcome yet, its
        recipient was erased, or it is not as `seen` any more, the item by which the resend was judged right.

        The generation enters `webhook-id`, so that the second life's callbacks are no repeats of the first's.
        """
        same, values = _as_seen(seen)
        # A new token: whoever still holds the life before must not complete this one.
        change = Change(
            {"status": string("retrying"), "claim_token": string(self.new_token())},
            f"attribute_exists(completedAt) AND attribute_not_exists({ERASED_AT}) AND {same}",
            values,
            # What was told of the life before says nothing about the next one.
            removes=(
                "completedAt",
                *_CLAIM,
                *CLEARED_AT_END,
                *PROVIDER_FACTS,
                "provider_id",
                "error",
                "failed_on",
            ),
            adds=("generation",),
        )
        try:
            new = self.write(key, change, "retrying", "reopened", returns="ALL_NEW")
        except ConditionFailed:
            return None
        return int(new.get("attempts", 0)) + 1

    def settle(
        self, key: Key, seen: Mapping[str, Any], status: Literal["sent", "failed"], before: float
    ) -> bool:
        """An operator's word on a message without an outcome, of which nobody else can tell it any more.
        False where it is not as `seen` any more, the item by which that was judged, or where it was begun
        after `before` (epoch seconds): a worker may hold it, or its provider be at it."""
        same, values = _as_seen(seen)
        submitted = "provider_id" in seen
        # Without an id any worker may submit it, so it must be the same one's; with one it is followed alone.
        for name in ("provider_id",) if submitted else ("provider_id", "claim_token"):
            if name in seen:
                same += f" AND {name} = :seen_{name}"
                values[f":seen_{name}"] = string(str(seen[name]))
            else:
                same += f" AND attribute_not_exists({name})"
        begun = "submittedAt" if submitted else "startedAt"
        quiet = f"(attribute_not_exists({begun}) OR {begun} <= :before)"
        said = error_of("settled", _SETTLED_BY_OPERATOR) if status == "failed" else {}
        # A new token: a worker that follows it still must not complete it otherwise.
        end = self._end(
            key,
            status,
            {**said, "claim_token": string(self.new_token())},
            f"attribute_not_exists(completedAt) AND {quiet} AND {same}",
            adds=("attempts",),
        )
        end.values = {**values, ":before": number(milliseconds(before))}
        end.removes = CLEARED_AT_END if said else (*CLEARED_AT_END, "error")
        return self.try_write(key, end, status, "settled")

    def _now_ms(self) -> int:
        return milliseconds(self._clock())

    def _end(
        self, key: Key, status: Status, sets: Sets, condition: str, adds: tuple[str, ...] = ()
    ) -> Change:
        return Change({**sets, **self.ended(key, status)}, condition, removes=CLEARED_AT_END, adds=adds)

    def _write_own(
        self, claim: Claimed, change: Change, entry: Status | None = None, code: str | None = None
    ) -> dict[str, Any]:
        """Write as the claim's holder. What stood there where it was done already ({}: written now).

        Raises ClaimLost where another worker has claimed the message since.
        """
        change.values = {**change.values, **_own(claim)}
        try:
            return self.write(claim.key, change, entry, code)
        except ConditionFailed as failed:
            if failed.item.get("claim_token") != claim.token:
                raise ClaimLost("another worker has claimed the message since") from None
            return failed.item


def _claimed(wanted: NewClaim, item: Mapping[str, Any], since: int | None) -> Claimed:
    return Claimed(
        wanted.message.key,
        wanted.token,
        since,
        item.get("provider_id"),
        item.get("submittedAt"),
        item.get("provider"),
        accounts_of(item, since),
        wanted.redirected_to,
        wanted.account,
        tuple(item.get("unsettled_tries", ())) if since else (),
        "dead_lettered_at" in item,
    )


def _before(found: Mapping[str, Any], account: str | None) -> tuple[dict[str, Any], int | None]:
    """The item as a claim found it that has written `found`, and since when it was unsettled."""
    since, began = found["unsettled_since"], found["startedAt"]
    tries = [
        each for each in found.get("unsettled_tries", ()) if each != tried(began, account or UNKNOWN_ACCOUNT)
    ]
    item = {name: value for name, value in found.items() if name != "startedAt"} | {"unsettled_tries": tries}
    return item, None if since == began else since


def _as_seen(seen: Mapping[str, Any]) -> tuple[str, Sets]:
    """A condition, and its values: the message has had no other life, attempt or event since."""
    same, values = ["#status = :seen_status"], {":seen_status": string(str(seen.get("status", "")))}
    for counter in ("attempts", "generation"):
        count = int(seen.get(counter, 0))
        values[f":seen_{counter}"] = number(count)
        equal = f"{counter} = :seen_{counter}"
        same.append(equal if count else f"(attribute_not_exists({counter}) OR {equal})")
    if "recipients" in seen:
        # An event may move one of several, and leave the whole where it is.
        same.append("recipients = :seen_recipients")
        values[":seen_recipients"] = image_of({"recipients": seen["recipients"]})["recipients"]
    return " AND ".join(same), values


def _own(claim: Claimed) -> Sets:
    return {":own": string(claim.token)}
