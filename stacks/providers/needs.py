"""What a sender may need, and whence it comes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from stacks.api import ApiStack
from stacks.constructs.grants import Grant
from stacks.feedback import FeedbackStack
from stacks.mailbox import LINES, MailboxStack
from stacks.settings import Settings


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


@dataclass(frozen=True)
class Needs:
    """Grants, environment, and the folder in templates/ that goes into the bundle ("" is none)."""

    grants: Sequence[Grant] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    templates: str = ""
