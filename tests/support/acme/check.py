"""Doctor's checks of the account at Acme."""

from collections.abc import Iterator

from mailroom_ops.doctor.examined_stage import ExaminedStage, Variables
from mailroom_ops.doctor.report import CheckFinding, ok


def account(_stage: ExaminedStage, variables: Variables) -> Iterator[CheckFinding]:
    yield ok(f"Acme knows {variables['SMS_SENDER']}.")


def mail_account(_stage: ExaminedStage) -> Iterator[CheckFinding]:
    yield ok("Acme accepts the token.")
