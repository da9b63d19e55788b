"""What becomes of a mail that SES accepted: by the recipient's address, recipient by recipient.

Those at simulator.amazonses.com choose, by the part before the plus sign:

| local part      | events after Send                                                                    |
|-----------------|--------------------------------------------------------------------------------------|
| bounce          | Bounce, Permanent General                                                            |
| complaint       | Delivery, Complaint                                                                  |
| suppressionlist | Bounce, Permanent OnAccountSuppressionList                                           |
| ooto            | Delivery, Bounce Transient General: the automatic answer of somebody who is away     |
| soft            | DeliveryDelay, Bounce Transient MailboxFull                                          |
| reject          | Reject, of the whole mail                                                            |
| others          | Delivery                                                                             |

Words of the label, apart by `.`, `-` or `+` (`success+soft.7@…`): `soft` as above; `truncated`: the headers
in the events are cut short, ours among them; `early`: all events are out before SES answers. Any other
address is delivered to. One on the account's suppression list bounces as suppressionlist does.
"""

import re
from dataclasses import dataclass
from email.utils import parseaddr
from typing import Literal

SIMULATOR_DOMAIN = "simulator.amazonses.com"

Kind = Literal["delivery", "hard", "listed", "away", "full", "complaint", "delay", "reject"]
"""An event after Send; `hard` to `full` are bounces."""
COURSES: dict[str, tuple[Kind, ...]] = {
    "bounce": ("hard",),
    "complaint": ("delivery", "complaint"),
    "suppressionlist": ("listed",),
    "ooto": ("delivery", "away"),
    "soft": ("delay", "full"),
    "reject": ("reject",),
}
DELIVERED: tuple[Kind, ...] = ("delivery",)


@dataclass(frozen=True)
class Address:
    """A recipient's address, in parts and in lower case."""

    name: str
    words: frozenset[str]
    simulated: bool

    @classmethod
    def of(cls, recipient: str) -> "Address":
        """From any form that a header takes."""
        local, _, domain = parseaddr(recipient)[1].lower().partition("@")
        name, _, label = local.partition("+")
        return cls(name, frozenset(re.split(r"[.+-]", label)), domain == SIMULATOR_DOMAIN)

    @property
    def course(self) -> tuple[Kind, ...]:
        """The events after Send, in the order in which they happen."""
        if not self.simulated:
            return DELIVERED
        return COURSES["soft"] if "soft" in self.words else COURSES.get(self.name, DELIVERED)

    def asks(self, word: str) -> bool:
        """Whether its label holds this word."""
        return self.simulated and word in self.words
