"""Senders with two providers, Mailroom and Powertools, in the simulated AWS of the crash tests.

Import it in a function's environment: `lab.bench.functions.in_a_process`.
"""

import datetime
import json
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from aws_lambda_powertools.utilities.idempotency import base
from aws_lambda_powertools.utilities.idempotency.persistence import base as persistence
from aws_lambda_powertools.utilities.idempotency.persistence import datarecord, dynamodb

from lab.bench import powertools_sender
from lab.bench.functions import context, create_table, report
from mailroom.channels.mail.contract import Mail
from mailroom.message.outcome import Outcome, Sent
from mailroom.providers.resend.sender import ResendMail
from tests.proof.counting import NAMES, TWO_PROVIDERS, Trial, count
from tests.support.faults.outside import Trouble
from tests.support.faults.world import FALLBACK, MAIL, World, mail

sender: Any = powertools_sender
_TIMED = (base, persistence, datarecord, dynamodb)
"""Modules of Powertools that read the clock."""


class Mailroom(World):
    """Mailroom's worker. SES fails all requests in the way `trouble`, and Resend is the fallback. SES's
    events reach the ledger before the queue delivers again."""

    def __init__(self, trouble: Trouble) -> None:
        super().__init__(fallback=True)
        self.ses.trouble = trouble
        self.enqueue(*map(mail, NAMES))

    def finish(self) -> None:
        self.send_events()
        self.settle(self.send_events)

    def dead_letters(self) -> set[str]:
        letters = [*self.queues.dead[MAIL], *self.queues.dead[FALLBACK]]
        return {json.loads(letter.body)["id"] for letter in letters}

    def failures(self) -> dict[str, bool]:
        errors = {name: self.found(name).get("error") for name in NAMES}
        return {name: error["code"] == "outcome_unknown" for name, error in errors.items() if error}


class Baseline(Mailroom):
    """Powertools' sender of the bench, which calls the second provider on any error."""

    def __init__(self, trouble: Trouble) -> None:
        super().__init__(trouble)
        create_table(self.dynamodb, "idempotency", "id")

    def worker(self, url: str = MAIL) -> Any:
        """Return this process again, because the senders store no state in it."""
        tables = self.outside.watch(self.dynamodb, "put_item", "update_item", "get_item", "delete_item")
        sender.adapter._client = self.outside.watch(self.ses, "send_email")
        sender.layer.client = tables
        return self

    def handle(self, event: Mapping[str, Any], _milliseconds: Callable[[], int]) -> Any:
        clock = SimpleNamespace(now=lambda: datetime.datetime.fromtimestamp(self.clock()))
        virtual = SimpleNamespace(datetime=clock, timedelta=datetime.timedelta)
        with ExitStack() as stack:
            for module in _TIMED:
                stack.enter_context(patch.object(module, "dt", virtual))
            failover = Failover(sender.adapter, self.resend_adapter())
            stack.enter_context(patch.object(sender, "adapter", failover))
            return sender.handler(event, context())


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


VARIANTS: dict[str, Callable[[], Trial]] = {}
for trouble in TWO_PROVIDERS:
    VARIANTS[f"mailroom_{trouble}"] = partial(Mailroom, trouble)
    VARIANTS[f"failover_{trouble}"] = partial(Baseline, trouble)

if __name__ == "__main__":
    report({name: count(VARIANTS[name]) for name in sys.argv[1:] or VARIANTS})
