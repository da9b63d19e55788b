"""What each caller of the API may send: how many recipients a day, and in whose name."""

import math
import time
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any

from msgspec import Struct

from mailroom.api.answers import Refusal
from mailroom.aws import clients
from mailroom.budget import Budget, Busy
from mailroom.channels.mail.contract import Mail
from mailroom.clock import Clock, iso
from mailroom.environment import MessagesApiSettings
from mailroom.errors import Invalid
from mailroom.message.address import bare
from mailroom.message.message import Message
from mailroom.telemetry import count, logger


class Caller(Struct, frozen=True):
    """One caller. `senders` are bare addresses in lower case; None: it may use every sender. `budget` None:
    it may reach as many as it likes."""

    senders: Sequence[str] | None = None
    default: str = ""
    """The stage's default sender, as a mail names it; "": the caller may not use it."""
    budget: Budget | None = None
    clock: Clock = time.time

    def named(self, entry: Any) -> Any:
        """The entry in the name of its default sender, where it has none: else its payload could name one."""
        if self.senders is None or not self.default or not isinstance(entry, dict):
            return entry
        nameless = entry.get("event_type") == "mail" and entry.get("from") is None
        return {**entry, "from": self.default} if nameless else entry

    def check(self, message: Message) -> None:
        """Raise Invalid for a sender that is not the caller's."""
        if self.senders is None or not isinstance(message, Mail):
            return
        used = ", ".join(self.senders) or "none"
        if message.from_ is None:
            raise Invalid("from", f"is missing, and its caller may not use the default; use one of {used}")
        if bare(message.from_) not in self.senders:
            raise Invalid("from", f"is not a sender that its caller may use; use one of {used}")

    def spend(self, recipients: int) -> None:
        """Take so many of the caller's day, all or none. Raises Refusal: 429 with the time when there are
        more."""
        if self.budget is None or recipients == 0:
            return
        try:
            if self.budget.ask(recipients, whole=True).recipients:
                return
        except Busy:
            busy = "others of the same caller are counted at this moment; try again"
            raise Refusal(HTTPStatus.SERVICE_UNAVAILABLE, busy) from None
        left, again = self.budget.room(recipients)
        count("ApiOverDay")
        logger.warning("a caller is over its part of the day", recipients=recipients, left=left)
        refusal = Refusal(
            HTTPStatus.TOO_MANY_REQUESTS,
            f"the request is for {recipients} recipients, and its caller may reach {left} more today; send "
            f"it again, or what is left of it, from {iso(again)} on",
        )
        refusal.retry_after = max(1, math.ceil(again - self.clock()))
        raise refusal


ANYBODY = Caller()


class Callers(Struct, frozen=True):
    """The callers that the settings name. Where they name none, everybody may send everything."""

    settings: MessagesApiSettings
    clock: Clock

    def of(self, name: Callable[[], str]) -> Caller:
        """The caller of that name. Raises Refusal: 403 for one that is not named."""
        if not self.settings.callers:
            return ANYBODY
        limit = self.settings.callers.get(caller := name())
        if limit is None:
            raise Refusal(HTTPStatus.FORBIDDEN, "its caller may send nothing; name it in api.callers")
        senders = None if limit.senders is None else [bare(each) for each in limit.senders]
        default = self.settings.mail_senders[0] if self.settings.mail_senders else ""
        may_use = default if senders is not None and bare(default) in senders else ""
        return Caller(senders, may_use, self._budget(caller, limit.per_day), self.clock)

    def _budget(self, caller: str, per_day: int | None) -> Budget | None:
        if per_day is None:
            return None
        table, days = self.settings.budgets_table, [("0001-01-01", per_day)]
        return Budget(clients.dynamodb(), table, f"api#{caller}", days, clock=self.clock)
