"""What is kept has to be kept for as long as somebody may come back to it."""

from collections.abc import Iterator

from stacks.settings.retention import LEAST_LEDGER_DAYS, Retention


def broken_retention(keep: Retention, *, fax: bool) -> Iterator[str]:
    """Rules of the section `retention`; `fax`: the stage has the fax queue, which is FIFO."""
    if keep.dead_letter_days <= keep.queue_days:
        yield (
            f"retention.dead_letter_days: {keep.dead_letter_days} must be over queue_days {keep.queue_days}, "
            f"for a dead letter's age counts from its first enqueue; use {keep.queue_days + 1} to 14."
        )
    if keep.unprocessed_days + keep.margin_days > LEAST_LEDGER_DAYS:
        yield (
            f"retention.unprocessed_days: {keep.unprocessed_days} + margin_days {keep.margin_days} must be "
            f"at most {LEAST_LEDGER_DAYS}, the days that every ledger remembers, or a replay may send again "
            f"what the ledger has forgotten; use {LEAST_LEDGER_DAYS - keep.margin_days} or less."
        )
    in_queue = keep.days_of(fifo=fax)
    need = in_queue + keep.dead_letter_days + keep.margin_days
    queue = "of the fax queue, as dead_letter_days," if fax else "queue_days"
    remedy = (
        f"of a message that can still be redelivered; use {need} or more ({queue} {in_queue} + "
        f"dead_letter_days {keep.dead_letter_days} + margin_days {keep.margin_days})"
    )
    if keep.mailbox_days is not None and keep.mailbox_days < need:
        yield f"retention.mailbox_days: {keep.mailbox_days} would lose the item {remedy}, or null."
    if keep.payload_days < need:
        yield f"retention.payload_days: {keep.payload_days} would lose the content {remedy}."
