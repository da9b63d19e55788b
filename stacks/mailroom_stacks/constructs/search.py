"""Search for messages without their ids: a table, and the key of the hashes of recipients."""

from typing import Any

from aws_cdk import ArnFormat, Stack
from constructs import Construct

from mailroom_stacks.constructs.grants import Grant
from mailroom_stacks.constructs.storage import RANDOM_KEY_IN_JSON, TTL, Secret, Table
from mailroom_stacks.settings.settings import Settings


class Search(Construct):
    """Table `search` and its secret, of one stage."""

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
            description='What recipients are hashed with in the table search: {"key"}',
            # Never change how the key is generated: see Secret.
            generated=RANDOM_KEY_IN_JSON,
            not_rotated="Rows of the last months are found by the key that they were made with.",
        )
        self.fields: dict[str, Any] = {
            "search_table": self._table.plain_name,
            "search_key_name": settings.name("search-key"),
        }
        """Fields of a function's settings. They are names, so that other stacks do not hold back the removal
        of search from a stage."""
        # Secrets Manager appends six random characters to the name in a secret's ARN.
        secret = Stack.of(self).format_arn(
            service="secretsmanager",
            resource="secret",
            resource_name=f"{settings.name('search-key')}-??????",
            arn_format=ArnFormat.COLON_RESOURCE_NAME,
        )
        self._read_key = Grant(["secretsmanager:GetSecretValue"], [secret])

    def write(self, ledger: Table, *, counts: bool) -> list[Grant]:
        """Return the rights to make messages findable, and with `counts` also to count those of campaigns."""
        actions = ["dynamodb:BatchWriteItem", *(["dynamodb:UpdateItem"] if counts else [])]
        read = [ledger.table_arn, *([self._table.plain_arn] if counts else [])]
        return [
            Grant(actions, [self._table.plain_arn]),
            Grant(["dynamodb:BatchGetItem"], read),
            self._read_key,
        ]

    def read_rows(self) -> Grant:
        """Return the right to read rows, which include the counts of a run."""
        return Grant(["dynamodb:Query"], [self._table.plain_arn])

    def read(self, ledger: Table) -> list[Grant]:
        """Return the rights to find messages: their rows, the key, and the ledger's items."""
        return [self.read_rows(), Grant(["dynamodb:BatchGetItem"], [ledger.table_arn]), self._read_key]
