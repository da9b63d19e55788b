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
    "Lambda makes and removes the interfaces itself, with the function's role, and asks for these on all "
    "resources; the function's own code is denied every one of them."
)


def in_network(function_arn: str) -> list[Grant]:
    """Return the rights that Lambda needs of a function's role to connect the function to a VPC, and the
    denial that keeps the function's code from using them:
    https://docs.aws.amazon.com/lambda/latest/dg/configuration-vpc.html."""
    condition = {"ArnEquals": {"lambda:SourceFunctionArn": function_arn}}
    return [
        Grant(NETWORK, ["*"], wildcard=REASON),
        Grant(NETWORK, ["*"], conditions=condition, wildcard=REASON, denied=True),
    ]


AGAIN_AND_AGAIN = 3
"""Periods of five minutes with failures, for failures that redelivery may heal by itself."""


@dataclass(frozen=True, kw_only=True)
class FunctionSpec:
    """Properties of a function: code, rights, settings and alarms."""

    function: str
    """Short name, such as send-mail-bulk."""
    handler: str = ""
    """File in lambdas/ without its ending, if it is not named like the function."""
    timeout_seconds: int = 60
    memory_mb: int = MEMORY_MB
    grants: Sequence[Grant]
    """Permissions besides writing logs."""
    environment: Struct
    """Settings that the handler reads, of a type of mailroom.environment."""
    templates: str = ""
    """Folder in templates/ to include in the bundle, if any."""
    extras: Mapping[str, bytes] = field(default_factory=dict)
    """Further files of the function's bundle, by their paths in it."""
    loop_ends: str = ""
    """Reason why the function's loop ends, in which its messages invoke the function again; empty for a
    function without a loop. Lambda would stop a loop without a reason after about 16 rounds."""
    network: Network | None = None
    """Place in a VPC, if the function stands in one."""
    comes_back_seconds: int = 0
    """Seconds until a queue, stream or rule repeats a failed invocation. Then only repeated failures count.
    Zero if no part repeats it: the caller sees the failure, and the first one counts."""
    remedy: str = ""
    """Sentence on the effect of an error of this function, if there is a particular one."""

    @property
    def at_least(self) -> int:
        """Number of periods with failures before the alarm rings."""
        return AGAIN_AND_AGAIN if self.comes_back_seconds else 1

    @property
    def periods(self) -> int:
        """Number of latest periods to look at. A single record that always fails has failed thrice within
        three waits: its third invocation begins after two waits, and has ended, which is when it counts,
        before a third has passed. One more period, because the first invocation may begin at the end of
        one."""
        waits = AGAIN_AND_AGAIN * self.comes_back_seconds
        return max(self.at_least, math.ceil(waits / FIVE_MINUTES) + 1)

    @property
    def lasting(self) -> str:
        """Length of that time, in words."""
        if not self.comes_back_seconds:
            return "now"
        return f"in {self.at_least} of the last {self.periods} periods of five minutes"


_specs = WeakKeyDictionary[IConstruct, list[FunctionSpec]]()


def function_specs(scope: IConstruct) -> list[FunctionSpec]:
    """Return all functions of the stage that `scope` belongs to: readers of queues are Work, readers of
    streams StreamWork."""
    return _specs.setdefault(stage_of(scope), [])


def target_of(settings: Settings) -> Target:
    """Return the machine of a stage's functions: Lambda, whose own glibc is 2.34, or, for the emulator, this
    machine and its Python."""
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
    """Function with role, log group, bundle and alarms."""

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
            resources=[_arn(self, "logs", "log-group", f"/aws/lambda/{name}:*")],
            wildcard="Lambda names the streams of the function's own log group.",
        )
        connecting = in_network(_arn(self, "lambda", "function", name)) if spec.network else []
        bundle = Bundle(
            handler, target, templates=spec.templates, extras=spec.extras, channels=settings.own_channels
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
        )
        if spec.network:
            # The CDK's own property would look up the VPC, and attach AWS's managed policies to the role.
            resource = self.resource.node.default_child
            assert isinstance(resource, lambda_.CfnFunction)
            resource.vpc_config = lambda_.CfnFunction.VpcConfigProperty(
                subnet_ids=list(spec.network.subnet_ids),
                security_group_ids=list(spec.network.security_group_ids),
            )
        if target.platform == "host":
            accept(self.resource, "L1", "This stage runs on the emulator, whose Python is the machine's.")
        publish(self, **{f"{pascal(spec.function)}FunctionName": self.resource.function_name})
        self._watch(settings, spec)
        function_specs(self).append(spec)

    def _watch(self, settings: Settings, spec: FunctionSpec) -> None:
        """Make the alarm of errors. Missing data means that the function was not called."""
        name = spec.function
        back = "Its records come back to it; after the last try they are kept, and nothing is lost."
        ends = [back if spec.comes_back_seconds else "", spec.remedy]
        text = AlarmText(
            subject=name,
            kind="errors",
            meaning=f"Invocations of {name} fail, {spec.lasting}: its variables, its bundle, its "
            f"time-out or its memory is wrong, or AWS refuses a call. {' '.join(filter(None, ends))}",
            next_step=read_log(settings, name),
        )
        number, periods = function_metric(settings, name, "Errors", "Sum"), spec.periods
        stage_alarm(self, "Errors", settings, text, number, 1, periods=periods, at_least=spec.at_least)


def function_metric(settings: Settings, function: str, name: str, statistic: Statistic) -> Metric:
    """Build a metric that Lambda reports of a function."""
    return metric("AWS/Lambda", name, statistic, {"FunctionName": settings.name(function)})


def _arn(scope: Construct, service: str, resource: str, name: str) -> str:
    """Return an ARN by name, not by reference: the function waits for the role that gets the ARN."""
    form = ArnFormat.COLON_RESOURCE_NAME
    return Stack.of(scope).format_arn(service=service, resource=resource, resource_name=name, arn_format=form)
