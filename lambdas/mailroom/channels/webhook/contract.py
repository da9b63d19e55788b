"""The contract of a webhook: what an item with `event_type: "webhook"` may say."""

from typing import Annotated, Any, ClassVar

from msgspec import UNSET, Meta

from mailroom.errors import Invalid
from mailroom.http.url_policy import MAX_URL, host_of
from mailroom.message.message import MAX_GROUP, Message, encode

MAX_PAYLOAD_BYTES = 256 * 1024
"""Bytes as JSON. Standard Webhooks asks for less than 20 kB: send what changed, not all there is."""


class Webhook(Message, frozen=True, kw_only=True):
    """A signed POST of `payload`, as JSON, to `url`.

    Where it may go (schemes, ports, networks) is the stage's to say: the sender checks that.
    """

    addressing: ClassVar[tuple[str, ...]] = ("url",)
    windowed: ClassVar[bool] = False

    url: Annotated[str, Meta(description=f"https://host/path, at most {MAX_URL} characters")]
    payload: Annotated[Any, Meta(description="any JSON value, up to 256 KiB; best under 20 kB")] = UNSET

    @property
    def recipient(self) -> str:
        """The host. A URL's path and query may hold secrets, and people read the ledger."""
        return host_of(self.url)

    @property
    def group(self) -> str | None:
        """One host's messages are one group of the fair queue: a dead one cannot hold up the others."""
        return self.recipient[:MAX_GROUP]

    def check(self) -> None:
        super().check()
        if len(self.url) > MAX_URL:
            raise Invalid("url", f"has {len(self.url)} characters; use at most {MAX_URL}")
        if not host_of(self.url):
            raise Invalid("url", "is not an https URL; use one like https://hooks.example.com/path")
        if "webhook_id" in self.variables:
            # On the queue it tells a status callback from a message; a message with it would pass for one.
            raise Invalid("webhook_id", "is the system's own; leave it out, or put it into the payload")
        if self.payload is UNSET:
            if self.payload_ref is None:
                raise Invalid(
                    "payload", "is missing; give it any JSON value, or name an object in payload_ref"
                )
            return
        size = len(encode(self.payload).encode())
        if size > MAX_PAYLOAD_BYTES:
            raise Invalid("payload", f"has {size} bytes as JSON; use at most {MAX_PAYLOAD_BYTES}")


KEEPS_FAILING = 8
"""Tries that may fail before an endpoint is one that keeps failing; half an hour of them by default."""


def tries_that_may_fail(tries: int) -> int:
    """How many of `tries` may fail before an endpoint is one that keeps failing: half, where they are few."""
    return min(KEEPS_FAILING, tries // 2)
