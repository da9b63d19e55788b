"""Conditions in the attribute `unless`. If another message has one of the given statuses, the message is not
sent."""

from collections.abc import Sequence
from typing import Annotated, Literal, get_args

from msgspec import Meta, Struct

from mailroom.errors import Invalid

MAX_CONDITIONS = 5
"""Maximum number of conditions of a message. One call reads the ledger items of all of them."""
OUTCOME_UNKNOWN = "outcome_unknown"
"""Code of the `error` of a failed message that may have been sent. In conditions it is a separate status:
such a message counts neither as sent nor as failed."""
_Accepted = Literal["sent", "delivered", "undelivered", "bounced", "complained"]
_Unsent = Literal["failed", "suppressed", "cancelled", "outcome_unknown"]
Word = Literal[_Accepted, _Unsent]
"""Status that a condition may name."""
WORDS = get_args(Word)
"""Statuses that a condition may name, in the order of the documentation."""
_Status = Annotated[str, Meta(extra_json_schema={"enum": list(WORDS)})]
_PROVED_BY = {"sent": ("sent", "delivered", "complained"), "delivered": ("delivered", "complained")}
"""Statuses that prove an earlier status: a recipient who complains has got the message."""


class Condition(Struct, frozen=True, forbid_unknown_fields=True):
    """Condition under which a message is not sent: another message has one of the given statuses."""

    id: Annotated[str, Meta(description="id of the other message", min_length=1)]
    """Id of the other message."""
    event_type: Annotated[str, Meta(description="event_type of the other message", min_length=1)]
    """Channel of the other message."""
    status: Annotated[
        _Status | list[_Status],
        Meta(description=f"one of {', '.join(WORDS)}, or a list of them"),
    ]
    """Status of the other message, or a list of statuses of which one is enough."""

    @property
    def statuses(self) -> Sequence[str]:
        """Statuses of which one is enough."""
        return [self.status] if isinstance(self.status, str) else self.status

    @property
    def text(self) -> str:
        """The condition for people: `sms code-17 is delivered`."""
        return f"{self.event_type} {self.id} is {' or '.join(self.statuses)}"

    def check(self, field: str) -> None:
        """Raise Invalid for an unknown status, an empty list or too long a list. `field` is the attribute's
        name in the error."""
        if not self.statuses:
            raise Invalid(f"{field}.status", f"is empty; use one of {', '.join(WORDS)}")
        if len(self.statuses) > len(WORDS):
            raise Invalid(f"{field}.status", f"has {len(self.statuses)} statuses; list each once")
        for status in self.statuses:
            if status not in WORDS:
                words = ", ".join(WORDS)
                raise Invalid(f"{field}.status", f"{status!r:.60} is not a valid status; use {words}")

    def holds(self, word: str) -> bool:
        """Return whether the other message fulfils the condition. `word` is the result of `word_of` for that
        message."""
        return any(word in _PROVED_BY.get(status, (status,)) for status in self.statuses)


def word_of(status: str, code: str) -> str:
    """Return the status of a message in the form that conditions use: `outcome_unknown` if this is the `code`
    of its error, or else its `status`."""
    return OUTCOME_UNKNOWN if code == OUTCOME_UNKNOWN else status
