"""A function: the one place for runtime, processor, log group, role, bundle, network and alarms."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from aws_cdk import ArnFormat, Duration, RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from stacks.constructs.alarms import (
    FIVE_MINUTES,
    AlarmText,
    Metric,
    StageAlarm,
    Trigger,
    WatchedFunction,
    inventory,
    read_log,
)
from stacks.constructs.bundle import Bundle, Target
from stacks.constructs.grants import Grant, accept_wildcards, policy
from stacks.constructs.stage import accept, pascal, publish
from stacks.settings.campaigns import Network
from stacks.settings.sections import Function
from stacks.settings.stage import Settings

LOOK = ("DescribeNetworkInterfaces", "DescribeSubnets")
CHANGE = (
    *("CreateNetworkInterface", "DeleteNetworkInterface"),
    *("AssignPrivateIpAddresses", "UnassignPrivateIpAddresses"),
)
WHY = (
    "Lambda makes and removes the interfaces itself, with the function's role, and asks for these on all "
    "resources; the function's own code is denied every one of them."
)


def in_network(function_arn: str) -> list[Grant]:
    """What Lambda needs of a function's role to connect it, and what keeps the function from using it:
    https://docs.aws.amazon.com/lambda/latest/dg/configuration-vpc.html."""
    actions = [f"ec2:{action}" for action in (*CHANGE, *LOOK)]
    own = {"ArnEquals": {"lambda:SourceFunctionArn": function_arn}}
    return [
        Grant(actions, ["*"], wildcard=WHY),
        Grant(actions, ["*"], conditions=own, wildcard=WHY, denied=True),
    ]


def connect(function: lambda_.Function, network: Network) -> None:
    """Put `function` into the subnets of `network`. By ids, as the settings have them: CDK's own way would
    look the VPC up, or give the role a policy of AWS's."""
    resource = function.node.default_child
    assert isinstance(resource, lambda_.CfnFunction)
    resource.vpc_config = lambda_.CfnFunction.VpcConfigProperty(
        subnet_ids=list(network.subnet_ids), security_group_ids=list(network.security_group_ids)
    )


AGAIN_AND_AGAIN = 3
"""Periods of five minutes in which something went wrong, for what redelivery heals by itself."""


@dataclass(frozen=True)
class FunctionWatch:
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


def watch_function(scope: Construct, settings: Settings, watch: FunctionWatch) -> None:
    """Make all three. A function that nobody calls reports nothing, and nothing is wrong with it."""
    _errors(scope, settings, watch)
    _throttles(scope, settings, watch)
    _slow(scope, settings, watch)


def _errors(scope: Construct, settings: Settings, watch: FunctionWatch) -> None:
    survived = "What it was given comes back to it, and in the end lies where nothing is lost."
    further = " ".join(filter(None, (survived if watch.comes_back_seconds else "", watch.remedy)))
    about = AlarmText(
        subject=watch.short,
        kind="errors",
        meaning=f"Invocations of {watch.short} fail, {watch.lasting}: its variables, its bundle, its "
        f"time-out or its memory is wrong, or AWS refuses what it needs. {further}",
        look=read_log(settings, watch.short),
    )
    StageAlarm(scope, "Errors", settings, about, _at_the_first(watch, "Errors"))


def _throttles(scope: Construct, settings: Settings, watch: FunctionWatch) -> None:
    late = "What it should do comes late; from a queue each refusal counts as a receive."
    refused = "Whoever calls it is refused."
    about = AlarmText(
        subject=watch.short,
        kind="throttles",
        meaning=f"Lambda refuses to run {watch.short}, {watch.lasting}: the account's concurrency is used "
        f"up, or reserved for others. {late if watch.comes_back_seconds else refused}",
        look="aws lambda get-account-settings, then raise the quota, or lower maximum_concurrency where it "
        f"is not needed (mailroom plan --channel mail --messages 100000 --stage {settings.stage})",
    )
    StageAlarm(scope, "Throttles", settings, about, _at_the_first(watch, "Throttles"))


def _slow(scope: Construct, settings: Settings, watch: FunctionWatch) -> None:
    threshold = slow_seconds(settings, watch.timeout_seconds, watch.kept_back_seconds)
    about = AlarmText(
        subject=watch.short,
        kind="slow",
        meaning=f"Invocations of {watch.short} take over {threshold:g} of the {watch.timeout_seconds} s that "
        f"they may, {watch.lasting}: soon they are cut off in the middle of their work. A provider or a "
        "database answers slowly, or the batch is too large.",
        look=read_log(settings, watch.short),
    )
    took = _metric(watch, "Duration", "Maximum")
    StageAlarm(scope, "Slow", settings, about, _rings(watch, took, round(threshold * 1000)))


def _at_the_first(watch: FunctionWatch, name: str) -> Trigger:
    return _rings(watch, _metric(watch, name, "Sum"), 1)


def _rings(watch: FunctionWatch, metric: Metric, threshold: float) -> Trigger:
    return Trigger({"value": metric}, threshold, periods=watch.periods, at_least=watch.at_least)


def _metric(watch: FunctionWatch, name: str, statistic: Literal["Sum", "Maximum"]) -> Metric:
    return Metric("AWS/Lambda", name, statistic, {"FunctionName": watch.function.function_name})


KEPT_DAYS = {
    1: logs.RetentionDays.ONE_DAY,
    7: logs.RetentionDays.ONE_WEEK,
    14: logs.RetentionDays.TWO_WEEKS,
    30: logs.RetentionDays.ONE_MONTH,
    90: logs.RetentionDays.THREE_MONTHS,
    180: logs.RetentionDays.SIX_MONTHS,
    365: logs.RetentionDays.ONE_YEAR,
}


class HandlerFunction(Construct):
    """Runs lambdas/`handler`.py as mailroom-{stage}-`name`; it may do what `grants` say and write its log.

    `extras` are further files of its bundle. `recursive` is for one that feeds its own queue: Lambda would
    stop it after some sixteen rounds. With a `network` it stands in that. For `comes_back_seconds`,
    `kept_back_seconds` and `remedy` see its alarms' FunctionWatch.
    """

    def __init__(
        self,
        scope: Construct,
        settings: Settings,
        *,
        name: str,
        handler: str,
        limits: Function,
        grants: Sequence[Grant],
        environment: Mapping[str, str],
        templates: str = "",
        extras: Mapping[str, bytes] | None = None,
        recursive: bool = False,
        network: Network | None = None,
        comes_back_seconds: int = 0,
        kept_back_seconds: float = 0,
        remedy: str = "",
    ) -> None:
        super().__init__(scope, "Function")
        target = Target(settings.deployment.bundle_platform)
        log_group = self._log_group(settings, name)
        connecting = in_network(_function_arn(self, settings.name(name))) if network else []
        self.resource = lambda_.Function(
            self,
            "Resource",
            function_name=settings.name(name),
            runtime=target.runtime,
            architecture=target.architecture,
            handler=f"{handler}.handler",
            code=Bundle(handler, target, templates=templates, extras=extras).code(),
            timeout=Duration.seconds(limits.timeout_seconds),
            memory_size=limits.memory_mb,
            role=self._role([*grants, *connecting, _write_log(self, settings.name(name))]),
            log_group=log_group,
            environment={**_telemetry(settings, name), **environment},
            recursive_loop=lambda_.RecursiveLoop.ALLOW if recursive else None,
        )
        if network:
            connect(self.resource, network)
        if target.platform == "host":
            accept(self.resource, "L1", "This stage runs on the emulator, whose Python is the machine's.")
        publish(self, **{f"{pascal(name)}FunctionName": self.resource.function_name})
        timeout = limits.timeout_seconds
        watch = FunctionWatch(self.resource, name, timeout, comes_back_seconds, kept_back_seconds, remedy)
        self._watch(settings, watch)

    def _watch(self, settings: Settings, watch: FunctionWatch) -> None:
        watch_function(self, settings, watch)
        slow = slow_seconds(settings, watch.timeout_seconds, watch.kept_back_seconds)
        watched = WatchedFunction(watch.short, settings.name(watch.short), watch.timeout_seconds, slow)
        inventory(self).functions.append(watched)

    def _log_group(self, settings: Settings, name: str) -> logs.LogGroup:
        return logs.LogGroup(
            self,
            "Log",
            log_group_name=f"/aws/lambda/{settings.name(name)}",
            retention=KEPT_DAYS[settings.retention.log_days],
            removal_policy=RemovalPolicy.DESTROY,
        )

    def _role(self, grants: Sequence[Grant]) -> iam.Role:
        role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
            inline_policies=policy(grants),
        )
        accept_wildcards(role, grants)
        return role


def _function_arn(scope: Construct, name: str) -> str:
    """By name, not by reference: the function waits for the role that this goes into."""
    return Stack.of(scope).format_arn(
        service="lambda",
        resource="function",
        resource_name=name,
        arn_format=ArnFormat.COLON_RESOURCE_NAME,
    )


def _write_log(scope: Construct, function_name: str) -> Grant:
    group = Stack.of(scope).format_arn(
        service="logs",
        resource="log-group",
        resource_name=f"/aws/lambda/{function_name}:*",
        arn_format=ArnFormat.COLON_RESOURCE_NAME,
    )
    return Grant(
        actions=["logs:CreateLogStream", "logs:PutLogEvents"],
        resources=[group],
        wildcard="Lambda names the streams of the function's own log group.",
    )


def _telemetry(settings: Settings, name: str) -> dict[str, str]:
    return {
        "MAILROOM_STAGE": settings.stage,
        "POWERTOOLS_SERVICE_NAME": name,
        "POWERTOOLS_METRICS_NAMESPACE": "Mailroom",
        "POWERTOOLS_LOG_LEVEL": settings.log_level,
    }
