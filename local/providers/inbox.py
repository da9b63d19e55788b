"""What the providers' simulators accepted, in the order of acceptance."""

import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any


@dataclass(frozen=True)
class Accepted:
    """One message that a provider took. `to` is one string on every channel: several addresses of one
    mail are joined by commas, as in its To header; `content` has them as a list."""

    channel: str
    to: str
    provider_id: str
    content: dict[str, Any]
    received_at: str = field(
        default_factory=lambda: datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    )

    def as_json(self) -> dict[str, Any]:
        return {
            "channel": self.channel,
            "to": self.to,
            "received_at": self.received_at,
            "provider_id": self.provider_id,
            "content": self.content,
        }


class InboxStore:
    """Kept in memory, newest last; safe for many threads."""

    def __init__(self) -> None:
        self._accepted: list[Accepted] = []
        self._lock = threading.Lock()

    def add(self, accepted: Accepted) -> None:
        with self._lock:
            self._accepted.append(accepted)

    def all(self) -> list[Accepted]:
        with self._lock:
            return list(self._accepted)

    def clear(self) -> None:
        with self._lock:
            self._accepted.clear()

    def __len__(self) -> int:
        return len(self._accepted)
