"""The HTTP API: messages in, what became of them out."""

from typing import Any

from mailroom import environment
from mailroom.api.application import Application
from mailroom.environment import MessagesApi as Settings
from mailroom.telemetry import instrumented

application = Application(environment.read(Settings))


@instrumented
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """One request; its response."""
    return application.answer(event, context)
