"""Logs and metrics of the functions: JSON log lines and embedded metrics, without personal data."""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.logging.formatter import LambdaPowertoolsFormatter
from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit
from aws_lambda_powertools.metrics.provider.cloudwatch_emf.constants import MAX_METRICS
from msgspec.json import encode


class MessageKey(Protocol):
    """Key of the message that a log line is about."""

    @property
    def id(self) -> str: ...

    @property
    def event_type(self) -> str: ...


Handler = Callable[[dict[str, Any], Any], Any]

_MARKS = r".!#$%&'*+/=?^`{|}~-"
# `_ADDRESS` matches only from the first character of an address on: if every letter could begin a match, a
# long text would take minutes. Log lines are masked as JSON, in which control characters and letters beyond
# ASCII are escapes such as \u00e9; the pattern never splits an escape.
_ESCAPE = r"\\u[0-9a-f]{4}"
_ADDRESS = re.compile(
    rf"((?:\\[^u]|(?<![\w\\{_MARKS}]))[{_MARKS}]*+(?:\w|{_ESCAPE}))(?:[\w{_MARKS}]|{_ESCAPE})*+@(?=[\w\\-])"
)
MAX_READ = 4000
"""Maximum number of characters that `redact` reads of a provider's text: over ten times the number that it
returns, because it replaces each long URL by one word."""
# The length of the scheme is limited, because the search tries every position of a text as the beginning of a
# URL.
_URL = re.compile(r"\b[a-z][a-z0-9+.-]{0,30}://\S+", re.IGNORECASE)
_NUMBER = re.compile(r"\+?(?<!\d)(?!(?:19|20)\d\d-[01]\d-[0-3]\d(?!\d))\d(?:[ ().-]{0,2}\d){6,}")
"""Telephone number. A date such as 2026-11-18 is not one."""


def redact(text: str) -> str:
    """Return a provider's text for the ledger and for logs: without URLs, with telephone numbers masked, and
    at most 300 characters long."""
    redacted = _numbers_masked(_URL.sub("(URL)", text[:MAX_READ]))
    return redacted if len(redacted) <= 300 else f"{redacted[:299]}…"


def masked(text: str) -> str:
    """Return the text with every mail address masked: `vincent@example.com` becomes `v***@example.com`."""
    return _ADDRESS.sub(r"\1***@", text) if "@" in text else text


def impersonal(text: str) -> str:
    """Return the text with every mail address and telephone number masked."""
    return _numbers_masked(masked(text))


def _numbers_masked(text: str) -> str:
    return _NUMBER.sub(lambda number: f"…{number[0][-2:]}", text)


_message: ContextVar[MessageKey | None] = ContextVar("message", default=None)
"""Key of the message that the current thread is processing."""


class _Formatter(LambdaPowertoolsFormatter):
    """Log formatter that adds the current message's key to log lines, and masks mail addresses in them, even
    in quoted errors of providers."""

    def serialize(self, log: Any) -> str:
        if (message := _message.get()) is not None:
            log = {**log, **about(message)}
        return masked(super().serialize(log))


logger = Logger(logger_formatter=_Formatter(), location=None)
"""Logger of all functions. Fields of a log line are keyword arguments, or `extra` for a mapping such as
`about(key)`. The formatter masks both."""
_stage = {"stage": os.environ["MAILROOM_STAGE"]} if os.environ.get("MAILROOM_STAGE") else {}
"""Dimension of every metric, because an account may have several stages; empty outside of functions."""
metrics = Metrics()
metrics.set_default_dimensions(**_stage)


def about(key: MessageKey) -> dict[str, str]:
    """Return the fields of a message's key for log lines."""
    return {"id": key.id, "event_type": key.event_type}


def working_on(key: MessageKey | None) -> None:
    """Set the message whose key is added to the next log lines of the current thread; None for no message."""
    _message.set(key)


class _Metrics:
    """Switch for metrics, for the whole process with all its threads."""

    muted = False


@contextmanager
def quiet() -> Iterator[None]:
    """Return a context in which metrics, and log lines below WARNING, are switched off.

    The context is for operators' commands, which print their results, and have neither a metrics namespace
    nor an invocation at whose end metrics are written.
    """
    was_muted, _Metrics.muted = _Metrics.muted, True
    level = logger.log_level
    logger.setLevel("WARNING")
    try:
        yield
    finally:
        _Metrics.muted = was_muted
        logger.setLevel(level)


def count(name: str, value: int = 1) -> None:
    """Add a number to a metric of the current invocation."""
    _add(name, MetricUnit.Count.value, [float(value)])


def record_duration(name: str, *seconds: float) -> None:
    """Add durations to a metric of the current invocation. CloudWatch gets every value, so that it can
    compute percentiles."""
    _add(name, MetricUnit.Milliseconds.value, [float(round(duration * 1000)) for duration in seconds])


def _add(name: str, unit: str, values: Sequence[float]) -> None:
    """Add values to a metric of the current invocation. Like `add_metric` of Powertools, which is slow, this
    writes all metrics as soon as CloudWatch would accept no further value or metric."""
    while values and not _Metrics.muted:
        metric = metrics.metric_set.setdefault(name, {"Unit": unit, "Value": []})
        room = MAX_METRICS - len(metric["Value"])
        metric["Value"] += values[:room]
        values = values[room:]
        if MAX_METRICS in (len(metric["Value"]), len(metrics.metric_set)):
            _write()


def _write() -> None:
    """Write the metrics of the current invocation, and remove them. Powertools' `flush_metrics` encodes
    slowly."""
    print(encode(metrics.serialize_metric_set()).decode())  # noqa: T201 - CloudWatch reads metrics from the log
    metrics.clear_metrics()


def count_by(name: str, value: int, *dimensions: Mapping[str, str]) -> None:
    """Write a metric at once, under each of these sets of dimensions in addition to the dimensions of every
    metric."""
    if _Metrics.muted:
        return
    metric = EphemeralMetrics()
    metric.set_default_dimensions(**_stage)
    metric.add_metric(name=name, unit=MetricUnit.Count, value=value)
    for dimension_set in dimensions:
        metric.add_dimensions(**dimension_set)
    metric.flush_metrics()


def instrumented(handler: Handler) -> Handler:
    """Return the handler with logs and metrics: log lines get the request's id, and metrics are written when
    the handler ends."""

    def measured(event: dict[str, Any], context: Any) -> Any:
        try:
            return handler(event, context)
        finally:
            # Powertools' own decorator would warn if an invocation has counted nothing.
            if metrics.metric_set:
                _write()

    with_context: Handler = logger.inject_lambda_context(measured)
    return with_context
