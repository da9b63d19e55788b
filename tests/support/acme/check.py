"""Doctor's check of the account at Acme."""

from collections.abc import Iterator

from mailroom_ops.doctor.examined_stage import ExaminedStage, Variables
from mailroom_ops.doctor.report import CheckFinding, ok


def account(_stage: ExaminedStage, variables: Variables) -> Iterator[CheckFinding]:
    yield ok(f"Acme knows {variables['SMS_SENDER']}.")
