"""Checks that SES sends the stage's mails: the account, the senders and the configuration set."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from mailroom.providers import ses
from mailroom_ops.doctor.checks.sender_dns import authentication
from mailroom_ops.doctor.examined_stage import ExaminedStage, Variables
from mailroom_ops.doctor.report import CheckFinding, failed, ok, skipped, warning
from mailroom_ops.shared.identities import Identity, identity_of
from mailroom_ops.shared.times import speed_of
from mailroom_stacks.settings.constants import (
    BOUNCE_RATE,
    BOUNCE_RATE_WARNING,
    COMPLAINT_RATE,
    COMPLAINT_RATE_WARNING,
    OF_FALLBACK,
)

_NEARLY = 0.8
_CONSOLE = "https://console.aws.amazon.com/ses/home#/account"
_UNLIMITED = -1


def account(stage: ExaminedStage) -> Iterator[CheckFinding]:
    """Check whether the account is in the sandbox, paused or under review, and report its plan."""
    response = stage.client("sesv2").get_account()
    if response.get("ProductionAccessEnabled"):
        yield ok("SES lets the account send to everybody.")
    else:
        yield warning(
            "SES has the account in its sandbox: only verified addresses get mail, 200 a day.",
            f"Request production access: {_CONSOLE}",
        )
    if not response.get("SendingEnabled", True):
        yield failed("SES has paused the account's sending.", f"Find the reason, then resume it: {_CONSOLE}")
    status = response.get("EnforcementStatus", "HEALTHY")
    if status != "HEALTHY":
        finding = warning if status == "PROBATION" else failed
        yield finding(f"SES has the account under {status.lower()}.", f"Answer its case: {_CONSOLE}")
    pricing = response.get("PricingAttributes", {})
    yield _plan(pricing.get("NextPlan", pricing.get("CurrentPlan", "")).lower())


def _plan(plan: str) -> CheckFinding:
    """Report the price of the account's plan in this region, or of the plan that it has chosen next. The plan
    is not a fault, as its features may be worth the price."""
    prices = {name: f"${price * 1e6:,.0f}" for name, price in ses.PROVIDER.plans.items()}
    if plan not in prices:
        return skipped("SES does not report the account's plan.")
    if plan == "none":
        return ok(f"Without a plan of SES, a million mails cost {prices[plan]}: the lowest price.")
    fee = f", and ${ses.FEES[plan]} a month" if plan in ses.FEES else ""
    return ok(
        f"By SES's plan {plan.title()}, a million mails cost {prices[plan]}{fee}. Without a plan they cost "
        f"{prices['none']}: aws sesv2 put-account-pricing-attributes --plan NONE"
    )


def quota(stage: ExaminedStage) -> Iterator[CheckFinding]:
    """Compare SES's quotas per second and per 24 hours with the senders' rate and the stages' daily
    limits."""
    limits = stage.client("sesv2").get_account()["SendQuota"]
    daily, rate = limits["Max24HourSend"], _deployed_rate(stage)
    yield _rate(stage, rate, limits["MaxSendRate"])
    if daily != _UNLIMITED:
        yield _day(limits["SentLast24Hours"], daily)
        yield from _days(stage, daily)


def reputation(stage: ExaminedStage) -> Iterator[CheckFinding]:
    """Compare the account's bounce and complaint rates in SES with the thresholds of the alarms."""
    for kind, metric, warned, alarmed in (
        ("bounce", "Reputation.BounceRate", BOUNCE_RATE_WARNING, BOUNCE_RATE),
        ("complaint", "Reputation.ComplaintRate", COMPLAINT_RATE_WARNING, COMPLAINT_RATE),
    ):
        share = _share(stage, metric)
        if share is None:
            yield skipped(f"SES has counted no {kind}s of the last day: too little was sent.")
            continue
        sentence = f"{share:.2%} of the mails end as a {kind} (warning: {warned:.2%}, alarm: {alarmed:.2%})."
        page = f"See `mailroom docs ses-{kind}-rate`."
        if share >= alarmed:
            yield failed(sentence, page)
        else:
            yield warning(sentence, page) if share >= warned else ok(sentence)


def _rate(stage: ExaminedStage, rate: float | None, limit: float) -> CheckFinding:
    if rate is None:
        return skipped(f"SES accepts {limit:g} a second; no deployed sender has a rate.")
    if rate <= limit * 1.01:
        return ok(f"The senders send at most {speed_of(rate)} a second, and SES accepts {limit:g}.")
    key = f"{_section(stage)}.messages_per_second"
    sentence = (
        f"The senders may send {speed_of(rate)} a second; SES accepts {limit:g} and throttles the rest."
    )
    if stage.local:
        return skipped(f"{sentence} The local simulator has no such limit.")
    return warning(sentence, f"Set {key} to {limit:g}, or request a higher rate: {_CONSOLE}")


def _day(sent: float, limit: float) -> CheckFinding:
    sentence = f"{sent:,.0f} of {limit:,.0f} mails in 24 hours are used."
    if sent >= limit:
        return failed(sentence, f"Further mails wait; request a higher quota: {_CONSOLE}")
    if sent >= _NEARLY * limit:
        return warning(sentence, f"Request a higher quota: {_CONSOLE}")
    return ok(sentence)


def _days(stage: ExaminedStage, limit: float) -> Iterator[CheckFinding]:
    """Compare the sum of the daily limits of the account's stages with the account's quota."""
    days = stage.days("mail", ses.PROVIDER.variable)
    total = sum(days.values())
    by_stage = " + ".join(f"{name} {recipients:,}" for name, recipients in sorted(days.items()))
    key = f"{_section(stage)}.per_day"
    if total > limit:
        yield warning(
            f"The stages may reach {total:,} recipients today ({by_stage}), but SES accepts {limit:,.0f}.",
            "Lower channels.mail.per_day of a stage: otherwise a campaign of one stage may use up the quota "
            "that codes of another need. See `mailroom docs keep-codes-fast`.",
        )
    elif stage.name in days:
        yield ok(f"The stages' daily limits ({by_stage}) are within the quota.")
    elif any(name.endswith("-bulk") for name in stage.senders("mail")):
        yield warning(
            f"Bulk may use up all of the {limit:,.0f} mails in 24 hours, so that codes have to wait.",
            f"Set {key} and the reserve of lane normal. See `mailroom docs keep-codes-fast`.",
        )


def _share(stage: ExaminedStage, metric: str) -> float | None:
    moment = datetime.fromtimestamp(stage.clock(), UTC)
    points: list[dict[str, Any]] = stage.client("cloudwatch").get_metric_statistics(
        Namespace="AWS/SES",
        MetricName=metric,
        StartTime=moment - timedelta(days=1),
        EndTime=moment,
        Period=3600,
        Statistics=["Average"],
    )["Datapoints"]
    if not points:
        return None
    return float(max(points, key=lambda point: point["Timestamp"])["Average"])


_IDENTITIES = "https://console.aws.amazon.com/ses/home#/identities"


def senders(stage: ExaminedStage) -> Iterator[CheckFinding]:
    """Check the identity of each sender: the address, its domain or a parent domain."""
    domains: dict[str, Identity] = {}
    for address in stage.mail_addresses:
        name, identity = identity_of(stage.client("sesv2"), address)
        yield _verified(address, name, identity)
        if identity is not None and "@" not in name:
            domains[name] = identity
    for name, identity in domains.items():
        yield _signed(name, identity.get("DkimAttributes", {}))
    if stage.local:
        yield skipped("SPF and DMARC are not checked on the local stage, whose domains are not in DNS.")
    else:
        yield from authentication(domains, stage.mail_addresses, stage.region)


def _verified(address: str, name: str, identity: Identity | None) -> CheckFinding:
    if identity is None:
        domain = address.rpartition("@")[2]
        return failed(
            f"{address} is not an identity of SES in this account and region, nor is its domain: SES sends "
            "no mail from it.",
            f"aws sesv2 create-email-identity --email-identity {domain}",
        )
    if identity.get("VerifiedForSendingStatus"):
        return ok(f"{address} may send by SES, as {name} is verified.")
    state = identity.get("VerificationStatus", "not verified").lower()
    return failed(
        f"{address} may not send: the identity {name} is {state}.", f"Verify it: {_IDENTITIES}/{name}"
    )


def _signed(domain: str, dkim: dict[str, Any]) -> CheckFinding:
    if dkim.get("SigningEnabled") and dkim.get("Status") == "SUCCESS":
        return ok(f"Mails of {domain} are signed (DKIM).")
    return warning(
        f"Mails of {domain} are not signed by it (DKIM: {dkim.get('Status', 'not set up')}): large mail "
        "providers reject them or treat them as spam.",
        f"Put the CNAME records into its DNS: {_IDENTITIES}/{domain}",
    )


def configuration(stage: ExaminedStage) -> Iterator[CheckFinding]:
    """Check that the configuration set exists, and that SES has not paused it."""
    name = stage.sender("mail", ses.PROVIDER.variable)["CONFIGURATION_SET"]
    response = stage.call("sesv2", "get_configuration_set", ConfigurationSetName=name)
    if response is None:
        yield failed(f"There is no configuration set {name}: every mail is refused.", stage.deploy)
    elif response.get("SendingOptions", {}).get("SendingEnabled", True):
        yield ok(f"Sending with the configuration set {name} is enabled.")
    else:
        yield failed(
            f"Sending with the configuration set {name} is paused.",
            f"aws sesv2 put-configuration-set-sending-options --configuration-set-name {name} "
            "--sending-enabled",
        )


def _senders(stage: ExaminedStage) -> dict[str, Variables]:
    return stage.senders("mail", ses.PROVIDER.variable)


def _section(stage: ExaminedStage) -> str:
    """Return the path of the settings with the limits of SES, which may be the second provider."""
    is_fallback = all(name.endswith(OF_FALLBACK) for name in _senders(stage))
    return f"mailroom.{stage.name}.channels.mail{'.fallback' if is_fallback else ''}"


def _deployed_rate(stage: ExaminedStage) -> float | None:
    """Return the mails a second of all lanes by SES together. The rate of a lane is the number of its workers
    divided by the pause after each submit. Return None for senders without a rate."""
    workers = {source.function: source.concurrency for source in stage.sources}
    rates = [
        (workers.get(name) or 0) / pace
        for name, variables in _senders(stage).items()
        if (pace := float(variables.get("PACE_SECONDS", "0"))) > 0
    ]
    return sum(rates) or None
