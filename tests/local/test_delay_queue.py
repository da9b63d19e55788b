"""The queue of delayed reports: in the order of their times, several at once, again after a failure, and none
while it is paused."""

import threading

from mailroom_local.providers.delay_queue import AGAIN_SECONDS, DelayQueue, Disorder, pages
from mailroom_local.providers.http import Request


class QueueOfWords:
    """A delay queue of words, with time that a test moves, and a list of what was handed on."""

    def __init__(self, *failing: str, most: int = 10) -> None:
        self.now = 0.0
        self.batches: list[list[str]] = []
        self._failing = list(failing)
        self.queue: DelayQueue[str] = DelayQueue(self._deliver, most, lambda: self.now)

    def _deliver(self, words: list[str]) -> list[str]:
        self.batches.append(words)
        failed = [word for word in words if word in self._failing]
        for word in failed:
            self._failing.remove(word)
        return failed


def test_a_delay_queue_delivers_each_item_at_its_time_in_the_order_of_times() -> None:
    stage = QueueOfWords()
    for word, seconds in (("c", 3), ("a", 1), ("b", 2), ("also a", 1)):
        stage.queue.add(word, seconds)
    assert stage.queue.run_due() == 0
    stage.now = 2
    assert stage.queue.run_due() == 3
    assert (stage.batches, stage.queue.waiting) == ([["a", "also a", "b"]], 1)


def test_a_delay_queue_delivers_items_again_whose_delivery_was_interrupted_by_its_processs_end() -> None:
    interrupted, stage = QueueOfWords(), QueueOfWords()
    stage.now = 1

    def deliver(words: list[str]) -> list[str]:
        kept = vars(interrupted.queue)
        vars(stage.queue).update({name: [*kept[name]] for name in ("_waiting", "_delivering")})
        return words

    interrupted.queue._deliver = deliver
    for word, seconds in (("due", 0), ("also due", 0), ("later", 2)):
        interrupted.queue.add(word, seconds)
    interrupted.queue.run_due()
    stage.queue.add("added", 1)
    stage.now = 2
    stage.queue.run_due()
    assert stage.batches == [["due", "also due", "later", "added"]]


def test_a_delay_queue_delivers_at_most_the_configured_number_of_items_at_once() -> None:
    stage = QueueOfWords(most=2)
    for word in "abcde":
        stage.queue.add(word, 0)
    stage.queue.run_due()
    assert stage.batches == [["a", "b"], ["c", "d"], ["e"]]


def test_a_delay_queue_repeats_only_the_items_whose_delivery_failed() -> None:
    stage = QueueOfWords("b", "b")
    stage.queue.add("a", 0)
    stage.queue.add("b", 0)
    for _ in range(4):
        stage.queue.run_due()
        stage.now += AGAIN_SECONDS
    assert stage.batches == [["a", "b"], ["b"], ["b"]]


def test_a_paused_queue_delivers_no_item_until_it_is_resumed() -> None:
    stage = QueueOfWords()
    stage.queue.add("before", 0)
    stage.queue.pause()
    stage.queue.add("meanwhile", 0)
    assert (stage.queue.run_due(), stage.queue.waiting, stage.queue.paused) == (0, 2, True)
    stage.queue.resume()
    assert (stage.queue.run_due(), stage.queue.paused) == (2, False)
    assert stage.batches == [["before", "meanwhile"]]


def test_a_post_to_events_disorder_sets_the_spread_and_the_repeats_of_every_providers_reports() -> None:
    queues = {"ses": QueueOfWords().queue, "twilio": QueueOfWords().queue}
    body = b'{"spread_seconds": 3, "doubled": 0.5}'
    assert pages(queues).handle(Request("POST", "/events/disorder", {}, body)).status == 200
    assert [queue.disorder for queue in queues.values()] == [Disorder(3.0, 0.5)] * 2


def test_a_delay_queue_reorders_and_repeats_reports_by_the_configured_spread_and_share_of_repeats() -> None:
    stage = QueueOfWords(most=1_000)
    stage.queue.disorder = Disorder(10.0, 0.2)
    words = [f"{number}" for number in range(100)]
    for word in words:
        stage.queue.report(word)
    stage.now = 5.0
    stage.queue.run_due()
    assert 20 < len(stage.batches[0]) < 80
    stage.now = 10.0
    stage.queue.run_due()
    came = [word for batch in stage.batches for word in batch]
    assert ({*came}, came[:100] != words) == ({*words}, True)
    assert 105 < len(came) < 140


def test_a_running_delay_queue_delivers_the_item_that_is_due_earliest_first() -> None:
    came: list[str] = []
    all_came = threading.Event()

    def deliver(words: list[str]) -> list[str]:
        came.extend(words)
        if len(came) == 3:
            all_came.set()
        return []

    queue: DelayQueue[str] = DelayQueue(deliver)
    queue.start()
    for word, seconds in (("third", 0.3), ("second", 0.1), ("first", 0)):
        queue.add(word, seconds)
    assert all_came.wait(5)
    assert came == ["first", "second", "third"]
