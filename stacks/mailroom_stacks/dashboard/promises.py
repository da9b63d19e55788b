"""The top of the dashboard: how to read it, what rings, and whether messages arrive."""

from collections.abc import Iterator, Mapping, Sequence

from mailroom_stacks.constructs.worker import Work
from mailroom_stacks.dashboard.widgets import (
    Series,
    Widget,
    alarms,
    expression,
    heading,
    metric,
    numbers,
    text,
)
from mailroom_stacks.settings.stage import Settings

ALARMS_A_WIDGET = 100
HIDDEN = {"visible": False}
URGENT = (
    *("dlq-not-empty", "waiting-long", "backlog-old", "gave-up", "dropped", "iterator-age", "api-5xx"),
    *("ses-bounce-rate", "ses-complaint-rate", "day-used-up", "release-late"),
)
"""Kinds of alarms after which messages wait, something is lost, or sending ends, if nobody acts: those that
docs/operating says to page somebody for."""
NOBODYS = "unknown"
"""The channel under which `outcomes` counts what named one that there is not."""
READING = (
    "# Mailroom, stage {stage}\n"
    "From top to bottom: **does anything ring?** · **do messages arrive?** · which channel, and why not · "
    "queues · functions · streams · what comes from outside. Each alarm says what it means and what to run "
    "next; `docs/operating` has a page for each kind.\n\n"
    "First commands: `mailroom doctor --stage {stage}` · `mailroom failures --stage {stage} --since 1h` · "
    "`mailroom dead-letters list --stage {stage}`"
)


def top(settings: Settings, queues: Sequence[Work], kinds: Mapping[str, str]) -> Iterator[Widget]:
    """The widgets on whether anything is wrong."""
    yield text(READING.format(stage=settings.stage), 4)
    yield from _alarms(kinds)
    yield heading("Promises", "What was accepted and what failed in the time shown; how long, how late.")
    senders = [queue for queue in queues if queue.channel]
    channels = list(dict.fromkeys(queue.channel for queue in senders))
    yield _sums(settings, senders, channels)
    yield _waiting(settings, queues)
    for start in range(0, len(senders), 4):
        lines = times(settings, senders[start : start + 4])
        yield numbers("From put to accepted, ms", lines, stat="p50", width=24, whole_range=True)


def alarm_arn(name: str) -> str:
    """An alarm's ARN, by name: a reference would tie the alarm's stack to this one."""
    return f"arn:${{AWS::Partition}}:cloudwatch:${{AWS::Region}}:${{AWS::AccountId}}:alarm:{name}"


def counted(settings: Settings, function: str, name: str, **options: object) -> Series:
    """A metric that a function counts itself, such as Sent: the messages that its provider has accepted."""
    return metric("Mailroom", name, {"service": function, "stage": settings.stage}, **options)


def both_queues(settings: Settings, work: Work) -> tuple[dict[str, str], dict[str, str]]:
    """The dimensions of a queue's metrics, and of those of its dead-letter queue."""
    names = settings.name(work.queue_name), settings.name(work.dead_letter_name)
    return {"QueueName": names[0]}, {"QueueName": names[1]}


def _alarms(kinds: Mapping[str, str]) -> Iterator[Widget]:
    urgent = [name for name, kind in kinds.items() if kind in URGENT]
    other = [name for name in kinds if name not in urgent]
    for title, some in (("Act on these", urgent), ("Look at these", other)):
        arns = [alarm_arn(each) for each in some]
        for start in range(0, len(arns), ALARMS_A_WIDGET):
            part = arns[start : start + ALARMS_A_WIDGET]
            # Four alarms stand side by side, a row each.
            yield alarms(title, part, 1 + -(-len(part) // 4))


def _sums(settings: Settings, senders: Sequence[Work], channels: Sequence[str]) -> Widget:
    accepted = [
        counted(settings, each.function, "Sent", id=f"sent{at}", **HIDDEN) for at, each in enumerate(senders)
    ]
    failed = [
        metric("Mailroom", "Failed", {"channel": name, "stage": settings.stage}, id=f"failed{at}", **HIDDEN)
        for at, name in enumerate((*channels, NOBODYS))
    ]
    lines = [
        expression('SUM(METRICS("sent"))', id="accepted", label="accepted"),
        expression('SUM(METRICS("failed"))', id="refused", label="failed"),
    ]
    return numbers("Messages", [*lines, *accepted, *failed], stat="Sum", width=12, whole_range=True)


def _waiting(settings: Settings, queues: Sequence[Work]) -> Widget:
    ages, letters = [], []
    for at, each in enumerate(queues):
        own, dead = both_queues(settings, each)
        ages.append(metric("AWS/SQS", "ApproximateAgeOfOldestMessage", own, id=f"age{at}", **HIDDEN))
        for state in ("Visible", "NotVisible"):
            count, id_ = f"ApproximateNumberOfMessages{state}", f"dead{state.lower()}{at}"
            letters.append(metric("AWS/SQS", count, dead, id=id_, **HIDDEN))
    lines = [
        expression('MAX(METRICS("age"))', id="oldest", label="oldest waiting, s"),
        expression('SUM(METRICS("dead"))', id="letters", label="dead letters"),
    ]
    return numbers("Waiting now", [*lines, *ages, *letters], stat="Maximum", width=12, whole_range=False)


def times(settings: Settings, senders: Sequence[Work]) -> list[Series]:
    """The time from a message's put to its acceptance, by sender."""
    return [
        counted(settings, each.function, "PutToAccepted", stat=stat, label=f"{each.function} {stat}")
        for each in senders
        for stat in ("p50", "p99")
    ]
