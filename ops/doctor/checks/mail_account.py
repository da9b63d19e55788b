"""What SES lets the account send, and what it thinks of it."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from ops.doctor.look import Look
from ops.doctor.rates import deployed_rate
from ops.doctor.verdict import Verdict, failed, ok, skipped, warning
from ops.plan.screen import speed_of
from stacks.settings.monitoring import Monitoring

NO_MAIL = "No function of the stage sends mail."
_METRICS = {"bounce": "Reputation.BounceRate", "complaint": "Reputation.ComplaintRate"}
_NEARLY = 0.8
_CONSOLE = "https://console.aws.amazon.com/ses/home#/account"
_UNLIMITED = -1


def account(look: Look) -> Iterator[Verdict]:
    """Sandbox or production, paused or not, under review or not."""
    if not look.senders("mail"):
        yield skipped(NO_MAIL)
        return
    said = look.client("sesv2").get_account()
    if said.get("ProductionAccessEnabled"):
        yield ok("SES lets the account send to everybody.")
    else:
        yield warning(
            "SES has the account in its sandbox: only verified addresses get mail, 200 a day.",
            f"Request production access: {_CONSOLE}",
        )
    if not said.get("SendingEnabled", True):
        yield failed("SES has paused the account's sending.", f"Find the reason, then resume it: {_CONSOLE}")
    status = said.get("EnforcementStatus", "HEALTHY")
    if status != "HEALTHY":
        verdict = warning if status == "PROBATION" else failed
        yield verdict(f"SES has the account under {status.lower()}.", f"Answer its case: {_CONSOLE}")
    yield _suppression(said.get("SuppressionAttributes", {}).get("SuppressedReasons", []))


def quota(look: Look) -> Iterator[Verdict]:
    """What may be sent a second and in 24 hours, against what the senders would."""
    if not look.senders("mail"):
        yield skipped(NO_MAIL)
        return
    said = look.client("sesv2").get_account()["SendQuota"]
    most, rate = said["Max24HourSend"], deployed_rate(look, "mail")
    yield _rate(look, rate, said["MaxSendRate"])
    if most != _UNLIMITED:
        yield _day(said["SentLast24Hours"], most, min(rate or 0, said["MaxSendRate"]))


def reputation(look: Look) -> Iterator[Verdict]:
    """The account's bounces and complaints, as SES counts them, against the rates at which alarms ring."""
    if not look.senders("mail"):
        yield skipped(NO_MAIL)
        return
    for kind, (warned, alarmed) in _thresholds(look).items():
        share = _share(look, _METRICS[kind])
        if share is None:
            yield skipped(f"SES has counted no {kind}s of the last day: too little was sent.")
            continue
        sentence = f"{share:.2%} of the mails end as a {kind} (warned of from {warned:.2%}, {alarmed:.2%})."
        page = f"See docs/operating/ses-{kind}-rate.md."
        if share >= alarmed:
            yield failed(sentence, page)
        else:
            yield warning(sentence, page) if share >= warned else ok(sentence)


def _thresholds(look: Look) -> dict[str, tuple[float, float]]:
    """From which share of the mails on the alarms warn, and ring. Where no settings can be read, those of a
    stage that sets none."""
    written = look.written.settings
    rates = (written.monitoring if written else Monitoring()).ses
    return {
        "bounce": (rates.bounce_rate_warning, rates.bounce_rate),
        "complaint": (rates.complaint_rate_warning, rates.complaint_rate),
    }


def _suppression(reasons: list[str]) -> Verdict:
    missing = {"BOUNCE", "COMPLAINT"} - set(reasons)
    if not missing:
        return ok("SES's list of the account takes in bounces and complaints.")
    return ok("SES's list of the account does not take in all; the configuration set's own setting counts.")


def _rate(look: Look, rate: float | None, most: float) -> Verdict:
    if rate is None:
        return skipped(f"SES takes {most:g} a second; no deployed sender keeps to a rate.")
    if rate <= most * 1.01:
        return ok(f"The senders keep to {speed_of(rate)} mails a second, SES takes {most:g}.")
    key = f"mailroom.{look.stage}.channels.mail.messages_per_second"
    sentence = (
        f"The senders would send {speed_of(rate)} mails a second, SES takes {most:g}: it throttles the rest."
    )
    if look.local:
        return skipped(f"{sentence} It does not here: the simulator has no such limit.")
    return warning(sentence, f"Set {key} to {most:g}, or request a higher rate: {_CONSOLE}")


def _day(sent: float, most: float, rate: float) -> Verdict:
    lasts = f"; at the full rate they last for {most / rate / 3600:.1f} h" if rate else ""
    sentence = f"{sent:,.0f} of {most:,.0f} mails of 24 hours are used{lasts}."
    if sent >= most:
        return failed(sentence, f"They wait until it has room again; request a higher quota: {_CONSOLE}")
    if sent >= _NEARLY * most:
        return warning(sentence, f"Request a higher quota: {_CONSOLE}")
    return ok(sentence)


def _share(look: Look, metric: str) -> float | None:
    now = datetime.fromtimestamp(look.clock(), UTC)
    points: list[dict[str, Any]] = look.client("cloudwatch").get_metric_statistics(
        Namespace="AWS/SES",
        MetricName=metric,
        StartTime=now - timedelta(days=1),
        EndTime=now,
        Period=3600,
        Statistics=["Average"],
    )["Datapoints"]
    if not points:
        return None
    return float(max(points, key=lambda each: each["Timestamp"])["Average"])
