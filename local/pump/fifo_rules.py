"""How Lambda treats a batch of queue messages, as a pure rule: which of them are deleted.

All others stay; the queue brings them back when their visibility time-out ends, or moves them to its
dead-letter queue. Until then SQS keeps their groups locked, so nothing here has to know of groups.
"""

from collections.abc import Sequence

from local.pump.fifo_mapping import FifoMapping, Message
from local.pump.functions import Invoked


def finished(batch: Sequence[Message], invoked: Invoked, mapping: FifoMapping) -> list[Message]:
    """The messages to be deleted after an invocation.

    None after an error of the function, or if it never ran; none either if an identifier among the reported
    failures is missing, empty or not of this batch.
    """
    if invoked.error is not None or invoked.refused:
        return []
    if not mapping.reports_failures or not isinstance(invoked.payload, dict):
        return list(batch)
    failures = invoked.payload.get("batchItemFailures") or []
    failed = {each.get("itemIdentifier") if isinstance(each, dict) else None for each in failures}
    if failed - {message.id for message in batch}:
        return []
    return [message for message in batch if message.id not in failed]
