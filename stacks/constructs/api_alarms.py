"""The alarm that an HTTP API has."""

from aws_cdk import aws_apigatewayv2 as http
from constructs import Construct

from stacks.constructs.alarms import About, Metric, Rings, StageAlarm
from stacks.settings.stage import Settings


def server_errors(scope: Construct, settings: Settings, api: http.HttpApi) -> None:
    """Rings at the first answer that blames us, be it the function's or API Gateway's own."""
    about = About(
        kind="api-5xx",
        meaning="Requests are answered 5xx. Producers may repeat theirs, recipients who opt out are asked "
        "to; Twilio repeats a status callback for seconds only, and what an SMS came to is then not told. A "
        "secret is wrong, or DynamoDB, S3 or SQS refuses.",
        look=f"aws logs tail /aws/vendedlogs/{settings.name('api')} --since 1h (which route?), then the log "
        "of messages-api, of unsubscribe or of twilio-callbacks",
    )
    answers = Metric("AWS/ApiGateway", "5xx", "Sum", {"ApiId": api.http_api_id})
    # Nobody calls for hours, and then there is nothing to count.
    StageAlarm(scope, "ServerErrors", settings, about, Rings({"answers": answers}, threshold=1))
