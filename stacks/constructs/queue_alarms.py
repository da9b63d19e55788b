"""The alarms that every queue has."""

from dataclasses import dataclass

from aws_cdk import aws_sqs as sqs
from constructs import Construct

from stacks.constructs.alarms import About, Metric, Rings, StageAlarm, read_log
from stacks.constructs.outputs import pascal
from stacks.settings.queues import DAY
from stacks.settings.stage import Settings

IN_FLIGHT_MANY = 100_000
IN_FLIGHT_MOST = 120_000
"""SQS's limit a queue, FIFO or not; it hands out no more then, and returns no error."""
AGE = "ApproximateAgeOfOldestMessage"
RECEIVED = " What was received three times no longer counts."
"""Of standard queues, by SQS's documentation of that metric."""


@dataclass(frozen=True)
class Watch:
    """A queue to watch, and who works for it."""

    queue: sqs.Queue
    dead_letters: sqs.Queue
    short: str
    """The queue's short name."""
    function: str
    """The short name of the function that reads it."""
    waiting_seconds: int
    kept_days: int
    """After so many days SQS deletes what is in the queue."""

    @property
    def fifo(self) -> bool:
        """Whether it keeps the order within a group."""
        return self.queue.fifo


def watch_queue(scope: Construct, settings: Settings, watch: Watch) -> None:
    """Make all four."""
    _not_empty(scope, settings, watch)
    _waiting_long(scope, settings, watch)
    _backlog_old(scope, settings, watch)
    _in_flight_many(scope, settings, watch)


def _not_empty(scope: Construct, settings: Settings, watch: Watch) -> None:
    """Rings while a dead letter waits, also while somebody looks at it."""
    of_stage = f"--stage {settings.stage} --queue {watch.short}"
    about = About(
        subject=watch.short,
        kind="dlq-not-empty",
        meaning=f"What {watch.function} could not finish lies in the dead-letter queue of {watch.short}: "
        f"nothing is lost, for {settings.retention.dead_letter_days} days. A fault of ours, of a provider's "
        "or of AWS's is behind it; it rings until the queue is empty.",
        look=f"mailroom dead-letters list {of_stage}, mend the cause, then mailroom dead-letters redrive "
        f"{of_stage}",
        # No other alarm of a queue is meant where people say "the queue's alarm".
        output=f"{pascal(watch.short)}Dlq",
    )
    waiting = {
        "visible": _metric(watch.dead_letters, "ApproximateNumberOfMessagesVisible", period=60),
        "hidden": _metric(watch.dead_letters, "ApproximateNumberOfMessagesNotVisible", period=60),
    }
    # A queue that nobody touches for hours reports nothing: that must not end the alarm.
    StageAlarm(scope, "NotEmpty", settings, about, Rings(waiting, threshold=1, missing="ignore"))


def _waiting_long(scope: Construct, settings: Settings, watch: Watch) -> None:
    about = About(
        subject=watch.short,
        kind="waiting-long",
        meaning=f"The oldest message in {watch.short} has waited for over {watch.waiting_seconds // 60} "
        f"minutes: more comes in than {watch.function} may send, or it does not run, or fails."
        f"{'' if watch.fifo else RECEIVED}",
        look=f"mailroom doctor --stage {settings.stage}, then {read_log(settings, watch.function)}",
    )
    # An empty queue reports no age.
    StageAlarm(scope, "WaitingLong", settings, about, _age(watch, watch.waiting_seconds))


def _backlog_old(scope: Construct, settings: Settings, watch: Watch) -> None:
    """SQS deletes what is past its retention silently, and past the dead-letter queue."""
    half = watch.kept_days * DAY // 2
    about = About(
        subject=watch.short,
        kind="backlog-old",
        meaning=f"The oldest message in {watch.short} has waited for half of the {watch.kept_days} days that "
        "SQS keeps it: past all of them it is deleted, without a dead letter. The ledger still lacks it: "
        f"mailroom reconcile --stage {settings.stage} would put it back.",
        look=f"mailroom watch --once --stage {settings.stage} (does anything read it?), raise the rate or "
        f"the concurrency, mailroom campaign list --stage {settings.stage} (stop what is too much), or pause "
        "the producer",
    )
    StageAlarm(scope, "BacklogOld", settings, about, _age(watch, half))


def _in_flight_many(scope: Construct, settings: Settings, watch: Watch) -> None:
    """What waits between two tries is in flight as well."""
    about = About(
        subject=watch.short,
        kind="in-flight-many",
        meaning=f"Over {IN_FLIGHT_MANY:,} messages of {watch.short} are in flight, which includes those that "
        f"wait for their next try: at {IN_FLIGHT_MOST:,} SQS hands out none, and says nothing.",
        look=f"mailroom failures --stage {settings.stage} --since 1h and "
        f"{read_log(settings, watch.function)}: end what fails again and again, or pause the producer",
    )
    in_flight = _metric(watch.queue, "ApproximateNumberOfMessagesNotVisible")
    StageAlarm(scope, "InFlightMany", settings, about, Rings({"in_flight": in_flight}, IN_FLIGHT_MANY))


def _age(watch: Watch, seconds: int) -> Rings:
    return Rings({"age": _metric(watch.queue, AGE)}, threshold=seconds)


def _metric(queue: sqs.Queue, name: str, period: int = 300) -> Metric:
    return Metric("AWS/SQS", name, "Maximum", {"QueueName": queue.queue_name}, period)
