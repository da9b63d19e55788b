"""Requests of operators' commands to a stage's account at Resend.

Paths and fields are from Resend's SDKs for Node 6.38.0 and Python 2.52.0.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

from mailroom.delivery.adapter import credentials
from mailroom.errors import OutcomeUnknown
from mailroom.http.provider_api import ProviderApi, object_in
from mailroom.providers.resend.sender import SECRET
from mailroom.telemetry import redact
from mailroom_ops.shared.deployed_stage import function_variables, name
from mailroom_ops.shared.refusals import NotDeployed
from mailroom_stacks.settings.constants import OF_FALLBACK

if TYPE_CHECKING:
    import boto3

SECONDS = 10.0


class ResendAccount:
    """Account at Resend whose API key the mail senders use. The key is read from its secret by the first
    request."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """Make an account from the environment variables of a mail sender."""
        self._arn = environment["RESEND_SECRET_ARN"]
        self._base = environment["RESEND_BASE_URL"]

    def ask(self, method: str, path: str) -> tuple[int, dict[str, Any]]:
        """Make a request to Resend's API. Return the response's status and JSON object. Raises RESEND_FAULTS
        and botocore's errors."""
        (key,) = credentials(SECRET, self._arn, "api_key")
        answer = ProviderApi(SECONDS, {"Authorization": f"Bearer {key}"}).request(method, self._base + path)
        return answer.status, object_in(answer.status, answer.text)

    def lift(self, address: str) -> Literal["lifted", "not_listed"]:
        """Remove an address from Resend's suppression list of the account. Raises the same exceptions as
        `ask`, and OutcomeUnknown if Resend refuses the request."""
        status, answer = self.ask("DELETE", f"/suppressions/{quote(address, safe='')}")
        if status == 404:
            return "not_listed"
        if status != 200:
            raise OutcomeUnknown(f"answered {status}: {redact(str(answer.get('message', '')))}")
        return "lifted"


def mail_providers(session: "boto3.Session", stage: str) -> dict[str, ResendAccount | None]:
    """Return the providers of a stage's mails by the names that people know, the first provider first. The
    value is the account at Resend, or None for SES. A stage without mail counts as one with SES."""
    providers: dict[str, ResendAccount | None] = {}
    for sender in ("send-mail", f"send-mail{OF_FALLBACK}"):
        try:
            variables = function_variables(session.client("lambda"), name(stage, sender))
        except NotDeployed:
            break
        account = ResendAccount(variables) if variables.get("RESEND_SECRET_ARN") else None
        providers["SES" if account is None else "Resend"] = account
        if "OTHER_PROVIDER" not in variables:
            break
    return providers or {"SES": None}
