"""An HTTP API's one stage, which deploys itself and is throttled, and the log of who called."""

import json

from aws_cdk import RemovalPolicy, Stack
from aws_cdk import aws_apigatewayv2 as http
from aws_cdk import aws_logs as logs

from stacks.constructs.function import KEPT_DAYS
from stacks.constructs.inventory import WatchedApi, inventory
from stacks.settings.stage import Settings

LOGGED = {
    "requestId": "$context.requestId",
    "requestTime": "$context.requestTime",
    # Not the path, which names a message, or proves that somebody may opt out.
    "routeKey": "$context.routeKey",
    "status": "$context.status",
    "protocol": "$context.protocol",
    "sourceIp": "$context.identity.sourceIp",
    "responseLength": "$context.responseLength",
    "responseLatency": "$context.responseLatency",
    "integrationStatus": "$context.integrationStatus",
    "error": "$context.error.message",
}


def open_stage(stack: Stack, settings: Settings, api: http.HttpApi) -> None:
    """Make the stage of `api`."""
    # Under this prefix API Gateway needs no entry in the account's one policy for log groups, which has
    # little room.
    log_name = f"/aws/vendedlogs/{settings.name('api')}"
    inventory(stack).apis.append(WatchedApi(settings.name(), log_name))
    log = logs.LogGroup(
        stack,
        "AccessLog",
        log_group_name=log_name,
        retention=KEPT_DAYS[settings.retention.log_days],
        removal_policy=RemovalPolicy.DESTROY,
    )
    kind = http.CfnStage
    kind(
        stack,
        "Stage",
        api_id=api.http_api_id,
        stage_name="$default",
        auto_deploy=True,
        access_log_settings=kind.AccessLogSettingsProperty(
            destination_arn=log.log_group_arn, format=json.dumps(LOGGED)
        ),
        default_route_settings=kind.RouteSettingsProperty(
            throttling_rate_limit=settings.api.requests_per_second,
            throttling_burst_limit=settings.api.burst,
        ),
    )
