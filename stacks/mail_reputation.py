"""The alarms on what SES thinks of the account: a bad reputation ends all sending."""

from constructs import Construct

from stacks.constructs.alarms import About, Metric, Rings, StageAlarm
from stacks.settings.stage import Settings

HOUR = 3600


def watch_reputation(scope: Construct, settings: Settings) -> None:
    """Two alarms a rate, one that warns. The rates are the whole account's, for so is SES's judgement."""
    rates = settings.monitoring.ses
    bounces = (
        "bounced for good. SES looks into an account at 5 %, and may pause its sending: addresses are old, "
        "made up, or bought",
        f"mailroom suppressions list --stage {settings.stage} --channel mail (the newest first: which "
        "producer or campaign do they come from?), and stop that one (mailroom campaign list --stage "
        f"{settings.stage} names it)",
    )
    complaints = (
        "were reported as spam. SES looks into an account at 0.1 %, and may pause its sending: people get "
        "what they did not ask for, or cannot opt out of",
        f"mailroom suppressions list --stage {settings.stage} --channel mail (the newest first: which topic "
        f"or campaign do they come from?), stop that one (mailroom campaign list --stage {settings.stage} "
        "names it), and see that its mails have a topic, for then they can be opted out of",
    )
    _pair(scope, settings, "Bounce", bounces, (rates.bounce_rate_warning, rates.bounce_rate))
    _pair(scope, settings, "Complaint", complaints, (rates.complaint_rate_warning, rates.complaint_rate))


def _pair(
    scope: Construct,
    settings: Settings,
    of: str,
    words: tuple[str, str],
    thresholds: tuple[float, float],
) -> None:
    meaning, look = words
    metric = Metric("AWS/SES", f"Reputation.{of}Rate", "Average", period=HOUR)
    kind = f"ses-{of.lower()}-rate"
    for suffix, threshold in zip(("-warning", ""), thresholds, strict=True):
        about = About(
            kind=f"{kind}{suffix}",
            page=kind,
            meaning=f"{threshold:.2%} or more of the account's mails {meaning}.",
            look=look,
        )
        # As SES's developer guide has it: where nothing is reported, the rate is the one before.
        rings = Rings({"rate": metric}, threshold, missing="ignore")
        construct_id = f"{of}Rate{'Warning' if suffix else ''}"
        StageAlarm(scope, construct_id, settings, about, rings)
