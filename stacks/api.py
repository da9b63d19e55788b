"""What may be called from outside: by producers with messages, by recipients who opt out, and by Twilio to
say what became of an SMS."""

import string

from aws_cdk import App, Aws
from aws_cdk import aws_apigatewayv2 as http
from aws_cdk import aws_secretsmanager as secretsmanager
from aws_cdk.aws_apigatewayv2_authorizers import HttpIamAuthorizer, HttpJwtAuthorizer

from stacks.api_functions import messages_api, twilio_callbacks, unsubscribe
from stacks.constructs.api_alarms import server_errors
from stacks.constructs.api_stage import open_stage
from stacks.constructs.door import Door
from stacks.constructs.outputs import publish
from stacks.constructs.secret import Secret
from stacks.feedback import FeedbackStack
from stacks.mailbox import MailboxStack
from stacks.settings.stage import Settings
from stacks.stage_stack import StageStack

MESSAGES = (
    ("POST", "/messages", "send"),
    *(("GET", "/messages", "read"), ("GET", "/messages/{id}", "read")),
    *(("POST", "/messages/cancel", "cancel"), ("POST", "/messages/{id}/cancel", "cancel")),
)
"""Each with what it does, which may need a scope. Those without an id in the path take it from the query,
where it may hold a slash."""
DOCUMENTS = (("GET", "/openapi.json"), ("GET", "/swagger"))
TWILIO_PATH = "/callbacks/twilio"
UNSUBSCRIBE_PATH = "/unsubscribe"
KEY_LENGTH = 44  # letters and digits: over 256 bits


class ApiStack(StageStack):
    """An HTTP API, which speaks TLS alone. Messages are for whoever may sign for them, or has a token; a link
    for opting out and a callback of Twilio's are proofs themselves, and their functions check them."""

    def __init__(self, app: App, settings: Settings, storage: MailboxStack, feedback: FeedbackStack) -> None:
        super().__init__(app, settings, "api")
        self.api = http.HttpApi(
            self, "Api", api_name=settings.name(), description=self.stack_name, create_default_stage=False
        )
        self.public_url = settings.api.public_url or self._own_url()
        # Also where nobody needs it for the URL: senders that are deployed may import it, and CloudFormation
        # lets no export go before its importers, which are deployed after this stack.
        self.export_value(self.api.http_api_id)
        self.secret = self._unsubscribe_secret(settings)
        open_stage(self, settings, self.api)
        self._messages(settings, storage)
        self._unsubscribe(settings, storage)
        self._twilio_callbacks(settings, feedback)
        server_errors(self, settings, self.api)
        publish(
            self,
            ApiUrl=self.public_url,
            UnsubscribeUrl=self.unsubscribe_url,
            UnsubscribeSecretName=settings.name("unsubscribe"),
            UnsubscribeSecretArn=self.secret.secret_arn,
        )

    @property
    def twilio_url(self) -> str:
        """Below it is a path for each message, which Twilio is given with it."""
        return f"{self.public_url}{TWILIO_PATH}"

    @property
    def unsubscribe_url(self) -> str:
        """Below it is a path for each recipient and topic, which mails carry."""
        return f"{self.public_url}{UNSUBSCRIBE_PATH}"

    def _own_url(self) -> str:
        return f"https://{self.api.http_api_id}.execute-api.{Aws.REGION}.{Aws.URL_SUFFIX}"

    def _unsubscribe_secret(self, settings: Settings) -> Secret:
        return Secret(
            self,
            "UnsubscribeSecret",
            settings,
            name="unsubscribe",
            description='What links for opting out are signed with: {"key"}, and "previous" for older keys',
            # The same for ever: see Secret.
            generated=secretsmanager.SecretStringGenerator(
                secret_string_template="{}",  # noqa: S106 - the key comes into it
                generate_string_key="key",
                password_length=KEY_LENGTH,
                include_space=False,
                exclude_punctuation=True,
                exclude_characters=string.punctuation,  # the emulator knows this way alone
            ),
            not_rotated="The links in mails of years ago have to go on working: whoever puts a new key in "
            "keeps the old one in the list of previous ones, which AWS's rotation would not.",
        )

    def _messages(self, settings: Settings, storage: MailboxStack) -> None:
        function = messages_api(self, settings, storage, self.public_url)
        door = Door(self.api, "MessagesApi", function)
        authorizer = self._authorizer(settings)
        jwt = settings.api.jwt
        scopes = jwt.scopes.model_dump() if jwt and jwt.scopes else {}
        for method, path, does in MESSAGES:
            door.guarded(method, path, authorizer, scopes.get(does))
        for method, path in DOCUMENTS:
            if settings.api.public_docs:
                door.open([method], path, "The stage publishes its API's description, which holds no data.")
            else:
                door.guarded(method, path, authorizer)

    def _authorizer(self, settings: Settings) -> http.IHttpRouteAuthorizer:
        jwt = settings.api.jwt
        if jwt is None:
            return HttpIamAuthorizer()
        return HttpJwtAuthorizer(
            "Jwt", jwt.issuer, jwt_audience=list(jwt.audience), authorizer_name=settings.name()
        )

    def _unsubscribe(self, settings: Settings, storage: MailboxStack) -> None:
        Door(self.api, "Unsubscribe", unsubscribe(self, settings, storage, self.secret)).open(
            # Programs that check links ask for their head; nothing but POST changes anything.
            ["GET", "HEAD", "POST"],
            f"{UNSUBSCRIBE_PATH}/{{token}}",
            "Whoever got the mail may opt out without any login (RFC 8058): the token is signed, and good "
            "for one address and one topic; the function checks it.",
        )

    def _twilio_callbacks(self, settings: Settings, feedback: FeedbackStack) -> None:
        if feedback.twilio_secret is None:
            return
        function = twilio_callbacks(self, settings, feedback, feedback.twilio_secret, self.public_url)
        Door(self.api, "TwilioCallbacks", function).open(
            ["POST"],
            f"{TWILIO_PATH}/{{reference}}",
            "Twilio signs each request with the account's token; the function checks it.",
        )
