"""HTTP API for producers of messages, for recipients who opt out, and for the events of providers."""

import json
from collections.abc import Sequence
from pkgutil import resolve_name
from typing import Any

from aws_cdk import Aws, Stack
from aws_cdk import aws_apigatewayv2 as http
from aws_cdk.aws_apigatewayv2_authorizers import HttpIamAuthorizer, HttpJwtAuthorizer
from aws_cdk.aws_apigatewayv2_integrations import HttpLambdaIntegration
from constructs import Construct

from mailroom.content.payloads import OVERSIZE
from mailroom.environment import (
    CallerLimit,
    MessagesApiSettings,
    UnsubscribeSettings,
)
from mailroom.providers import built_in
from mailroom_stacks.constructs.function import FunctionSpec, HandlerFunction
from mailroom_stacks.constructs.grants import Grant
from mailroom_stacks.constructs.http_api import ApiStage, server_errors
from mailroom_stacks.constructs.naming import StageStack, name_for_others, pascal, publish
from mailroom_stacks.constructs.storage import RANDOM_KEY_IN_JSON, Secret, bucket_name, read_payloads
from mailroom_stacks.constructs.templates import read_templates, templates_fields
from mailroom_stacks.feedback import FeedbackStack
from mailroom_stacks.mailbox import MailboxStack
from mailroom_stacks.settings.api import MESSAGES_MB, UNSUBSCRIBE_METHODS
from mailroom_stacks.settings.channels import OWN_SECTIONS
from mailroom_stacks.settings.queues import DAY
from mailroom_stacks.settings.settings import Settings

MESSAGES = (
    ("POST", "/messages", "send"),
    *(("GET", "/messages", "read"), ("GET", "/messages/{id}", "read")),
    *(("POST", "/messages/cancel", "cancel"), ("POST", "/messages/{id}/cancel", "cancel")),
)
"""Method, path and action of each route for messages. An action may require a scope of a token. Routes
without an id in the path read the id from the query string, because an id may contain a slash."""
PEOPLE = {"people_read": "GET", "people_write": "PATCH"}
"""Method of each route for people, by its action. With tokens, a route only exists if the settings name its
scope, because a token without scopes may do everything."""
UNSUBSCRIBE_PATH = "/unsubscribe"
CALLER_SECONDS = 10
"""Time-out of functions that a person's browser or a provider waits for. Twilio waits 15 s for a response."""
PAGE_FILE = "unsubscribe.json"
"""File in the bundle of `unsubscribe` that contains the stage's settings of the page."""
TOPICS_FILE = "topics.json"
"""File in the bundle of `messages-api` that contains the titles of the stage's topics."""


class ApiStack(StageStack):
    """HTTP API, which requires TLS. Requests for messages need a signature or a token. Routes for unsubscribe
    links and for requests of providers have no authorizer: the functions verify the signature in each link or
    request."""

    def __init__(
        self, scope: Construct, settings: Settings, storage: MailboxStack, feedback: FeedbackStack
    ) -> None:
        super().__init__(scope, settings, "api")
        self.api = http.HttpApi(
            self, "Api", api_name=settings.name(), description=self.stack_name, create_default_stage=False
        )
        self.public_url = settings.api.public_url or (
            f"https://{self.api.http_api_id}.execute-api.{Aws.REGION}.{Aws.URL_SUFFIX}"
        )
        self.unsubscribe_url = f"{self.public_url}{UNSUBSCRIBE_PATH}"
        """Base URL of unsubscribe links. The link of a mail appends a token for its recipient and topic."""
        # The export is needed even if the stage has its own URL: deployed senders may still import it, and
        # CloudFormation cannot remove an export before its importers, which are deployed after this stack.
        self.export_value(self.api.http_api_id)
        self.secret = self._unsubscribe_secret(settings)
        self._stage = ApiStage(self, settings, self.api)
        self._messages(settings, storage)
        page = self._unsubscribe(settings, storage)
        self._callbacks(settings, feedback, page)
        server_errors(self, settings, self.api)
        publish(self, ApiUrl=self.public_url, UnsubscribeUrl=self.unsubscribe_url)
        name_for_others(self, settings, {"api-url": self.public_url})

    def _unsubscribe_secret(self, settings: Settings) -> Secret:
        return Secret(
            self,
            "UnsubscribeSecret",
            settings,
            name="unsubscribe",
            description='Key that signs links for opting out: {"key"}, and "previous" for older keys',
            # Never change how a key is generated: see Secret.
            generated=RANDOM_KEY_IN_JSON,
            not_rotated="Links in old mails must keep working: an operator who puts a new key moves the old "
            "key into the list of previous keys, which AWS's rotation would not do.",
        )

    def _messages(self, settings: Settings, storage: MailboxStack) -> None:
        spec = messages_api(self, settings, storage)
        behind = self._behind(settings, "MessagesApi", spec)
        jwt = settings.api.jwt
        authorizer: http.IHttpRouteAuthorizer = HttpIamAuthorizer()
        if jwt:
            authorizer = HttpJwtAuthorizer(
                "Jwt", jwt.issuer, jwt_audience=list(jwt.audience), authorizer_name=settings.name()
            )
        scopes = jwt.scopes.model_dump() if jwt and jwt.scopes else {}
        for method, path, does in MESSAGES:
            self._stage.guarded(behind, method, path, authorizer, scopes.get(does))
        for does in people_actions(settings):
            self._stage.guarded(behind, PEOPLE[does], "/people", authorizer, scopes.get(does))

    def _unsubscribe(self, settings: Settings, storage: MailboxStack) -> HttpLambdaIntegration:
        page = settings.api.unsubscribe.page()
        spec = FunctionSpec(
            function="unsubscribe",
            timeout_seconds=CALLER_SECONDS,
            grants=[
                Grant(
                    ["dynamodb:GetItem", "dynamodb:Query", "dynamodb:UpdateItem"],
                    [storage.preferences.table_arn],
                ),
                self.secret.read(),
            ],
            environment=UnsubscribeSettings(
                preferences_table=storage.preferences.table_name,
                unsubscribe_secret_arn=self.secret.secret_arn,
                unsubscribe_page=PAGE_FILE if page else "",
            ),
            # The texts of the page in a dozen languages exceed the 4 KB that a function's environment may
            # have.
            extras={PAGE_FILE: json.dumps(page, indent=1).encode()} if page else {},
            remedy=CALLER_REPEATS,
        )
        behind = self._behind(settings, "Unsubscribe", spec)
        self._stage.open(
            behind,
            UNSUBSCRIBE_METHODS,
            f"{UNSUBSCRIBE_PATH}/{{token}}",
            "public",
            "The recipient of a mail may opt out without a login (RFC 8058): the token is signed and valid "
            "for one address and one topic, or encrypted and for one address; the function verifies it.",
        )
        return behind

    def _callbacks(self, settings: Settings, feedback: FeedbackStack, page: HttpLambdaIntegration) -> None:
        """Create the routes that providers call, even for providers that the stage does not use. If a route
        were removed, API Gateway would keep its settings, and then reject each change of the API's stage
        ("Unable to find Route by key"). The function `unsubscribe` responds to requests to unused routes with
        410."""
        for name, descriptor in built_in().items():
            behind = page
            if descriptor.requests and name in settings.providers(descriptor.channel):
                spec: FunctionSpec = resolve_name(descriptor.requests)(self, settings, feedback)
                behind = self._behind(settings, pascal(spec.function), spec)
            signed = f"{descriptor.title} signs each request with {descriptor.signed_with}"
            for path, part in descriptor.routes.items():
                self._stage.open(behind, ["POST"], path, part, f"{signed}; the function verifies it.")

    def _behind(self, settings: Settings, name: str, spec: FunctionSpec) -> HttpLambdaIntegration:
        """Create a function, and return its integration for routes. `name` is in CamelCase."""
        return HttpLambdaIntegration(name, HandlerFunction(Construct(self, name), settings, spec).resource)


def people_actions(settings: Settings) -> list[str]:
    """Return the actions of callers on people's choices for which the stage has a route."""
    jwt = settings.api.jwt
    return [does for does in PEOPLE if jwt is None or (jwt.scopes and getattr(jwt.scopes, does))]


CALLER_REPEATS = "Requests fail: the caller gets an error response, and can retry."


def messages_api(stack: Stack, settings: Settings, storage: MailboxStack) -> FunctionSpec:
    """Return the specification of the function that accepts messages, reports their status, and cancels
    waiting messages."""
    mailbox, ledger = storage.mailbox.table_arn, storage.ledger.table_arn
    bucket = stack.format_arn(service="s3", region="", account="", resource=bucket_name(settings, "payloads"))
    jwt, people = settings.api.jwt, people_actions(settings)
    count_callers = []
    if "people_read" in people or any(caller.per_day for caller in settings.api.callers.values()):
        count_callers.append(Grant(["dynamodb:GetItem", "dynamodb:UpdateItem"], [storage.budgets.plain_arn]))
    return FunctionSpec(
        function="messages-api",
        timeout_seconds=29,  # API Gateway's limit is 30 s; 1,000 messages take a few seconds
        memory_mb=MESSAGES_MB,
        grants=[
            Grant(["dynamodb:PutItem"], [mailbox]),
            Grant(["dynamodb:GetItem", "dynamodb:Query"], [mailbox, ledger]),
            # To cancel a message, the function writes its status.
            Grant(["dynamodb:UpdateItem"], [ledger]),
            *count_callers,
            *_people_grants(storage, people),
            *(storage.search.read(storage.ledger) if storage.search else []),
            Grant(
                ["s3:PutObject"],
                [f"{bucket}/{OVERSIZE}/*"],
                wildcard="The key of a message that is too large for an item is a hash of its content.",
            ),
            # The function checks whether the objects of a message exist.
            *read_payloads(stack, settings),
            *read_templates(stack, settings, "*", "It reads the templates of all channels."),
        ],
        templates=".",
        environment=MessagesApiSettings(
            **storage.common,
            **storage.put,
            payload_ttl_seconds=settings.retention.payload_days * DAY,
            lanes=lanes(settings),
            callback_schemes=settings.url_schemes,
            callback_ports=settings.webhook.allowed_ports,
            default_region=settings.default_region,
            mail_senders=settings.mail.senders,
            fax_senders=settings.fax.senders if settings.fax else (),
            push_applications=sorted(settings.push.platform_applications) if settings.push else None,
            **templates_fields(settings, ""),
            caller_claim=jwt.caller_claim if jwt else "",
            payload_prefixes=settings.api.payload_prefixes,
            **_callers(settings),
            budgets_table=storage.budgets.plain_name if count_callers or settings.api.callers else "",
            **(_people_fields(settings, storage) if people else {}),
            **(storage.search.fields if storage.search else {}),
        ),
        extras={TOPICS_FILE: _titles(settings)} if people else {},
        remedy=CALLER_REPEATS,
    )


def _people_grants(storage: MailboxStack, people: Sequence[str]) -> list[Grant]:
    """Return the permissions to read people's choices and to change them."""
    # The tables are named without references, which CloudFormation could not remove together with a scope.
    grants = []
    if people:
        grants.append(Grant(["dynamodb:Query"], [storage.preferences.plain_arn]))
    if "people_read" in people:
        grants.append(Grant(["dynamodb:Query"], [storage.suppressions.plain_arn]))
    if "people_write" in people:
        grants.append(Grant(["dynamodb:UpdateItem"], [storage.preferences.plain_arn]))
    return grants


def _people_fields(settings: Settings, storage: MailboxStack) -> dict[str, Any]:
    """Return the fields of `MessagesApiSettings` for people's choices."""
    return {
        "preferences_table": storage.preferences.plain_name,
        "suppressions_table": storage.suppressions.plain_name,
        "topics_file": TOPICS_FILE,
        "people_per_day": settings.api.people_per_day,
    }


def _titles(settings: Settings) -> bytes:
    """Return the file with the titles of the topics."""
    topics = settings.api.unsubscribe.topics
    return json.dumps({topic: topics[topic].titles for topic in topics}, indent=1).encode()


def _callers(settings: Settings) -> dict[str, Any]:
    """Return the fields of `MessagesApiSettings` for the limits of each caller."""
    if not settings.api.callers:
        return {}
    return {
        "callers": {
            name: CallerLimit(**caller.model_dump()) for name, caller in settings.api.callers.items()
        },
    }


def lanes(settings: Settings) -> dict[str, list[str]]:
    """Return the lanes that a message may name, by channel."""
    rows = {event_type: [*map(str, channel.lanes)] for event_type, channel in settings.channels.items()}
    return rows | {name: ["normal"] for name in OWN_SECTIONS if getattr(settings, name) is not None}
