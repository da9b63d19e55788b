"""The alarms that every reader of a stream has."""

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from stacks.constructs.alarms import About, Metric, Rings, StageAlarm, read_log
from stacks.settings import Settings


def gave_up(scope: Construct, settings: Settings, name: str, mapping: lambda_.CfnEventSourceMapping) -> None:
    """Partial batch responses are no errors of the function: nothing else would tell of it."""
    days = settings.retention.unprocessed_days
    alarm = settings.name(f"{name}-gave-up")
    about = About(
        subject=name,
        kind="gave-up",
        meaning=f"{name} failed on records of its stream again and again. They lie whole in the bucket of "
        f"unprocessed records, for {days} days, and go nowhere by themselves.",
        look=f"{read_log(settings, name)}, mend the cause, mailroom replay --stage {settings.stage}, then "
        f"aws cloudwatch set-alarm-state --alarm-name {alarm} --state-value OK --state-reason replayed",
    )
    given_up = Metric(
        "AWS/Lambda",
        "OnFailureDestinationDeliveredEventCount",
        "Sum",
        {"EventSourceMappingUUID": mapping.ref},
    )
    # Nothing more given up does not mean that it was put back on its way.
    StageAlarm(scope, "GaveUp", settings, about, Rings({"given_up": given_up}, 1, missing="ignore"))


def iterator_age(scope: Construct, settings: Settings, name: str, function: lambda_.Function) -> None:
    """Rings when what was written is read late."""
    seconds = settings.monitoring.iterator_age_seconds
    about = About(
        subject=name,
        kind="iterator-age",
        meaning=f"{name} is over {seconds} s behind its table: records fail and are tried again, which holds "
        "up those behind them in their shard, or more is written than it reads. What is a day old, the "
        "stream forgets.",
        look=f"{read_log(settings, name)}; if nothing fails, raise {name}.parallelization or .batch_size. "
        f"What a stream forgot: mailroom reconcile --stage {settings.stage}",
    )
    age = Metric("AWS/Lambda", "IteratorAge", "Maximum", {"FunctionName": function.function_name})
    # Measured of what is read: an idle table has nothing to be late with.
    StageAlarm(scope, "IteratorAge", settings, about, Rings({"age": age}, seconds * 1000))
