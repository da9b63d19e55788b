"""The handler of Ctrl-C in a test's process, whatever started it: a script's background job ignores it."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

Handler = signal.Handlers | Callable[[int, FrameType | None], object]


@contextmanager
def interrupts_handled_by(handler: Handler) -> Iterator[None]:
    """Until the block ends, SIGINT has this handler. Children inherit `SIG_IGN`, and no other handler."""
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
