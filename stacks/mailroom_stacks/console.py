"""The console behind a team's sign-in: one function behind an HTTP API of its own, which only reads."""

import json
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from aws_cdk import Aws
from aws_cdk import aws_apigatewayv2 as http
from aws_cdk.aws_apigatewayv2_integrations import HttpLambdaIntegration
from constructs import Construct

from mailroom.content.payloads import CONSOLE
from mailroom.environment import ConsoleSettings
from mailroom.providers import MODULES
from mailroom_stacks.constructs.function import FunctionSpec, HandlerFunction, arn_by_name
from mailroom_stacks.constructs.grants import Grant
from mailroom_stacks.constructs.http_api import default_stage
from mailroom_stacks.constructs.naming import StageStack, accept, publish
from mailroom_stacks.constructs.storage import bucket_name, provider_secret, read_payloads
from mailroom_stacks.constructs.templates import read_templates
from mailroom_stacks.paths import CAMPAIGN_FILE
from mailroom_stacks.settings.console import Console
from mailroom_stacks.settings.enabled_campaigns import EnabledCampaign
from mailroom_stacks.settings.settings import Settings

TIMEOUT_SECONDS = 29
"""Time-out of the function, below the 30 s of API Gateway."""
CONSOLE_MB = 1024
"""Memory of the function, in MiB: a cold start imports about 600 modules."""
RATE, BURST = 20, 100
"""Requests a second, and at once, of all people together."""
FILES = ("assets/*", "templates/*.html")
"""Files of the package `mailroom_ops.console` besides its modules."""
READ_SETTINGS = ("dispatch", "messages-api", "release")
"""Functions from whose settings the pages read how the stage is deployed."""


class ConsoleStack(StageStack):
    """Stack that exists only with the setting `console`. It refers to resources of other stacks by their
    names, so it can be removed at any time."""

    def __init__(
        self, scope: Construct, settings: Settings, console: Console, campaigns: Sequence[EnabledCampaign]
    ) -> None:
        super().__init__(scope, settings, "console")
        name = settings.name("console")
        api = http.HttpApi(
            self, "Api", api_name=name, description=self.stack_name, create_default_stage=False
        )
        url = console.public_url or f"https://{api.http_api_id}.execute-api.{Aws.REGION}.{Aws.URL_SUFFIX}"
        secret = provider_secret(
            self, settings, "console", 'Secret of the client: {"client_secret"}', issuer="The OpenID provider"
        )
        spec = FunctionSpec(
            function="console",
            timeout_seconds=TIMEOUT_SECONDS,
            memory_mb=CONSOLE_MB,
            grants=[*self._grants(settings), secret.read()],
            environment=ConsoleSettings(
                console_url=url,
                issuer=console.issuer,
                client_id=console.client_id,
                client_secret_arn=secret.secret_arn,
                scope=console.scope,
                claim=console.claim,
                read=console.roles.read,
                contents=console.roles.contents,
            ),
            templates=".",
            modules=[*MODULES.values()],
            extras={**page_files(), **_project(settings, campaigns)},
            remedy="People see an error instead of a page. The stage itself is not affected.",
        )
        function = HandlerFunction(Construct(self, "Console"), settings, spec).resource
        stage = default_stage(self, settings, api, "console", RATE, BURST)
        for path in ("/", "/{proxy+}"):
            integration = HttpLambdaIntegration("Console", function)
            (route,) = api.add_routes(path=path, methods=[http.HttpMethod.ANY], integration=integration)
            accept(route, "APIG4", "People sign in by OpenID Connect; the function checks their sessions.")
            stage.node.add_dependency(route)
        publish(self, ConsoleUrl=url)

    def _grants(self, settings: Settings) -> list[Grant]:
        """Return the permissions to read the stage, and to write sessions."""

        def table(short: str) -> str:
            return self.format_arn(service="dynamodb", resource="table", resource_name=settings.name(short))

        def queues(pattern: str) -> str:
            return self.format_arn(service="sqs", resource=settings.name(pattern))

        functions = [arn_by_name(self, "lambda", "function", settings.name(short)) for short in READ_SETTINGS]
        searched = [table("search")] if settings.search else []
        key = arn_by_name(self, "secretsmanager", "secret", f"{settings.name('search-key')}-??????")
        files = f"{bucket_name(settings, 'payloads')}/{CONSOLE}/*"
        sessions = {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["session#*"]}}
        return [
            Grant(["lambda:GetFunctionConfiguration"], functions),
            *([Grant(["secretsmanager:GetSecretValue"], [key])] if settings.search else []),
            Grant(
                ["dynamodb:Query"],
                [
                    *searched,
                    *(table(short) for short in ("ledger", "mailbox", "deeds", "preferences")),
                    *(table(f"ledger/index/{index}") for index in ("failures", "waiting")),
                    table("preferences/index/topics"),
                    *(table(f"campaign-runs{index}") for index in ("", "/index/begun")),
                ],
            ),
            Grant(
                ["dynamodb:GetItem"],
                [table(short) for short in ("budgets", "campaign-runs", "ledger", "mailbox")],
            ),
            Grant(
                ["dynamodb:BatchGetItem"],
                [*searched, *(table(short) for short in ("budgets", "ledger", "suppressions"))],
            ),
            Grant(["dynamodb:Scan"], [table("campaign-runs/index/pauses")]),
            Grant(
                ["dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:DeleteItem"], [table("deeds")], sessions
            ),
            Grant(
                ["sqs:GetQueueAttributes", "sqs:GetQueueUrl", "sqs:ListQueueTags"],
                [queues("*")],
                wildcard="The overview reads the depths of all queues of the stage.",
            ),
            Grant(
                ["sqs:ReceiveMessage", "sqs:ChangeMessageVisibility"],
                [queues("*-dlq"), queues("*-dlq.fifo")],
                wildcard="The page of dead letters reads all dead-letter queues of the stage.",
            ),
            Grant(
                [
                    *("cloudwatch:DescribeAlarms", "cloudwatch:GetMetricData", "scheduler:ListSchedules"),
                    *("lambda:ListEventSourceMappings", "sqs:ListQueues"),
                ],
                ["*"],
                wildcard="AWS does not restrict these lists to the resources of a stage.",
            ),
            *read_payloads(self, settings),
            Grant(
                ["s3:PutObject"],
                [self.format_arn(service="s3", region="", account="", resource=files)],
                wildcard="Each CSV file has a key of its own, which expires after a day.",
            ),
            *read_templates(self, settings, "*", "A page renders messages with the versions that they had."),
        ]


def page_files() -> dict[str, bytes]:
    """Return the templates and assets of the pages, by their paths in the bundle."""
    spec = find_spec("mailroom_ops")  # not imported, because commands import the stacks
    assert spec is not None
    assert spec.origin is not None
    folder = Path(spec.origin).parent
    files = (file for pattern in FILES for file in sorted((folder / "console").glob(pattern)))
    return {f"{file.relative_to(folder.parent).as_posix()}": file.read_bytes() for file in files}


def _project(settings: Settings, campaigns: Sequence[EnabledCampaign]) -> dict[str, bytes]:
    """Return the deployed files of the project that the pages of campaigns read."""
    enabled = {
        "enabled": [campaign.name for campaign in campaigns],
        "overrides": {campaign.name: dict(campaign.overrides) for campaign in campaigns},
    }
    context = {"context": {"mailroom": {settings.stage: {"campaigns": enabled}}}}
    files = {
        f"campaigns/{campaign.name}/{CAMPAIGN_FILE}": (campaign.folder / CAMPAIGN_FILE).read_bytes()
        for campaign in campaigns
    }
    return {"cdk.json": json.dumps(context, indent=1, sort_keys=True, default=str).encode(), **files}
