"""The alarms that every function has."""

import math
from dataclasses import dataclass
from typing import Literal

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from stacks.constructs.alarms import FIVE_MINUTES, About, Metric, Rings, StageAlarm, read_log
from stacks.settings.stage import Settings

AGAIN_AND_AGAIN = 3
"""Periods of five minutes in which something went wrong, for what redelivery heals by itself."""


@dataclass(frozen=True)
class Watch:
    """A function to watch."""

    function: lambda_.Function
    short: str
    """Its short name."""
    timeout_seconds: int
    comes_back_seconds: int
    """After how long it gets again what it failed at, from a queue or a stream: only failing again and again
    tells anything then. 0: nobody tries again. Whoever calls it is told of its failure, and the first counts.
    """
    kept_back_seconds: float
    """How much of its time-out an invocation keeps to finish in: until then it may run by design."""
    remedy: str
    """A sentence on what an error of this function means; "": nothing particular."""

    @property
    def at_least(self) -> int:
        """In how many periods something has to go wrong."""
        return AGAIN_AND_AGAIN if self.comes_back_seconds else 1

    @property
    def periods(self) -> int:
        """Of how many. A single record that fails whenever it comes has failed thrice within three waits: its
        third invocation begins after two, and is over, which is when it counts, before a third has passed.
        One period more, for the first may begin at the end of one."""
        waits = AGAIN_AND_AGAIN * self.comes_back_seconds
        return max(self.at_least, math.ceil(waits / FIVE_MINUTES) + 1)

    @property
    def lasting(self) -> str:
        """That, in words."""
        if not self.comes_back_seconds:
            return "now"
        return f"in {self.at_least} of the last {self.periods} periods of five minutes"


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
    further = " ".join(filter(None, (survived if watch.comes_back_seconds else "", watch.remedy)))
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
        f"up, or reserved for others. {late if watch.comes_back_seconds else refused}",
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
    took = _metric(watch, "Duration", "Maximum")
    StageAlarm(scope, "Slow", settings, about, _rings(watch, took, round(threshold * 1000)))


def _at_the_first(watch: Watch, name: str) -> Rings:
    return _rings(watch, _metric(watch, name, "Sum"), 1)


def _rings(watch: Watch, metric: Metric, threshold: float) -> Rings:
    return Rings({"value": metric}, threshold, periods=watch.periods, at_least=watch.at_least)


def _metric(watch: Watch, name: str, statistic: Literal["Sum", "Maximum"]) -> Metric:
    return Metric("AWS/Lambda", name, statistic, {"FunctionName": watch.function.function_name})
