"""What each command's `--json` prints: its type, of which a JSON Schema is made.

A command with several answers, by its options, has a tuple of types. `watch` prints one a line.
"""

import inspect
from typing import Any

import msgspec

from ops.campaigns import answers as campaigns
from ops.campaigns.dry_run import DryRunAnswer
from ops.cost.answer import Cost
from ops.dead_letters.command import DeadLettersListed, DeadLettersShown
from ops.dead_letters.redrive import Redriven
from ops.doctor.answer import Diagnosis
from ops.erase.stage import Erased
from ops.imports.answer import Imported
from ops.init.answer import Initialized
from ops.messages.failures import FailuresAnswer
from ops.messages.send import SendAnswer
from ops.messages.status import Status
from ops.messages.watch import Snapshot
from ops.people.preferences import PreferencesAnswer
from ops.people.suppressions import Lifted, SuppressionsAnswer
from ops.plan.answer import PlanOutput
from ops.reconcile.reconciler import Reconciled
from ops.replay import Replayed
from ops.resend.resender import Resent
from ops.restore import Restored
from ops.settle import Settled
from ops.webhook_key import WebhookKey

ANSWERS: dict[str, Any] = {
    "campaign list": campaigns.CampaignsAnswer,
    "campaign start": (campaigns.RunStarted, DryRunAnswer, campaigns.RunStatus | None),
    "campaign status": campaigns.RunsAnswer,
    "campaign stop": campaigns.RunStatus,
    "cost": Cost,
    "dead-letters list": DeadLettersListed,
    "dead-letters redrive": Redriven,
    "dead-letters show": DeadLettersShown,
    "doctor": Diagnosis,
    "erase": Erased,
    "failures": FailuresAnswer,
    "import": Imported,
    "init": Initialized,
    "plan": PlanOutput,
    "preferences opt-in": PreferencesAnswer,
    "preferences opt-out": PreferencesAnswer,
    "preferences show": PreferencesAnswer,
    "reconcile": Reconciled,
    "replay": Replayed,
    "restore": Restored,
    "resend": Resent,
    "send": SendAnswer,
    "settle": Settled,
    "status": Status,
    "suppressions lift": Lifted,
    "suppressions list": SuppressionsAnswer,
    "suppressions show": SuppressionsAnswer,
    "watch": Snapshot,
    "webhook-key": WebhookKey,
}
"""The types of answers, by the command as it is typed."""


def schema_of(command: str) -> dict[str, Any]:
    """The JSON Schema of a command's answer. Raises KeyError with the commands that there are."""
    if command not in ANSWERS:
        raise KeyError(f"no command {command!r} with an answer; there are: {', '.join(sorted(ANSWERS))}")
    answers = ANSWERS[command]
    types = answers if isinstance(answers, tuple) else (answers,)
    schemas, definitions = msgspec.json.schema_components(types, ref_template="#/$defs/{name}")
    for each in definitions.values():
        if "description" in each:
            each["description"] = inspect.cleandoc(each["description"])
    body = schemas[0] if len(schemas) == 1 else {"anyOf": list(schemas)}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"mailroom {command} --json",
        **body,
        "$defs": definitions,
    }
