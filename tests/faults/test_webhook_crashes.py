"""send_webhook, stopped before and after every outside call: no webhook is lost, each can be verified, and a
repeat has the same id."""

from tests.support.faults.stops import stops
from tests.support.faults.webhook_world import WEBHOOKS, WebhookWorld

CALLBACKS = ("ok-callback", "flaky-callback", "lost-callback", "gone-callback")
MESSAGES = ("ok-message", "flaky-message", "lost-message", "gone-message")


def begin() -> WebhookWorld:
    """Make a world with all webhooks in the queue."""
    world = WebhookWorld()
    put_webhooks(world)
    return world


def put_webhooks(world: WebhookWorld) -> None:
    for name in CALLBACKS:
        world.callback(name)
    for name in MESSAGES:
        world.message(name)


def check_receivers(world: WebhookWorld, where: str) -> None:
    """Check what holds after any stop."""
    taken = {str(bodies[0]): bodies for bodies in world.receivers.taken.values()}
    wanted = [str({"fax_id": name}) for name in CALLBACKS if not name.startswith("gone")]
    wanted += [str({"name": name}) for name in MESSAGES if not name.startswith("gone")]
    assert sorted(taken) == sorted(wanted), where
    # A repeat has the id of the first, so a receiver that drops those has each once.
    assert len(world.receivers.taken) == len(wanted), where
    assert all(len({str(body) for body in bodies}) == 1 for bodies in taken.values()), where
    assert world.receivers.forged == 0, where
    assert not world.queues.dead[WEBHOOKS], where
    for name in MESSAGES:
        status = "failed" if name.startswith("gone") else "sent"
        assert world.found(name, "webhook")["status"] == status, where
    for name in CALLBACKS:
        noted = world.found(name, "fax")["callbacks"]["sent.0"]["status"]
        assert noted == ("failed" if name.startswith("gone") else "delivered"), where


def test_no_webhook_is_lost_and_each_webhook_has_a_valid_signature_wherever_the_sender_stops() -> None:
    undisturbed = begin()
    undisturbed.settle()
    check_receivers(undisturbed, "undisturbed")
    for world, where in stops(begin, WebhookWorld.settle, least=31):
        check_receivers(world, where)


def test_webhooks_to_a_failing_endpoint_become_dead_letters_and_other_webhooks_are_delivered() -> None:
    world = WebhookWorld()
    world.callback("dead-callback")
    world.message("dead-message")
    put_webhooks(world)
    world.settle()
    assert [each.receives for each in world.queues.dead[WEBHOOKS]] == [4, 4]
    assert world.found("dead-callback", "fax")["callbacks"]["sent.0"]["status"] == "failed"
    assert "completedAt" not in world.found("dead-message", "webhook")
    world.queues.dead.clear()
    check_receivers(world, "beside a dead endpoint")
