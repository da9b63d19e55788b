"""The model's calls, made on the real ledger, and what the real item is in the model's words."""

import itertools
from typing import Any, Literal, cast

from mailroom.aws.dynamo_values import plain
from mailroom.errors import ClaimLost
from mailroom.ledger.claims import Claimed, Try
from mailroom.ledger.ledger import Ledger, NewClaim
from mailroom.ledger.observer import observe
from mailroom.ledger.waits import OUTSIDE_WINDOW, Wait, WaitingRow, Waits
from mailroom.message.message import CampaignStart
from mailroom.message.outcome import Status
from tests.support.dynamodb import in_memory_client
from tests.support.model.ledger import DONE, HALF, LOST, MOST_TRIES, NOT_CERTAIN, Call, Item, VerbAnswer
from tests.support.tables import create_table
from tests.support.told import ses_event
from tests.support.unit.shared import KEY, LEASE, LEDGER, TTL, FakeClock, image, mail

Found = dict[str, Any]
START = CampaignStart("weekly", "r", 1)
_WHERE = image(id=KEY.id, event_type=KEY.event_type)


class Replay:
    """A message in a real ledger. Each call takes a millisecond."""

    def __init__(self) -> None:
        self._clock = FakeClock()
        self._client = in_memory_client()
        create_table(self._client, LEDGER)
        tokens = (f"token-{number}" for number in itertools.count())
        self._ledger = Ledger(
            self._client, LEDGER, lease=LEASE, ttl=TTL, clock=self._clock, new_token=lambda: next(tokens)
        )

        self._waits = Waits(self._client, LEDGER, TTL, self._clock)

    def begin(self, item: Item | None) -> None:
        """Create an empty ledger, or a message that waits for its time."""
        self._client.delete_item(TableName=LEDGER, Key=_WHERE)
        if item is not None:
            self._waited(Call("hold", attempt=1, version=1))

    def snapshot(self) -> tuple[float, Found | None]:
        """The time, and what stands in the ledger."""
        return self._clock.now, self._client.get_item(TableName=LEDGER, Key=_WHERE).get("Item")

    def restore(self, snapshot: tuple[float, Found | None]) -> None:
        """Time and ledger are again what they were."""
        self._clock.now, stood = snapshot
        self._client.delete_item(TableName=LEDGER, Key=_WHERE)
        if stood is not None:
            self._client.put_item(TableName=LEDGER, Item=stood)

    def item(self) -> Item | None:
        """Return the ledger's item in the form of the model."""
        found = self._found()
        if not found:
            return None
        started = found.get("startedAt")
        since = min((int(began) for began, _ in _tries(found)), default=None)
        live = started is not None and started + LEASE * 1000 > self._clock.now * 1000
        return Item(
            cast(Status, found["status"]),
            "" if started is None else "live" if live else "over",
            "" if since is None else "own" if since == started else "earlier",
            "completedAt" in found,
            found.get("attempts", 0),
            "provider_id" in found,
            "claim_token" in found,
            _joined(account for began, account in _tries(found) if began != str(started)),
            _joined(account for began, account in _tries(found) if began == str(started)),
            found.get("generation", 0),
            _mark(found),
            min(MOST_TRIES, len(_tries(found))),
            min(_tries(found), default=["", ""])[1],
        )

    def call(self, call: Call) -> VerbAnswer:
        """Make one of the model's calls. The answer, in the model's words."""
        self._clock.advance(0.001)
        match call.verb:
            case "claim" | "claim_new":
                return self._claim(call)
            case "observe":
                event = ses_event(KEY, cast(Status, call.word), attempt=call.attempt)
                return VerbAnswer(type(observe(self._ledger, [event])).__name__)
            case "lease_ends":
                self._clock.advance(LEASE)
                return DONE
            case "hold" | "hand_over" | "drop" | "move" | "lose":
                return VerbAnswer(str(self._waited(call)))
            case "cancel" | "cancel_scheduled" | "refuse" | "reopen" | "restart" | "settle":
                return VerbAnswer(str(self._decided(call)))
        return self._own(call)

    def _claim(self, call: Call) -> VerbAnswer:
        token = self._found()["claim_token"] if call.own else self._ledger.new_token()
        wanted = NewClaim(mail(attempt=call.attempt), call.word, None, token)
        if call.verb == "claim":
            claim = self._ledger.claim(*wanted)
        else:
            (new,) = self._ledger.claim_new([wanted])
            if not isinstance(new, Claimed):
                return NOT_CERTAIN
            claim = new
        if not isinstance(claim, Claimed):
            return VerbAnswer(type(claim).__name__)
        since, submitted = bool(claim.unsettled), claim.checkpoint is not None
        first = claim.unsettled[0].account if claim.unsettled else ""
        return VerbAnswer("Claimed", since, submitted, _joined(claim.accounts), first)

    def _own(self, call: Call) -> VerbAnswer:
        found = self._found()
        token = found["claim_token"] if call.own else "another"
        tries = [Try(int(began), account) for began, account in _tries(found)]
        earlier = tuple(each for each in tries if each.began != found.get("startedAt"))
        claim = Claimed(KEY, token, unsettled=earlier if call.doubt else (), settled=not call.doubt)
        arguments: dict[str, tuple[Any, ...]] = {
            "checkpoint": ("fake", "p-1"),
            "complete": ("fake", "p-1"),
            "fail": ("rejected", "no"),
            "suppress": ("suppressed", "no"),
            "cancel_claimed": ("stopped", "no", {}),
            "retry_later": ("busy", "no"),
        }
        try:
            getattr(self._ledger, call.verb)(claim, *arguments.get(call.verb, ()))
        except ClaimLost:
            return LOST
        return DONE

    def _waited(self, call: Call) -> bool:
        version, now = f"v{call.version}", self._clock.now
        if call.verb == "hold":
            message = mail(attempt=call.attempt)
            new = call.attempt == 1 and not call.own
            (held,) = self._waits.hold([Wait(message, OUTSIDE_WINDOW, now + 3600, version, new=new)])
            return held
        if call.verb == "lose":
            return self._ledger.lose(KEY, version, "its content is gone")
        waits = call.verb != "drop"
        of_wait = (KEY, version, "normal", OUTSIDE_WINDOW, int(now), int(now), 1, None)
        row = WaitingRow(*of_wait, lines_up=False, start=None, expires=None, waits=waits)
        return self._waits.move(row, now + 60) if call.verb == "move" else self._waits.hand_over(row)

    def _decided(self, call: Call) -> bool:
        match call.verb:
            case "cancel":
                return self._ledger.cancel(KEY)
            case "cancel_scheduled":
                return self._ledger.cancel(KEY, "taken back", since=0, version=f"v{call.version}")
            case "refuse":
                return self._ledger.refuse({"id": KEY.id, "event_type": KEY.event_type}, "invalid", "no")
            case "restart":
                return self._ledger.restart(KEY, _snapshot(call.seen), START) is not None
        assert call.seen is not None
        seen = {**call.seen._asdict(), **self._seen_ids(call, call.seen)}
        if call.verb == "reopen":
            return self._ledger.reopen(KEY, seen) is not None
        before = self._clock.now - (0 if call.seen.submitted else LEASE)
        if call.seen.started == "live" and not call.seen.submitted:
            # The claim was made before the lease was over.
            before = self._found().get("startedAt", 0) / 1000 - 1
        return self._ledger.settle(KEY, seen, cast(Literal["sent", "failed"], call.word), before)

    def _seen_ids(self, call: Call, seen: Item) -> Found:
        """The provider's id and the token that an operator saw: those that stand there, or others."""
        found = self._found()
        ids: Found = {"provider_id": found.get("provider_id", "p-0")} if seen.submitted else {}
        if not call.own:
            return {**ids, "claim_token": "another"}
        return {**ids, **{name: found[name] for name in ("claim_token",) if name in found}}

    def _found(self) -> Found:
        return plain(self._client.get_item(TableName=LEDGER, Key=_WHERE).get("Item", {}))


def _snapshot(seen: Item | None) -> Found:
    """The item that `compose` has read."""
    if seen is None:
        return {}
    ended = {"completedAt": 1} if seen.completed else {}
    return {"status": seen.status, "attempts": seen.attempts, "generation": seen.generation, **ended}


def _mark(found: Found) -> int:
    if "wait" in found:
        return int(found["wait"]["version"][1:])
    return HALF if "waits_in" in found else 0


def _tries(found: Found) -> list[list[str]]:
    return [each.split(" ", 1) for each in found.get("unsettled_tries", ())]


def _joined(accounts: Any) -> str:
    return "".join(sorted({*accounts}))
