"""Pages of dead letters: their number in each queue, their causes, and a redrive with a progress bar."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

from mailroom_ops.console.site import Answer, Request, Shown, Site, View
from mailroom_ops.repair.dead_letter_queues import DeadQueues
from mailroom_ops.repair.shown_letters import DeadLetterCounts, DeadLettersShown, count_letters, find_letters
from mailroom_ops.shared.deeds import Deed

LISTED = 50


class DeadLetters(View, frozen=True):
    """Values of the page of dead letters."""

    counts: list[DeadLetterCounts]
    found: DeadLettersShown | None
    """Dead letters of the selected queue; None without a selection."""
    deeds: list[Deed]


def show(site: Site, request: Request) -> Answer:
    """Show the number of dead letters in each queue, and the letters and causes of the selected queue."""
    queues = queues_at(site)
    with ThreadPoolExecutor(8) as pool:
        counts = list(pool.map(lambda queue: count_letters(queues, queue, 0), queues.named(None)))
    # A queue is read only on request: reading takes a second or more, and hides the letters for a while.
    queue = request["queue"]
    letters = find_letters(queues, queue, site.stage, None, LISTED, body=False) if queue else None
    return Shown(DeadLetters(counts, letters, site.deeds_on("dead letters")))


def queues_at(site: Site) -> DeadQueues:
    """Return the dead-letter queues of the stage."""
    return site.kept("dead queues", partial(DeadQueues, site.session, site.stage))
