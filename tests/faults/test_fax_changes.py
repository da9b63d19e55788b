"""Settings that change while faxes are under way: at every outside call of any function, and in a crash."""

from collections.abc import Callable, Iterator
from typing import Any

from tests.faults.fax_world import GIVEN_UP, OURS, THERE, FaxWorld, Item, fax
from tests.faults.outside import Side
from tests.faults.test_fax_crashes import NOT_OURS

NewFaxWorld = Callable[[], FaxWorld]
Settings = dict[str, Any]


def changed(
    new_fax_world: NewFaxWorld, before: Settings, after: Settings, *faxes: Item
) -> Iterator[tuple[FaxWorld, str]]:
    """A world for each outside call at which the settings change: there the function goes on, or stops before
    the call, or after it. Whoever starts after that has the new settings."""

    def begun() -> FaxWorld:
        world = new_fax_world()
        world.changed |= before
        world.put(*faxes)
        return world

    whole = begun()
    whole.settle()
    sides: tuple[Side | None, ...] = (None, "before", "after")
    for at in range(len(whole.outside.calls)):
        for side in sides:
            world = begun()
            world.outside.intrude = (at, lambda world=world: world.changed.update(after))
            world.outside.stop = side and (at, side)
            world.settle()
            yield world, f"{side} {whole.outside.calls[at]} ({at})"


FROM_THERE = {"from": GIVEN_UP}


def test_a_number_of_ours_that_is_given_up_strands_no_fax_that_was_submitted_from_it(
    new_fax_world: NewFaxWorld,
) -> None:
    before, after = {"fax_senders": [OURS, GIVEN_UP]}, {"fax_senders": [OURS]}
    faxes = (fax("slow", **FROM_THERE), fax("good"), fax("lost-answer", THERE, **FROM_THERE))
    for world, where in changed(new_fax_world, before, after, *faxes):
        submitted = [call.name for call in world.network.calls]
        assert len(set(submitted)) == len(submitted), where
        assert set(world.network.most_at_once().values()) == {1}, where
        assert not world.fifo.dead, where
        for each in faxes:
            name = each["fax_id"]
            error = world.found(name).get("error", {"message": ""})["message"]
            if name in submitted:
                assert (world.found(name)["status"], error) == ("sent", ""), where
            else:
                assert error.startswith(NOT_OURS), where


def test_a_callbacks_port_that_is_shut_stops_no_fax_that_was_submitted(new_fax_world: NewFaxWorld) -> None:
    before, after = {"callback_ports": [443, 8443]}, {"callback_ports": [443]}
    told = {"callback_url": "https://app.example:8443/fax"}
    faxes = (fax("slow", **told), fax("good"), fax("busy-once", THERE, **told), fax("lost-answer", THERE))
    for world, where in changed(new_fax_world, before, after, *faxes):
        submitted = {call.name for call in world.network.calls}
        assert world.network.delivered() == dict.fromkeys(submitted, 1), where
        assert set(world.network.most_at_once().values()) == {1}, where
        assert not world.fifo.dead, where
        for each in faxes:
            found = world.found(each["fax_id"])
            if each["fax_id"] in submitted:
                assert found["status"] == "sent", where
            else:
                assert found["error"]["message"].startswith("callback_url: has the port 8443"), where
