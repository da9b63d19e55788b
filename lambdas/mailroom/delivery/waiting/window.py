"""Wait for the hours in which a message may be sent."""

from collections.abc import Mapping, Sequence

from msgspec import convert, structs

from mailroom.delivery.waiting.reason import Due, Entry, WaitReason
from mailroom.environment import Sender
from mailroom.errors import Invalid
from mailroom.ledger.waits import AHEAD_SECONDS, OUTSIDE_WINDOW
from mailroom.message.message import Key, Message
from mailroom.message.window import Window


class ClosedWindow(WaitReason):
    """The window of the message, or of its lane, is closed."""

    name, metric = OUTSIDE_WINDOW, "WaitsForWindow"

    def __init__(self, settings: Sender) -> None:
        self._bulk = settings.bulk
        self._window = convert(settings.window, Window | None)

    def of(self, message: Message) -> Window | None:
        """Return the window of a message, in the time zone of the message if it has one."""
        window = message.window or self._window
        if window is None or message.time_zone is None:
            return window
        return structs.replace(window, zone=message.time_zone)

    def waits(self, entries: Sequence[Entry], moment: float) -> Mapping[Key, Due]:
        # Most messages have neither a window nor a time.
        timed = [entry for entry in entries if self._window or entry.message.window or entry.message.send_at]
        opens = {entry.record.key: self._opens(entry.message, moment) for entry in timed}
        return {key: due for key, due in opens.items() if isinstance(due, Invalid) or due > moment}

    def _opens(self, message: Message, moment: float) -> Due:
        earliest, window = moment, message.window or self._window
        # The function `dispatch` holds a message until its `send_at`. A message of a stopped run that is
        # restarted bypasses `dispatch`, so it is held here.
        if self._bulk and (due := message.due()) is not None and due > moment + AHEAD_SECONDS:
            earliest = due
        try:
            return earliest if window is None else window.opens(earliest, message.time_zone)
        except Invalid as fault:
            # The message's `time_zone` is invalid. It is first checked here if the message has no attribute
            # `window`.
            return fault
