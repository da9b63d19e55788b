"""What is kept has to be kept for as long as somebody may come back to it."""

from collections.abc import Iterator

from stacks.settings import Settings


def broken_retention(settings: Settings) -> Iterator[str]:
    """Rules of the section `retention`."""
    keep = settings.retention
    if keep.dead_letter_days <= keep.queue_days:
        yield (
            f"retention.dead_letter_days: {keep.dead_letter_days} must be over queue_days {keep.queue_days}, "
            f"for a dead letter's age counts from its first enqueue; use {keep.queue_days + 1} to 14."
        )
    in_queue = keep.days_of(fifo=settings.fax is not None)
    need = in_queue + keep.dead_letter_days + keep.margin_days
    queue = "of the fax queue, as dead_letter_days," if settings.fax else "queue_days"
    parts = (
        f"{queue} {in_queue}",
        *(f"{name} {getattr(keep, name)}" for name in ("dead_letter_days", "margin_days")),
    )
    remedy = f"a message that can still be redelivered; use {need} or more ({' + '.join(parts)})."
    if keep.ledger_days < need:
        yield f"retention.ledger_days: {keep.ledger_days} would forget {remedy}"
    elif keep.ledger_days < keep.unprocessed_days + keep.margin_days:
        yield (
            f"retention.unprocessed_days: {keep.unprocessed_days} + margin_days {keep.margin_days} must be "
            f"at most ledger_days {keep.ledger_days}, or a replay may send again what the ledger "
            f"has forgotten; use {keep.ledger_days - keep.margin_days} or less."
        )
    if keep.payload_days < need:
        yield f"retention.payload_days: {keep.payload_days} would lose the content of {remedy}"
