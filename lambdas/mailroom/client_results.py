"""What became of items that a producer sent."""

from dataclasses import dataclass, field
from typing import Literal

KEPT_PROBLEMS = 1000
"""How many problems a summary lists; it counts all."""

State = Literal["accepted", "existed", "conflict", "refused", "failed"]


@dataclass(frozen=True)
class SendResult:
    """What became of one item.

    accepted: it lies in the mailbox. existed: the very same lay there. conflict: its id and event_type stand
    for another message, which stays. refused: it can never be put as it is; `error` names the attribute.
    failed: AWS could not be reached or refused us; send it again.
    """

    id: str
    event_type: str
    state: State
    error: str = ""

    @property
    def ok(self) -> bool:
        """Whether the message is in the mailbox now."""
        return self.state in {"accepted", "existed"}


@dataclass
class Summary:
    """How many items there were, and what became of them. `problems` lists the first that are not `ok`."""

    accepted: int = 0
    existed: int = 0
    conflict: int = 0
    refused: int = 0
    failed: int = 0
    problems: list[SendResult] = field(default_factory=list)

    @property
    def total(self) -> int:
        """All items."""
        return self.accepted + self.existed + self.conflict + self.refused + self.failed

    def add(self, result: SendResult) -> None:
        """Count one more."""
        setattr(self, result.state, getattr(self, result.state) + 1)
        if not result.ok and len(self.problems) < KEPT_PROBLEMS:
            self.problems.append(result)
