"""Doctor's checks of the account at Acme."""

from collections.abc import Iterator

from mailroom_ops.doctor.examined_stage import ExaminedStage
from mailroom_ops.doctor.report import CheckFinding, ok


def account_findings(stage: ExaminedStage) -> Iterator[CheckFinding]:
    yield ok(f"Acme knows {stage.sender('sms', 'ACME_SECRET_ARN')['SMS_SENDER']}.")


def mail_account(_stage: ExaminedStage) -> Iterator[CheckFinding]:
    yield ok("Acme accepts the token.")
