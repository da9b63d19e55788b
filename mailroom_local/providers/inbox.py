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
    """Message that a provider accepted. `to` is one string on every channel: several addresses of one
    mail are joined by commas, as in its To header; `content` has them as a list."""

    channel: str
    to: str
    provider_id: str
    content: dict[str, Any]
    received_at: str = field(default_factory=lambda: iso_milliseconds(datetime.now(UTC)))


def attached(name: str, content_type: str, content: bytes, content_id: str | None) -> dict[str, Any]:
    """Return an attachment of a mail. `url` has its bytes; the HTML shows it by its `content_id`, if any."""
    url = f"data:{content_type};base64,{base64.b64encode(content).decode()}"
    return {"name": name, "size": len(content), "content_id": (content_id or "").strip("<>"), "url": url}


class InboxStore:
    """Kept in memory, newest last; safe for many threads."""

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
        """GET /inbox (?after=COUNT leaves out the first so many; ?channel=mail&last=COUNT has that channel's
        newest only, ?id=PROVIDER_ID one), /inbox/count, /inbox/channels (each one's count); DELETE /inbox."""
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
