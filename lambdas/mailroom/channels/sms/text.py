"""Renders the text of a text message."""

from typing import TYPE_CHECKING

from mailroom.channels.sms.contract import Sms, check_text, plain

if TYPE_CHECKING:
    from mailroom.content.templates import Templates


def text_of(message: Sms, templates: "Templates | None", *, strict: bool = False) -> str:
    """Return the message's text, or render the message's template. `templates` may be None for a message
    without a template. Raises Invalid; if `strict`, also for an attribute that has no effect."""
    if message.template is None or templates is None:
        if strict:
            message.check_names((), strict=True)
        return message.text or ""
    templates.check_names(message, strict=strict)
    locale, version = message.locale, message.template_version
    text = plain(templates.text(message.template, message.variables, locale=locale, version=version)).strip()
    check_text("template", text)
    return text
