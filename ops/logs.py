"""What the library logs, while an operator's command runs."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from mailroom.telemetry import logger


@contextmanager
def complaints_on_stderr() -> Iterator[None]:
    """What the library logs of calls that fail goes beside the answer, not into it."""
    handlers = [each for each in logger.handlers if isinstance(each, logging.StreamHandler)]
    streams = [each.stream for each in handlers]
    for handler in handlers:
        handler.setStream(sys.stderr)
    try:
        yield
    finally:
        for handler, stream in zip(handlers, streams, strict=True):
            handler.setStream(stream)
