"""Checks of the functions: event source mappings, concurrency, recipients and the event bus."""

from collections.abc import Iterator

from mailroom.errors import quantity
from mailroom_ops.doctor.checks.stacks import stacks_of
from mailroom_ops.doctor.examined_stage import EventSource, ExaminedStage
from mailroom_ops.doctor.report import CheckFinding, failed, ok, skipped, warning
from mailroom_ops.messages.deployed_lanes import OFF, PAUSED
from mailroom_ops.shared.deployed_stage import is_dead
from mailroom_stacks.settings.concurrency import FUNCTIONS_AT_ONCE

_QUOTA = (
    "Request more of the quota 'Concurrent executions' of Lambda: "
    "https://console.aws.amazon.com/servicequotas/home/services/lambda/quotas"
)
_PUMPED = {"mailbox", "ledger", "fax"}
"""Event sources that the local stage's pump reads instead of the emulator."""


def mappings(stage: ExaminedStage) -> Iterator[CheckFinding]:
    """Check that each event source mapping is enabled, and that its last poll succeeded."""
    good = 0
    for source in stage.sources:
        if source.state == "Enabled" and "PROBLEM" not in source.last_result.upper():
            good += 1
        else:
            yield _trouble(stage, source)
    read = {name.removesuffix(".fifo") for name in stage.queues if not is_dead(name)}
    unread = sorted(read - {source.source for source in stage.sources})
    if unread:
        yield failed(f"No function reads {', '.join(unread)}.", stage.deploy)
    yield ok(f"{good} queues and streams are being read.")


def recipients(stage: ExaminedStage) -> Iterator[CheckFinding]:
    """Check which recipients the senders may reach: everybody in production, and in any other stage only
    recipients that the settings allow."""
    if stage.local:
        yield skipped("The local stage sends only to simulators.")
        return
    if stage.settings is None:
        yield skipped(f"{stage.trouble} It is unknown whether the stage is production.")
        return
    senders = {
        name: "RECIPIENTS_ONLY" in variables
        for name, variables in stage.functions.items()
        if variables.get("CHANNEL", "webhook") != "webhook"
    }
    unexpected = ", ".join(name for name, bounded in senders.items() if bounded == stage.protected)
    key = f"mailroom.{stage.name}.recipients"
    if not unexpected:
        reached = "everybody" if stage.protected else "only recipients that the settings allow"
        yield ok(f"The stage's messages reach {reached}.")
    elif stage.protected:
        yield warning(
            "As in a test stage, these functions send only to recipients that the settings allow: "
            f"{unexpected}.",
            f"If this is production, remove {key}: {stage.deploy}",
        )
    else:
        yield warning(
            f"As in production, these functions send to everybody: {unexpected}.",
            f"Set {key}.only or .redirect_to. If this is production, set deployment.deletion_protection.",
        )


def concurrency(stage: ExaminedStage) -> Iterator[CheckFinding]:
    """Compare the number of functions that the deployed stage may run at a time with the account's quota, and
    the concurrency of each mapping with the reserved concurrency of its function."""
    client = stage.client("lambda")
    limits = client.get_account_settings()["AccountLimit"]
    free, total = limits["UnreservedConcurrentExecutions"], limits["ConcurrentExecutions"]
    outputs = [output for stack in stacks_of(stage) for output in stack.get("Outputs", ())]
    # If the stack with the output is missing, the check of the stacks fails.
    together = sum(int(row["OutputValue"]) for row in outputs if row["OutputKey"] == FUNCTIONS_AT_ONCE)
    sentence = (
        f"The stage may run {together or '?'} functions at once, besides those of its HTTP API; the account "
        f"has {free:,} unreserved of {total:,}."
    )
    yield ok(sentence) if together < free else warning(f"{sentence} Others may be throttled.", _QUOTA)
    yield from _as_watched(stage, total)
    for source in stage.sources:
        reserved = client.get_function_concurrency(FunctionName=f"{stage.prefix}{source.function}").get(
            "ReservedConcurrentExecutions"
        )
        if reserved is not None and reserved < (source.concurrency or 1):
            yield _reserved(stage, source, reserved)


def event_bus(stage: ExaminedStage) -> Iterator[CheckFinding]:
    """Check that the event bus for outcomes exists. The check is skipped for a bus of another account,
    because the credentials may not be allowed to read it."""
    bus = stage.functions.get("outcomes", {}).get("EVENT_BUS", "")
    if not bus or (bus.startswith("arn:") and bus.split(":")[4] != stage.account):
        yield skipped(f"The bus {bus} belongs to another account." if bus else "The stage has no event bus.")
    elif stage.call("events", "describe_event_bus", Name=bus) is None:
        yield failed(
            f"There is no bus {bus}: callbacks and further attempts are late, because the ledger's stream "
            "waits for the bus.",
            f"aws events create-event-bus --name {bus.rpartition('/')[2]}",
        )
    else:
        yield ok(f"The bus {bus} exists.")


def _as_watched(stage: ExaminedStage, total: int) -> Iterator[CheckFinding]:
    """Check that the alarm and the limits that synth sets use the account's real concurrency quota."""
    settings = stage.settings
    if settings is None or stage.local or settings.monitoring.concurrency_quota == total:
        return
    monitoring = settings.monitoring
    yield warning(
        f"The account may run {total:,} functions at once, but monitoring.concurrency_quota is "
        f"{monitoring.concurrency_quota:,}: the alarm concurrency rings at {monitoring.many_functions:,}.",
        f"Set mailroom.{stage.name}.monitoring.concurrency_quota to {total}, then {stage.deploy}. {_QUOTA}",
    )


def _trouble(stage: ExaminedStage, source: EventSource) -> CheckFinding:
    sentence = f"{source.function} does not read {source.source}: its mapping is {source.state.lower()}"
    if stage.local and source.source in _PUMPED and source.state == "Disabled":
        return skipped(f"{source.source} is read by the local stage's pump.")
    url = stage.queues.get(source.source) or stage.queues.get(f"{source.source}.fifo")
    tags = stage.client("sqs").list_queue_tags(QueueUrl=url) if url and source.state in OFF else {}
    if words := tags.get("Tags", {}).get(PAUSED):
        channel = stage.functions[source.function]["CHANNEL"]
        lane = f"{channel} {source.source.removeprefix(channel).removeprefix('-')}".rstrip()
        fix = f"mailroom lane resume {lane} --stage {stage.name}"
        return warning(f"{source.source} is paused {words}.", fix)
    if source.state == "Enabled":
        return failed(
            f"{source.function} has trouble with {source.source}: {source.last_result[:200]}.",
            f"Read its log: /aws/lambda/{stage.prefix}{source.function}",
        )
    if source.state in {"Creating", "Enabling", "Updating"}:
        return warning(f"{sentence}.", "Wait until it is done, then run doctor again.")
    return failed(
        f"{sentence}.",
        f"aws lambda update-event-source-mapping --enabled --uuid {source.id}",
    )


def _reserved(stage: ExaminedStage, source: EventSource, reserved: int) -> CheckFinding:
    name = f"{stage.prefix}{source.function}"
    fix = f"aws lambda delete-function-concurrency --function-name {name}"
    if reserved == 0:
        return failed(f"{source.function} is stopped: its reserved concurrency is 0.", fix)
    return warning(
        f"{source.function} may run {quantity(reserved, 'time')} at once, but its mapping "
        f"{source.concurrency} times: each throttled batch counts as a receive of its messages.",
        fix,
    )
