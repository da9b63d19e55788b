"""Lambda function with its runtime, processor, log group, role, bundle, network and alarms."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from aws_cdk import ArnFormat, Duration, RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk.aws_cloudwatch import Metric
from constructs import Construct, IConstruct
from msgspec import Struct

from mailroom.channels import OWN_CHANNELS
from mailroom.environment import variables_of
from mailroom_stacks.constructs.bundle import Bundle, Target
from mailroom_stacks.constructs.grants import Grant, role
from mailroom_stacks.constructs.naming import accept, pascal, publish, stage_of
from mailroom_stacks.constructs.stage_alarm import (
    FIVE_MINUTES,
    AlarmText,
    Statistic,
    metric,
    read_log,
    stage_alarm,
)
from mailroom_stacks.settings.campaigns import Network
from mailroom_stacks.settings.sections import MEMORY_MB
from mailroom_stacks.settings.settings import Settings

NETWORK = (
    *("ec2:CreateNetworkInterface", "ec2:DeleteNetworkInterface"),
    *("ec2:AssignPrivateIpAddresses", "ec2:UnassignPrivateIpAddresses"),
    *("ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets"),
)
REASON = (
    "Lambda itself creates and deletes the network interfaces with the function's role, and requires these "
    "actions on all resources; the function's own code is denied all of them."
)


def in_network(function_arn: str) -> list[Grant]:
    """Return the permissions that Lambda needs in a function's role to connect the function to a VPC, and a
    statement that denies them to the function's code:
    https://docs.aws.amazon.com/lambda/latest/dg/configuration-vpc.html."""
    condition = {"ArnEquals": {"lambda:SourceFunctionArn": function_arn}}
    return [
        Grant(NETWORK, ["*"], wildcard=REASON),
        Grant(NETWORK, ["*"], conditions=condition, wildcard=REASON, denied=True),
    ]


AGAIN_AND_AGAIN = 3
"""Number of periods of five minutes with failures after which the alarm rings, for failures that a redelivery
may resolve."""


@dataclass(frozen=True, kw_only=True)
class FunctionSpec:
    """Properties of a function: code, permissions, settings and alarms."""

    function: str
    """Short name of the function, such as send-mail-bulk."""
    handler: str = ""
    """Name of the handler's file without .py, if it differs from the function's name."""
    timeout_seconds: int = 60
    memory_mb: int = MEMORY_MB
    grants: Sequence[Grant]
    """Permissions of the function, besides writing its log."""
    environment: Struct
    """Settings that the handler reads from environment variables, of a type of mailroom.environment."""
    templates: str = ""
    """Folder in templates/ to include in the bundle, if any."""
    extras: Mapping[str, bytes] = field(default_factory=dict)
    """Contents of further files of the bundle, by their paths in it."""
    modules: Sequence[str] = ()
    """Modules of the library that the handler imports by the names in descriptors of providers."""
    loop_ends: str = ""
    """Reason why the function's loop ends, if its messages invoke the function again; empty for a function
    without a loop. Without a reason, Lambda's detection of loops would stop a loop after about 16 rounds."""
    max_event_age: int = 0
    """Seconds, at least 60, for which Lambda keeps an event that it cannot pass to the function, because the
    account's concurrency is used up. Each function that a rule, a topic, a bucket or the function itself
    invokes asynchronously has this limit. If the function fails, Lambda does not repeat the event, because
    the next event does the same work."""
    network: Network | None = None
    """VPC of the function, if it is in one."""
    comes_back_seconds: int = 0
    """Longest time in seconds until a queue, stream or rule repeats a failed invocation. The alarm then rings
    only for repeated failures. Zero if failed invocations are not repeated: then the first failure counts."""
    remedy: str = ""
    """Sentence in the alarm's description about a special effect of this function's errors, if there is
    one."""

    @property
    def at_least(self) -> int:
        """Number of periods with failures for which the alarm rings."""
        return AGAIN_AND_AGAIN if self.comes_back_seconds else 1

    @property
    def periods(self) -> int:
        """Number of latest periods that the alarm looks at. They must contain three failures of a single
        record that always fails. Its third invocation begins after two waits, and ends before a third wait
        has passed. One more period is needed because the first invocation may begin at the end of a
        period."""
        waits = AGAIN_AND_AGAIN * self.comes_back_seconds
        return max(self.at_least, math.ceil(waits / FIVE_MINUTES) + 1)

    @property
    def lasting(self) -> str:
        """Text for the alarm's description: how long the function has been failing."""
        if not self.comes_back_seconds:
            return "now"
        return f"in {self.at_least} of the last {self.periods} periods of five minutes"


_specs = WeakKeyDictionary[IConstruct, list[FunctionSpec]]()


def function_specs(scope: IConstruct) -> list[FunctionSpec]:
    """Return the specifications of all functions of the stage that `scope` belongs to. Functions that read a
    queue have a Work, functions that read a stream a StreamWork."""
    return _specs.setdefault(stage_of(scope), [])


def target_of(settings: Settings) -> Target:
    """Return the machine that runs a stage's functions: Lambda, which has glibc 2.34, or for the emulator
    this machine with its Python."""
    return Target("host" if settings.is_local else "aarch64-manylinux_2_28")


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
    """Lambda function with role, log group, bundle and alarms."""

    def __init__(self, scope: Construct, settings: Settings, spec: FunctionSpec) -> None:
        super().__init__(scope, "Function")
        handler = spec.handler or spec.function.replace("-", "_")
        target = target_of(settings)
        name = settings.name(spec.function)
        log_group = logs.LogGroup(
            self,
            "Log",
            log_group_name=f"/aws/lambda/{name}",
            retention=KEPT_DAYS[settings.retention.log_days],
            removal_policy=RemovalPolicy.DESTROY,
        )
        write_log = Grant(
            actions=["logs:CreateLogStream", "logs:PutLogEvents"],
            resources=[arn_by_name(self, "logs", "log-group", f"/aws/lambda/{name}:*")],
            wildcard="Lambda names the streams of the function's own log group.",
        )
        connecting = in_network(arn_by_name(self, "lambda", "function", name)) if spec.network else []
        bundle = Bundle(
            handler,
            target,
            templates=spec.templates,
            extras=spec.extras,
            channels=settings.own_channels,
            modules=spec.modules,
        )
        self.resource = lambda_.Function(
            self,
            "Resource",
            function_name=name,
            runtime=target.runtime,
            architecture=target.architecture,
            handler=f"{handler}.handler",
            code=bundle.code(),
            timeout=Duration.seconds(spec.timeout_seconds),
            memory_size=spec.memory_mb,
            role=role(
                self,
                "Role",
                iam.ServicePrincipal("lambda.amazonaws.com"),
                [*spec.grants, *connecting, write_log],
            ),
            log_group=log_group,
            environment={
                "MAILROOM_STAGE": settings.stage,
                "POWERTOOLS_SERVICE_NAME": spec.function,
                "POWERTOOLS_METRICS_NAMESPACE": "Mailroom",
                "POWERTOOLS_LOG_LEVEL": "INFO",
                **({OWN_CHANNELS: json.dumps(settings.own_channels)} if settings.own_channels else {}),
                **variables_of(spec.environment),
            },
            recursive_loop=lambda_.RecursiveLoop.ALLOW if spec.loop_ends else None,
            # By default, Lambda keeps an event for six hours, and repeats an invocation that failed after one
            # and two minutes: https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html
            max_event_age=Duration.seconds(spec.max_event_age) if spec.max_event_age else None,
            retry_attempts=0 if spec.max_event_age else None,
        )
        if spec.network:
            # The CDK's property `vpc` would look up the VPC, and attach AWS's managed policies to the role.
            resource = self.resource.node.default_child
            assert isinstance(resource, lambda_.CfnFunction)
            resource.vpc_config = lambda_.CfnFunction.VpcConfigProperty(
                subnet_ids=list(spec.network.subnet_ids),
                security_group_ids=list(spec.network.security_group_ids),
            )
        if target.platform == "host":
            accept(self.resource, "L1", "This stage runs on the emulator, with this machine's Python.")
        publish(self, **{f"{pascal(spec.function)}FunctionName": self.resource.function_name})
        self._watch(settings, spec)
        function_specs(self).append(spec)

    def _watch(self, settings: Settings, spec: FunctionSpec) -> None:
        """Create the alarm of errors. Missing data means that the function was not invoked."""
        name = spec.function
        back = "Failed invocations are retried; records that fail at each try are stored, and none is lost."
        ends = [back if spec.comes_back_seconds else "", spec.remedy]
        text = AlarmText(
            subject=name,
            kind="errors",
            meaning=f"Invocations of {name} fail, {spec.lasting}: its variables, code, time-out or "
            f"memory are wrong, or AWS rejects a request. {' '.join(filter(None, ends))}",
            next_step=read_log(settings, name),
        )
        number, periods = function_metric(settings, name, "Errors", "Sum"), spec.periods
        stage_alarm(self, "Errors", settings, text, number, 1, periods=periods, at_least=spec.at_least)


def function_metric(settings: Settings, function: str, name: str, statistic: Statistic) -> Metric:
    """Build a metric that Lambda reports for a function."""
    return metric("AWS/Lambda", name, statistic, {"FunctionName": settings.name(function)})


def arn_by_name(scope: Construct, service: str, resource: str, name: str) -> str:
    """Return an ARN with a name instead of a reference. A reference would be circular, because the function
    depends on the role whose policy contains the ARN."""
    form = ArnFormat.COLON_RESOURCE_NAME
    return Stack.of(scope).format_arn(service=service, resource=resource, resource_name=name, arn_format=form)
