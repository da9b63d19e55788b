"""The ledger: one item for each message, with the message's status and history. Each change is one
conditional write.

A message that is sent costs two writes, `claim` and `complete`: the fewest that can prevent a second send. Do
not add a third.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from os import urandom
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from msgspec import ValidationError, convert, structs

from mailroom.aws import clients
from mailroom.aws.dynamo_batches import insert
from mailroom.aws.dynamo_updates import ConditionFailed, Update, update, values_of
from mailroom.aws.dynamo_values import Sets, image_of, number, plain, string
from mailroom.clock import Clock, milliseconds
from mailroom.environment import Common
from mailroom.errors import ClaimLost
from mailroom.ledger.batch import items_of
from mailroom.ledger.claims import Checkpoint, Claim, Claimed, Try, tries_in, why_not_claimed
from mailroom.ledger.items import (
    ARRIVED_BEFORE,
    DEAD_LETTER,
    LINES,
    MAX_ERROR,
    PROVIDER_FACTS,
    REDIRECTED_TO,
    RESTARTED,
    UNCOUNTED,
    about_of,
    addressing_of,
    addressing_of_any,
    entries_of,
    error_of,
    facts_of,
    failure_of,
    start_of,
    trouble_of,
    where,
)
from mailroom.ledger.table import (
    FIRST,
    NEXT,
    NO_OUTCOME,
    NOT_DEAD,
    TRY_NOTES,
    UNCLAIMED,
    UNSENT,
    WAITS,
    LedgerTable,
    Write,
    waits_as,
)
from mailroom.message import CAMPAIGN_START
from mailroom.message.message import MAX_ATTEMPT, TEMPLATE_NAME, CampaignStart, Key, Message, key_of
from mailroom.message.outcome import ANY_ACCOUNT, FAILED, Facts, Status, before
from mailroom.message.unless import Condition, word_of

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

# Time-line of a claim whose worker crashes. `startedAt` is the time of the claim.
#
# worker A   claim ─────── submit ──✗ dies            lease = function time-out + 60 s
# queue            visibility time-out ────────────────────▶ redelivers
# worker B                                lease over ▶ claim ─ look for evidence ─ complete, or submit
NOT_HELD = "(attribute_not_exists(startedAt) OR startedAt <= :lease_over)"
"""Condition: the message is not claimed, or the lease of its claim has ended, so that the worker must have
crashed."""
OWN = f"claim_token = :own AND {NO_OUTCOME}"
"""Condition: the caller's claim is the latest, and no event of the provider has ended the message
meanwhile."""
STARTED = "attribute_exists(startedAt)"
"""Condition: the message has a claim that was not released."""
SUBMITTED = "attribute_exists(provider_id)"
"""Condition: the provider has accepted the attempt."""
KNOWN = "attribute_exists(id)"
"""Condition: the message has a ledger item."""

_ONE = number(1)
NO_RESPONSE = "no_outcome"
"""Code of `trouble` if a submit ended without a response."""
_CLAIM_OVER = ("startedAt", "unsettled_tries")
"""Attributes that are removed when the outcome of every try of the message is known."""
_SETTLED_BY_OPERATOR = "an operator recorded it as failed, because its outcome could not be found out"


class NewClaim(NamedTuple):
    """Arguments of `Ledger.claim`."""

    message: Message
    account: str | None
    """Account to which the message is going to be submitted; None if the message may not be submitted."""
    redirected_to: str | None
    """Recipient to whom the stage's settings redirect the message, instead of its recipients."""
    token: str
    """Text that identifies this claim. If the write is repeated, the token in the item shows that the first
    write succeeded."""
    put_at: float | None = None
    """Time in epoch seconds when the message was put into the mailbox, if that time is known."""


class Ledger(LedgerTable):
    """Writes to the ledger. Unless a method says otherwise, a write also sets `updatedAt` and `ttl`. A write
    that changes the status to anything but `sending` adds the status to `history`."""

    def __init__(
        self,
        client: "DynamoDBClient",
        table: str,
        *,
        lease: float,
        ttl: float,
        clock: Clock,
        new_token: Callable[[], str] = lambda: urandom(16).hex(),
    ) -> None:
        """`lease`: seconds for which a worker may hold a message before it counts as crashed. `ttl`: seconds
        for which an item lives after its last change."""
        super().__init__(client, table, ttl, clock)
        self._lease_ms = int(lease * 1000)
        self.new_token = new_token

    @classmethod
    def of(cls, settings: Common, lease: float = 0) -> "Ledger":
        """Create the ledger from a function's settings. `lease`: seconds for which a worker may hold a
        message; only functions that claim messages set it."""
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
        """Claim the message for this worker, or return the reason why it cannot be claimed.

        The arguments are the fields of `NewClaim`; by default the claim gets a new token.
        """
        new = NewClaim(message, account, redirected_to, token or self.new_token(), put_at)
        now_ms = self._now_ms()
        condition = f"{NOT_HELD} AND {NO_OUTCOME} AND {FIRST if message.attempt == 1 else NEXT}"
        values = {":lease_over": number(now_ms - self._lease_ms), ":ended": number(message.attempt - 1)}
        try:
            item = self.write(message.key, self._claiming(new, now_ms), condition, values, returns="ALL_OLD")
        except ConditionFailed as failed:
            item = failed.item
            # An earlier write of the same claim, by `claim_new` or by the SDK, may have succeeded although
            # its response was lost. Then the item has this claim's token, and the message is claimed unless
            # an event has completed it meanwhile.
            if item.get("claim_token") != new.token or "completedAt" in item:
                return why_not_claimed(item, message.attempt, now_ms, self._lease_ms)
        return _claimed(new, item)

    def claim_new(self, new_claims: Sequence[NewClaim]) -> list[Claimed | str]:
        """Claim the first attempts of messages that are not in the ledger yet, in one call for every 25
        messages. All keys must be different.

        Returns for each message the claim, or an error code if the claim was not or perhaps not written (see
        `insert`). Then the caller must call `claim` with the same arguments, which finds out whether the
        message is claimed.
        """
        moment = self._clock()
        now_ms, dates = milliseconds(moment), self.dates(moment)
        claims = [(where(new.message), self._claiming(new, now_ms)) for new in new_claims]
        items = [{**key, **dates, **claim.sets, **claim.once, **claim.adds} for key, claim in claims]
        codes = insert(self._client, self._table, items)
        return [code or _claimed(new, {}) for new, code in zip(new_claims, codes, strict=True)]

    def _claiming(self, new: NewClaim, now_ms: int) -> Update:
        """Return the changes that a claim at `now_ms` (epoch milliseconds) makes to the ledger item.
        NOT_DEAD is removed, because a message that is claimed is not a dead letter any more.
        `trouble` stays until a later try or the outcome replaces it."""
        message = sent = new.message
        description = about_of(message)
        redirect = Sets()
        if new.redirected_to is not None:
            sent = message.redirected(new.redirected_to)
            redirect = {REDIRECTED_TO: string(new.redirected_to)}
        # A try stays in `unsettled_tries` after a crash, until a later write records its outcome.
        tries = () if new.account is None else (Try(now_ms, new.account).text,)
        return Update(
            sets={
                "status": string("sending"),
                "claim_token": string(new.token),
                "startedAt": number(now_ms),
                **description,
                **facts_of(sent.kept),
                **redirect,
            },
            once={**entries_of(message.addressees), **self.first_values(description, new.put_at)},
            adds={"unsettled_tries": {"SS": [*tries]}} if tries else {},
            removes=NOT_DEAD if redirect else (*NOT_DEAD, REDIRECTED_TO),
        )

    def checkpoint(self, claim: Claimed, provider: str, provider_id: str, line: str | None = None) -> None:
        """Record that the provider has accepted an attempt whose result comes later, such as a fax. After
        this write a worker only waits for the result, and never submits the attempt again.

        `line` is the telephone number that the attempt occupies; `ids_on_line` finds the attempt by it.
        """
        facts: Facts = {"provider": provider, "provider_id": provider_id, "submittedAt": self._now_ms()}
        if line is not None:
            facts["line"] = line
        self._write_own(claim, Update(facts_of(facts), adds={"provider_ids": {"SS": [provider_id]}}))

    def doubt(self, claim: Claimed, message: str) -> None:
        """Record `message` as the reason why the outcome of a submit is unknown. The claim and its try stay
        in the item."""
        self._write_own(claim, Update(trouble_of(NO_RESPONSE, message)), f"{OWN} AND {STARTED}")

    def complete(
        self,
        claim: Claimed,
        provider: str,
        provider_id: str,
        facts: Facts | None = None,
        line: str | None = None,
        status: Literal["sent", "delivered"] = "sent",
    ) -> None:
        """Record that the provider has accepted the message, or with the status `delivered` that the message
        has arrived. If an event has recorded the acceptance already, add only the facts that the item lacks.
        After this write, `unsettled_tries` contains more than one try only if the message may have arrived
        twice.

        `line` is the recipient's telephone number, if `ids_on_line` has to find the message by that number.
        """
        acceptance: Facts = {"provider": provider, "provider_id": provider_id, **(facts or {})}
        ids: Sets = {}
        if line is not None:
            acceptance |= {"line": line, "submittedAt": self._now_ms()}
            ids = {"provider_ids": {"SS": [provider_id]}}
        sent = Update(
            sets={**self.outcome(claim.key, status), **facts_of(acceptance)},
            adds={"attempts": _ONE, **ids},
            # The error of an earlier attempt is removed, because `history` has its code.
            removes=(*TRY_NOTES, "error", *(("unsettled_tries",) if claim.settled else ())),
        )
        try:
            item = self._write_own(claim, sent, entry=status)
        except ClaimLost as lost:
            raise ClaimLost(f"accepted as {provider_id}, but {lost}") from None
        if item:
            self._add_missing(claim, item, acceptance, ids)

    def _add_missing(self, claim: Claimed, item: Mapping[str, Any], facts: Facts, ids: Sets) -> None:
        missing = {name for name, value in facts.items() if item.get(name) != value}
        # If only `submittedAt` or `subject` is missing, a second write is not worth its cost.
        if missing - {"submittedAt", "subject"}:
            values = {":own": string(claim.token)}
            self.write(claim.key, Update(facts_of(facts), adds=ids), "claim_token = :own", values)

    def fail(self, claim: Claimed, code: str, message: str, field: str = "") -> None:
        """Record that the message has failed: it is invalid, it has expired, the provider has rejected it, or
        the outcome of an earlier try cannot be found out. `message` is the reason in a sentence for people,
        and `field` is the invalid attribute, if there is one."""
        self._end_unsent(claim, "failed", code, error_of(code, message, field))

    def suppress(self, claim: Claimed, code: str, message: str) -> None:
        """Record that the message will not be sent, because all its recipients are blocked: they have opted
        out, are on the suppression list or are not allowed in the stage. `message` is the reason in a
        sentence for people."""
        self._end_unsent(claim, "suppressed", code, error_of(code, message))

    def cancel_claimed(self, claim: Claimed, code: str, message: str, facts: Mapping[str, Any]) -> None:
        """Record that a claimed message is cancelled. `message` is the reason in a sentence for people, and
        `facts` are further attributes for the item."""
        self._end_unsent(claim, "cancelled", code, error_of(code, message) | image_of(facts))

    def items(self, keys: Iterable[Key]) -> dict[Key, dict[str, Any]]:
        """Return the ledger items of messages by key; see `items_of`."""
        return items_of(self._client, self._table, keys)

    def cut_off(self, keys: Iterable[Key]) -> set[Key]:
        """Return the keys of the messages whose claim was neither released nor explained by `doubt`. The
        function that claimed such a message timed out, crashed or still runs, or the message has ended.
        Raises UnprocessedKeys."""
        return {
            key
            for key, item in self.items(keys).items()
            if "startedAt" in item and item.get("trouble", {}).get("code") != NO_RESPONSE
        }

    def fulfilled(self, conditions: Sequence[Condition]) -> Condition | None:
        """Read the ledger items of the messages in the conditions, and return the first condition that is
        fulfilled, together with the status that fulfils it. Returns None if no condition is fulfilled. A
        message without a ledger item fulfils no condition. Raises UnprocessedKeys."""
        items = self.items(Key(condition.id, condition.event_type) for condition in conditions)
        for condition in conditions:
            item = items.get(Key(condition.id, condition.event_type), {})
            word = word_of(item.get("status", ""), item.get("error", {}).get("code", ""))
            if condition.holds(word):
                return structs.replace(condition, status=word)
        return None

    def _end_unsent(self, claim: Claimed, status: Status, code: str, reason: Sets) -> None:
        sets, removes = _without_own_try(claim)
        ending = Update(
            sets={**self.outcome(claim.key, status), **reason, **sets},
            adds={"attempts": _ONE},
            removes=(*TRY_NOTES, *removes),
        )
        self._write_own(claim, ending, entry=status, code=code)

    def suppress_one(self, claim: Claimed, addressee: str, message: str) -> None:
        """Record that one of several recipients does not get the message, with `message` as the reason. The
        other recipients get it."""
        self.advance(claim.key, addressee, "suppressed", {}, message, claim.token)

    def release(self, claim: Claimed, code: str = "", message: str = "") -> None:
        """End a claim whose worker has not sent the message, so that the message can be claimed again at
        once.

        Earlier tries whose outcome is unknown stay in the item. `code` and `message` become the attribute
        `trouble`, the reason why the message was not sent. Without a code, an earlier `trouble` stays.
        """
        sets, removes = _without_own_try(claim)
        # The condition STARTED is needed because `retry_later` may have ended this claim although the
        # response to that write was lost. A release after that must fail. Otherwise it would restore the
        # tries that `retry_later` has removed.
        released = Update({**trouble_of(code, message), **sets}, removes=("startedAt", *removes))
        self._write_own(claim, released, f"{OWN} AND {STARTED}")

    def hand_back(self, claim: Claimed, code: str = "", message: str = "") -> None:
        """End the claim of a fax in transmission, so that the next receive of its record can claim the fax at
        once and wait for its result. `code` and `message` become the attribute `trouble`, as in `release`."""
        handed_back = Update(trouble_of(code, message), removes=_CLAIM_OVER)
        self._write_own(claim, handed_back, f"{OWN} AND {SUBMITTED}")

    def retry_later(self, claim: Claimed, code: str, message: str, *, counts: bool = True) -> None:
        """Record that the attempt has failed and that the message is retried with a further attempt. The next
        claim must be for the attempt number plus one. `counts`: whether the attempt counts towards the
        maximum number of attempts."""
        retrying = Update(
            sets={"status": string("retrying"), **error_of(code, message)},
            adds={"attempts": _ONE, **({} if counts else {UNCOUNTED: _ONE})},
            removes=(*_CLAIM_OVER, "provider_id"),
        )
        # Without the condition STARTED, the SDK's repeat of the write after a lost response would count the
        # attempt twice.
        self._write_own(claim, retrying, f"{OWN} AND {STARTED}", entry="retrying", code=code)

    def dead_lettered(self, key: Key) -> None:
        """Set `dead_lettered_at` on a message in a dead-letter queue, unless the message is not in the
        ledger, has ended or already has the attribute. The status does not change, because a dead letter is
        not an outcome."""
        now_ms = self._now_ms()
        marked = Update({"dead_lettered_at": number(now_ms), **failure_of(key, DEAD_LETTER, now_ms)})
        condition = f"{KNOWN} AND {NO_OUTCOME} AND attribute_not_exists(dead_lettered_at)"
        with suppress(ConditionFailed):
            self.write(key, marked, condition)

    def note_callback(self, key: Key, name: str, result: Sets) -> None:
        """Record the result of a callback in `callbacks`, under the callback's name, if the message has a
        callback URL.

        `updatedAt` and `ttl` do not change.
        """
        with suppress(ConditionFailed):  # the message lacks a callback URL, or its item has expired
            update(
                self._client,
                self._table,
                where(key),
                "SET callbacks.#name = :result",
                "attribute_exists(callbacks)",
                {":result": {"M": result}},
                names={"#name": name},
            )

    def refuse(
        self,
        item: Mapping[str, Any],
        code: str,
        message: str,
        field: str = "",
        put_at: float | None = None,
    ) -> bool:
        """Record that an unclaimed message has failed because its item is invalid. Only the item's key needs
        to be valid. `put_at` has the meaning of the field of `NewClaim`. An item of a later attempt, which
        `restart` has prepared, ends this attempt.

        Returns False if a valid copy of the message was claimed before and has not ended. Then the copy
        decides the outcome, and the record of the invalid item must be delivered again later.
        """
        sets = {
            **error_of(code, message, field),
            **addressing_of_any(item),
            **_start_of_any(item),
            **_template_of(item),
        }
        attempt = item.get("attempt") if CAMPAIGN_START in sets else None
        is_later = isinstance(attempt, int) and 1 < attempt <= MAX_ATTEMPT
        stored = self._end_unclaimed(
            key_of(item), "failed", code, sets, put_at, attempt=attempt if is_later else None
        )
        return stored is None or "completedAt" in stored

    def lose(self, key: Key, version: str, message: str, code: str = "content_gone") -> bool:
        """Record that a waiting message has failed, because its content or its lane does not exist any more,
        so that it cannot be put into its queue. `version` is the version of its wait, and `code` that of the
        item's `error`. The attempt counts as ended, as after `cancel`. Returns False if the message does not
        wait any more, or if it waits with a newer version."""
        lost = Update(
            sets={**self.outcome(key, "failed"), **error_of(code, message)},
            adds={"attempts": _ONE},
            removes=TRY_NOTES,
        )
        values = waits_as(version)
        try:
            self.write(key, lost, f"{UNSENT} AND {WAITS}", values, entry="failed", code=code)
        except ConditionFailed:
            return False
        return True

    def leave_out(
        self,
        key: Key,
        to: str | list[str] | None,
        topic: str | None,
        code: str,
        message: str,
        start: CampaignStart,
    ) -> bool:
        """Record as suppressed a message that is not put into the mailbox, because its recipient has opted
        out or is on the suppression list. `message` is the reason, and `start` the start of the campaign's
        run that composed the message. The attempt counts as ended, as after `cancel`, because a copy of an
        earlier start may be in a queue. Returns False if the message has been claimed or has ended."""
        sets = {**error_of(code, message), **addressing_of(to, None, topic), **start_of(start)}
        return self._end_unclaimed(key, "suppressed", code, sets, attempt=1) is None

    def cancel_together(
        self, messages: Sequence[tuple[Message, float | None]], code: str, reason: str
    ) -> list[Key]:
        """Cancel attempts that were certainly not sent, in one call for every 100 messages, each with the
        time when it was put (see `NewClaim`). `reason` is a sentence for people. Either this write or a
        worker's claim succeeds, never both.

        Returns the keys of the cancelled messages. Each other message has ended, is claimed, may have been
        sent, or has a later attempt. Raises botocore's errors; then some messages may be cancelled.
        """
        unique = {message.key: (message, put_at) for message, put_at in messages}
        writes = []
        for key, (message, put_at) in unique.items():
            changes = self.cancelled(reason, code, about_of(message), put_at)
            condition = f"{UNSENT} AND {FIRST if message.attempt == 1 else NEXT}"
            values = {":ended": number(message.attempt - 1)}
            writes.append(Write(key, changes, condition, values, "cancelled", code))
        results = self.write_together(writes)
        return [key for key, is_cancelled in zip(unique, results, strict=True) if is_cancelled]

    def _end_unclaimed(
        self,
        key: Key,
        status: Status,
        code: str,
        sets: Sets,
        put_at: float | None = None,
        attempt: int | None = None,
    ) -> dict[str, Any] | None:
        """End a message that was never claimed, or a later attempt that was certainly not sent. If `attempt`
        is given, that attempt counts as ended. Returns None after the write. If the message has been claimed
        or has ended, returns its item, which is not changed."""
        ending = Update(
            sets={**self.outcome(key, status), **sets},
            once=self.first_values(sets, put_at),
            adds={} if attempt is None else {"attempts": _ONE},
            removes=TRY_NOTES,
        )
        condition, values = UNCLAIMED, Sets()
        if attempt is not None and attempt > 1:
            condition, values = f"{UNSENT} AND {NEXT}", {":ended": number(attempt - 1)}
        try:
            self.write(key, ending, condition, values, entry=status, code=code)
        except ConditionFailed as failed:
            return failed.item
        return None

    def reopen(self, key: Key, snapshot: Mapping[str, Any], *, arrived: bool = False) -> int | None:
        """Clear the outcome of a message, so that an operator can resend the message. `snapshot` is the item
        that the operator has read. `arrived` is true if the message may have arrived already.

        Returns the number of the next attempt. Returns None if the message has not ended, its recipient was
        erased, or the item has changed since the snapshot.

        The write adds one to `generation`, which is a part of the header `webhook-id`, so that callbacks
        after the resend have new ids.
        """
        unchanged, values = _unchanged_since(snapshot)
        reopened = Update(
            sets={
                "status": string("retrying"),
                # A worker that still holds a claim from before the resend must not complete the resent
                # message.
                "claim_token": string(self.new_token()),
            },
            adds={"generation": _ONE, **({ARRIVED_BEFORE: _ONE} if arrived else {})},
            # Events from before the resend are not about the resent message.
            removes=(
                *(*TRY_NOTES, *_CLAIM_OVER, *PROVIDER_FACTS),
                *("completedAt", "provider_id", "error", "unless_fulfilled"),
            ),
        )
        condition = f"attribute_exists(completedAt) AND attribute_not_exists(erased_at) AND {unchanged}"
        try:
            item = self.write(
                key, reopened, condition, values, entry="retrying", code="reopened", returns="ALL_NEW"
            )
        except ConditionFailed:
            return None
        return int(item.get("attempts", 0)) + 1

    def restart(self, key: Key, snapshot: Mapping[str, Any], start: CampaignStart) -> int | None:
        """Prepare the next attempt of a message for a later start of its campaign's run, so that copies from
        earlier starts are dropped, whether they are claimed before or after this write. `snapshot` is the
        item that the caller has read, or {}.

        Returns the number of the next attempt. Returns None if the message may have been sent, has ended and
        was not cancelled, was erased, or has changed since the snapshot.

        The write adds one to `generation`, like `reopen`, so that it does not count as an outcome.
        """
        has_ended = "completedAt" in snapshot
        if has_ended and snapshot["status"] != "cancelled":
            return None
        attempts = int(snapshot.get("attempts", 0)) + (not has_ended)
        unchanged, values = "attribute_not_exists(id)", Sets()
        if snapshot:
            unchanged, values = _unchanged_since(snapshot)
            unchanged += " AND attribute_not_exists(erased_at)" if has_ended else f" AND {UNSENT}"
        restarted = Update(
            sets={
                "status": string("retrying"),
                "claim_token": string(self.new_token()),
                "attempts": number(attempts),
                **start_of(start),
            },
            once=self.first_values({}),
            adds={"generation": _ONE},
            # The mark of a wait stays: `release` removes it together with the content of the wait.
            removes=(*TRY_NOTES, *_CLAIM_OVER, "completedAt", "error"),
        )
        try:
            self.write(key, restarted, unchanged, values, entry="retrying", code=RESTARTED[not has_ended])
        except ConditionFailed:
            return None
        return attempts + 1

    def settle(
        self, key: Key, snapshot: Mapping[str, Any], status: Literal["sent", "failed"], before: float
    ) -> bool:
        """Record the status that an operator has chosen for a message whose outcome cannot be found out any
        more.

        `snapshot` is the item that the operator has read. Returns False if the item has changed since then,
        or if the latest try began after `before` (epoch seconds). In the second case a worker may be sending
        the message, or the provider may still work on it.
        """
        unchanged, values = _unchanged_since(snapshot)
        submitted = "provider_id" in snapshot
        # If the item has a `provider_id`, a worker only waits for the message's result, and never submits the
        # message. Without a `provider_id` any worker may submit the message, so the latest claim must still
        # be the claim in `snapshot`.
        for name in ("provider_id",) if submitted else ("provider_id", "claim_token"):
            if name in snapshot:
                unchanged += f" AND {name} = :seen_{name}"
                values[f":seen_{name}"] = string(str(snapshot[name]))
            else:
                unchanged += f" AND attribute_not_exists({name})"
        began = "submittedAt" if submitted else "startedAt"
        idle = f"(attribute_not_exists({began}) OR {began} <= :before)"
        values[":before"] = number(milliseconds(before))
        failed = status == "failed"
        settled = Update(
            sets={
                **self.outcome(key, status),
                # Because of the new claim token, a worker that still waits for the message's result cannot
                # complete the message.
                "claim_token": string(self.new_token()),
                **(error_of("settled", _SETTLED_BY_OPERATOR) if failed else {}),
            },
            adds={"attempts": _ONE},
            removes=TRY_NOTES if failed else (*TRY_NOTES, "error"),
        )
        condition = f"{NO_OUTCOME} AND {idle} AND {unchanged}"
        try:
            self.write(key, settled, condition, values, entry=status, code="settled")
        except ConditionFailed:
            return False
        return True

    def advance(
        self,
        key: Key,
        recipient: str,
        status: Status | None,
        facts: Facts,
        error: str = "",
        token: str | None = None,
    ) -> dict[str, Any] | None:
        """Change one recipient's entry in the `recipients` of a message to several recipients. The entry's
        status and `error` are replaced only by a later status (see `Status`). `facts` are added only if the
        entry lacks them. If `token` is given, the change requires that the item's latest claim has this
        token.

        Returns the item after the change; None if the item lacks an entry for `recipient`. `updatedAt` and
        `ttl` do not change.
        """
        entry = "recipients.#recipient"
        condition, values = f"attribute_exists({entry})", values_of(facts_of(facts))
        if token is not None:
            condition += " AND claim_token = :own"
            values[":own"] = string(token)
        new_facts = [f"{entry}.#{fact} = if_not_exists({entry}.#{fact}, :{fact})" for fact in facts]
        changes: list[tuple[str, str, Sets]] = []
        if status is not None:
            earlier = earlier_than(status)
            sets, removes = [f"{entry}.#status = :status", *new_facts], f" REMOVE {entry}.#error"
            status_values = {":status": string(status), **earlier, **values}
            if error:
                sets, removes = [*sets, f"{entry}.#error = :error"], ""
                status_values[":error"] = string(error[:MAX_ERROR])
            forward = f"(attribute_not_exists({entry}.#status) OR {entry}.#status IN ({', '.join(earlier)}))"
            changes.append((f"SET {', '.join(sets)}{removes}", f"{condition} AND {forward}", status_values))
        if facts:
            missing = " OR ".join(f"attribute_not_exists({entry}.#{fact})" for fact in facts)
            changes.append((f"SET {', '.join(new_facts)}", f"{condition} AND ({missing})", values))
        item: dict[str, Any] = {}
        names = {"#recipient": recipient}
        for change in changes:
            try:
                item = update(self._client, self._table, where(key), *change, names=names, returns="ALL_NEW")
                break
            except ConditionFailed as failed:
                item = failed.item
        return item if recipient in item.get("recipients", {}) else None

    def ids_on_line(self, line: str, since: float) -> set[str]:
        """Return the `provider_ids` of all messages with this `line` (such as a telephone number) that were
        submitted at `since` (epoch milliseconds) or later."""
        pages = self._client.get_paginator("query").paginate(
            TableName=self._table,
            IndexName=LINES,
            KeyConditionExpression="#line = :line AND submittedAt >= :since",
            ExpressionAttributeNames={"#line": "line"},
            ExpressionAttributeValues={":line": string(line), ":since": number(since)},
        )
        items = (plain(item) for page in pages for item in page["Items"])
        return {provider_id for item in items for provider_id in item.get("provider_ids", ())}

    def outcome(self, key: Key, status: Status) -> Sets:
        """Return the attributes that end a message with `status`, among them the keys of a failure in its
        index."""
        now_ms = milliseconds(self._clock())
        failure = failure_of(key, status, now_ms) if status in FAILED else {}
        return {"status": string(status), "completedAt": number(now_ms), **failure}

    def _now_ms(self) -> int:
        return milliseconds(self._clock())

    def _write_own(
        self,
        claim: Claimed,
        changes: Update,
        condition: str = OWN,
        *,
        entry: Status | None = None,
        code: str | None = None,
    ) -> dict[str, Any]:
        """Change the item if `condition` is true, which includes that the item's latest claim is this claim.
        Returns {} after the write, or the unchanged item if the condition is false for another reason.

        Raises ClaimLost if another worker has claimed the message since.
        """
        values = {":own": string(claim.token)}
        try:
            return self.write(claim.key, changes, condition, values, entry=entry, code=code)
        except ConditionFailed as failed:
            if failed.item.get("claim_token") != claim.token:
                raise ClaimLost("another worker has claimed the message since") from None
            return failed.item


def earlier_than(status: Status) -> Sets:
    """Return the statuses that `status` may replace, as values of a condition by placeholder."""
    return {f":before{place}": string(earlier) for place, earlier in enumerate(before(status))}


def _claimed(new: NewClaim, item: Mapping[str, Any]) -> Claimed:
    """Return the claim. `item` is the ledger item before the claim's write, or {}. If the write was repeated,
    the item already contains the try of this claim, which is not an earlier try."""
    if not item:
        return Claimed(new.message.key, new.token, new.account, redirected_to=new.redirected_to)
    tries = tries_in(item.get("unsettled_tries", ()))
    if item.get("claim_token") == new.token:
        tries = tuple(earlier for earlier in tries if earlier.began != item["startedAt"])
    checkpoint = None
    if "provider_id" in item:
        checkpoint = Checkpoint(item["provider_id"], item["provider"], item.get("submittedAt", 0))
    return Claimed(
        new.message.key,
        new.token,
        new.account,
        tries,
        checkpoint,
        new.redirected_to,
        "dead_lettered_at" in item,
        item.get("trouble", {}),
        uncounted=int(item.get(UNCOUNTED, 0)),
    )


def _without_own_try(claim: Claimed) -> tuple[Sets, Sequence[str]]:
    """Return how `unsettled_tries` changes if the claim's own try was not sent, as values to set and names to
    remove. The earlier tries stay if their outcomes are unknown."""
    if not claim.unsettled:
        return {}, ("unsettled_tries",)
    return {"unsettled_tries": {"SS": [earlier.text for earlier in claim.unsettled]}}, ()


def _start_of_any(item: Mapping[str, Any]) -> Sets:
    """Return the start of the campaign's run that composed a message as an item attribute. It is left out if
    it is missing or invalid in the mailbox item."""
    try:
        start = convert(item.get(CAMPAIGN_START), CampaignStart)
    except ValidationError:
        return {}
    return start_of(start) if start.may_have(item["id"]) else {}


def _template_of(item: Mapping[str, Any]) -> Sets:
    """Return the template of an invalid item as an item attribute, by which a list of the template's messages
    finds it. An invalid name is left out."""
    name = item.get("template")
    return {"template": string(name)} if isinstance(name, str) and TEMPLATE_NAME.fullmatch(name) else {}


def _unchanged_since(snapshot: Mapping[str, Any]) -> tuple[str, Sets]:
    """Return the condition, and its values, that the message has not been resent, has not ended another
    attempt and was not changed by an event since `snapshot`."""
    parts, values = ["#status = :seen_status"], {":seen_status": string(str(snapshot.get("status", "")))}
    for counter in ("attempts", "generation"):
        count = int(snapshot.get(counter, 0))
        values[f":seen_{counter}"] = number(count)
        equal = f"{counter} = :seen_{counter}"
        parts.append(equal if count else f"(attribute_not_exists({counter}) OR {equal})")
    if "recipients" in snapshot:
        # An event may change a recipient's entry without the status of the message.
        parts.append("recipients = :seen_recipients")
        values[":seen_recipients"] = image_of({"recipients": snapshot["recipients"]})["recipients"]
    return " AND ".join(parts), values
