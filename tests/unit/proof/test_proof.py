"""The proof counts what it says."""

import json
import logging
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from lab.bench.functions import in_a_process
from tests.proof import orders
from tests.proof.counting import COLUMNS, LABELS, NAMES, TWO_PROVIDERS, Counts, count
from tests.support import ROOT
from tests.support.faults.outside import Outside, Stopped

RECORDED: dict[str, Any] = json.loads((ROOT / "lab" / "bench" / "proof.json").read_text())
ORDERS = json.loads((ROOT / "lab" / "bench" / "proof_orders.json").read_text())
for recorded in (RECORDED, ORDERS):
    del recorded["measured"]
OURS = ("mailroom_loses answers",)
"""Senders whose figures are counted here; `make proof` counts all."""


class Sender:
    """Sends the batch by one call. After a death, `again` says how often each mail goes out in the end."""

    def __init__(self, again: int = 1, dead: str = "", unknown: str = "") -> None:
        self.outside = Outside()
        self._again, self._dead, self._unknown = again, dead, unknown
        self._times = 1

    def deliver(self) -> None:
        try:
            self.outside.call("send", lambda: None)
        except Stopped:
            self._times = self._again

    def finish(self) -> None:
        pass

    def sends(self) -> Counter[str]:
        return Counter(NAMES * self._times)

    def dead_letters(self) -> set[str]:
        return {self._dead}

    def failures(self) -> dict[str, bool]:
        return {self._unknown: True}


@pytest.mark.parametrize(
    ("begin", "counted"),
    [
        (Sender, {}),
        (lambda: Sender(again=2), {"sent_twice": 20}),
        (lambda: Sender(again=0), {"lost": 20}),
        (lambda: Sender(again=0, dead=NAMES[0]), {"lost": 18, "stuck": 2}),
        (lambda: Sender(again=0, unknown=NAMES[0]), {"lost": 18, "unknown": 2}),
    ],
)
def test_the_proof_counts_what_became_of_each_mail_after_each_stop_of_its_sender(
    begin: Callable[[], Sender], counted: Counts
) -> None:
    assert count(begin) == dict.fromkeys(COLUMNS, 0) | {"stops": 2} | counted


@pytest.mark.process
def test_a_new_count_of_mailroom_whose_first_provider_loses_responses_equals_the_recorded_proof() -> None:
    assert in_a_process("tests.proof.senders", *OURS) == {name: RECORDED[name] for name in OURS}


def test_the_recorded_proof_has_all_counts_of_every_sender() -> None:
    assert list(RECORDED) == list(LABELS)
    assert all(tuple(counts) == COLUMNS for counts in RECORDED.values())


def test_a_mail_with_two_providers_is_neither_lost_nor_sent_twice_in_the_recorded_proof() -> None:
    for trouble in TWO_PROVIDERS:
        counts = RECORDED[f"mailroom_{trouble}"]
        assert (counts["sent_twice"], counts["lost"]) == (0, 0)


def test_a_new_count_of_orders_and_their_messages_gives_the_counts_of_the_recorded_proof() -> None:
    logging.disable(logging.CRITICAL)
    try:
        assert orders.counted() == ORDERS
    finally:
        logging.disable(logging.NOTSET)


def test_a_transaction_leaves_neither_an_order_nor_its_message_alone_in_the_recorded_proof() -> None:
    for ways in ORDERS.values():
        assert list(ways) == list(orders.LABELS)
        stops, *faults = ways["transaction"].values()
        assert (stops, faults) == (2, [0, 0, 0])
