"""Webhooks: messages and status callbacks, signed, to whatever endpoint they name."""

import json
import string

from aws_cdk import App
from aws_cdk import aws_secretsmanager as secretsmanager

from stacks.constructs.grants import Grant
from stacks.constructs.outputs import publish
from stacks.constructs.secret import Secret
from stacks.constructs.worker import Work, Worker
from stacks.derived import Waits, webhook_rules
from stacks.mailbox import MailboxStack
from stacks.senders import read_payloads, sender_environment
from stacks.settings import Settings, Webhook
from stacks.stage_stack import StageStack

KEY_LENGTH = 44  # letters and digits: 33 bytes, read as base64


class WebhookStack(StageStack):
    """One queue, fair by endpoint: its messages' group is the host that they go to."""

    def __init__(self, app: App, settings: Settings, storage: MailboxStack) -> None:
        super().__init__(app, settings, "webhook")
        self.secret = self._secret(settings)
        self.worker = Worker(self, settings, self._work(settings, storage))
        publish(
            self,
            WebhookSigningSecretName=settings.name("webhook-signing"),
            WebhookSigningSecretArn=self.secret.secret_arn,
        )

    def _secret(self, settings: Settings) -> Secret:
        return Secret(
            self,
            "SigningSecret",
            settings,
            name="webhook-signing",
            description="What webhooks are signed with; receivers verify with whsec_ and this value",
            generated=secretsmanager.SecretStringGenerator(
                password_length=KEY_LENGTH,
                include_space=False,
                exclude_punctuation=True,
                exclude_characters=string.punctuation,  # the emulator knows this way alone
            ),
            not_rotated="Putting a new value rotates it, and the one before goes on signing for a while: "
            "receivers have to learn the new one, so people choose when.",
        )

    def _work(self, settings: Settings, storage: MailboxStack) -> Work:
        webhook = settings.webhook
        rules = webhook_rules(settings)
        return Work(
            queue="webhook",
            function="send-webhook",
            handler="send_webhook",
            limits=webhook,
            polling=webhook,
            rules=rules,
            grants=[
                Grant(["dynamodb:UpdateItem"], [storage.ledger.table_arn]),
                self.secret.read(),
                *read_payloads(self, settings),
            ],
            environment={
                **storage.shared_environment,
                **sender_environment(
                    "webhook",
                    webhook,
                    # Its own delays go before; these are what every sender has to be told.
                    Waits(min(webhook.delays_seconds), max(webhook.delays_seconds)),
                    lease=rules.lease,
                    pace=0,
                    submit_seconds=webhook.request_seconds,
                ),
                **self._webhook_environment(webhook),
            },
        )

    def _webhook_environment(self, webhook: Webhook) -> dict[str, str]:
        return {
            "SIGNING_SECRET_ARN": self.secret.secret_arn,
            "SIGNING_OVERLAP_SECONDS": str(webhook.signing_overlap_hours * 3600),
            "DELAYS": json.dumps(webhook.delays_seconds),
            "RETRY_AFTER_CAP_SECONDS": str(webhook.retry_after_cap_seconds),
            "ALLOWED_NETWORKS": json.dumps(webhook.allowed_networks),
            "ALLOWED_SCHEMES": json.dumps(webhook.allowed_schemes),
            "ALLOWED_PORTS": json.dumps(webhook.allowed_ports),
        }
