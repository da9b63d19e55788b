"""What the functions say of themselves: JSON log lines and embedded metrics, without personal data."""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.logging.formatter import LambdaPowertoolsFormatter
from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit


class Named(Protocol):
    """What a log line is about: a message's key."""

    @property
    def id(self) -> str: ...

    @property
    def event_type(self) -> str: ...


Handler = Callable[[dict[str, Any], Any], Any]

_MARKS = r".!#$%&'*+/=?^`{|}~-"
# From its beginning on or not at all: were it tried from each letter on, a long text would take minutes.
# A line is masked as JSON, where letters beyond ASCII and control characters are escapes: each stays whole.
_ESCAPE = r"\\u[0-9a-f]{4}"
_ADDRESS = re.compile(
    rf"((?:\\[^u]|(?<![\w\\{_MARKS}]))[{_MARKS}]*+(?:\w|{_ESCAPE}))(?:[\w{_MARKS}]|{_ESCAPE})*+@(?=[\w\\-])"
)
MAX_READ = 4000
"""Characters of a provider's words that are looked at: over ten times what is shown, for a URL becomes one
word."""
# Bounded: no scheme is longer, and each place of a long text could begin one.
_URL = re.compile(r"\b[a-z][a-z0-9+.-]{0,30}://\S+", re.IGNORECASE)
_NUMBER = re.compile(r"\+?\d(?:[ ().-]{0,2}\d){6,}")


def redact(text: str) -> str:
    """A provider's words as they may stand in the ledger and in a log: no numbers, no URLs, not endless."""
    shown = _numbers_masked(_URL.sub("(URL)", text[:MAX_READ]))
    return shown if len(shown) <= 300 else f"{shown[:299]}…"


def masked(text: str) -> str:
    """The text with every mail address shortened: `vincent@example.com` becomes `v***@example.com`."""
    return _ADDRESS.sub(r"\1***@", text) if "@" in text else text


def impersonal(text: str) -> str:
    """The text with every mail address and telephone number shortened."""
    return _numbers_masked(masked(text))


def _numbers_masked(text: str) -> str:
    return _NUMBER.sub(lambda number: f"…{number[0][-2:]}", text)


_message: ContextVar[Named | None] = ContextVar("message", default=None)
"""What is worked on, by each thread for itself."""


class _Formatter(LambdaPowertoolsFormatter):
    """Adds the message that is worked on, and masks all: providers' errors quote addresses too."""

    def serialize(self, log: Any) -> str:
        if (message := _message.get()) is not None:
            log = {**log, **about(message)}
        return masked(super().serialize(log))


logger = Logger(logger_formatter=_Formatter(), location=None)
"""What a log line says beside its message is given by keyword, and as `extra` only where it is a mapping
already, such as `about(key)`. The formatter masks both."""
_stage = {"stage": os.environ["MAILROOM_STAGE"]} if os.environ.get("MAILROOM_STAGE") else {}
"""The dimension of every metric, because an account may have several stages; outside of functions none."""
metrics = Metrics()
metrics.set_default_dimensions(**_stage)


def about(key: Named) -> dict[str, str]:
    """What every log line about a message carries."""
    return {"id": key.id, "event_type": key.event_type}


def working_on(key: Named | None) -> None:
    """From here on every log line of this thread is about this message (None: about none)."""
    _message.set(key)


class _Muted:
    """Whether nobody wants metrics: of the whole process, with all its threads."""

    now = False


@contextmanager
def quiet() -> Iterator[None]:
    """Within, nothing is counted, and nothing is logged of what goes well: an operator's command has neither
    an invocation at whose end metrics are written nor a namespace, and says itself what it has done."""
    before, _Muted.now = _Muted.now, True
    level = logger.log_level
    logger.setLevel("WARNING")
    try:
        yield
    finally:
        _Muted.now = before
        logger.setLevel(level)


def count(name: str, value: int = 1) -> None:
    """Add to a metric of this invocation."""
    if _Muted.now:
        return
    metrics.add_metric(name=name, unit=MetricUnit.Count, value=value)


def record_duration(name: str, seconds: float) -> None:
    """Add a time to a metric of this invocation, which keeps each: percentiles can be asked of it."""
    if _Muted.now:
        return
    metrics.add_metric(name=name, unit=MetricUnit.Milliseconds, value=round(seconds * 1000))


def count_by(name: str, value: int, *dimensions: Mapping[str, str]) -> None:
    """Write a metric at once, under each of these sets of dimensions beside those that all metrics have."""
    if _Muted.now:
        return
    own = EphemeralMetrics()
    own.set_default_dimensions(**_stage)
    own.add_metric(name=name, unit=MetricUnit.Count, value=value)
    for each in dimensions:
        own.add_dimensions(**each)
    own.flush_metrics()


def instrumented(handler: Handler) -> Handler:
    """The handler with the request's id on each log line, and its metrics written when it ends."""

    def measured(event: dict[str, Any], context: Any) -> Any:
        try:
            return handler(event, context)
        finally:
            # Powertools' own decorator warns where there is nothing to write, as after a batch in progress.
            if metrics.metric_set:
                metrics.flush_metrics()

    with_context: Handler = logger.inject_lambda_context(measured)
    return with_context
