"""Choices that people make while a campaign runs."""

from functools import partial
from itertools import count

from msgspec.structs import replace

from mailroom.recipients.choices import By, Preferences
from tests.support.faults.campaign_world import address
from tests.support.faults.stop_world import StopWorld

PEOPLE = 6
WAYS: tuple[By, ...] = ("one-click", "page", "preferences", "api", "command", "console")


def opt_out(world: StopWorld, by: By) -> None:
    preferences = Preferences(world.dynamodb, "preferences", world.clock)
    for number in range(PEOPLE):
        preferences.opt_out(address(f"p{number}"), "news", by)


def test_a_sender_does_not_submit_a_batch_whose_choices_it_reads_after_the_recipients_opt_out() -> None:
    """A sender reads the choices of a batch right before it submits the batch. So only a batch that was read
    already is sent."""
    ends: set[int] = set()
    for at in count():
        world = StopWorld(PEOPLE)
        world.campaign.definition = replace(world.campaign.definition, topic="news")
        world.outside.intrude = (at, partial(opt_out, world, WAYS[at % len(WAYS)]))
        world.begin()
        world.play_on()
        calls = world.outside.calls
        if len(calls) <= at:
            break
        later = calls[at:]
        read_again = later.index("batch_get_item") if "batch_get_item" in later else len(later)
        assert "send_email" not in later[read_again:], (at, calls[at])
        ends.add(len(world.accepted_ids()))
    assert {0, PEOPLE} <= ends
