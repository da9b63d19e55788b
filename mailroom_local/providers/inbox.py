"""Messages that the providers' simulators accepted, in the order of acceptance."""

import base64
import threading
from collections import Counter
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from mailroom_local.providers.http import Pages, Request, iso_milliseconds


@dataclass(frozen=True)
class Accepted:
    """Message that a provider accepted. `to` is a string on every channel: several addresses of a mail are
    joined by commas, as in its To header. `content` has the addresses as a list."""

    channel: str
    to: str
    provider_id: str
    content: dict[str, Any]
    received_at: str = field(default_factory=lambda: iso_milliseconds(datetime.now(UTC)))


def attached(name: str, content_type: str, content: bytes, content_id: str | None) -> dict[str, Any]:
    """Return the description of a mail's attachment. `url` is a data URL with its content. The HTML of the
    mail refers to an inline attachment by its `content_id`."""
    url = f"data:{content_type};base64,{base64.b64encode(content).decode()}"
    return {"name": name, "size": len(content), "content_id": (content_id or "").strip("<>"), "url": url}


class InboxStore:
    """Accepted messages in memory, newest last. Thread-safe."""

    def __init__(self) -> None:
        self._accepted: list[Accepted] = []
        self._channels: Counter[str] = Counter()
        self._lock = threading.Lock()

    def add(self, accepted: Accepted) -> None:
        with self._lock:
            self._accepted.append(accepted)
            self._channels[accepted.channel] += 1

    def all(self) -> list[Accepted]:
        with self._lock:
            return list(self._accepted)

    def clear(self) -> None:
        with self._lock:
            self._accepted.clear()
            self._channels.clear()

    def pages(self) -> Pages:
        """Return the pages of the inbox. GET /inbox lists messages: with ?after=COUNT all but the first
        COUNT, with ?channel=mail&last=COUNT the newest of that channel, with ?id=PROVIDER_ID one. GET
        /inbox/count returns the number of messages, and GET /inbox/channels their number by channel. DELETE
        /inbox removes all."""
        return Pages(
            "/inbox",
            {
                "GET /inbox": self._chosen,
                "GET /inbox/count": lambda _: {"count": len(self.all())},
                "GET /inbox/channels": lambda _: dict(self._channels),
                "DELETE /inbox": lambda _: self.clear(),
            },
        )

    def _chosen(self, request: Request) -> list[dict[str, Any]]:
        channel, id_ = request.query.get("channel"), request.query.get("id")
        if id_ is not None:
            return [asdict(accepted) for accepted in self.all() if accepted.provider_id == id_]
        if channel is not None:
            of_channel = [accepted for accepted in self.all() if accepted.channel == channel]
            return [asdict(accepted) for accepted in of_channel[-request.count("last", 50) :]]
        return [asdict(accepted) for accepted in self.all()[request.count("after", 0) :]]
