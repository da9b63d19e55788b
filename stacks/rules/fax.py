"""Rules of the fax gateway."""

from collections.abc import Iterator

from stacks.derived import fax_rules, invocations_to_finish, mover_rules
from stacks.rules.queues import Lever, broken_backoff, broken_queue
from stacks.sentences import number
from stacks.settings import Fax, Retention


def broken_fax(fax: Fax, lease_margin: int, keep: Retention) -> Iterator[str]:
    """Rules of the section `fax`."""
    yield from _provider(fax)
    yield from _times(fax)
    yield from broken_backoff("fax", fax)
    yield from broken_queue("fax", fax, fax_rules(fax, lease_margin), keep, _lever(fax))
    yield from broken_queue("fax.retry", fax.retry, mover_rules(fax, lease_margin), keep)


def _provider(fax: Fax) -> Iterator[str]:
    """What one provider cannot do without, the other one has no use for."""
    if fax.provider == "signalwire":
        if (fax.space is None) == (fax.base_url is None):
            yield (
                "fax.space: signalwire needs either space or base_url, and one of them alone; "
                "use the space of {space}.signalwire.com."
            )
        if fax.connection_id is not None:
            yield "fax.connection_id: is telnyx's, and provider is signalwire; remove it."
        return
    if fax.connection_id is None:
        yield "fax.connection_id: is missing; telnyx needs the id of the fax application."
    if fax.space is not None:
        yield "fax.space: is signalwire's, and provider is telnyx; remove it."


def _times(fax: Fax) -> Iterator[str]:
    needed = fax.pace + fax.submit_seconds + fax.record_seconds + fax.poll_seconds
    if needed >= fax.timeout_seconds:
        yield (
            f"fax.timeout_seconds: {fax.timeout_seconds} must be over {number(needed)} s: the gap "
            f"{number(fax.pace)} (concurrent_calls {fax.concurrent_calls} / calls_per_second "
            f"{number(fax.calls_per_second)}) + submit_seconds {fax.submit_seconds} + record_seconds "
            f"{fax.record_seconds} + poll_seconds {number(fax.poll_seconds)}; raise it or lower those."
        )
    ttl = fax.ttl_minutes * 60
    if fax.longest_fax_seconds <= ttl:
        yield (
            f"fax.longest_fax_seconds: {fax.longest_fax_seconds} must be over ttl_minutes "
            f"{fax.ttl_minutes} x 60, for until then the provider may still start; use {ttl + 1} or more."
        )
    if fax.media_seconds < ttl:
        yield (
            f"fax.media_seconds: {fax.media_seconds} ends before the provider's last try, which may fetch "
            f"the PDF; use {ttl} or more (ttl_minutes {fax.ttl_minutes} x 60)."
        )
    if fax.retry_delay_cap_seconds < fax.retry_delay_seconds:
        yield (
            f"fax.retry_delay_cap_seconds: {fax.retry_delay_cap_seconds} is under retry_delay_seconds; "
            f"use {fax.retry_delay_seconds} or more."
        )


def _lever(fax: Fax) -> Lever:
    return Lever(
        formula=(
            "as many as cover it when each wait is at its shortest, plus "
            f"{invocations_to_finish(fax)} to see a fax of longest_fax_seconds through, plus crash_allowance"
        ),
        remedy="lower it, or longest_fax_seconds, or raise backoff_cap_seconds",
    )
