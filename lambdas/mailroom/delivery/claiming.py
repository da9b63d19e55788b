"""Claims the messages of a batch: each in a separate call, or several first attempts in one call."""

from collections import Counter
from collections.abc import Sequence
from typing import Generic, TypeVar

from msgspec import Struct

from mailroom.delivery.worker import QueueRecord, Tools
from mailroom.environment import Sender
from mailroom.errors import ClaimLost
from mailroom.ledger.claims import Claim, Claimed
from mailroom.ledger.ledger import NewClaim
from mailroom.message.message import Key, Message
from mailroom.message.outcome import ANY_ACCOUNT
from mailroom.recipients.choices import AllowedRecipients
from mailroom.telemetry import logger

M = TypeVar("M", bound=Message)


class NoTimeLeft(Struct, frozen=True):
    """Refusal of a claim: the function would time out before it could submit the message and record the
    outcome."""


class Claiming(Generic[M]):
    """Claims messages for one worker."""

    def __init__(
        self, settings: Sender, tools: Tools, allowed: AllowedRecipients | None, *, together: bool
    ) -> None:
        """Create the object that claims messages for one sender.

        `together`: whether one call may claim all first attempts of a batch. A crash then leaves the outcome
        of all these attempts unknown. So a sender with `on_unknown: hold`, which would hold all these
        messages, ignores the parameter and never claims them together. The parameter must be false for a
        sender whose look-ups search by telephone number, because a look-up could mistake a message that was
        not sent for a similar message that was sent.
        """
        self._settings = settings
        self._ledger = tools.ledger
        self._pace = tools.pace
        self._allowed = allowed
        self._together = together and settings.on_unknown != "hold"
        self._account: str | None = None
        self._requested: dict[Key, NewClaim] = {}
        self._claims: dict[Key, Claimed] = {}

    def begin(self, messages: Sequence[tuple[M, QueueRecord]], account: str | None) -> None:
        """Claim the first attempts of a batch in one call. Never raises: a message that is not claimed here
        is claimed separately by `take`. A message with two records in the batch is left out, so that each of
        the two records makes a separate claim.

        `account`: account to which the batch is going to be submitted; None if the batch cannot be submitted.
        """
        self._account, self._requested, self._claims = account, {}, {}
        copies = Counter(message.key for message, _ in messages)
        new = [
            (message, record)
            for message, record in messages
            if _is_new(message, record) and copies[message.key] == 1 and self._pace.in_time(record)
        ]
        if not self._together or len(new) < 2:
            return
        try:
            self._requested = {message.key: self._new_claim(message, record) for message, record in new}
            replies = self._ledger.claim_new([*self._requested.values()])
        except Exception:  # noqa: BLE001 - logged; `take` claims each message in a separate call
            logger.warning("the batch was not claimed in one call", exc_info=True)
            return
        self._claims = {claim.key: claim for claim in replies if isinstance(claim, Claimed)}
        codes = {code for code in replies if isinstance(code, str)} - {"DuplicateItem"}
        if codes:
            logger.warning("not all claimed in one call", reasons=sorted(codes))

    def take(self, message: M, record: QueueRecord) -> Claim | NoTimeLeft:
        """Return the message's claim, or the reason why the claim was refused. Raises the errors of
        `Ledger.claim`."""
        requested = self._requested.get(message.key)
        if self._pace.in_time(record):
            request = requested or self._new_claim(message, record)
            return self._claims.get(message.key) or self._ledger.claim(*request)
        # Releasing a claim takes time too, so it is done only if the function has enough time left.
        if requested is not None and record.remaining() / 1000 > self._settings.record_seconds:
            self._give_back(Claimed(message.key, requested.token))
        return NoTimeLeft()

    def _give_back(self, claim: Claimed) -> None:
        """Release the claim of a message that was not submitted. Never raises."""
        try:
            self._ledger.release(claim)
        except ClaimLost:
            pass  # `begin` did not get the claim, so no release is needed
        except Exception:  # noqa: BLE001 - logged; the claim ends with its lease
            logger.warning("a claim was not released; it ends with its lease", exc_info=True)

    def _new_claim(self, message: M, record: QueueRecord) -> NewClaim:
        redirected_to = None if self._allowed is None else self._allowed.redirect(message.reached)
        account = self._account and account_for(self._account, redirected_to)
        return NewClaim(message, account, redirected_to, self._ledger.new_token(), record.put_at)


def account_for(account: str, redirected_to: str | None) -> str:
    """Return the name of an account for a claim, with the recipient of a redirect if there is one. A look-up
    searches for one recipient, so a try that was redirected to another recipient counts as a try at another
    account."""
    if account == ANY_ACCOUNT or redirected_to is None:
        return account
    return f"{account} for {redirected_to}"


def _is_new(message: Message, record: QueueRecord) -> bool:
    """Return whether a claim is probably the first write of the message's ledger item."""
    return record.fresh and message.attempt == 1 and message.send_at is None
