"""The demo's mails: put, wait for their ends, and ask for some of them again."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from local.demo.postbox import Postbox
from local.demo.scenarios.mails import Message
from local.demo.waiter import Patience
from local.demo.watch import MAILS

SETTLE_SECONDS = 90.0


@dataclass(frozen=True)
class Sent:
    """`duplicates` are repeated puts that the mailbox itself absorbed; `seconds` run to the last end."""

    duplicates: int
    seconds: float


def send(
    messages: Sequence[Message],
    postbox: Postbox,
    patience: Patience,
    put: Callable[[], None],
    ended: Callable[[int], None],
) -> Sent:
    """Put all and wait until each has ended, telling of the progress. Raises Unsettled."""
    started = time.monotonic()
    new = postbox.put_all([message.item for message in messages], put)
    patience.until_completed(MAILS, len(messages), SETTLE_SECONDS, ended)
    return Sent(len(messages) - new, time.monotonic() - started)


def repeat(postbox: Postbox, messages: Sequence[Message]) -> int:
    """Three ways to ask for the same message again; how many repetitions were asked for and absorbed."""
    twice, changed, reinserted = (message.item for message in messages[:3])
    refused = not postbox.put_new(twice)  # the mailbox itself refuses
    postbox.put_again({**changed, "last_name": "Renamed"})  # a MODIFY, which the mapping filters out
    postbox.delete(reinserted)
    postbox.put_again(reinserted)  # a new INSERT, which the ledger refuses
    return refused + 2
