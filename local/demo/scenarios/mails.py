"""The demo's messages: 500 good ones from a CSV file, and the awkward ones with what must become of them."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

RECIPIENTS = Path(__file__).with_name("recipients.csv")
BIG_BODY_BYTES = 300 * 1024
Item = dict[str, Any]


@dataclass(frozen=True)
class Message:
    """A mailbox item and its fate: `reason` is empty if it is to be sent, else a word that the ledger's
    error message must hold. `ends` is the status that it must come to, in the end; `facts` are attributes
    that its ledger item must have, `recipients` the status of each of several."""

    item: Item
    reason: str = ""
    ends: str = ""
    facts: Mapping[str, object] = field(default_factory=dict)
    recipients: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str]:
        """The message's identity."""
        return self.item["id"], self.item["event_type"]

    @property
    def status(self) -> str:
        """What it must end as: a good mail is delivered."""
        return self.ends or ("failed" if self.reason else "delivered")

    @property
    def accepted(self) -> int:
        """Once, or not at all."""
        return 0 if self.reason else 1

    @property
    def address(self) -> str:
        """Where its mail goes, as the inbox writes it; empty if it has no address."""
        to = self.item.get("email") or self.item.get("to") or ""
        return ", ".join(to) if isinstance(to, list) else str(to)


def good() -> list[Message]:
    """One message for each line of recipients.csv."""
    with RECIPIENTS.open(encoding="utf-8", newline="") as file:
        return [Message({**row, "event_type": "mail"}) for row in csv.DictReader(file)]


def awkward() -> list[Message]:
    """Those that a mailroom meets sooner or later."""
    return [
        Message(_mail("no-address", email=None), reason="to"),
        Message(
            _mail("header-injection", headers={"X-Order": "7\r\nBcc: eve@example.com"}), reason="X-Order"
        ),
        Message(_mail("no-first-name", first_name=None), reason="first_name"),
        Message({**_mail("unknown-channel"), "event_type": "pigeon"}, reason="event_type"),
        Message(
            _mail("big-body", subject="The annual report", text="A long line.\n" * (BIG_BODY_BYTES // 13))
        ),
    ]


def _mail(name: str, **attributes: object) -> Item:
    """A mail that would be good but for what is given; None leaves an attribute out."""
    item: Item = {
        "id": f"awkward-{name}",
        "event_type": "mail",
        "email": f"{name}@example.com",
        "first_name": "Ada",
        "last_name": "Lovelace",
    }
    return {key: value for key, value in (item | attributes).items() if value is not None}
