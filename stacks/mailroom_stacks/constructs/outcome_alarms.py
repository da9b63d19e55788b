"""Alarms of outcomes: a lane whose tries fail, and a channel whose messages fail."""

from collections.abc import Iterable, Sequence

from aws_cdk import Duration
from aws_cdk.aws_cloudwatch import MathExpression
from constructs import Construct

from mailroom_stacks.constructs.stage_alarm import (
    AlarmText,
    counted,
    counted_of_channel,
    identifier,
    stage_alarm,
)
from mailroom_stacks.settings.settings import Settings

TRIES, MESSAGES = "tries-failing", "messages-failing"
"""Kinds of the alarms, and the names of their pages."""
MINUTE, HOUR = 60, 3_600
FAILING_TRIES, MINUTES, OF_MINUTES = 4, 2, 5
"""Minimum number of failing tries in a minute, number of such minutes, and number of latest minutes that the
alarm looks at. A single message has four tries only in its first minute, so it never sets off the alarm
alone. Three minutes would be too many: a mail whose outcome is unknown is tried twice in its first half hour,
so the alarm would not ring for codes that were put at the same time."""
FAILING_SHARE = 50
"""Percentage of the failing tries and acceptances of a lane together."""
FAILED_SHARE = 20
"""Percentage of a channel's messages. It is higher than the usual share of old addresses and numbers."""
FAILED_OF = 50
"""Minimum number of messages in an hour from which the share counts."""
EVERY_REASON = ("undelivered", "bounced", "complained")
"""Values of the metric's dimension `reason` for messages that failed after the provider had accepted them."""
REASONS = {"sms": ("undelivered",), "push": (), "fax": ()}
"""The same for channels with fewer of these reasons. A fax counts as sent once it is delivered, and SNS does
not report about pushes."""
UNANSWERED = ("Retried", "Unknown", "Misconfigured")
"""Metrics of tries that did not end in an answer: throttled, failed, or of unknown outcome."""
ANSWERED, ANSWERED_OF_FAX = "Sent", "Submitted"
"""Metrics of tries that ended in an acceptance. A fax is sent long after its provider has accepted it."""


def watch_outcomes(scope: Construct, settings: Settings) -> None:
    """Create the alarm of each lane on its tries, and the alarm of each channel on its messages. Webhooks are
    left out: the alarm `webhooks-failing` watches their endpoints."""
    functions: dict[str, list[str]] = {}
    for row in settings.lane_rows():
        _watch_tries(scope, settings, row.event_type, row.queue, row.function, ANSWERED)
        functions.setdefault(row.event_type, []).append(row.function)
    if settings.fax:
        _watch_tries(scope, settings, "fax", "fax", "send-fax", ANSWERED_OF_FAX)
        functions["fax"] = ["send-fax"]
    for channel, senders in functions.items():
        _watch_messages(scope, settings, channel, senders)


def _watch_tries(
    scope: Construct, settings: Settings, channel: str, queue: str, function: str, answered: str
) -> None:
    text = AlarmText(
        subject=queue,
        kind=TRIES,
        meaning=f"In {MINUTES} of the last {OF_MINUTES} minutes, as many or more tries of {queue} failed as "
        "messages were accepted: the provider is down, throttles, or refuses the stage's account; or AWS "
        "fails. The messages are tried again; after hours they become dead letters.",
        next_step=f"mailroom messages list --reasons --since 1h --channel {channel} --stage {settings.stage} "
        "(the provider's words)",
    )
    ids = {name: identifier(f"{name.lower()}-{queue}") for name in (*UNANSWERED, answered)}
    metrics = {
        id_: counted(settings, function, name).with_(period=Duration.seconds(MINUTE))
        for name, id_ in ids.items()
    }
    failing = _sum(ids[name] for name in UNANSWERED)
    share = MathExpression(
        expression=f"IF({failing} >= {FAILING_TRIES}, 100 * {failing} / {_sum(metrics)}, 0)",
        using_metrics=metrics,
        period=Duration.seconds(MINUTE),
        label=queue,
    )
    stage_alarm(
        scope, f"{queue}-tries", settings, text, share, FAILING_SHARE, periods=OF_MINUTES, at_least=MINUTES
    )


def _watch_messages(scope: Construct, settings: Settings, channel: str, senders: Sequence[str]) -> None:
    text = AlarmText(
        subject=channel,
        kind=MESSAGES,
        meaning=f"Within an hour, messages of {channel} failed, bounced or were not delivered: "
        f"{FAILED_SHARE} % or more of those that were accepted or failed, which are {FAILED_OF} or more. "
        "They are not sent again. A template, a producer's data, a list of recipients or the account is at "
        "fault.",
        next_step=f"mailroom messages list --reasons --since 1h --channel {channel} --stage {settings.stage} "
        "(the reason of most of them)",
    )
    sent = {identifier(function): counted(settings, function, "Sent") for function in senders}
    reasons = REASONS.get(channel, EVERY_REASON)
    late = {reason: counted_of_channel(settings, channel, "Failed", reason) for reason in reasons}
    metrics = {"failed": counted_of_channel(settings, channel, "Failed"), **late, **sent}
    # Messages that failed after their acceptance are in both metrics, and count once. Each sum contains
    # `failed`, so that it has a value even if its other metrics lack data.
    total = f"({_sum(['failed', *sent])} + failed - {_sum(['failed', *late])})"
    share = MathExpression(
        expression=f"IF({total} >= {FAILED_OF}, 100 * failed / {total}, 0)",
        using_metrics={name: metric.with_(period=Duration.seconds(HOUR)) for name, metric in metrics.items()},
        period=Duration.seconds(HOUR),
        label=channel,
    )
    stage_alarm(scope, f"{channel}-messages", settings, text, share, FAILED_SHARE)


def _sum(metrics: Iterable[str]) -> str:
    """Return an expression for the sum of metrics. Unlike a sum by "+", it has a value if one of the metrics
    lacks data."""
    return f"SUM([{', '.join(metrics)}])"
