"""The alarms that every function has."""

from dataclasses import dataclass
from typing import Literal

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from stacks.constructs.alarms import About, Metric, Rings, StageAlarm, read_log
from stacks.settings import Settings

IN_A_ROW = 3
"""Periods of five minutes, for what redelivery heals by itself."""


@dataclass(frozen=True)
class Watch:
    """A function to watch."""

    function: lambda_.Function
    short: str
    """Its short name."""
    timeout_seconds: int
    redelivered: bool
    """Whether what it fails at comes back to it, from a queue or a stream: only failing for long tells
    anything then. Whoever calls others is told of their failure, and nobody tries again: the first counts."""
    kept_back_seconds: float
    """How much of its time-out an invocation keeps to finish in: until then it may run by design."""
    remedy: str
    """A sentence on what an error of this function means; "": nothing particular."""

    @property
    def periods(self) -> int:
        """For how many periods in a row something has to go wrong."""
        return IN_A_ROW if self.redelivered else 1

    @property
    def lasting(self) -> str:
        """That, in words."""
        return "for a quarter of an hour" if self.redelivered else "now"


def slow_seconds(settings: Settings, timeout_seconds: int, kept_back_seconds: float) -> float:
    """The duration from which on an alarm rings: a share of the time-out; or, where an invocation may run
    for longer by design, the middle of what it keeps back."""
    share = timeout_seconds * settings.monitoring.slow_share
    return max(share, timeout_seconds - kept_back_seconds / 2) if kept_back_seconds else share


def watch_function(scope: Construct, settings: Settings, watch: Watch) -> None:
    """Make all three. A function that nobody calls reports nothing, and nothing is wrong with it."""
    _errors(scope, settings, watch)
    _throttles(scope, settings, watch)
    _slow(scope, settings, watch)


def _errors(scope: Construct, settings: Settings, watch: Watch) -> None:
    survived = "What it was given comes back to it, and in the end lies where nothing is lost."
    further = " ".join(filter(None, (survived if watch.redelivered else "", watch.remedy)))
    about = About(
        subject=watch.short,
        kind="errors",
        meaning=f"Invocations of {watch.short} fail, {watch.lasting}: its variables, its bundle, its "
        f"time-out or its memory is wrong, or AWS refuses what it needs. {further}",
        look=read_log(settings, watch.short),
    )
    StageAlarm(scope, "Errors", settings, about, _at_the_first(watch, "Errors"))


def _throttles(scope: Construct, settings: Settings, watch: Watch) -> None:
    late = "What it should do comes late; from a queue each refusal counts as a receive."
    refused = "Whoever calls it is refused."
    about = About(
        subject=watch.short,
        kind="throttles",
        meaning=f"Lambda refuses to run {watch.short}, {watch.lasting}: the account's concurrency is used "
        f"up, or reserved for others. {late if watch.redelivered else refused}",
        look="aws lambda get-account-settings, then raise the quota, or lower maximum_concurrency where it "
        f"is not needed (mailroom plan --channel mail --messages 100000 --stage {settings.stage})",
    )
    StageAlarm(scope, "Throttles", settings, about, _at_the_first(watch, "Throttles"))


def _slow(scope: Construct, settings: Settings, watch: Watch) -> None:
    threshold = slow_seconds(settings, watch.timeout_seconds, watch.kept_back_seconds)
    about = About(
        subject=watch.short,
        kind="slow",
        meaning=f"Invocations of {watch.short} take over {threshold:g} of the {watch.timeout_seconds} s that "
        f"they may, {watch.lasting}: soon they are cut off in the middle of their work. A provider or a "
        "database answers slowly, or the batch is too large.",
        look=read_log(settings, watch.short),
    )
    rings = Rings({"took": _metric(watch, "Duration", "Maximum")}, round(threshold * 1000), watch.periods)
    StageAlarm(scope, "Slow", settings, about, rings)


def _at_the_first(watch: Watch, name: str) -> Rings:
    return Rings({"count": _metric(watch, name, "Sum")}, threshold=1, periods=watch.periods)


def _metric(watch: Watch, name: str, statistic: Literal["Sum", "Maximum"]) -> Metric:
    return Metric("AWS/Lambda", name, statistic, {"FunctionName": watch.function.function_name})
