"""Settings that change while faxes are under way: at every outside call of any function, and in a crash."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mailroom.channels.fax.contract import item_of
from tests.faults.test_fax_crashes import NOT_OURS
from tests.support.faults import changes
from tests.support.faults.fax_world import GIVEN_UP, OURS, THERE, FaxWorld, Item, fated_fax
from tests.support.faults.stops import stops

NewFaxWorld = Callable[[], FaxWorld]
Settings = dict[str, Any]


def each_change_of_settings(
    new_fax_world: NewFaxWorld, before: Settings, after: Settings, *faxes: Item
) -> Iterator[tuple[FaxWorld, str]]:
    """Yield a world for each place at which the settings change, with these faxes in the queue."""

    def begun() -> FaxWorld:
        world = new_fax_world()
        world.changed |= before
        world.put(*faxes)
        return world

    return changes.each_change(begun, after)


FROM_THERE = {"from": GIVEN_UP}


def test_submitted_faxes_are_delivered_and_others_are_refused_after_their_sender_number_is_removed(
    new_fax_world: NewFaxWorld,
) -> None:
    before, after = {"fax_senders": [OURS, GIVEN_UP]}, {"fax_senders": [OURS]}
    faxes = (
        fated_fax("slow", **FROM_THERE),
        fated_fax("good"),
        fated_fax("lost-answer", THERE, **FROM_THERE),
    )
    for world, where in each_change_of_settings(new_fax_world, before, after, *faxes):
        submitted = [call.name for call in world.network.calls]
        assert len(set(submitted)) == len(submitted), where
        assert set(world.network.most_at_once().values()) == {1}, where
        assert not world.fifo.dead, where
        for each in faxes:
            name = each["fax_id"]
            error = world.found(name).get("error", {"message": ""})["message"]
            if name in submitted:
                assert (world.found(name)["status"], error) == ("delivered", ""), where
            else:
                assert error.startswith(NOT_OURS), where


def test_the_setting_recipients_only_suppresses_faxes_and_attempts_only_if_they_were_not_submitted(
    new_fax_world: NewFaxWorld,
) -> None:
    faxes = (
        fated_fax("slow"),
        fated_fax("good"),
        fated_fax("busy-once", THERE),
        fated_fax("lost-answer", THERE),
    )
    dialled = 0
    for world, where in each_change_of_settings(new_fax_world, {}, {"recipients_only": ["+999"]}, *faxes):
        submitted = {call.name for call in world.network.calls}
        assert set(world.network.delivered().values()) <= {1}, where
        assert set(world.network.most_at_once().values()) <= {1}, where
        assert not world.fifo.dead, where
        for each in faxes:
            found = world.found(each["fax_id"])
            ends = {"delivered", "suppressed"} if each["fax_id"] == "busy-once" else {"delivered"}
            assert found["status"] in (ends if each["fax_id"] in submitted else {"suppressed"}), where
            assert found.get("error", {}).get("code") in {None, "not_allowed_here"}, where
        dialled += len(submitted)
    assert dialled


def test_submitted_faxes_are_delivered_and_others_are_refused_after_their_callback_port_is_removed(
    new_fax_world: NewFaxWorld,
) -> None:
    before, after = {"callback_ports": [443, 8443]}, {"callback_ports": [443]}
    told = {"callback_url": "https://app.example:8443/fax"}
    faxes = (
        fated_fax("slow", **told),
        fated_fax("good"),
        fated_fax("busy-once", THERE, **told),
        fated_fax("lost-answer", THERE),
    )
    for world, where in each_change_of_settings(new_fax_world, before, after, *faxes):
        submitted = {call.name for call in world.network.calls}
        assert world.network.delivered() == dict.fromkeys(submitted, 1), where
        assert set(world.network.most_at_once().values()) == {1}, where
        assert not world.fifo.dead, where
        for each in faxes:
            found = world.found(each["fax_id"])
            if each["fax_id"] in submitted:
                assert found["status"] == "delivered", where
            else:
                assert found["error"]["message"].startswith("callback_url: has the port 8443"), where


SIGNALWIRE, TELNYX = {"fax_provider": "signalwire"}, {"fax_provider": "telnyx"}
MOVES = [
    pytest.param(SIGNALWIRE, TELNYX, id="another provider"),
    # The fax is polled in vain for as long as a fax may take: seldom, to keep the test short.
    pytest.param({"account": "ours", "poll_seconds": 300}, {"account": "our new one"}, id="another account"),
]


@pytest.mark.parametrize(("before", "after"), MOVES)
def test_a_fax_that_one_account_may_have_accepted_is_not_submitted_to_another_account(
    new_fax_world: NewFaxWorld, before: Settings, after: Settings
) -> None:
    faxes = (fated_fax("lost-answer"), fated_fax("slow", THERE), fated_fax("busy-once", THERE))
    for world, where in each_change_of_settings(new_fax_world, before, after, *faxes):
        assert set(world.network.delivered().values()) == {1}, where
        assert set(world.network.most_at_once().values()) == {1}, where
        waiting = {item_of(json.loads(letter.body))["id"] for letter in world.fifo.dead}
        for each in faxes:
            ended = world.found(each["fax_id"])
            if each["fax_id"] in waiting:
                assert (ended["status"], "provider_id" in ended) == ("sending", True), where
            elif ended["status"] == "failed":
                assert ended["error"]["code"] == "outcome_unknown", where
            else:
                assert ended["status"] == "delivered", where
        # After the return to the first provider, it reports the ends of its faxes.
        world.changed |= before
        world.fifo.redrive()
        world.settle()
        assert set(world.network.delivered().values()) == {1}, where
        assert not world.fifo.dead, where


@pytest.mark.parametrize("then", [TELNYX, SIGNALWIRE], ids=["and stays", "and back"])
def test_a_fax_with_a_lost_response_is_submitted_once_even_if_its_provider_changes_and_workers_die(
    new_fax_world: NewFaxWorld, then: Settings
) -> None:
    """SignalWire's response is lost; the stage moves to Telnyx, and the next worker crashes there, too."""

    def begin() -> FaxWorld:
        world = new_fax_world()
        world.put(fated_fax("lost-answer"))
        world.send_fax()
        assert len(world.network.calls) == 1
        world.changed |= TELNYX
        world.clock.now = world.fifo.next_visible() or 0
        return world

    for world, where in stops(begin, FaxWorld.send_fax, least=4):
        world.changed |= then
        world.settle()
        assert len(world.network.calls) == 1, where
        assert world.found("lost-answer")["status"] in {"delivered", "failed"}, where
