"""Tries of a message while its provider fails, as its sender counts them in metrics."""

from collections.abc import Callable

from mailroom.clock import backoff
from mailroom_stacks.settings.queues import RESEND_DELAYS

KINDS = ("throttled", "silent", "silent, and look-ups fail", "misconfigured", "unprepared")
"""Ways in which a provider, or what a request needs, fails."""


def failing_tries(
    kind: str,
    until: float,
    *,
    lease: float,
    base: float,
    cap: float,
    misconfigured: float,
    random: Callable[[], float],
) -> list[tuple[float, str]]:
    """Return the seconds from the first try on at which a message is tried before `until`, with the metrics.
    The other arguments are settings of the sender in seconds, and the source of the back-off's jitter."""

    def retried() -> list[tuple[float, str]]:
        tries, second = list[tuple[float, str]](), 0.0
        while second < until:
            tries.append((second, "Retried"))
            second += backoff(len(tries), base, cap, random)
        return tries

    def every(seconds: float, metric: str, begin: float = 0) -> list[tuple[float, str]]:
        number = int((until - begin - 1e-9) // seconds) + 1
        return [(begin + step * seconds, metric) for step in range(number)]

    match kind:
        case "throttled" | "unprepared":
            return retried()
        case "misconfigured":
            return every(misconfigured, "Misconfigured")
        case "silent, and look-ups fail":
            return [(0.0, "Unknown"), *every(lease + 1, "Retried", lease + 1)]
    # Without evidence, a message is sent again after the delays.
    second, tries = 0.0, list[tuple[float, str]]()
    for delay in (0, *RESEND_DELAYS[1:]):
        tries += [(second, "Unknown")] if second < until else []
        second += max(lease, delay) + 1
    return tries
