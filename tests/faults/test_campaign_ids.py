"""The ids of a run's messages: the same at each start of the run, and unknown to everybody else."""

from collections.abc import Callable

import pytest

from mailroom.aws.dynamo_values import image_of
from tests.support.faults.campaign_world import AUDIENCE, COLLECT, RUN, CampaignWorld, address

NewWorld = Callable[..., CampaignWorld]


def ids_in_mailbox(world: CampaignWorld) -> set[str]:
    return {each["id"]["S"] for each in world.dynamodb.scan(TableName="mailbox")["Items"]}


def take(world: CampaignWorld, id_: str) -> None:
    """Put another message under an id, as a caller of the API may who may only send."""
    item = {"id": id_, "event_type": "mail", "to": "eve@example.com", "subject": "x", "text": "x"}
    world.dynamodb.put_item(TableName="mailbox", Item=image_of(item))


def test_a_caller_who_has_the_names_and_some_message_ids_of_a_run_cannot_guess_other_ids(
    new_campaign_world: NewWorld,
) -> None:
    world = new_campaign_world()
    for person in world.everybody():
        take(world, f"weekly#{RUN}#{person}")
    world.start()
    world.deliver(COLLECT, 1)
    world.deliver(AUDIENCE, 1)
    known = ids_in_mailbox(world) - {f"weekly#{RUN}#{person}" for person in world.everybody()}
    assert len(known) == 3
    for id_ in known:
        *_, key, proof = id_.split("#")
        for person in world.everybody() - {key}:
            take(world, f"weekly#{RUN}#{person}#{proof}")
    world.settle()
    assert (world.run().composed, world.run().existed, world.run().conflicts) == (10, 0, 0)
    recipients = {world.item_of(person)["email"] for person in world.everybody()}
    assert recipients == {address(person) for person in world.everybody()}


def test_each_start_of_a_run_gives_a_persons_message_the_same_id_with_campaign_and_run(
    new_campaign_world: NewWorld,
) -> None:
    world = new_campaign_world()
    world.start()
    world.settle()
    before = ids_in_mailbox(world)
    world.start(start="again")
    world.settle()
    assert ids_in_mailbox(world) == before
    assert all(id_.startswith(f"weekly#{RUN}#") for id_ in before)
    assert (world.run().composed, world.run().existed, world.run().conflicts) == (10, 10, 0)


def test_a_deleted_run_shares_no_message_id_with_the_next_run_of_the_same_name(
    new_campaign_world: NewWorld,
) -> None:
    world = new_campaign_world()
    world.start()
    world.settle()
    before = ids_in_mailbox(world)
    world.dynamodb.delete_item(TableName="runs", Key=image_of({"campaign": "weekly", "run": RUN}))
    world.start(start="next")
    world.settle()
    assert len(ids_in_mailbox(world) - before) == len(before) == 10


@pytest.mark.parametrize("puts_at_once", [1, 4])
def test_a_run_keeps_a_foreign_message_that_has_one_of_its_message_ids_and_counts_a_conflict(
    new_campaign_world: NewWorld, caplog: pytest.LogCaptureFixture, puts_at_once: int
) -> None:
    world = new_campaign_world(puts_at_once=puts_at_once)
    world.start()
    world.deliver(COLLECT, 1)
    take(world, world.run().id_of("p2"))
    world.settle()
    run = world.run()
    assert (run.composed, run.conflicts, run.existed, run.failed) == (9, 1, 0, 0)
    assert world.item_of("p2")["to"] == "eve@example.com"  # an existing message keeps its id
    assert "another message" in caplog.text
    assert world.dead() == 0  # no time would mend it


def test_people_of_a_deleted_run_do_not_get_messages_and_their_chunks_are_dead_letters_in_a_minute(
    new_campaign_world: NewWorld,
) -> None:
    world = new_campaign_world()
    world.start()
    world.deliver(COLLECT, 1)
    world.dynamodb.delete_item(TableName="runs", Key=image_of({"campaign": "weekly", "run": RUN}))
    began = world.clock()
    while world.queues.messages[AUDIENCE]:
        world.clock.now += 1
        world.deliver(AUDIENCE)
    assert world.clock() - began < 60
    assert world.mailbox() == {}
    assert len(world.queues.dead[AUDIENCE]) == 2


def test_message_ids_and_queue_messages_do_not_contain_the_secret_of_a_run(
    new_campaign_world: NewWorld,
) -> None:
    world = new_campaign_world()
    world.start()
    world.deliver(COLLECT, 1)
    secret = world.run().id_secret
    bodies = [each.body for queue in world.queues.messages.values() for each in queue]
    world.settle()
    assert len(secret) == 32
    assert not [text for text in (*bodies, *ids_in_mailbox(world)) if secret in text]
