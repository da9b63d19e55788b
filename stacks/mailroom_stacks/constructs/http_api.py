"""Stage of the HTTP API with its access log and routes, and the alarm of its server errors."""

import json
from collections.abc import Sequence

from aws_cdk import RemovalPolicy, Stack
from aws_cdk import aws_apigatewayv2 as http
from aws_cdk import aws_logs as logs
from aws_cdk.aws_apigatewayv2_integrations import HttpLambdaIntegration
from constructs import Construct

from mailroom_stacks.constructs.function import KEPT_DAYS
from mailroom_stacks.constructs.naming import accept
from mailroom_stacks.constructs.stage_alarm import AlarmText, metric, stage_alarm
from mailroom_stacks.settings.settings import Settings

LOGGED = {
    "requestId": "$context.requestId",
    "requestTime": "$context.requestTime",
    # The path is not logged, because it may contain the id of a message, or a token that allows opting out.
    "routeKey": "$context.routeKey",
    "status": "$context.status",
    "protocol": "$context.protocol",
    "sourceIp": "$context.identity.sourceIp",
    "responseLength": "$context.responseLength",
    "responseLatency": "$context.responseLatency",
    "integrationStatus": "$context.integrationStatus",
    "error": "$context.error.message",
}


def access_log(settings: Settings, name: str = "api") -> str:
    """Return the name of the log group that contains a line for each request to an API."""
    # For log groups with this prefix, API Gateway adds no entry to the account's resource policy of
    # CloudWatch Logs, whose size is limited.
    return f"/aws/vendedlogs/{settings.name(name)}"


def default_stage(
    stack: Stack, settings: Settings, api: http.HttpApi, name: str, rate: int, burst: int
) -> http.CfnStage:
    """Return the stage of an API, with an access log, and with the limits of all routes together: requests a
    second, and at once."""
    log = logs.LogGroup(
        stack,
        "AccessLog",
        log_group_name=access_log(settings, name),
        retention=KEPT_DAYS[settings.retention.log_days],
        removal_policy=RemovalPolicy.DESTROY,
    )
    kind = http.CfnStage
    return kind(
        stack,
        "Stage",
        api_id=api.http_api_id,
        stage_name="$default",
        auto_deploy=True,
        access_log_settings=kind.AccessLogSettingsProperty(
            destination_arn=log.log_group_arn, format=json.dumps(LOGGED)
        ),
        default_route_settings=kind.RouteSettingsProperty(
            throttling_rate_limit=rate, throttling_burst_limit=burst
        ),
    )


class ApiStage:
    """Stage of an API, with its access log, its routes, and the throttling limits of each."""

    def __init__(self, stack: Stack, settings: Settings, api: http.HttpApi) -> None:
        self._api = api
        self._throttles = settings.api.throttles
        messages = self._throttles["messages"]
        self._throttled: dict[str, dict[str, int]] = {}
        self._resource = default_stage(stack, settings, api, "api", messages.rate, messages.burst)

    def guarded(
        self,
        behind: HttpLambdaIntegration,
        method: str,
        path: str,
        authorizer: http.IHttpRouteAuthorizer,
        scope: str | None = None,
    ) -> None:
        """Add a route for callers whom `authorizer` accepts. If `scope` is given, the caller's token must
        have that scope."""
        self._api.add_routes(
            path=path,
            methods=[http.HttpMethod(method)],
            integration=behind,
            authorizer=authorizer,
            authorization_scopes=scope if scope is None else [scope],
        )

    def open(
        self, behind: HttpLambdaIntegration, methods: Sequence[str], path: str, part: str, reason: str
    ) -> None:
        """Add routes without an authorizer; `reason` is why they need none. Each route has separate
        throttling limits, which are `part` of `Api.throttles`, so that a flood of requests to one route does
        not affect others."""
        throttle = self._throttles[part]
        limits = {"ThrottlingRateLimit": throttle.rate, "ThrottlingBurstLimit": throttle.burst}
        for method in methods:
            (route,) = self._api.add_routes(path=path, methods=[http.HttpMethod(method)], integration=behind)
            accept(route, "APIG4", reason)
            self._throttled[f"{method} {path}"] = limits
            # API Gateway rejects settings of a route that does not exist yet: "Unable to find Route by key".
            self._resource.node.add_dependency(route)
        self._resource.route_settings = self._throttled


def server_errors(scope: Construct, settings: Settings, api: http.HttpApi) -> None:
    """Create an alarm that rings at the first server error, of a function or of API Gateway itself."""
    text = AlarmText(
        kind="api-5xx",
        meaning="The API responds to requests with 5xx. Producers can retry their requests, and the page of "
        "unsubscribe links asks recipients to retry. Twilio retries a status callback for a few seconds; "
        "then the status of the SMS is lost. A secret is wrong, or DynamoDB, S3 or SQS rejects a request.",
        next_step=f"aws logs tail {access_log(settings)} --since 1h (which route?), then the log "
        "of messages-api, of unsubscribe, of twilio-callbacks or of resend-mail-events",
    )
    answers = metric("AWS/ApiGateway", "5xx", "Sum", {"ApiId": api.http_api_id})
    # An API without calls for hours reports no data.
    stage_alarm(scope, "ServerErrors", settings, text, answers, 1)
