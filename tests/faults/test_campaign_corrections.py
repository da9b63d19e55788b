"""Operators' ways to correct a campaign: stop or pause, correct, deploy, start again."""

import json
from collections import Counter
from typing import Any

import pytest
from msgspec import structs

from mailroom.aws.dynamo_values import plain
from mailroom.campaigns.audience import Found, Page, Recipient
from mailroom.clock import iso
from mailroom.ledger.items import PAUSED, RUN_UNKNOWN
from mailroom.ledger.status_reader import of_ledger
from mailroom.message.message import CampaignStart, key_of
from tests.support.faults.campaign_world import AUDIENCE, COLLECT, RUN, CampaignWorld
from tests.support.faults.stop_world import StopWorld
from tests.support.faults.world import BULK

DAY = 86_400
FRESH = 6
"""Seconds after which each worker knows that a run was stopped or paused."""


def composed_world(people: int, per_day: int = 10**6, **attributes: Any) -> StopWorld:
    """Return a world whose run is collected and composed, with its messages in the lane's queue."""
    world = StopWorld(people, per_day)
    definition = world.campaign.definition
    world.campaign.definition = structs.replace(
        definition, attributes={**definition.attributes, **attributes}
    )
    world.campaign.rooms = {}
    world.begin()
    collect_and_compose(world.campaign, world)
    return world


def collect_and_compose(campaign: CampaignWorld, world: StopWorld) -> None:
    """Collect and compose the whole audience at this moment."""
    while campaign.queues.messages[COLLECT] or campaign.queues.messages[AUDIENCE]:
        campaign.deliver(COLLECT, 1)
        campaign.deliver(AUDIENCE)
        world.dispatch()


def correct(world: StopWorld, left_out: frozenset[str] = frozenset()) -> None:
    """Correct the first name of everybody, and take people out of the audience."""
    people = world.campaign.people
    real = people.page

    def page(page: Page) -> Found:
        found = real(page)
        corrected = [
            Recipient(person.key, {**person.attributes, "first_name": "Corrected"})
            for person in found.recipients
            if person.key not in left_out
        ]
        return Found(corrected, found.cursor, found.faults)

    people.page = page  # type: ignore[method-assign]


def send_all(world: StopWorld) -> None:
    """Let the lane receive each message of its queue once."""
    for _ in range(len(world.queues.messages[BULK]) // 10 + 1):
        world.deliver(BULK)


def pass_days(world: StopWorld, days: int) -> None:
    """Let days pass, with a round of `release` and a batch of the lane in each hour of the last day."""
    world.clock.now += (days - 1) * DAY
    for _ in range(24):
        world.clock.now += 3600
        world.release()
        send_all(world)


def count_contents(world: StopWorld) -> Counter[str]:
    """Return the number of accepted mails with the first and with the corrected content."""
    texts = [str(request["Content"]) for request in world.ses.accepted]
    return Counter("corrected" if "Corrected" in text else "first" for text in texts)


def persons(world: StopWorld) -> set[str]:
    return {request["Destination"]["ToAddresses"][0].partition("@")[0] for request in world.ses.accepted}


@pytest.mark.parametrize("act", ["stop", "pause"])
@pytest.mark.parametrize("received", [0, 1, 2])
def test_a_run_that_is_corrected_during_a_stop_or_pause_and_started_again_sends_only_new_content(
    act: str, received: int
) -> None:
    world = composed_world(35)
    getattr(world, act)()
    world.clock.now += FRESH
    for _ in range(received):
        world.deliver(BULK)
    correct(world)
    world.begin()
    world.play_on()
    assert count_contents(world) == {"corrected": 35}
    assert len(persons(world)) == 35


@pytest.mark.parametrize("where", ["queue", "window"])
def test_people_who_were_taken_out_of_the_audience_get_no_message_after_a_restart(where: str) -> None:
    hour = 3 + int(1_800_000_000 % DAY // 3600)
    window = {"from": f"{hour % 24:02}:00", "to": f"{(hour + 3) % 24:02}:00", "zone": "UTC"}
    attributes: dict[str, Any] = {"window": window} if where == "window" else {}
    world = composed_world(30, **attributes)
    if where == "window":
        send_all(world)
        assert world.parts()
    world.stop()
    world.deliver(BULK)
    correct(world, frozenset(f"p{number}" for number in range(15, 30)))
    world.begin()
    world.play_on()
    assert persons(world) == {f"p{number}" for number in range(15)}
    assert count_contents(world) == {"corrected": 15}


def test_a_redelivered_chunk_of_people_of_a_stopped_run_is_not_composed_after_the_runs_restart() -> None:
    world = StopWorld(3)
    world.begin()
    world.campaign.deliver(COLLECT, 1)
    assert world.campaign.queues.receive(AUDIENCE)  # by a composer that dies
    world.stop()
    correct(world)
    world.begin()
    world.campaign.deliver(COLLECT, 1)
    for message in world.campaign.queues.messages[AUDIENCE]:
        message.visible_at = world.clock.now
    world.campaign.deliver(AUDIENCE)
    world.dispatch()
    world.play_on()
    assert count_contents(world) == {"corrected": 3}
    assert world.campaign.run().conflicts == 0


@pytest.mark.parametrize("act", ["stop", "pause"])
def test_messages_of_a_stopped_or_paused_run_are_not_sent_after_the_last_campaign_is_removed(
    act: str,
) -> None:
    world = composed_world(30, per_day=20)  # 10 a day for bulk: the others wait for the day
    send_all(world)
    assert len(world.ses.accepted) == 10
    getattr(world, act)()
    world.clock.now += FRESH
    world.queues.messages[COLLECT].clear()  # the stack of the campaigns is deleted with its queues
    pass_days(world, 10)
    assert len(world.ses.accepted) == 10


@pytest.mark.parametrize("act", ["stop", "pause"])
def test_the_item_of_a_run_expires_after_its_messages_that_wait_for_their_send_at(act: str) -> None:
    at = 1_800_000_000 + 360 * DAY
    world = composed_world(4, send_at=iso(at))
    world.clock.now += 100 * DAY
    getattr(world, act)()
    (item,) = world.dynamodb.tables["runs"].items.values()
    assert float(item["ttl"]["N"]) > at + 300 * DAY
    pass_days(world, 400)
    assert not world.ses.accepted


@pytest.mark.parametrize("because", ["missing", "unreadable"])
def test_messages_whose_run_cannot_be_read_wait_with_a_reason_and_are_sent_later(
    because: str,
) -> None:
    world = composed_world(12)
    run = world.campaign.run()
    if because == "missing":
        (backup,) = world.dynamodb.tables["runs"].items.values()
        key = {"campaign": {"S": "weekly"}, "run": {"S": RUN}}
        world.dynamodb.delete_item(TableName="runs", Key=key)
    else:
        world.runs_table = "not-readable"
    send_all(world)
    waiting = [of_ledger(plain(item)) for item in world.dynamodb.tables["ledger"].items.values()]
    assert {status.waits_for for status in waiting} == {RUN_UNKNOWN}
    assert len(waiting) == 12
    world.play_on(3600)
    assert not world.ses.accepted
    if because == "missing":
        world.dynamodb.put_item(TableName="runs", Item={**backup, "paused": {"S": "restored"}})
        world.play_on(3600)
        assert not world.ses.accepted
        assert {
            of_ledger(plain(item)).waits_for for item in world.dynamodb.tables["ledger"].items.values()
        } == {PAUSED}
        world.resume()
    world.runs_table = "runs"
    assert world.campaign.run().valid_from == run.valid_from
    world.play_on()
    assert (len(world.ses.accepted), len(persons(world))) == (12, 12)


def test_the_cancellation_of_a_waiting_message_of_a_stopped_run_costs_at_most_a_fifth_of_a_call() -> None:
    world = composed_world(220)
    world.pause()
    world.clock.now += FRESH
    send_all(world)
    world.stop()
    world.clock.now += 60
    before = len(world.outside.calls)
    world.release()
    calls = Counter(world.outside.calls[before:])
    statuses = Counter(item["status"]["S"] for item in world.dynamodb.tables["ledger"].items.values())
    assert statuses == {"cancelled": 220}
    assert (calls["batch_get_item"], calls["transact_write_items"]) == (1, 3)
    assert calls.total() <= 0.2 * 220


def test_the_cancellation_of_a_queued_message_of_a_stopped_run_costs_at_most_a_fifth_of_a_call() -> None:
    world = composed_world(100)
    world.stop()
    before = len(world.outside.calls)
    send_all(world)
    assert len(world.outside.calls) - before <= 0.2 * 100
    statuses = Counter(item["status"]["S"] for item in world.dynamodb.tables["ledger"].items.values())
    assert statuses == {"cancelled": 100}


def statuses(world: StopWorld) -> Counter[str]:
    """Return the number of messages by status and code."""
    items = [plain(item) for item in world.dynamodb.tables["ledger"].items.values()]
    return Counter(
        " ".join((item["status"], item.get("error", {}).get("code", ""))).strip() for item in items
    )


def change_attributes(world: StopWorld, **attributes: Any) -> None:
    """Change attributes of the campaign's messages."""
    definition = world.campaign.definition
    changed = {**definition.attributes, **attributes}
    world.campaign.definition = structs.replace(definition, attributes=changed)


@pytest.mark.parametrize(
    "attributes",
    [{"callback_url": "http://127.0.0.1/"}, {"send_at": "2099-01-01T00:00:00Z"}, {"email": "nobody"}],
    ids=["callback", "too late", "address"],
)
@pytest.mark.parametrize("collected", [False, True])
def test_a_message_that_dispatch_refuses_after_its_run_was_started_again_ends_as_failed(
    attributes: dict[str, str], collected: bool
) -> None:
    world = StopWorld(3)
    world.campaign.rooms = {}
    world.begin()
    if collected:
        world.campaign.deliver(COLLECT, 1)
    world.stop()
    world.queues.messages[AUDIENCE].clear()
    change_attributes(world, **attributes)
    world.begin()
    collect_and_compose(world.campaign, world)
    world.play_on()
    assert statuses(world) == {"failed invalid": 3}


def test_a_scheduled_message_of_a_restarted_run_that_expires_while_release_is_down_ends_as_failed() -> None:
    world = StopWorld(3)
    world.begin()
    world.campaign.deliver(COLLECT, 1)
    world.stop()
    world.queues.messages[AUDIENCE].clear()
    change_attributes(world, send_at=iso(world.clock.now + 3600), expires_at=iso(world.clock.now + 7200))
    world.begin()
    collect_and_compose(world.campaign, world)
    assert statuses(world) == {"scheduled": 3}
    world.clock.now += 8000
    world.play_on()
    assert statuses(world) == {"failed invalid": 3}


def test_a_chunk_of_people_of_a_restarted_run_is_a_dead_letter_if_its_ledger_items_may_have_expired() -> None:
    world = composed_world(3)
    world.play_on()
    assert count_contents(world) == {"first": 3}
    world.clock.now += 59 * DAY
    world.begin()
    world.campaign.deliver(COLLECT, 1)
    world.clock.now += 32 * DAY
    world.dynamodb.tables["ledger"].items.clear()  # the items have expired
    world.play_on()
    assert (len(world.ses.accepted), len(world.queues.dead[AUDIENCE])) == (3, 1)


def test_a_copy_from_a_runs_earlier_start_does_not_cancel_the_resend_of_an_opted_out_message() -> None:
    world = composed_world(1)
    body = json.loads(world.queues.messages[BULK][0].body)
    key, run = key_of(body), world.campaign.run()
    world.stop()
    world.begin()
    world.campaign.deliver(COLLECT, 1)
    world.queues.messages[AUDIENCE].clear()
    start = CampaignStart(run.campaign, run.run, world.campaign.run().valid_from)
    assert world.ledger.leave_out(key, "p0@example.com", "news", "opted_out", "has opted out", start)
    attempt = world.ledger.reopen(key, world.ledger.items([key])[key])
    world.enqueue({**body, "attempt": attempt, "campaign_start": structs.asdict(start)}, url=BULK)
    world.clock.now += FRESH
    world.play_on()
    assert statuses(world) == {"sent": 1}


def test_a_restarted_run_sends_the_first_of_two_audience_entries_with_one_key_on_different_pages() -> None:
    world = composed_world(3)
    world.stop()
    world.campaign.definition = structs.replace(world.campaign.definition, page_size=1)

    def page(page: Page) -> Found:
        number = page.cursor or 0
        name = "Corrected" if number == 0 else "Second"
        person = Recipient("p0", {"email": "p0@example.com", "first_name": name, "last_name": "L"})
        return Found([person], None if number else 1, [])

    world.campaign.people.page = page  # type: ignore[method-assign]
    world.begin()
    collect_and_compose(world.campaign, world)
    world.play_on()
    assert (count_contents(world), world.campaign.run().conflicts) == ({"corrected": 1}, 1)


def test_release_ends_the_waits_of_a_runs_earlier_start_even_if_the_lanes_queue_is_long() -> None:
    world = composed_world(150)
    world.pause()
    world.clock.now += FRESH
    send_all(world)
    assert statuses(world) == {"scheduled": 150}
    world.begin()
    collect_and_compose(world.campaign, world)
    world.queues.messages[BULK] *= 100  # the lane has work for more than two minutes
    world.clock.now += 60
    world.round("line#mail")
    assert not any("waits_in" in item for item in world.dynamodb.tables["ledger"].items.values())
