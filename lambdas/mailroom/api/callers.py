"""Limits of the API's callers: the number of recipients a day, and the allowed senders."""

import math
import time
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any

from msgspec import Struct

from mailroom.api.answers import ApiError
from mailroom.aws import clients
from mailroom.budget import Budget, Grant
from mailroom.channels.mail.contract import Mail
from mailroom.clock import Clock, iso
from mailroom.environment import MessagesApiSettings
from mailroom.errors import Invalid
from mailroom.message.address import bare
from mailroom.message.message import Message
from mailroom.telemetry import count, logger

_OVER_A_DAY = "has {} recipients, but its caller may reach only {} a day; use several {}, on several days"


class Caller(Struct, frozen=True):
    """Caller of the API."""

    senders: Sequence[str] | None = None
    """Bare addresses of senders in lower case, or None for a caller that may use every sender."""
    default: str = ""
    """Default sender of the stage, as in a mail's `from`; empty if the caller may not use it."""
    budget: Budget | None = None
    """Daily budget of recipients, or None for a caller without a limit."""
    clock: Clock = time.time

    def named(self, entry: Any) -> Any:
        """Return the entry. If the caller's senders are limited, a mail without `from` gets the default
        sender, because its payload could otherwise set a sender that the caller may not use."""
        if self.senders is None or not self.default or not isinstance(entry, dict):
            return entry
        nameless = entry.get("event_type") == "mail" and entry.get("from") is None
        return {**entry, "from": self.default} if nameless else entry

    def check(self, message: Message) -> None:
        """Raise Invalid if the message has more recipients than the caller may reach in a day, or a sender
        that the caller may not use."""
        if self.budget is not None and (size := message.recipient_count) > (day := self.budget.part()):
            field = next(name for name in message.addressing if getattr(message, name) is not None)
            raise Invalid(field, _OVER_A_DAY.format(size, day, "mails"))
        if self.senders is None or not isinstance(message, Mail):
            return
        used = ", ".join(self.senders) or "none"
        if message.from_ is None:
            raise Invalid(
                "from", f"is missing, but its caller may not use the default sender; use one of {used}"
            )
        if bare(message.from_) not in self.senders:
            raise Invalid("from", f"is not a sender that its caller may use; use one of {used}")

    def spend(self, recipients: int, new: Callable[[], int]) -> Grant:
        """Reserve the recipients of a request in the caller's daily budget, all or none, before its messages
        are put. Returns the grant.

        A repeated request must succeed even if the budget is used up. So if not all recipients fit, only the
        recipients of new messages are reserved; `new` returns their number. Raises ApiError: 429 with the
        time from which they fit, or 422 if they exceed the limit of a day. Raises Contention.
        """
        if self.budget is None or recipients == 0:
            return Grant(0, 0)
        grant = self.budget.ask(recipients, whole=True)
        if grant.recipients < recipients:
            recipients = new()
            grant = self.budget.ask(recipients, whole=True)
        if grant.recipients == recipients:
            return grant
        if recipients > (day := self.budget.part()):
            raise ApiError.of_field("messages", _OVER_A_DAY.format(recipients, day, "requests"))
        sentence = f"the request has {recipients} new recipients, but its caller may reach {{}} more today"
        raise over_a_day(self.budget, recipients, sentence, self.clock)

    def settle(self, grant: Grant, recipients: int) -> None:
        """Replace the grant in the budget by the number of `recipients` of the messages that were put. An
        error is only logged; then the caller may reach fewer recipients until the next day."""
        if self.budget is not None and grant.recipients != recipients:
            try:
                self.budget.settle(clients.dynamodb_once(), grant, recipients)
            except Exception:  # noqa: BLE001 - logged; the messages are put, so the request must not fail
                logger.warning("a caller's budget was not settled", granted=grant.recipients, put=recipients)


def over_a_day(budget: Budget, needed: int, sentence: str, clock: Clock) -> ApiError:
    """Return the error 429 for a request that needs more than the rest of a caller's budget. The `sentence`
    has `{}` in place of the rest."""
    room, again = budget.room(needed)
    count("ApiOverDay")
    logger.warning("a caller's daily budget is used up", recipients=needed, left=room)
    detail = f"{sentence.format(room)}; send it again from {iso(again)} on"
    refusal = ApiError(HTTPStatus.TOO_MANY_REQUESTS, detail)
    refusal.retry_after = max(1, math.ceil(again - clock()))
    return refusal


ANYBODY = Caller()


def caller_of(settings: MessagesApiSettings, name: Callable[[], str], clock: Clock) -> Caller:
    """Return the caller with the name that `name` returns. If the settings contain no callers, every caller
    may send every message. Raises ApiError 403 for a caller that is not in the settings."""
    if not settings.callers:
        return ANYBODY
    limit = settings.callers.get(caller := name())
    if limit is None:
        raise ApiError(
            HTTPStatus.FORBIDDEN, "the caller is not in the stage's setting api.callers; add it there"
        )
    senders = None if limit.senders is None else [bare(sender) for sender in limit.senders]
    default = settings.mail_senders[0] if settings.mail_senders else ""
    may_use = default if senders is not None and bare(default) in senders else ""
    if limit.per_day is None:
        return Caller(senders, may_use)
    table, days = settings.budgets_table, [("0001-01-01", limit.per_day)]
    budget = Budget(clients.dynamodb(), table, f"api#{caller}", days, clock=clock)
    return Caller(senders, may_use, budget, clock)
