"""The contract of a webhook: the attributes of an item with `event_type: "webhook"`."""

from typing import Annotated, Any, ClassVar

from msgspec import UNSET, Meta, Struct

from mailroom.errors import Invalid
from mailroom.http.url_policy import MAX_URL, host_of
from mailroom.message.message import MAX_GROUP, Message, encode
from mailroom.message.outcome import Outcome

MAX_PAYLOAD_BYTES = 256 * 1024
"""Maximum number of bytes of the payload as JSON. The Standard Webhooks specification recommends less than 20
kB, with only the data that changed."""


class Webhook(Message, frozen=True, kw_only=True):
    """A signed POST of `payload`, as JSON, to `url`.

    The stage's settings restrict the schemes, ports and networks of `url`. The sender checks these
    restrictions.
    """

    addressing: ClassVar[tuple[str, ...]] = ("url",)
    windowed: ClassVar[bool] = False

    url: Annotated[str, Meta(description=f"https://host/path, at most {MAX_URL} characters")]
    payload: Annotated[Any, Meta(description="any JSON value, up to 256 KiB; best under 20 kB")] = UNSET

    @property
    def recipient(self) -> str:
        """The host of the URL. The ledger does not store the path and the query, because they may contain
        secrets."""
        return host_of(self.url)

    @property
    def group(self) -> str | None:
        """Message group of the fair queue: the host, so that an endpoint that is down does not delay webhooks
        to other hosts."""
        return self.recipient[:MAX_GROUP]

    def check(self) -> None:
        super().check()
        if len(self.url) > MAX_URL:
            raise Invalid("url", f"has {len(self.url)} characters; use at most {MAX_URL}")
        if not host_of(self.url):
            raise Invalid("url", "is not an https URL; use one like https://hooks.example.com/path")
        if "webhook_id" in self.variables:
            # In the queue, the attribute `webhook_id` distinguishes status callbacks from webhook messages,
            # so a webhook message with this attribute is invalid.
            raise Invalid("webhook_id", "is reserved for Mailroom; remove it, or put it into the payload")
        if self.payload is UNSET:
            if self.payload_ref is None:
                raise Invalid("payload", "is missing; set it to any JSON value, or set payload_ref")
            return
        size = len(encode(self.payload).encode())
        if size > MAX_PAYLOAD_BYTES:
            raise Invalid("payload", f"has {size} bytes as JSON; use at most {MAX_PAYLOAD_BYTES}")


class Post(Struct, frozen=True):
    """POST request to an endpoint."""

    url: str
    webhook_id: str
    """Id of the webhook, the same in every try."""
    body: str


class PostResult(Struct, frozen=True):
    """Result of a POST request."""

    outcome: Outcome
    status: int | None = None
    """HTTP status of the response; None without a response."""


KEEPS_FAILING = 8
"""Number of failed tries after which an endpoint is reported as failing; with the default delays, after half
an hour."""


def tries_that_may_fail(tries: int) -> int:
    """Return the number of failed tries after which an endpoint is reported as failing: KEEPS_FAILING, but at
    most half of `tries`."""
    return min(KEEPS_FAILING, tries // 2)
