"""An event: what a provider says became of a message, in one form for all of them."""

from typing import Literal

from msgspec import Struct

from mailroom.message.message import Key
from mailroom.message.outcome import Facts
from mailroom.message.status import Status


class Event(Struct, frozen=True, kw_only=True):
    """All events prove that the provider has accepted the attempt.

    `kind` is the provider's own word, for logs and metrics. `status` is None where it tells a fact alone (a
    delay, an open). `recipients` are canonical, as the suppression list has them; () is all of the message's,
    and `several` says that there are more than one. `suppress` marks those recipients. `at` is the provider's
    time in epoch milliseconds, `detail` a sentence of at most 300 characters. `facts` are attributes of the
    ledger item: times in epoch milliseconds (`deliveredAt`), the rest as the provider said it.
    """

    key: Key
    attempt: int
    provider: str
    provider_id: str | None
    kind: str
    status: Status | None
    facts: Facts
    recipients: tuple[str, ...]
    several: bool = False
    suppress: Literal["bounce", "complaint"] | None = None
    at: int
    detail: str = ""
