"""Checks that Resend sends the stage's mails: its API key, domains, quota, and the webhook for its events."""

from collections.abc import Iterator
from typing import Any

from mailroom.providers import resend
from mailroom.telemetry import redact
from mailroom_ops.doctor.examined_stage import ExaminedStage
from mailroom_ops.doctor.report import CheckFinding, failed, ok, warning
from mailroom_ops.shared.refusals import RESEND_FAULTS
from mailroom_ops.shared.resend_account import ResendAccount

_NEARLY = 0.8
NEEDED = {
    *("email.sent", "email.delivered", "email.bounced", "email.complained"),
    *("email.suppressed", "email.failed"),
}
"""Events that the webhook has to report. Without them, a status stays `sent`, and recipients are not
suppressed after bounces and complaints."""


def key(stage: ExaminedStage) -> Iterator[CheckFinding]:
    """Check that Resend accepts the API key."""
    put = (
        f"aws secretsmanager put-secret-value --secret-id {stage.prefix}resend "
        "--secret-string file://resend.json"
    )
    try:
        status, answer = _account(stage).ask("GET", "/domains")
    except RESEND_FAULTS as trouble:
        yield failed(f"Resend {trouble}.", put)
        return
    if status == 200:
        yield ok("Resend accepts the key.")
    elif answer.get("name") == "restricted_api_key":
        yield ok("Resend accepts the key, which may only send: domains, quota and webhook are not checked.")
    else:
        yield failed(f"Resend refuses the key: {status}, {redact(str(answer.get('message', '')))}", put)


def domains(stage: ExaminedStage) -> Iterator[CheckFinding]:
    """Check that the domain of each sender is verified. A verified parent domain does not count."""
    if not (answer := _answer(stage, "/domains")):
        return
    states = {str(entry.get("name")): str(entry.get("status")) for entry in _listed(answer)}
    for address in stage.mail_addresses:
        domain = address.rpartition("@")[2].lower()
        state = states.get(domain, "not a domain of the account")
        if state == "verified":
            yield ok(f"{address} may send by Resend: {domain} is verified.")
        else:
            fix = "Verify it: https://resend.com/domains"
            yield failed(f"{address} may not send by Resend: {domain} is {state}.", fix)


def quota(stage: ExaminedStage) -> Iterator[CheckFinding]:
    """Report how much of Resend's quotas is used."""
    emails = _answer(stage, "/usage").get("emails", {})
    for period in ("daily", "monthly"):
        used, limit = emails.get(period, {}).get("used", 0), emails.get(period, {}).get("limit")
        if limit:
            sentence = f"{used:,} of {limit:,} mails are used (Resend's {period} quota)."
            fix = "Raise it: https://resend.com/settings/billing"
            yield warning(sentence, fix) if used > _NEARLY * limit else ok(sentence)


def webhook(stage: ExaminedStage) -> Iterator[CheckFinding]:
    """Check that Resend reports its events to the stage's API."""
    answer = _answer(stage, "/webhooks")
    hooks = _listed(answer)
    links = {variables.get("UNSUBSCRIBE_URL", "") for variables in stage.senders("mail").values()}
    for url in sorted({link.removesuffix("/unsubscribe") + "/callbacks/resend" for link in links}):
        ours = [hook for hook in hooks if hook.get("endpoint") == url and hook.get("status") == "enabled"]
        reported = {kind for hook in ours for kind in hook.get("events") or NEEDED}
        if reported >= NEEDED:
            yield ok("Resend posts the events about the stage's mails to its API.")
        elif answer:
            missing = ", ".join(sorted(NEEDED - reported))
            yield failed(
                f"Resend posts no {missing} to {url}.", "Add the webhook: https://resend.com/webhooks"
            )


def _account(stage: ExaminedStage) -> ResendAccount:
    return ResendAccount(stage.sender("mail", resend.PROVIDER.variable))


def _answer(stage: ExaminedStage, path: str) -> dict[str, Any]:
    """Return Resend's response, or an empty dictionary after an error, which the check of the key reports."""
    try:
        status, answer = _account(stage).ask("GET", path)
    except RESEND_FAULTS:
        return {}
    return answer if status == 200 else {}


def _listed(answer: dict[str, Any]) -> list[dict[str, Any]]:
    return [entry for entry in answer.get("data", []) if isinstance(entry, dict)]
