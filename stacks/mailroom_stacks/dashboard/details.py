"""The dashboard below its top: channels, queues, functions, streams, what others say, campaigns."""

from collections.abc import Iterator, Sequence

from mailroom_stacks.constructs.function import FunctionSpec
from mailroom_stacks.constructs.http_api import access_log
from mailroom_stacks.constructs.stream import BEHIND_SECONDS
from mailroom_stacks.constructs.worker import IN_FLIGHT_MANY, IN_FLIGHT_MOST, Work
from mailroom_stacks.dashboard.promises import NOBODYS, alarm_arn, both_queues, counted, times
from mailroom_stacks.dashboard.widgets import Widget, expression, found, graph, heading, metric, ringing
from mailroom_stacks.release import FUNCTION, LATE_SECONDS
from mailroom_stacks.settings.monitoring import (
    BOUNCE_RATE,
    BOUNCE_RATE_WARNING,
    COMPLAINT_RATE,
    COMPLAINT_RATE_WARNING,
)
from mailroom_stacks.settings.queues import DAY
from mailroom_stacks.settings.stage import Settings
from mailroom_stacks.settings.waiting import waiting_seconds


def channels(settings: Settings, reading: Sequence[Work]) -> Iterator[Widget]:
    """The widgets on which channel fails, and why."""
    yield heading(
        "Channels", "Accepted a lane, failed a reason (the ledger's `error.code`), and how long it took."
    )
    by_channel: dict[str, list[Work]] = {}
    for queue in reading:
        if queue.channel:
            by_channel.setdefault(queue.channel, []).append(queue)
    for name, senders in by_channel.items():
        yield graph(
            f"{name}: accepted", [counted(settings, each.function, "Sent") for each in senders], stat="Sum"
        )
        yield graph(f"{name}: failed by reason", [_failed(settings, name)], stat="Sum", stacked=True)
        yield graph(f"{name}: from put to accepted, ms", times(settings, senders), stat="p50")
    yield graph(
        "no channel that there is: failed by reason", [_failed(settings, NOBODYS)], stat="Sum", stacked=True
    )


def queues(settings: Settings, reading: Sequence[Work]) -> Iterator[Widget]:
    """What waits, and where?"""
    yield heading("Queues", "What waits, the age of the oldest, what is in flight, and the dead letters.")
    for queue in reading:
        yield from _queue(settings, queue)


def waits(settings: Settings) -> Iterator[Widget]:
    """The widgets on whether messages that wait are handed over in time."""
    yield heading("Waits", "How late `release` hands messages over, and how many.")
    lateness = [counted(settings, FUNCTION, "ReleaseLate")]
    yield graph("release: late, ms", lateness, stat="Maximum", marks={"alarm": LATE_SECONDS * 1000})
    yield graph("release: handed over", [counted(settings, FUNCTION, "Released")], stat="Sum")


def functions(settings: Settings, specs: Sequence[FunctionSpec]) -> Iterator[Widget]:
    """What fails, what is slow?"""
    yield heading(
        "Functions", "Errors and throttles, duration against the time-out, and how many run at once."
    )
    for spec in specs:
        yield from _function(settings, spec)
    monitoring = settings.monitoring
    claimed = metric("AWS/Lambda", "ClaimedAccountConcurrency", {})
    marks = {"alarm": monitoring.many_functions, "quota": monitoring.concurrency_quota}
    yield graph("The account's concurrency", [claimed], stat="Maximum", marks=marks, width=24)


def streams(settings: Settings, readers: Sequence[str]) -> Iterator[Widget]:
    """Are the tables' streams read?"""
    yield heading("Streams", "How far each reader is behind its table, and what it gave up on.")
    for name in readers:
        age = metric("AWS/Lambda", "IteratorAge", {"FunctionName": settings.name(name)})
        marks = {"alarm": BEHIND_SECONDS * 1000}
        yield graph(f"{name}: behind, ms", [age], stat="Maximum", marks=marks)
        for title, kind in (("records given up on", "gave-up"), ("records dropped", "dropped")):
            yield ringing(f"{name}: {title}", alarm_arn(settings.name(f"{name}-{kind}")))


def _failed(settings: Settings, channel: str) -> list[object]:
    """Every reason that there was: nobody knows them beforehand."""
    schema = "{Mailroom,channel,reason,stage}"
    search = f'{schema} MetricName="Failed" channel="{channel}" stage="{settings.stage}"'
    return expression(f"SEARCH('{search}', 'Sum', 300)", id="reasons")


def _queue(settings: Settings, queue: Work) -> Iterator[Widget]:
    own, dead = both_queues(settings, queue)
    count = "ApproximateNumberOfMessages"
    depth = [
        metric("AWS/SQS", f"{count}Visible", own, label="waiting"),
        metric("AWS/SQS", f"{count}Delayed", own, label="delayed"),
    ]
    yield graph(f"{queue.queue}: waiting", depth, stat="Maximum", width=6, stacked=True)
    age = [metric("AWS/SQS", "ApproximateAgeOfOldestMessage", own, label="oldest")]
    kept = settings.retention.days_of(fifo=queue.fifo) * DAY
    marks = {"waiting long": waiting_seconds(settings, queue.queue), "half of the retention": kept // 2}
    yield graph(f"{queue.queue}: age of the oldest, s", age, stat="Maximum", marks=marks, width=6)
    in_flight = [metric("AWS/SQS", f"{count}NotVisible", own, label="in flight")]
    marks = {"alarm": IN_FLIGHT_MANY, "SQS's limit": IN_FLIGHT_MOST}
    yield graph(f"{queue.queue}: in flight", in_flight, stat="Maximum", marks=marks, width=6)
    letters = [
        metric("AWS/SQS", f"{count}Visible", dead, label="visible"),
        metric("AWS/SQS", f"{count}NotVisible", dead, label="looked at"),
    ]
    yield graph(f"{queue.queue}: dead letters", letters, stat="Maximum", width=6, stacked=True)


def _function(settings: Settings, spec: FunctionSpec) -> Iterator[Widget]:
    own = {"FunctionName": settings.name(spec.function)}
    failing = [metric("AWS/Lambda", name, own) for name in ("Errors", "Throttles")]
    yield graph(f"{spec.function}: errors, throttles", failing, stat="Sum")
    took = [
        metric("AWS/Lambda", "Duration", own, stat=stat, label=stat) for stat in ("p50", "p99", "Maximum")
    ]
    slow, timeout = round(spec.slow_seconds * 1000), spec.timeout_seconds * 1000
    limits = {"alarm": slow, "time-out": timeout}
    yield graph(f"{spec.function}: duration, ms", took, stat="Maximum", marks=limits)
    running = [metric("AWS/Lambda", "ConcurrentExecutions", own)]
    yield graph(f"{spec.function}: at once", running, stat="Maximum")


FAILING_HOSTS = (
    'filter message = "an endpoint keeps failing" | stats count(*) as tries by host | sort tries desc'
)
ANSWERS = (
    "stats count(*) as requests, max(responseLatency) as slowest_ms by routeKey, status | sort requests desc"
)


def outside(settings: Settings) -> Iterator[Widget]:
    """What do others say?"""
    by_ses = settings.mail.provider == "ses"
    judged = "SES's judgement of the account; " if by_ses else ""
    yield heading("Outside", f"{judged}endpoints that keep failing; the API's answers.")
    if by_ses:
        yield _rate("Bounce", BOUNCE_RATE_WARNING, BOUNCE_RATE)
        yield _rate("Complaint", COMPLAINT_RATE_WARNING, COMPLAINT_RATE)
    sender = settings.name("send-webhook")
    yield found("Endpoints that keep failing: tries", f"/aws/lambda/{sender}", FAILING_HOSTS, width=12)
    names = ("CallbacksDelivered", "WebhooksFailing")
    callbacks = [counted(settings, "send-webhook", name) for name in names]
    yield graph("Callbacks", callbacks, stat="Sum", width=12)
    yield ringing(f"{settings.name()}: answered 5xx", alarm_arn(settings.name("api-5xx")), width=12)
    yield found(f"{settings.name()}: answers", access_log(settings), ANSWERS, width=12)


def campaigns(settings: Settings, reading: Sequence[Work]) -> Iterator[Widget]:
    """How far are they? Nothing where the stage has none."""
    works = [queue.function for queue in reading if queue.queue in ("collect", "audience")]
    if not works:
        return
    yield heading(
        "Campaigns", f"People found and messages put; `mailroom campaign list --stage {settings.stage}`."
    )
    for function in works:
        search = f'{{Mailroom,service,stage}} service="{function}" stage="{settings.stage}"'
        counted = expression(f"SEARCH('{search}', 'Sum', 300)", id="counted")
        yield graph(f"{function}: what it counts", [counted], stat="Sum", width=12)


def _rate(of: str, warning: float, alarm: float) -> Widget:
    marks = {"warning": warning, "alarm": alarm}
    line = metric("AWS/SES", f"Reputation.{of}Rate", {})
    return graph(f"SES: {of.lower()} rate", [line], stat="Average", marks=marks, width=12, period=3600)
