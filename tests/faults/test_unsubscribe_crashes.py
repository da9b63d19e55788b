"""Opting out and in again, stopped at every outside call; then the request is repeated."""

import pytest

from mailroom.recipients.choices import Preferences
from mailroom.unsubscribe.application import Unsubscribe
from mailroom.unsubscribe.page import FIELD, IN, PageSettings
from tests.faults.test_campaign_crashes import NewWorld
from tests.support.faults.campaign_world import CampaignWorld
from tests.support.faults.outside import Side, Stopped
from tests.support.unit.unsubscribing import ADA, ONE_CLICK, TOPIC, kept, links, posted_form, secrets_with_key

TOKEN = links().url(ADA, TOPIC).rpartition("/")[2]


def new_application(world: CampaignWorld) -> Unsubscribe:
    """Make the application of a new process."""
    client = world.outside.watch(world.preferences.client, "update_item", "get_item")
    secrets = world.outside.watch(secrets_with_key(), "get_secret_value")
    return Unsubscribe(
        Preferences(client, "preferences", world.clock), kept(secrets, world.clock), PageSettings()
    )


@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize(("body", "out"), [(ONE_CLICK, True), ({FIELD: IN}, False)])
def test_a_repeated_request_records_an_opt_out_or_opt_in_wherever_the_function_unsubscribe_stopped(
    new_campaign_world: NewWorld, side: Side, body: str | dict[str, str], *, out: bool
) -> None:
    stops = []
    for at in range(2):
        world = new_campaign_world()
        if not out:
            world.preferences.opt_out(ADA, TOPIC, "page")
        world.outside.stop = (at, side)
        with pytest.raises(Stopped):
            new_application(world).answer(posted_form(TOKEN, body))
        stops.append(world.outside.stopped_at)
        first = world.preferences.get(ADA, TOPIC)
        world.clock.now += 60
        assert new_application(world).answer(posted_form(TOKEN, body))["statusCode"] == 200
        found = world.preferences.get(ADA, TOPIC)
        assert (found is not None) == out, world.outside.stopped_at
        # A row that was written before the stop does not change.
        assert first is None or not out or found == first
    assert stops == [f"{side} get_secret_value", f"{side} update_item"]
