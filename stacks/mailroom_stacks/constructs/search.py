"""Search for messages by recipient or time: a table, and the secret key with which recipients are hashed."""

from typing import Any

from aws_cdk import ArnFormat, Stack
from constructs import Construct

from mailroom_stacks.constructs.grants import Grant
from mailroom_stacks.constructs.storage import RANDOM_KEY_IN_JSON, TTL, Secret, Table
from mailroom_stacks.settings.settings import Settings


class Search(Construct):
    """Table `search` and secret `search-key` of one stage."""

    def __init__(self, scope: Construct, settings: Settings) -> None:
        super().__init__(scope, "Search")
        self._table = Table(
            self,
            "Search",
            settings,
            name="search",
            key="found_by",
            sort_key="put",
            time_to_live_attribute=TTL,
        )
        Secret(
            self,
            "Secret",
            settings,
            name="search-key",
            description='Key with which recipients are hashed in the table search: {"key"}',
            # Never change how the key is generated: see Secret.
            generated=RANDOM_KEY_IN_JSON,
            not_rotated="Rows of the last months can only be found with the key that wrote them.",
        )
        self.fields: dict[str, Any] = {
            "search_table": self._table.plain_name,
            "search_key_name": settings.name("search-key"),
        }
        """Fields of a function's settings. They are names instead of references, because a reference from
        another stack would prevent the removal of search from a stage."""
        # Secrets Manager appends a hyphen and six random characters to the name in a secret's ARN.
        secret = Stack.of(self).format_arn(
            service="secretsmanager",
            resource="secret",
            resource_name=f"{settings.name('search-key')}-??????",
            arn_format=ArnFormat.COLON_RESOURCE_NAME,
        )
        self._read_key = Grant(["secretsmanager:GetSecretValue"], [secret])

    def write(self, ledger: Table, *, counts: bool) -> list[Grant]:
        """Return the permissions to add messages to the search, and if `counts` also to count the messages of
        campaigns."""
        actions = ["dynamodb:BatchWriteItem", *(["dynamodb:UpdateItem"] if counts else [])]
        read = [ledger.table_arn, *([self._table.plain_arn] if counts else [])]
        return [
            Grant(actions, [self._table.plain_arn]),
            Grant(["dynamodb:BatchGetItem"], read),
            self._read_key,
        ]

    def read_rows(self) -> Grant:
        """Return the permission to read rows, which include the counts of a campaign's run."""
        return Grant(["dynamodb:Query"], [self._table.plain_arn])

    def read(self, ledger: Table) -> list[Grant]:
        """Return the permissions to find messages: to read their rows, the key, and the ledger's items."""
        return [self.read_rows(), Grant(["dynamodb:BatchGetItem"], [ledger.table_arn]), self._read_key]
