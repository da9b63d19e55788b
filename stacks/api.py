"""What may be called from outside: for now, by Twilio, to say what became of an SMS."""

import json

from aws_cdk import App, Aws, RemovalPolicy
from aws_cdk import aws_apigatewayv2 as http
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk.aws_apigatewayv2_integrations import HttpLambdaIntegration
from constructs import Construct

from stacks.constructs.alarms import errors, server_errors
from stacks.constructs.findings import accept
from stacks.constructs.function import KEPT_DAYS, HandlerFunction
from stacks.constructs.grants import Grant
from stacks.constructs.outputs import publish
from stacks.feedback import FeedbackStack
from stacks.settings import Settings
from stacks.stage_stack import StageStack

TWILIO_PATH = "/callbacks/twilio"
SERVER_ERRORS = (
    "Status callbacks are answered 5xx; Twilio repeats them for seconds only, and what an SMS came to is "
    "then not told. Read the log of twilio-callbacks: Twilio's secret is wrong, or SQS refuses."
)
FUNCTION_ERRORS = (
    "Status callbacks end in an error of the function; Twilio repeats them for seconds only. Read the log of "
    "twilio-callbacks: its variables, its bundle, its time-out or its memory is wrong."
)
LOGGED = {
    "requestId": "$context.requestId",
    "requestTime": "$context.requestTime",
    # Not the path, which names a message.
    "routeKey": "$context.routeKey",
    "status": "$context.status",
    "protocol": "$context.protocol",
    "sourceIp": "$context.identity.sourceIp",
    "responseLength": "$context.responseLength",
    "responseLatency": "$context.responseLatency",
    "integrationStatus": "$context.integrationStatus",
    "error": "$context.error.message",
}


class ApiStack(StageStack):
    """An HTTP API, which speaks TLS alone. `twilio-callbacks` checks what comes and puts it on the feedback
    queue."""

    def __init__(self, app: App, settings: Settings, feedback: FeedbackStack) -> None:
        super().__init__(app, settings, "api")
        self.api = http.HttpApi(
            self, "Api", api_name=settings.name(), description=self.stack_name, create_default_stage=False
        )
        self.public_url = settings.api.public_url or self._own_url()
        self._stage(settings)
        function = self._twilio_callbacks(settings, feedback)
        server_errors(self, self.api, settings.name("api-5xx"), SERVER_ERRORS)
        errors(self, function, settings.name("twilio-callbacks-errors"), FUNCTION_ERRORS)
        publish(self, ApiUrl=self.public_url)

    @property
    def twilio_url(self) -> str:
        """Below it is a path for each message, which Twilio is given with it."""
        return f"{self.public_url}{TWILIO_PATH}"

    def _own_url(self) -> str:
        return f"https://{self.api.http_api_id}.execute-api.{Aws.REGION}.{Aws.URL_SUFFIX}"

    def _stage(self, settings: Settings) -> None:
        log = logs.LogGroup(
            self,
            "AccessLog",
            # Under this prefix API Gateway needs no entry in the account's one policy for log groups, which
            # has little room.
            log_group_name=f"/aws/vendedlogs/{settings.name('api')}",
            retention=KEPT_DAYS[settings.retention.log_days],
            removal_policy=RemovalPolicy.DESTROY,
        )
        kind = http.CfnStage
        kind(
            self,
            "Stage",
            api_id=self.api.http_api_id,
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

    def _twilio_callbacks(self, settings: Settings, feedback: FeedbackStack) -> lambda_.Function:
        secret, queue = feedback.twilio_secret, feedback.worker.queue
        assert secret is not None
        function = HandlerFunction(
            Construct(self, "TwilioCallbacks"),
            settings,
            name="twilio-callbacks",
            handler="twilio_callbacks",
            limits=settings.api,
            grants=[secret.read(), Grant(["sqs:SendMessage"], [queue.queue_arn])],
            environment={
                "TWILIO_SECRET_ARN": secret.secret_arn,
                "PUBLIC_URL": self.public_url,
                "FEEDBACK_QUEUE_URL": queue.queue_url,
            },
        ).resource
        routes = self.api.add_routes(
            path=f"{TWILIO_PATH}/{{reference}}",
            methods=[http.HttpMethod.POST],
            integration=HttpLambdaIntegration(
                "TwilioCallbacks", function, payload_format_version=http.PayloadFormatVersion.VERSION_2_0
            ),
        )
        for route in routes:
            accept(
                route, "APIG4", "Twilio signs each request with the account's token; the function checks it."
            )
        return function
