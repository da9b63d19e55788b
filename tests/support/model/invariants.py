"""Invariants of each world, and of each step."""

from mailroom.message.outcome import rank
from tests.support.model.ledger import HALF, Call, Item
from tests.support.model.world import Channel, Step, World

ONCE = "never twice, but at `resend` after a crash between submit and record"
ONE_PROVIDER = "two providers never send the same attempt"
KEPT = "nothing is lost"
TRUE = "sent is what was accepted, cancelled what was not"
OPEN = "who gets a claim finds no outcome"
HELD = "a claim's holder alone writes"
SURE = "who is sure that nothing was sent is right"
FORWARD = "a status only moves forward"
COUNTED = "an attempt ends once, with its outcome"
SEEN = "a wait that cannot be released ends as it was read"
OLD = "what was cancelled never goes, also after it is resent"
ROWS = "an entry of the index has its mark"
TOLD = "what was accepted twice is known to be so"
JUDGED = "an operator's word is written where it is still right"
ENDS = ("complete", "fail", "suppress", "cancel_claimed", "settle", "cancel", "cancel_scheduled", "lose")


def broken_in(world: World, channel: Channel) -> str:
    """Return the promise that a world breaks, or an empty text."""
    item, accepted = world.item, world.accepted
    if broken := _broken_once(world, channel):
        return broken
    if any(
        each.phase == "ready" and each.holds and not each.doubt and accepted[each.attempt - 1]
        for each in world.workers
    ):
        return SURE
    waits = item is not None and item.mark and item.status == "scheduled"
    if not (item and item.completed) and not world.queue and not world.workers and not waits:
        return KEPT
    if item and item.status == "scheduled" and accepted[item.attempts]:
        return SURE
    if item and item.mark == HALF:
        return ROWS
    if item and item.completed:
        sent = rank(item.status) >= rank("sent")
        if (sent or item.status == "cancelled") and sent != bool(accepted[item.attempts - 1]):
            return TRUE
    return TOLD if item and _untold(item, accepted) else ""


def _broken_once(world: World, channel: Channel) -> str:
    """Return the promise about the number of acceptances that a world breaks."""
    tells = channel.looks_up or (channel.keyed and not world.day)
    doubtful = channel.on_unknown == "resend" and (not tells or channel.accounts > 1)
    for accounts, lost in zip(world.accepted, world.lost, strict=True):
        if len(accounts) > 1 + (lost if doubtful else 0):
            return ONCE
        if channel.fallback and len({*accounts}) > 1:
            return ONE_PROVIDER
    return ""


def _untold(item: Item, accepted: tuple[str, ...]) -> bool:
    """Return whether a provider accepted an attempt twice that is known to be accepted once."""
    return item.completed and len(accepted[item.attempts - 1]) > 1 and item.tried < 2


def broken_by(world: World, step: Step) -> str:
    """The promise that a step breaks."""
    call, before, after = step.call, world.item, step.after.item
    if step.after.accepted[: world.cancelled] != world.accepted[: world.cancelled]:
        return OLD
    return "" if call is None else _broken_by_call(world, step, call, before, after)


def _broken_by_call(world: World, step: Step, call: Call, before: Item | None, after: Item | None) -> str:
    if call.verb in ("claim", "claim_new"):
        if step.answer and step.answer.kind == "Claimed" and before and before.completed:
            return OPEN
    elif before != after and not _rightful(world, step):
        return HELD
    if before != after and not _right(world, call):
        return JUDGED
    if before is None or after is None or before == after:
        return ""
    waited = (before.status, before.mark) == ("scheduled", call.version)
    if call.verb in ("lose", "cancel_scheduled") and not waited:
        return SEEN
    return _broken_between(before, after, call)


def _rightful(world: World, step: Step) -> bool:
    """Return whether a claim's holder writes, or another caller while the message is not claimed, or a caller
    with better evidence."""
    if step.call and step.call.verb in ("hand_over", "drop", "move"):
        return True  # attributes of others do not change
    if isinstance(step.who, int) and step.call and step.call.verb != "hold":
        return world.workers[step.who].holds
    if step.who == "compose" and world.item and world.item.completed:
        return True  # an ended message is not claimed, even if a worker does not know of the end
    return step.who in ("provider", "operator") or not any(each.holds for each in world.workers)


def _right(world: World, call: Call) -> bool:
    """Return whether the values that an operator saw are still the same, as far as they matter."""
    item = world.item
    if call.verb == "restart" and any(world.accepted):
        return False
    if item is None or call.seen is None:
        return True
    same = (call.seen.attempts, call.seen.generation) == (item.attempts, item.generation)
    if call.verb == "reopen":
        return same and item.completed and item.status == call.seen.status
    if call.verb == "restart":
        return same and item.completed == call.seen.completed and item.status == call.seen.status
    unsent = call.word == "sent" or not world.accepted[item.attempts]
    return same and not item.completed and unsent and (item.submitted or item.started != "live")


def _broken_between(before: Item, after: Item, call: Call) -> str:
    ended = after.completed and not before.completed and call.verb in (*ENDS, "observe")
    again = call.verb == "retry_later" or (call.verb == "restart" and not before.completed)
    if after.attempts - before.attempts != int(ended or again):
        return COUNTED
    if call.verb in ("reopen", "restart") or (call.verb == "claim" and before.status == "retrying"):
        return ""
    if call.verb == "hold" and not before.completed:
        return ""
    moved = before.status != after.status
    if rank(after.status) < rank(before.status) or (moved and before.completed and call.verb != "observe"):
        return FORWARD
    return ""
