"""A function: the one place for runtime, processor, log group, role, bundle, network and alarms."""

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
from mailroom_stacks.constructs.alarms import (
    FIVE_MINUTES,
    AlarmText,
    Statistic,
    metric,
    read_log,
    stage_alarm,
)
from mailroom_stacks.constructs.bundle import Bundle, Target
from mailroom_stacks.constructs.grants import Grant, role
from mailroom_stacks.constructs.naming import accept, pascal, publish, stage_of
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
    """What Lambda needs of a function's role to connect it, and what keeps the function from using it:
    https://docs.aws.amazon.com/lambda/latest/dg/configuration-vpc.html."""
    own = {"ArnEquals": {"lambda:SourceFunctionArn": function_arn}}
    return [
        Grant(NETWORK, ["*"], wildcard=REASON),
        Grant(NETWORK, ["*"], conditions=own, wildcard=REASON, denied=True),
    ]


AGAIN_AND_AGAIN = 3
"""Periods of five minutes in which something went wrong, for what redelivery heals by itself."""


@dataclass(frozen=True, kw_only=True)
class FunctionSpec:
    """A function: what it runs, may do and knows, and when its alarms ring."""

    function: str
    """Short name, such as send-mail-bulk."""
    handler: str = ""
    """The file in lambdas/, without its ending; "": it is named like the function."""
    timeout_seconds: int = 60
    memory_mb: int = MEMORY_MB
    grants: Sequence[Grant]
    """What it may do beside writing its log."""
    environment: Struct
    """The settings that its handler reads, of a type of mailroom.environment."""
    templates: str = ""
    """The folder in templates/ that the function takes along; "" for none."""
    extras: Mapping[str, bytes] = field(default_factory=dict)
    """Further files of the function's bundle, by their paths in it."""
    loop_ends: str = ""
    """Reason why the function's loop ends, in which its messages invoke the function again; "" for a function
    without a loop. Lambda would stop a loop without a reason after about 16 rounds."""
    network: Network | None = None
    """Where in a VPC the function stands; None: in none."""
    comes_back_seconds: int = 0
    """Seconds until the function gets again what it failed at, from a queue, stream or rule. Only repeated
    failures mean something then. 0: nobody tries again; the caller sees the failure, and the first counts."""
    remedy: str = ""
    """A sentence on what an error of this function means; "": nothing particular."""

    @property
    def at_least(self) -> int:
        """The number of periods in which something has to go wrong."""
        return AGAIN_AND_AGAIN if self.comes_back_seconds else 1

    @property
    def periods(self) -> int:
        """How many periods are looked at. A single record that fails whenever it comes has failed thrice
        within three waits: its third invocation begins after two, and is over, which is when it counts,
        before a third has passed. One period more, for the first may begin at the end of one."""
        waits = AGAIN_AND_AGAIN * self.comes_back_seconds
        return max(self.at_least, math.ceil(waits / FIVE_MINUTES) + 1)

    @property
    def lasting(self) -> str:
        """The look's length, in words."""
        if not self.comes_back_seconds:
            return "now"
        return f"in {self.at_least} of the last {self.periods} periods of five minutes"


_specs = WeakKeyDictionary[IConstruct, list[FunctionSpec]]()


def function_specs(scope: IConstruct) -> list[FunctionSpec]:
    """All functions of the stage that `scope` belongs to: those that read a queue are Work, those that read a
    stream StreamWork."""
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
    """A function with its role, its log group, its bundle and its alarms."""

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
            handler, target, templates=spec.templates, extras=spec.extras, own=settings.own_channels
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
                **({OWN_CHANNELS: json.dumps(settings.own_channels)} if bundle.knows_channels else {}),
                **variables_of(spec.environment),
            },
            recursive_loop=lambda_.RecursiveLoop.ALLOW if spec.loop_ends else None,
        )
        if spec.network:
            # CDK's own way would look the VPC up, and give the role policies of AWS's.
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
        """Make the alarm of errors. A function that nobody calls reports nothing, and nothing is wrong."""
        name = spec.function
        back = "Its records come back to it; after the last try they are kept, and nothing is lost."
        ends = [back if spec.comes_back_seconds else "", spec.remedy]
        about = AlarmText(
            subject=name,
            kind="errors",
            meaning=f"Invocations of {name} fail, {spec.lasting}: its variables, its bundle, its "
            f"time-out or its memory is wrong, or AWS refuses a call. {' '.join(filter(None, ends))}",
            next_step=read_log(settings, name),
        )
        number, periods = function_metric(settings, name, "Errors", "Sum"), spec.periods
        stage_alarm(self, "Errors", settings, about, number, 1, periods=periods, at_least=spec.at_least)


def function_metric(settings: Settings, function: str, name: str, statistic: Statistic) -> Metric:
    """Build a metric that Lambda reports of a function."""
    return metric("AWS/Lambda", name, statistic, {"FunctionName": settings.name(function)})


def _arn(scope: Construct, service: str, resource: str, name: str) -> str:
    """An ARN by name, not by reference: the function waits for the role that the ARN goes into."""
    form = ArnFormat.COLON_RESOURCE_NAME
    return Stack.of(scope).format_arn(service=service, resource=resource, resource_name=name, arn_format=form)
