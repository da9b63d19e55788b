"""The commands about messages, for the command line to take in."""

from ops.messages.failures_command import failures
from ops.messages.send_command import send
from ops.messages.status_command import status
from ops.messages.watch_command import watch

__all__ = ["failures", "send", "status", "watch"]
