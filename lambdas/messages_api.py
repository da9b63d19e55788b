"""The HTTP API: accepts messages, and returns their statuses."""

from mailroom import environment
from mailroom.api.application import Application
from mailroom.environment import MessagesApiSettings
from mailroom.telemetry import instrumented

application = Application(environment.read(MessagesApiSettings))
handler = instrumented(application.answer)
