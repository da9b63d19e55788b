"""Names that the simulator of your own channel, and its tests, may import."""

from mailroom_local.providers.http import NoAnswer, Occurrences, Reply, Request, SimulatorServer, json_reply
from mailroom_local.providers.inbox import Accepted, InboxStore

__all__ = ["Accepted", "InboxStore", "NoAnswer", "Occurrences", "Reply", "Request"]
__all__ += ["SimulatorServer", "json_reply"]
