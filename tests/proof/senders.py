"""Senders of the proof, Mailroom and the bench's baselines, in the simulated AWS of the crash tests.

Import it in a function's environment: `lab.bench.functions.in_a_process`.
"""

import datetime
import json
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import patch

from aws_lambda_powertools.utilities.idempotency import base
from aws_lambda_powertools.utilities.idempotency.persistence import base as persistence
from aws_lambda_powertools.utilities.idempotency.persistence import datarecord, dynamodb

from lab.bench import handwritten_sender, plain_sender, powertools_sender
from lab.bench.functions import context, create_table, report
from mailroom.channels.mail.contract import Mail
from mailroom.message.outcome import Outcome, Sent
from mailroom.providers.resend.sender import ResendMail
from tests.proof.counting import NAMES, TWO_PROVIDERS, Trial, count
from tests.support.faults.outside import Trouble
from tests.support.faults.world import FALLBACK, MAIL, OnUnknown, World, mail

_TIMED = (base, persistence, datarecord, dynamodb)
"""Modules of Powertools that read the clock."""


class Mailroom(World):
    """Mailroom's worker. With `events`, SES's events reach the ledger before the queue delivers again. With
    `keyed`, Resend sends instead of SES. With `trouble`, SES fails all requests in this way, and Resend is
    the fallback."""

    def __init__(
        self,
        on_unknown: OnUnknown = "resend",
        *,
        events: bool = False,
        keyed: bool = False,
        trouble: Trouble | None = None,
    ) -> None:
        super().__init__(on_unknown, keyed=keyed, fallback=trouble is not None)
        self._events = events
        self.ses.trouble = trouble
        self.enqueue(*map(mail, NAMES))

    def finish(self) -> None:
        between = self.send_events if self._events else lambda: None
        between()
        self.settle(between)

    def dead_letters(self) -> set[str]:
        letters = [*self.queues.dead[MAIL], *self.queues.dead[FALLBACK]]
        return {json.loads(letter.body)["id"] for letter in letters}

    def failures(self) -> dict[str, bool]:
        errors = {name: self.found(name).get("error") for name in NAMES}
        return {name: error["code"] == "outcome_unknown" for name, error in errors.items() if error}


class Baseline(Mailroom):
    """Baseline of the bench, which replaces the worker."""

    def __init__(self, sender: ModuleType, trouble: Trouble | None = None) -> None:
        super().__init__(trouble=trouble)
        create_table(self.dynamodb, "idempotency", "id")
        self._sender: Any = sender

    def worker(self, url: str = MAIL) -> Any:
        """Return this process again, because the senders store no state in it."""
        tables = self.outside.watch(self.dynamodb, "put_item", "update_item", "get_item", "delete_item")
        self._sender.adapter._client = self.outside.watch(self.ses, "send_email")
        if self._sender is handwritten_sender:
            handwritten_sender.dynamodb = tables
        if self._sender is powertools_sender:
            powertools_sender.layer.client = tables
        return self

    def handle(self, event: Mapping[str, Any], _milliseconds: Callable[[], int]) -> Any:
        clock = SimpleNamespace(now=lambda: datetime.datetime.fromtimestamp(self.clock()))
        virtual = SimpleNamespace(datetime=clock, timedelta=datetime.timedelta)
        with ExitStack() as stack:
            for module in _TIMED:
                stack.enter_context(patch.object(module, "dt", virtual))
            if self.resend is not None:
                failover = Failover(self._sender.adapter, self.resend_adapter())
                stack.enter_context(patch.object(self._sender, "adapter", failover))
            return self._sender.handler(event, context())


class Failover:
    """Adapter that calls the first provider and, on any error, the second."""

    def __init__(self, first: Any, second: ResendMail) -> None:
        self._first, self._second = first, second

    def prepare(self, message: Mail) -> Mail:
        return message

    def submit(self, message: Mail) -> Outcome:
        try:
            outcome = self._first.submit(self._first.prepare(message))
        except Exception:  # noqa: BLE001 - any error
            outcome = None
        if isinstance(outcome, Sent):
            return outcome
        return self._second.open().submit(self._second.prepare(message))


VARIANTS: dict[str, Callable[[], Trial]] = {
    "mailroom": partial(Mailroom, events=True),
    "mailroom_without_evidence": Mailroom,
    "mailroom_hold": partial(Mailroom, "hold"),
    "mailroom_resend": partial(Mailroom, keyed=True),
    "powertools": partial(Baseline, powertools_sender),
    "pattern": partial(Baseline, handwritten_sender),
    "plain": partial(Baseline, plain_sender),
}
for trouble in TWO_PROVIDERS:
    VARIANTS[f"mailroom_{trouble}"] = partial(Mailroom, events=True, trouble=trouble)
    VARIANTS[f"failover_{trouble}"] = partial(Baseline, powertools_sender, trouble)

if __name__ == "__main__":
    report({name: count(VARIANTS[name]) for name in sys.argv[1:] or VARIANTS})
