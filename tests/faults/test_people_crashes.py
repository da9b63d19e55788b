"""A change of a person's choices by the API, stopped at every outside call; then the request is repeated."""

import json
from http import HTTPStatus
from typing import Any

from mailroom.api.people import People
from mailroom.clock import iso
from mailroom.recipients.choices import Preferences, Suppressions
from tests.support.dynamodb import in_memory_client
from tests.support.faults.outside import Clock, Outside, Stopped
from tests.support.faults.stops import SIDES
from tests.support.tables import create_table
from tests.support.unit.unsubscribing import ADA


class ChoicesWorld:
    """The table of choices, with an opt-out of offers by one click."""

    def __init__(self) -> None:
        self.clock, self.outside, self.dynamodb = Clock(), Outside(), in_memory_client()
        create_table(self.dynamodb, "preferences", "recipient", "topic")
        self.preferences = Preferences(self.dynamodb, "preferences", self.clock)
        self.preferences.opt_out(ADA, "offers", "one-click")
        consent = {"state": "in", "at": iso(self.clock.now), "evidence": "asked"}
        self._body = json.dumps({"topics": {"news": {"state": "out"}, "offers": consent}})

    def change(self) -> int:
        """Send the request to a new process, and return the status."""
        client = self.outside.watch(self.dynamodb, "update_item", "get_paginator")
        nothing: Any = None
        people = People(
            Preferences(client, "preferences", self.clock),
            Suppressions(client, "unused", self.clock),
            {"news": {}, "offers": {}},
            nothing,
        )
        event = {"headers": {"content-type": "application/json"}, "body": self._body}
        return int(people.change(event, {"recipient": ADA}, "shop")["statusCode"])


def test_a_change_of_a_persons_choices_that_stops_at_any_call_and_is_repeated_has_its_full_effect() -> None:
    world = ChoicesWorld()
    assert world.change() == HTTPStatus.OK
    names, expected = [*world.outside.calls], world.preferences.choices(ADA)
    assert names == ["update_item", "update_item", "get_paginator"]
    for at in range(len(names)):
        for side in SIDES:
            world = ChoicesWorld()
            world.outside.stop = at, side
            try:
                world.change()
            except Stopped:
                world.outside.stop = None
            assert world.change() == HTTPStatus.OK
            assert world.preferences.choices(ADA) == expected
