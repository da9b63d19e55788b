"""The recipes of docs/how-to/send-from-your-app.md, run from the put to each message's end."""

import json
import time
from collections.abc import Iterable, Mapping

import pytest

from mailroom.channels.contracts import CONTRACTS
from mailroom.clock import epoch
from mailroom.ledger.observer import observe
from mailroom.message.message import Key
from mailroom.message.outcome import Status
from tests.support.docs_pages import Page
from tests.support.told import ses_event
from tests.support.unit.post import Make
from tests.support.unit.releasing import Waiting
from tests.support.unit.shared import MAILBOX, Item, claimed, mail

CODE, REMINDER, RECALL = (
    block.text for block in [*Page("docs/how-to/send-from-your-app.md").blocks("python")][-3:]
)
CHANNELS = ("mail", "sms", "fax")


def items_of(recipe: str, monkeypatch: pytest.MonkeyPatch) -> list[Item]:
    """Return the items that a recipe puts."""
    put: list[Item] = []

    class Client:
        def __init__(self, stage: str) -> None:
            assert stage == "dev"

        def send_many(self, items: Iterable[Item]) -> None:
            put.extend(items)

    monkeypatch.setattr("mailroom.client.Mailroom", Client)
    exec(recipe, {})  # the documentation's own code
    return put


class RecipeStage:
    """Stage with three channels. `reports`: what each channel's provider reports right after a submit."""

    def __init__(self, waiting: Waiting, post: Make, reports: Mapping[str, Status]) -> None:
        self._waiting, self._post, self._reports = waiting, post, reports
        waiting.channels = CHANNELS
        waiting.clock.now = time.time()  # by which the recipes count

    def run(self, items: Iterable[Item]) -> dict[str, str]:
        """Put the items, let all their times come, and return how each channel's message ended."""
        items = [*items]
        for item in items:
            self._waiting.aws.put(MAILBOX, **item)
        numbered = [(str(place), item) for place, item in enumerate(items)]
        assert self._waiting.dispatcher().dispatch(numbered) == set()
        self._deliver()
        for due in sorted(epoch(item["send_at"]) for item in items if "send_at" in item):
            self._waiting.clock.now = due
            self._waiting.release_due()
            self._deliver()
        ledger = self._waiting.aws.item
        return {item["event_type"]: str(ledger(item["id"], item["event_type"])["status"]) for item in items}

    def _deliver(self) -> None:
        bodies = [json.loads(entry["MessageBody"]) for entry in self._waiting.sent]
        self._waiting.meddle()  # forgets what was sent so far
        for body in bodies:
            channel = body["event_type"]
            worker = self._post(channel=channel, contract=CONTRACTS[channel])
            worker.handle(body)
            if worker.submitted and channel in self._reports:
                observe(self._waiting.ledger, [ses_event(Key(body["id"], channel), self._reports[channel])])


@pytest.mark.parametrize("receipt", [None, "sent", "delivered", "undelivered", "bounced"])
def test_the_reminder_of_an_order_is_cancelled_only_if_the_receipt_of_the_order_was_sent(
    waiting: Waiting, make_post: Make, monkeypatch: pytest.MonkeyPatch, receipt: Status | None
) -> None:
    stage = RecipeStage(waiting, make_post, {})
    if receipt is not None:
        claimed(waiting.ledger, mail("order-88-receipt"))
        observe(waiting.ledger, [ses_event(Key("order-88-receipt", "mail"), receipt)])
    assert stage.run(items_of(REMINDER, monkeypatch)) == {"mail": "sent" if receipt is None else "cancelled"}


@pytest.mark.parametrize(
    ("recipe", "reports", "ends"),
    [
        (CODE, {"sms": "delivered"}, {"mail": "cancelled"}),
        (CODE, {"sms": "undelivered"}, {"mail": "sent"}),
        (CODE, {}, {"sms": "sent", "mail": "sent"}),
        (RECALL, {"mail": "delivered"}, {"sms": "cancelled", "fax": "cancelled"}),
        (RECALL, {"mail": "bounced", "sms": "delivered"}, {"fax": "cancelled"}),
        (RECALL, {"mail": "bounced", "sms": "undelivered"}, {"fax": "sent"}),
    ],
)
def test_a_code_or_a_recall_is_sent_on_its_next_channel_only_if_its_earlier_channel_did_not_deliver(
    waiting: Waiting,
    make_post: Make,
    monkeypatch: pytest.MonkeyPatch,
    recipe: str,
    reports: Mapping[str, Status],
    ends: dict[str, str],
) -> None:
    assert RecipeStage(waiting, make_post, reports).run(items_of(recipe, monkeypatch)) == {**reports, **ends}
