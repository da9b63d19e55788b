"""The ledger: one item a message, saying what became of it. Every verb is one conditional write.

Two writes a message are the floor of an idempotent sender, `claim` and `complete`; stay there.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from mailroom.aws import clients
from mailroom.aws.dynamo_updates import ConditionFailed, also, assigned, assigned_once, values_of
from mailroom.aws.dynamo_values import Sets, image_of, number, plain, string
from mailroom.clock import Clock, iso, milliseconds
from mailroom.environment import Common
from mailroom.errors import ClaimLost
from mailroom.ledger import UNCLAIMED
from mailroom.ledger.claims import Checkpoint, Claim, Claimed, Try, tries_in, why_not_claimed
from mailroom.ledger.items import (
    PROVIDER_FACTS,
    REDIRECTED_TO,
    about_of,
    addressing_of,
    addressing_of_any,
    each_of,
    error_of,
    facts_of,
    provider_of,
    trouble_of,
    where,
)
from mailroom.ledger.table import LedgerTable
from mailroom.message.message import Key, Message, key_of
from mailroom.message.outcome import ANY_ACCOUNT, Facts, Status

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

_FIRST_CLAIM = """
    (attribute_not_exists(startedAt) OR startedAt <= :lease_over)
    AND attribute_not_exists(completedAt)
    AND (attribute_not_exists(attempts) OR attempts = :ended)"""
_NEXT_CLAIM = """
    (attribute_not_exists(startedAt) OR startedAt <= :lease_over)
    AND attribute_not_exists(completedAt)
    AND attempts = :ended"""
_OWN = "claim_token = :own AND attribute_not_exists(completedAt)"
_ONE = number(1)
_SETTLED_BY_OPERATOR = "an operator settled it as failed, for nobody could tell any more how it ended"


class NewClaim(NamedTuple):
    """A claim to make."""

    message: Message
    account: str | None
    """Account at which the message is going to be submitted; None if it may not be submitted."""
    redirected_to: str | None
    """Recipient that gets the message in place of its own recipients."""
    token: str
    """Proof of ownership, by which a repeat of the write recognizes the first one."""
    put_at: float | None = None
    """Time in epoch seconds when the message was put, if it is known."""


class Ledger(LedgerTable):
    """The verbs, each with its update in DynamoDB's own words. Beside those each write sets `updatedAt` and
    `ttl`, and one with an `entry` adds to `history`. `lease` is how long a worker may hold a message before
    it counts as crashed, `ttl` how long an item lives after its last change; both in seconds."""

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
        account: str | None = ANY_ACCOUNT,
        redirected_to: str | None = None,
        token: str | None = None,
        put_at: float | None = None,
    ) -> Claim:
        """Take the message for this worker, or learn why not. The arguments are a `NewClaim`'s; without a
        token, the claim gets one."""
        now, wanted = (
            self._now_ms(),
            NewClaim(message, account, redirected_to, token or self.new_token(), put_at),
        )
        claim, stays, about = self._claim_of(wanted, now)
        told = also(assigned(about)) + also(assigned_once(stays))
        expression = f"""
            SET #status = :status, claim_token = :claim_token, startedAt = :startedAt{told}
            {"ADD unsettled_tries :unsettled_tries" if "unsettled_tries" in claim else ""}
            REMOVE dead_lettered_at{"" if redirected_to else ", redirected_to"}"""
        ended, lease_over = number(message.attempt - 1), number(now - self._lease_ms)
        condition = _FIRST_CLAIM if message.attempt == 1 else _NEXT_CLAIM
        values = values_of({**claim, **stays, **about, "ended": ended, "lease_over": lease_over})
        try:
            old = self.write(message.key, expression, condition, values, returns="ALL_OLD")
        except ConditionFailed as failed:
            found = failed.item
            # A try before this one has written it: the SDK's, or `claim_new`, whose answer was lost. An event
            # that completed it in between still counts.
            if found.get("claim_token") == wanted.token and "completedAt" not in found:
                return _claimed(wanted, found)
            return why_not_claimed(found, message.attempt, now, self._lease_ms)
        return _claimed(wanted, old)

    def claim_new(self, wanted: Sequence[NewClaim]) -> list[Claimed | str]:
        """Take first attempts of which the ledger has no item, no key twice, in one call for 25 of them. A
        code where that is not certain: see `insert`. Then `claim` will tell."""
        now = self._now_ms()
        items: list[tuple[Key, Sets]] = []
        for each in wanted:
            claim, stays, about = self._claim_of(each, now)
            items.append((each.message.key, {**claim, **stays, **about}))
        codes = self.write_new(items)
        return [code or _claimed(each, {}) for each, code in zip(wanted, codes, strict=True)]

    def _claim_of(self, wanted: NewClaim, now: int) -> tuple[Sets, Sets, Sets]:
        """What a claim writes: the claim itself, what stays as it was where it is there already, and what the
        item says of the message."""
        message = wanted.message
        kept = message.kept
        if wanted.redirected_to is not None:
            kept = {**message.redirected(wanted.redirected_to).kept, REDIRECTED_TO: wanted.redirected_to}
        claim: Sets = {
            "status": string("sending"),
            "claim_token": string(wanted.token),
            "startedAt": number(now),
        }
        if wanted.account is not None:
            # Stays over crashes, until a verb settles the outcome of each try.
            claim["unsettled_tries"] = {"SS": [Try(now, wanted.account).text]}
        about = {
            **about_of(message),
            **each_of(message.addressees),
            **facts_of(kept),
        }
        stays: Sets = {name: about.pop(name) for name in ("callbacks", "recipients") if name in about}
        stays |= self.first_seen(wanted.put_at)
        return claim, stays, about

    def checkpoint(self, claim: Claimed, provider: str, provider_id: str, line: str | None = None) -> None:
        """Keep the provider's id before waiting on it: from here on the attempt is resumed, never resent.

        `line`: what it occupies, such as a fax number; `ids_on_line` then finds it.
        """
        of_line = {} if line is None else {"line": string(line)}
        told = also(assigned(of_line))
        self._write_own(
            claim,
            f"""SET provider = :provider, provider_id = :provider_id, submittedAt = :submittedAt{told}
            ADD provider_ids :provider_ids""",
            _OWN,
            values_of(
                {
                    **provider_of(provider, provider_id),
                    **of_line,
                    "submittedAt": number(self._now_ms()),
                    "provider_ids": {"SS": [provider_id]},
                }
            ),
        )

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
        ids = Sets()
        if line is not None:
            known |= {"line": line, "submittedAt": self._now_ms()}
            ids = {"provider_ids": {"SS": [provider_id]}}
        told, of_line = facts_of(known), "provider_ids :provider_ids" if ids else ""
        try:
            found = self._write_own(
                claim,
                # The error is an earlier attempt's, which the history keeps.
                f"""SET #status = :status, completedAt = :now{also(assigned(told))}
                REMOVE trouble, dead_lettered_at, #error
                ADD attempts :one{also(of_line)}""",
                _OWN,
                {**self.ended(claim.key, "sent"), ":one": _ONE, **values_of({**told, **ids})},
                entry="sent",
            )
        except ClaimLost as lost:
            raise ClaimLost(f"accepted as {provider_id}, but {lost}") from None
        lacking = {name: value for name, value in known.items() if found.get(name) != value}
        # Neither is worth a write of its own.
        if found and lacking.keys() - {"submittedAt", "subject"}:
            self.write(
                claim.key,
                f"SET {assigned(told)} {of_line and f'ADD {of_line}'}",
                "claim_token = :own",
                {**values_of({**told, **ids}), ":own": string(claim.token)},
            )

    def fail(self, claim: Claimed, code: str, message: str, field: str = "") -> None:
        """Record that the message will not be sent, by its own fault or its recipient's; `message` says what
        would be right, `field` which attribute is at fault."""
        self._write_own(
            claim,
            """SET #status = :status, completedAt = :now, failed_on = :failed_on, #error = :error
            REMOVE trouble, dead_lettered_at
            ADD attempts :one""",
            _OWN,
            {**self.ended(claim.key, "failed"), ":one": _ONE, **values_of(error_of(code, message, field))},
            entry="failed",
            code=code,
        )

    def suppress(self, claim: Claimed, code: str, message: str) -> None:
        """Record that the message will not be sent: no recipient wants it, or can be reached. `message` says
        why."""
        self._write_own(
            claim,
            """SET #status = :status, completedAt = :now, #error = :error
            REMOVE trouble, dead_lettered_at
            ADD attempts :one""",
            _OWN,
            {**self.ended(claim.key, "suppressed"), ":one": _ONE, **values_of(error_of(code, message))},
            entry="suppressed",
            code=code,
        )

    def suppress_one(self, claim: Claimed, addressee: str, message: str) -> None:
        """Record that one of several recipients is left out: the others get the message."""
        self.advance(claim.key, addressee, "suppressed", {}, message, claim.token)

    def release(self, claim: Claimed, code: str = "", message: str = "") -> None:
        """Record that the claim's holder has not sent the message: the next delivery claims at once. That
        proves nothing of an earlier try whose outcome is unknown, so the next delivery hears
        of that try.

        `trouble` says what kept the message from being sent, until it is settled.
        """
        trouble = trouble_of(code, message)
        values = values_of(trouble)
        if not claim.unsettled:
            said = "SET trouble = :trouble" if trouble else ""
            expression = f"{said} REMOVE startedAt, unsettled_tries"
        else:
            expression = f"SET unsettled_tries = :earlier{also(assigned(trouble))} REMOVE startedAt"
            values[":earlier"] = {"SS": [each.text for each in claim.unsettled]}
        self._write_own(claim, expression, _OWN, values)

    def doubt(self, claim: Claimed, code: str, message: str) -> None:
        """Record why the outcome of a submit is unknown; the claim stands."""
        self._write_own(claim, "SET trouble = :trouble", _OWN, values_of(trouble_of(code, message)))

    def hand_back(self, claim: Claimed) -> None:
        """Give up a claim whose fax is not over: the next delivery claims at once and resumes from the
        checkpoint."""
        self._write_own(
            claim,
            "REMOVE startedAt, unsettled_tries",
            f"{_OWN} AND attribute_exists(provider_id)",
            {},
        )

    def retry_later(self, claim: Claimed, code: str, message: str) -> None:
        """The attempt ended without success; the next one is claimed with `attempt` + 1."""
        self._write_own(
            claim,
            """SET #status = :retrying, #error = :error
            REMOVE startedAt, unsettled_tries, provider_id
            ADD attempts :one""",
            # Held still: an SDK's second try, after a lost answer, must not count the attempt twice.
            f"{_OWN} AND attribute_exists(startedAt)",
            {":retrying": string("retrying"), ":one": _ONE, **values_of(error_of(code, message))},
            entry="retrying",
            code=code,
        )

    def dead_lettered(self, key: Key) -> dict[str, Any]:
        """Mark a message that lies in a dead-letter queue by `dead_lettered_at`, unless it is completed or
        marked already. That is no verdict, so nothing else changes. Returns the item as it stands; {}: there
        is none."""
        try:
            return self.write(
                key,
                "SET dead_lettered_at = :now",
                """attribute_exists(id) AND attribute_not_exists(completedAt)
                AND attribute_not_exists(dead_lettered_at)""",
                {":now": number(self._now_ms())},
                returns="ALL_NEW",
            )
        except ConditionFailed as failed:
            return failed.item

    def callbacks(self, key: Key) -> dict[str, Any]:
        """A message's item with only `callbacks`: why they were not taken; {}: nothing is known."""
        reply = self._client.get_item(TableName=self._table, Key=where(key), ProjectionExpression="callbacks")
        return plain(reply.get("Item", {}))

    def refuse(
        self,
        item: Mapping[str, Any],
        code: str,
        message: str,
        field: str = "",
        put_at: float | None = None,
    ) -> bool:
        """Record an item that can never be sent, before any claim. Nothing but its key needs to be right.
        `put_at`: see `NewClaim`.

        False where a better copy was claimed before: that one decides, so this record must come back.
        """
        key, about, first = key_of(item), addressing_of_any(item), self.first_seen(put_at)
        told = also(assigned(about)) + also(assigned_once(first))
        try:
            self.write(
                key,
                f"""SET #status = :status, completedAt = :now, failed_on = :failed_on, #error = :error{told}
                REMOVE trouble, dead_lettered_at""",
                UNCLAIMED,
                {
                    **self.ended(key, "failed"),
                    **values_of({**error_of(code, message, field), **about, **first}),
                },
                entry="failed",
                code=code,
            )
        except ConditionFailed as failed:
            return "completedAt" in failed.item
        return True

    def schedule(
        self, message: Message, due: float, code: str = "", why: str = "", put_at: float | None = None
    ) -> bool:
        """Record that the message waits for its time, `due` in epoch seconds; `code` and `why` say for what
        it waits, where that is not its `send_at`; `put_at`: see `NewClaim`. False where it is past
        waiting."""
        about, first = about_of(message) | trouble_of(code, why), self.first_seen(put_at)
        told = also(assigned(about)) + also(assigned_once(first))
        return self.try_write(
            message.key,
            f"SET #status = :scheduled, scheduledFor = :due{told}",
            UNCLAIMED,
            {
                ":scheduled": string("scheduled"),
                ":due": string(iso(due)),
                ":ttl": self.ttl_after(due),
                **values_of({**about, **first}),
            },
        )

    def cancel(self, key: Key, message: str, since: float = 0) -> bool:
        """Record that the producer took the message back while it waited for its time. False where it is past
        waiting, or was due before `since` (epoch seconds)."""
        return self.try_write(
            key,
            """SET #status = :status, completedAt = :now, #error = :error
            REMOVE trouble, dead_lettered_at""",
            f"{UNCLAIMED} AND attribute_exists(id) AND scheduledFor >= :since",
            {
                **self.ended(key, "cancelled"),
                ":since": string(iso(since)),
                **values_of(error_of("cancelled", message)),
            },
            entry="cancelled",
        )

    def lose(self, key: Key, message: str) -> bool:
        """Record that the message waited for its time, and that its content is gone. False where it is past
        waiting."""
        return self.try_write(
            key,
            """SET #status = :status, completedAt = :now, failed_on = :failed_on, #error = :error
            REMOVE trouble, dead_lettered_at""",
            f"{UNCLAIMED} AND attribute_exists(id)",
            {**self.ended(key, "failed"), **values_of(error_of("content_gone", message))},
            entry="failed",
            code="content_gone",
        )

    def leave_out(
        self, key: Key, to: str | list[str] | None, topic: str | None, code: str, message: str
    ) -> bool:
        """Record a message that is not put into the mailbox, because its recipient does not want it;
        `message` says so. False where it has an item already, which decides."""
        about, first = addressing_of(to, None, topic), self.first_seen()
        told = also(assigned(about)) + also(assigned_once(first))
        return self.try_write(
            key,
            f"""SET #status = :status, completedAt = :now, #error = :error{told}
            REMOVE trouble, dead_lettered_at""",
            UNCLAIMED,
            {**self.ended(key, "suppressed"), **values_of({**error_of(code, message), **about, **first})},
            entry="suppressed",
            code=code,
        )

    def reopen(self, key: Key, seen: Mapping[str, Any], by: str = "") -> int | None:
        """An operator's resend: clear the outcome. The number of the next attempt; None: no outcome yet, its
        recipient was erased, or it is not as `seen` any more, the item by which the resend was judged right.
        `by` is that operator ("": nobody can tell).

        The generation enters `webhook-id`, so that the second life's callbacks are no repeats of the first's.
        """
        same, values = _as_seen(seen)
        operator: Sets = {"reopened_by": string(by)} if by else {}
        try:
            new = self.write(
                key,
                # A new token: whoever still holds the life before must not complete this one. What was told
                # of that life says nothing about the next one.
                f"""SET #status = :retrying, claim_token = :claim_token{also(assigned(operator))}
                REMOVE completedAt, startedAt, unsettled_tries, trouble, dead_lettered_at,
                    provider_id, #error, failed_on, {", ".join(PROVIDER_FACTS)}
                ADD generation :one""",
                f"attribute_exists(completedAt) AND attribute_not_exists(erased_at) AND {same}",
                {
                    ":retrying": string("retrying"),
                    ":claim_token": string(self.new_token()),
                    ":one": _ONE,
                    **values,
                    **values_of(operator),
                },
                entry="retrying",
                code="reopened",
                returns="ALL_NEW",
            )
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
        # A new token: a worker that follows it still must not complete it otherwise.
        told: Sets = {"claim_token": string(self.new_token())}
        of_failure = also("failed_on = :failed_on, #error = :error") if status == "failed" else ""
        if status == "failed":
            told |= error_of("settled", _SETTLED_BY_OPERATOR)
        return self.try_write(
            key,
            f"""SET #status = :status, completedAt = :now, claim_token = :claim_token{of_failure}
            REMOVE trouble, dead_lettered_at{"" if of_failure else ", #error"}
            ADD attempts :one""",
            f"""attribute_not_exists(completedAt)
            AND (attribute_not_exists({begun}) OR {begun} <= :before) AND {same}""",
            {
                **self.ended(key, status),
                ":one": _ONE,
                ":before": number(milliseconds(before)),
                **values_of(told),
                **values,
            },
            entry=status,
            code="settled",
        )

    def _now_ms(self) -> int:
        return milliseconds(self._clock())

    def _write_own(
        self,
        claim: Claimed,
        expression: str,
        condition: str,
        values: Sets,
        *,
        entry: Status | None = None,
        code: str | None = None,
    ) -> dict[str, Any]:
        """Write as the claim's holder. What stood there where it was done already ({}: written now).

        Raises ClaimLost where another worker has claimed the message since.
        """
        own = {**values, ":own": string(claim.token)}
        try:
            return self.write(claim.key, expression, condition, own, entry=entry, code=code)
        except ConditionFailed as failed:
            if failed.item.get("claim_token") != claim.token:
                raise ClaimLost("another worker has claimed the message since") from None
            return failed.item


def _claimed(wanted: NewClaim, item: Mapping[str, Any]) -> Claimed:
    """Build the claim from the item before it. A repeat of the write sees the item after it, with its own
    try."""
    tries = tries_in(item.get("unsettled_tries", ()))
    if item.get("claim_token") == wanted.token:
        tries = tuple(each for each in tries if each.began != item["startedAt"])
    checkpoint = None
    if "provider_id" in item:
        checkpoint = Checkpoint(item["provider_id"], item["provider"], item.get("submittedAt", 0))
    return Claimed(
        wanted.message.key,
        wanted.token,
        wanted.account,
        tries,
        checkpoint,
        wanted.redirected_to,
        "dead_lettered_at" in item,
    )


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
