"""Messages of a dry run, rendered with this repository's templates as their senders would."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mailroom.channels.contracts import contracts_of
from mailroom.channels.mail.contract import Mail
from mailroom.channels.sms.contract import Sms
from mailroom.content.templates import Content, Templates
from mailroom.errors import Invalid, Malformed
from mailroom.message.message import Message, parse

UNSUBSCRIBE_URL = "https://example.com/unsubscribe/made-up"
"""In place of a recipient's own, which the sender signs."""


@dataclass(frozen=True)
class Sample:
    """One message: whom it is for, and its content; or the `problem` for which it would not be sent."""

    id: str
    to: str = ""
    subject: str = ""
    text: str = ""
    html: str = ""
    problem: str = ""


class Samples:
    """Renders items. `templates` is the folder that has one for each channel; `default_region` is where a
    number without its country is dialled."""

    def __init__(self, templates: Path, default_region: str = "") -> None:
        self._templates = templates
        self._contracts = contracts_of(default_region)

    def render(self, item: Mapping[str, Any]) -> Sample:
        """What its recipient would see, or why there is nothing to be seen."""
        id_ = str(item.get("id", ""))
        try:
            message = parse(item, self._contracts)
            content = self._content(message)
        except (Invalid, Malformed) as problem:
            return Sample(id_, problem=str(problem))
        to = message.recipient
        return Sample(
            id_,
            to if isinstance(to, str) else ", ".join(to),
            content.subject,
            content.text or "",
            content.html or "",
        )

    def _content(self, message: Message) -> Content:
        folder = Templates(self._templates / message.event_type)
        if isinstance(message, Mail):
            if message.inline:
                return Content(message.subject or "", message.html, message.text)
            return folder.render(message.template or "default", _variables(message))
        if isinstance(message, Sms):
            text = message.text or ""
            return Content(
                "", None, folder.text(message.template, message.variables) if message.template else text
            )
        title, body = (str(message.variables.get(name) or "") for name in ("title", "body"))
        return Content(title, None, body)


def _variables(mail: Mail) -> dict[str, Any]:
    """As the mail's sender hands them over: one addressee of a topic has a link to leave it."""
    link = {"unsubscribe_url": UNSUBSCRIBE_URL} if mail.topic and len(mail.addressees) == 1 else {}
    return {**mail.variables, **link}
