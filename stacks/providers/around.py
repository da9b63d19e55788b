"""The stage that a sender stands in, and the grants that senders have in common."""

from dataclasses import dataclass

from aws_cdk import Stack
from aws_cdk import aws_secretsmanager as secretsmanager

from stacks.api import ApiStack
from stacks.constructs.grants import Grant
from stacks.constructs.stage import pascal, publish
from stacks.constructs.storage import Secret
from stacks.feedback import FeedbackStack
from stacks.mailbox import LINES, MailboxStack
from stacks.settings.stage import Settings


@dataclass(frozen=True)
class Around:
    """The stage that a sender stands in."""

    settings: Settings
    storage: MailboxStack
    feedback: FeedbackStack
    api: ApiStack

    def find_by_number(self) -> Grant:
        """Asking the ledger which of a provider's messages to a number are whose."""
        return Grant(["dynamodb:Query"], [f"{self.storage.ledger.table_arn}/index/{LINES}"])

    def find_unwilling(self) -> Grant:
        """Asking the suppression list and people's preferences, in one read for all of a batch."""
        tables = (self.storage.suppressions, self.storage.preferences)
        return Grant(["dynamodb:BatchGetItem"], [table.table_arn for table in tables])

    def mark_suppressed(self) -> Grant:
        """Putting on the list whom the provider says to be gone."""
        return Grant(["dynamodb:UpdateItem"], [self.storage.suppressions.table_arn])

    def unwilling(self) -> dict[str, str]:
        """Where the suppression list and the preferences are."""
        return {
            "SUPPRESSIONS_TABLE": self.storage.suppressions.table_name,
            "PREFERENCES_TABLE": self.storage.preferences.table_name,
        }

    def secret(self, stack: Stack, name: str, description: str) -> Secret:
        """The secret mailroom-{stage}-`name` of `stack`, which people put a provider's credentials into; one
        for all lanes of a channel. `description` says in which form."""
        id_ = f"{pascal(name)}Secret"
        made = stack.node.try_find_child(id_)
        if isinstance(made, Secret):
            return made
        secret = Secret(
            stack,
            id_,
            self.settings,
            name=name,
            description=description,
            # The same for ever: see Secret.
            generated=secretsmanager.SecretStringGenerator(
                secret_string_template="{}",  # noqa: S106 - nothing but the placeholder
                generate_string_key="placeholder",
            ),
            not_rotated="The provider issues the credentials, and AWS cannot make it issue others.",
        )
        name_and_arn = {"SecretName": self.settings.name(name), "SecretArn": secret.secret_arn}
        publish(stack, **{f"{pascal(name)}{key}": value for key, value in name_and_arn.items()})
        return secret
