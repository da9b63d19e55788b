"""The alarms that every reader of a stream has."""

from aws_cdk import Stack
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from stacks.constructs.alarms import About, Metric, Rings, StageAlarm, read_log
from stacks.settings.stage import Settings


def gave_up(scope: Construct, settings: Settings, name: str, mapping: lambda_.CfnEventSourceMapping) -> None:
    """Partial batch responses are no errors of the function: nothing else would tell of it. Nor would
    anything of what could not be put into the bucket."""
    _put_aside(scope, settings, name, mapping)
    _dropped(scope, settings, name, mapping)


def _put_aside(
    scope: Construct, settings: Settings, name: str, mapping: lambda_.CfnEventSourceMapping
) -> None:
    days = settings.retention.unprocessed_days
    about = About(
        subject=name,
        kind="gave-up",
        meaning=f"{name} failed on records of its stream again and again. They lie whole in the bucket of "
        f"unprocessed records, for {days} days, and go nowhere by themselves.",
        look=f"{read_log(settings, name)}, mend the cause, mailroom replay --stage {settings.stage}, then "
        f"{_end(settings, f'{name}-gave-up', 'replayed')}",
    )
    StageAlarm(
        scope, "GaveUp", settings, about, _at_the_first(mapping, "OnFailureDestinationDeliveredEventCount")
    )


def _dropped(scope: Construct, settings: Settings, name: str, mapping: lambda_.CfnEventSourceMapping) -> None:
    """An alarm of its own, and no sum: a sum has no value where one of its metrics has none."""
    about = About(
        subject=name,
        kind="dropped",
        page="gave-up",
        meaning=f"{name} gave up on records of its stream, and Lambda could not put them into the bucket of "
        "unprocessed records: it has dropped them. The bucket, its policy or the function's role is not as "
        "it was deployed.",
        look=f"{read_log(settings, name)}, aws cloudformation detect-stack-drift --stack-name "
        f"{Stack.of(scope).stack_name} (what is not as it was deployed?), deploy that stack with "
        f"--revert-drift, mailroom reconcile --stage {settings.stage}, then "
        f"{_end(settings, f'{name}-dropped', 'reconciled')}",
    )
    StageAlarm(scope, "Dropped", settings, about, _at_the_first(mapping, "DroppedEventCount"))


def _at_the_first(mapping: lambda_.CfnEventSourceMapping, name: str) -> Rings:
    count = Metric("AWS/Lambda", name, "Sum", {"EventSourceMappingUUID": mapping.ref})
    # Nothing more given up does not mean that it was put back on its way.
    return Rings({"count": count}, 1, missing="ignore")


def _end(settings: Settings, alarm: str, reason: str) -> str:
    """The command that ends an alarm that does not end by itself."""
    return (
        f"aws cloudwatch set-alarm-state --alarm-name {settings.name(alarm)} --state-value OK "
        f"--state-reason {reason}"
    )


def iterator_age(scope: Construct, settings: Settings, name: str, function: lambda_.Function) -> None:
    """Rings when what was written is read late."""
    seconds = settings.monitoring.iterator_age_seconds
    about = About(
        subject=name,
        kind="iterator-age",
        meaning=f"{name} is over {seconds} s behind its table: records fail and are tried again, which holds "
        "up those behind them in their shard, or more is written than it reads. What is a day old, the "
        "stream forgets. Where nothing reads at all, this alarm is silent.",
        look=f"{read_log(settings, name)}; if nothing fails, raise {name}.parallelization or .batch_size. "
        f"What a stream forgot: mailroom reconcile --stage {settings.stage}",
    )
    age = Metric("AWS/Lambda", "IteratorAge", "Maximum", {"FunctionName": function.function_name})
    # Measured of what is read: an idle table has nothing to be late with.
    StageAlarm(scope, "IteratorAge", settings, about, Rings({"age": age}, seconds * 1000))
