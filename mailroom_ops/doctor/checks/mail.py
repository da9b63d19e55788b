"""Checks of the senders of mail: the daily limit, and the checks that their providers' descriptors name."""

import json
from collections.abc import Callable, Iterator
from pkgutil import resolve_name

from mailroom.budget import Budget, limit_of
from mailroom.clock import iso
from mailroom.providers import providers_of
from mailroom_ops.doctor.examined_stage import ExaminedStage
from mailroom_ops.doctor.report import CheckFinding, ok, skipped, warning
from mailroom_ops.shared.times import short


def _of_providers(check: str) -> Callable[[ExaminedStage], Iterator[CheckFinding]]:
    """Return a check that makes the checks of this name of the providers by which the stage sends mails."""

    def checked(stage: ExaminedStage) -> Iterator[CheckFinding]:
        rows = [row for row in providers_of("mail").values() if stage.senders("mail", row.variable)]
        places = [row.checks[check] for row in rows if check in row.checks]
        for place in places:
            yield from resolve_name(place)(stage)
        if not places:
            yield skipped(f"This check does not apply to {' and '.join(row.title for row in rows)}.")

    return checked


account = _of_providers("account")
quota = _of_providers("quota")
reputation = _of_providers("reputation")
senders = _of_providers("senders")
configuration = _of_providers("configuration")


def day(stage: ExaminedStage) -> Iterator[CheckFinding]:
    """Report how much of the stage's daily limit is used, and until when bulk messages wait."""
    lanes = [variables for variables in stage.senders("mail").values() if "PER_DAY" in variables]
    for name, variables in {lane.get("BUDGET", "mail"): lane for lane in lanes}.items():
        # A stack leaves out variables with default values.
        per_day, reserve = json.loads(variables["PER_DAY"]), float(variables.get("RESERVE", 0))
        table, client = variables["BUDGETS_TABLE"], stage.client("dynamodb")
        budget = Budget(client, table, name, per_day, reserve, stage.clock)
        (used, _), room = budget.spent(), budget.room()
        provider = " at the fallback" if "BUDGET" in variables else ""
        sentence = (
            f"{used:,} of the stage's own {limit_of(per_day, stage.clock()):,} recipients a day{provider} "
            "are used"
        )
        if room.recipients:
            yield ok(f"{sentence}.")
        else:
            again = short(iso(room.again))
            yield warning(f"{sentence}. Bulk waits until about {again}.", "See `mailroom docs day-used-up`.")
