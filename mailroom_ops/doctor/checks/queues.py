"""Checks of the queues, the bucket of failed records, and the alarms."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from mailroom.errors import quantity
from mailroom_ops.doctor.examined_stage import ExaminedStage
from mailroom_ops.doctor.report import CheckFinding, failed, ok, skipped, warning
from mailroom_ops.shared.deployed_stage import depth, is_dead, unprocessed_bucket


def dead_letters(stage: ExaminedStage) -> Iterator[CheckFinding]:
    """Count the messages of each dead-letter queue, hidden ones included."""
    queues = {name: url for name, url in stage.queues.items() if is_dead(name)}
    if not queues:
        yield failed("The stage has no dead-letter queue.", stage.deploy)
        return
    empty = 0
    for name, url in queues.items():
        count = depth(stage.client("sqs"), url).all
        if count:
            yield failed(
                f"{quantity(count, 'dead letter waits', 'dead letters wait')} in {name}.",
                f"mailroom messages dead-letters --stage {stage.name}; see `mailroom docs dlq-not-empty`.",
            )
        else:
            empty += 1
    yield ok(f"{empty} of {len(queues)} dead-letter queues are empty.")


def given_up(stage: ExaminedStage) -> Iterator[CheckFinding]:
    """Report stream records that Lambda wrote to the bucket because their function failed again and again."""
    bucket = unprocessed_bucket(stage.name, stage.account, stage.region)
    response = stage.call("s3", "list_objects_v2", Bucket=bucket, Prefix="aws/lambda/", MaxKeys=1)
    if response is None:
        yield skipped(f"There is no bucket {bucket}.")
    elif response.get("Contents"):
        yield failed(
            "Lambda gave up on stream records: they have to be replayed.",
            f"mailroom messages resend --given-up --dry-run --stage {stage.name}; see `mailroom docs "
            "gave-up`.",
        )
    else:
        yield ok("Lambda gave up on no stream records.")


TOPIC = "alarms"
_SHOWN = 5


def alarms_notify(stage: ExaminedStage) -> Iterator[CheckFinding]:
    """Check that each alarm's actions are enabled: somebody may have disabled them for a while, and forgotten
    it."""
    silent = [
        alarm["AlarmName"]
        for alarm in stage.alarms
        if not (alarm.get("ActionsEnabled") and alarm.get("AlarmActions"))
    ]
    if silent:
        yield stage.failed_if_protected(
            f"{quantity(len(silent), 'alarm notifies', 'alarms notify')} nobody: {_listed(silent)}.",
            f"{stage.deploy}; if actions are disabled: aws cloudwatch enable-alarm-actions",
        )
    elif stage.alarms:
        yield ok(f"{quantity(len(stage.alarms), 'alarm notifies', 'alarms notify')} somebody.")


def alarms_heard(stage: ExaminedStage) -> Iterator[CheckFinding]:
    """Check that the topic of the alarms has confirmed subscriptions."""
    client, arn = stage.client("sns"), stage.arn("sns", f"{stage.prefix}{TOPIC}")
    try:
        subscriptions = stage.pages("sns", "list_subscriptions_by_topic", "Subscriptions", TopicArn=arn)
    except client.exceptions.NotFoundException:
        yield stage.failed_if_protected(f"There is no topic {stage.prefix}{TOPIC}.", stage.deploy)
        return
    confirmed = [entry for entry in subscriptions if entry["SubscriptionArn"].startswith("arn:")]
    pending = [entry for entry in subscriptions if entry not in confirmed]
    subscribe = (
        f"aws sns subscribe --topic-arn {arn} --protocol email --notification-endpoint you@example.com"
    )
    if pending:
        yield warning(
            f"Not confirmed yet: {_protocols(pending)}.",
            "Follow the link in the mail that SNS sent. It expires after two days; then subscribe again.",
        )
    if confirmed:
        yield ok(f"Alarms are sent to subscribers: {_protocols(confirmed)}.")
    else:
        yield stage.failed_if_protected("The alarms have no confirmed subscription.", subscribe)


def alarms_ringing(stage: ExaminedStage) -> Iterator[CheckFinding]:
    evaluated = sum(alarm["StateValue"] != "INSUFFICIENT_DATA" for alarm in stage.alarms)
    ringing = [alarm for alarm in stage.alarms if alarm["StateValue"] == "ALARM"]
    for alarm in ringing:
        name, description = alarm["AlarmName"], alarm.get("AlarmDescription", "")
        finding = warning if name.endswith("-warning") else failed
        yield finding(f"{name} rings.", _page(description))
    if not stage.alarms:
        yield skipped("There are no alarms.")
    elif silent := len(stage.alarms) - evaluated:
        yield skipped(
            f"{silent} of {quantity(len(stage.alarms), 'alarm')} cannot be evaluated, for lack of data."
        )
    if evaluated and not ringing:
        yield ok(f"Of {quantity(evaluated, 'alarm')}, none rings.")


def _page(description: str) -> str:
    _, separator, page = description.rpartition("See `mailroom docs ")
    return f"See `mailroom docs {page}" if separator else description


def _listed(names: list[str]) -> str:
    omitted = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {omitted} more" if omitted > 0 else "")


def _protocols(subscriptions: list[dict[str, Any]]) -> str:
    # The endpoints are left out, because they are personal addresses and numbers.
    counts = Counter(subscription["Protocol"] for subscription in subscriptions)
    return ", ".join(f"{count} by {protocol}" for protocol, count in sorted(counts.items()))
