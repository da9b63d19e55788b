"""Checks of the senders of mail: the daily limit, and the checks that their providers' descriptors name."""

import json
from collections.abc import Iterator

from mailroom.budget import Budget, limit_of
from mailroom.clock import iso
from mailroom_ops.doctor.checks.channels import of_providers
from mailroom_ops.doctor.examined_stage import ExaminedStage
from mailroom_ops.doctor.report import CheckFinding, ok, warning
from mailroom_ops.shared.times import short

account = of_providers("mail", "account")
quota = of_providers("mail", "quota")
reputation = of_providers("mail", "reputation")
senders = of_providers("mail", "senders")
configuration = of_providers("mail", "configuration")


def day(stage: ExaminedStage) -> Iterator[CheckFinding]:
    """Report how much of the stage's daily limit is reserved, and until when bulk messages wait."""
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
            "are reserved"
        )
        if room.recipients:
            yield ok(f"{sentence}.")
        else:
            again = short(iso(room.again))
            yield warning(f"{sentence}. Bulk waits until about {again}.", "See `mailroom docs day-used-up`.")
