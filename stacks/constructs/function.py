"""A function: the one place for runtime, processor, log group, role and bundle."""

from collections.abc import Mapping, Sequence

from aws_cdk import ArnFormat, Duration, RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from stacks.constructs.bundle import Bundle, Target
from stacks.constructs.findings import accept
from stacks.constructs.function_alarms import Watch, slow_seconds, watch_function
from stacks.constructs.grants import Grant, accept_wildcards, policy
from stacks.constructs.inventory import WatchedFunction, inventory
from stacks.constructs.network import connect, in_network
from stacks.constructs.outputs import pascal, publish
from stacks.settings.campaigns import Network
from stacks.settings.sections import Function
from stacks.settings.stage import Settings

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
    `kept_back_seconds` and `remedy` see its alarms' Watch.
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
        watch = Watch(self.resource, name, timeout, comes_back_seconds, kept_back_seconds, remedy)
        self._watch(settings, watch)

    def _watch(self, settings: Settings, watch: Watch) -> None:
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
