"""What hands messages to the functions: on, as fast as the settings say, and within the account's bounds."""

from collections.abc import Iterator

from ops.doctor.deployed import Mapped
from ops.doctor.look import Look
from ops.doctor.verdict import Verdict, failed, ok, skipped, warning
from ops.estimates.lanes import Lane

_QUOTA = (
    "Request more of the quota 'Concurrent executions' of Lambda: "
    "https://console.aws.amazon.com/servicequotas/home/services/lambda/quotas"
)
_PUMPED = {"mailbox", "ledger", "fax"}
"""What the local stage's pump reads, instead of the emulator."""


def mappings(look: Look) -> Iterator[Verdict]:
    """Each of them on, and without trouble in its last round."""
    good = 0
    for each in look.mappings:
        if each.state == "Enabled" and "PROBLEM" not in each.last_result.upper():
            good += 1
        else:
            yield _trouble(look, each)
    lacking = sorted(set(_read(look)) - {each.source for each in look.mappings})
    if lacking:
        yield failed(f"Nobody reads {', '.join(lacking)}.", look.deploy)
    yield ok(f"{good} queues and streams are being read.")


def as_written(look: Look) -> Iterator[Verdict]:
    """Whether what is deployed has the numbers of cdk.json."""
    if not look.written.lanes:
        yield skipped(look.written.trouble)
        return
    by_queue = {each.source: each for each in look.mappings if not each.stream}
    differing = [
        difference
        for lane in look.written.lanes
        for difference in _differences(look, lane, by_queue.get(lane.queue))
    ]
    for each in differing:
        yield warning(each, look.deploy)
    if not differing:
        yield ok(f"{len(look.written.lanes)} lanes are deployed with the numbers of cdk.json.")


def concurrency(look: Look) -> Iterator[Verdict]:
    """What all mappings may take together, against what the account has; and what functions have reserved."""
    client = look.client("lambda")
    limits = client.get_account_settings()["AccountLimit"]
    free, total = limits["UnreservedConcurrentExecutions"], limits["ConcurrentExecutions"]
    together = sum(each.concurrency or 1 for each in look.mappings)
    sentence = (
        f"The stage's queues may run {together:,} functions at once; the account has {free:,} of {total:,}."
    )
    yield ok(sentence) if together < free else warning(f"{sentence} Others are then throttled.", _QUOTA)
    yield from _as_watched(look, total)
    for each in look.mappings:
        reserved = client.get_function_concurrency(FunctionName=f"{look.prefix}{each.function}").get(
            "ReservedConcurrentExecutions"
        )
        if reserved is not None and reserved < (each.concurrency or 1):
            yield _reserved(look, each, reserved)


def _as_watched(look: Look, total: int) -> Iterator[Verdict]:
    """Whether the alarm, and the bounds that synth sets, reckon with the account's own quota."""
    written = look.written.settings
    if written is None or look.local or written.monitoring.concurrency_quota == total:
        return
    monitoring = written.monitoring
    yield warning(
        f"Lambda lets the account run {total:,} functions at once, monitoring.concurrency_quota is "
        f"{monitoring.concurrency_quota:,}: the alarm concurrency rings at {monitoring.many_functions:,}.",
        f"Set mailroom.{look.stage}.monitoring.concurrency_quota to {total}, then {look.deploy}. {_QUOTA}",
    )


def _trouble(look: Look, mapped: Mapped) -> Verdict:
    what = f"{mapped.function} does not read {mapped.source}: its mapping is {mapped.state.lower()}"
    if look.local and mapped.source in _PUMPED and mapped.state == "Disabled":
        return skipped(f"{mapped.source} is read by the local stage's pump.")
    if mapped.state == "Enabled":
        return failed(
            f"{mapped.function} has trouble with {mapped.source}: {mapped.last_result[:200]}.",
            f"Read its log: /aws/lambda/{look.prefix}{mapped.function}",
        )
    if mapped.state in {"Creating", "Enabling", "Updating"}:
        return warning(f"{what}.", "Wait for it, and run it again.")
    return failed(
        f"{what}.",
        f"aws lambda update-event-source-mapping --enabled --uuid {mapped.id}",
    )


def _read(look: Look) -> Iterator[str]:
    for name in look.queues:
        short = name.removesuffix(".fifo")
        if not short.endswith("-dlq"):
            yield short


def _differences(look: Look, lane: Lane, mapped: Mapped | None) -> Iterator[str]:
    if mapped is None:
        yield f"The settings have the queue {lane.queue}, and it is not deployed."
        return
    function = look.functions[mapped.function]
    pace = float(function.environment.get("PACE_SECONDS", "0"))
    for key, written, deployed in (
        (lane.keys.workers, lane.workers, mapped.concurrency),
        (lane.keys.batch or "batch_size", lane.batch, mapped.batch),
        ("memory_mb", lane.memory_mb, function.memory_mb),
        (lane.keys.rate or "pace", round(lane.senders.pace, 4), round(pace, 4)),
    ):
        if written != deployed:
            what = "a submit every so many seconds, of each worker" if key == lane.keys.rate else key
            yield f"{lane.queue}: {what} is {written:g} in the settings, and deployed is {deployed}."


def _reserved(look: Look, mapped: Mapped, reserved: int) -> Verdict:
    name = f"{look.prefix}{mapped.function}"
    fix = f"aws lambda delete-function-concurrency --function-name {name}"
    if reserved == 0:
        return failed(f"{mapped.function} is stopped: it has no concurrency.", fix)
    return warning(
        f"{mapped.function} may run {reserved} times at once, and its queue hands out {mapped.concurrency}: "
        "what is throttled counts as a receive.",
        fix,
    )
