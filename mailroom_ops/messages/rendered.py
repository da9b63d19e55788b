"""Items, rendered like the senders of a stage."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mailroom.channels.contracts import contracts_of
from mailroom.content.payload_attributes import expanded
from mailroom.content.payloads import Payloads
from mailroom.errors import Invalid, Malformed
from mailroom.message.message import Message, parse
from mailroom_ops.messages.items import rules_of

if TYPE_CHECKING:
    import boto3

    from mailroom.channels.preview import Preview, Previews


class Sample(Struct, frozen=True):
    """Rendered message: its recipient and content, or the `problem` because of which it would not be sent."""

    id: str
    to: str = ""
    subject: str = ""
    text: str = ""
    html: str = ""
    problem: str = ""


def samples_of(session: "boto3.Session", stage: str) -> "Samples":
    """Return a renderer of items for a deployed stage, with the templates of this project. Raises Refused if
    the stage is not deployed."""
    rules = rules_of(session, stage)
    return Samples(rules.previews(session.client("s3")), rules.default_region)


class Samples:
    """Renders items like the senders of a stage. Telephone numbers without a country code are numbers of
    `default_region`. Content in the payload bucket is rendered only if `payloads` is not None."""

    def __init__(
        self, previews: "Previews", default_region: str = "", payloads: Payloads | None = None
    ) -> None:
        self._previews = previews
        self._payloads = payloads
        self._contracts = contracts_of(default_region)

    def look(self, item: Mapping[str, Any]) -> "tuple[Message, Preview]":
        """Return the message of an item, and its preview. Raises Invalid and Malformed."""
        message = parse(item, self._contracts)
        if self._payloads and message.payload_ref:
            message = parse(expanded(self._payloads, message, message.payload_ref), self._contracts)
        return message, self._previews.look(message)

    def render(self, item: Mapping[str, Any]) -> Sample:
        """Return the content that the recipient would see, or the reason why rendering fails."""
        id_ = str(item.get("id", ""))
        try:
            message, preview = self.look(item)
        except (Invalid, Malformed) as problem:
            return Sample(id_, problem=str(problem))
        to = message.recipient
        return Sample(
            id_,
            to if isinstance(to, str) else ", ".join(to),
            preview.subject,
            preview.text or "",
            preview.html or "",
        )
