"""A message among workers, a queue, a provider and an operator: every step that one of them may take next."""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from mailroom.message.outcome import Status
from tests.support.model.ledger import Call, Item, Kind, LedgerModel, VerbAnswer

EVENTS: tuple[Status, ...] = ("sent", "delivered", "bounced")
ATTEMPTS = 2
DIES, RELEASE = "dies", "release"
Phase = Literal[
    "claim",
    "insert",
    "uncertain",
    "ask",
    "doubt",
    "ready",
    "complete",
    "checkpoint",
    "follow",
    "fail",
    "suppress",
    "cancel_claimed",
    "release",
    "hand_back",
    "retry_later",
    "let_go",
    "pass_on",
    "hold",
]
FIRST, FALLBACK = "1", "2"
"""Accounts of a channel with two providers."""
AT_FALLBACK = 10
"""Added to the attempt of a copy in the fallback's queue."""


class Channel(NamedTuple):
    """A channel's settings, and how much may happen to its message: the bounds of an exploration."""

    name: str
    on_unknown: Literal["resend", "hold"] = "resend"
    together: bool = False
    looks_up: bool = False
    fax: bool = False
    accounts: int = 1
    workers: int = 3
    crashes: int = 2
    operator: Literal["", "reopen", "settle", "restart"] = ""
    operators: int = 1
    producer: bool = False
    holds: int = 0
    """How often the message may have to wait. With `scheduled`, it waits already."""
    scheduled: bool = False
    stale: int = 1
    """How often `release` may read an entry of the index that is not there any more."""
    keyed: bool = False
    """The provider knows a request by its key for a day, and answers the identical one as the first."""
    fallback: bool = False
    """Whether there is a second provider, with a queue of its own."""


class Worker(NamedTuple):
    """A worker with a copy of the message, for `attempt`. `phase` is its next step. `own`: its token is the
    token of the item. `holds` is the same by the history, and no step of a worker depends on it. `doubt`: an
    earlier try may have been accepted. `repeats`: it makes that try's request again. `settled`: all tries can
    have sent the message only once. `version`: the wait that it makes."""

    attempt: int
    phase: Phase
    account: str
    own: bool = False
    holds: bool = False
    doubt: bool = False
    repeats: bool = False
    settled: bool = False
    version: int = 0


class World(NamedTuple):
    """State of all parts. `queue` has the attempt of each copy that waits there or in the dead-letter queue.
    Copies in the fallback's queue have AT_FALLBACK more. `accepted` has the accounts by which the provider
    took each attempt, `lost` how often a worker died between that and its record. `orders` is how many
    operators are yet to come.

    `keys` has the requests that the provider knows by the key of each attempt, as `1a`: at account 1, made of
    a. `altered`: they are made of b now. `day`: a day has passed, and `aged`: the item's first unsettled try
    was before that. `waits` has the attempt of each wait that was begun, by its version, and `contents` the
    versions whose content is there. `sent` is the version that `release` has sent, and whose mark it has not
    removed yet. `stale` is how many old entries of the index may still be read. `cancelled`: so many attempts
    must never go.
    """

    item: Item | None
    queue: tuple[int, ...]
    workers: tuple[Worker, ...] = ()
    accepted: tuple[str, ...] = ("",) * ATTEMPTS
    lost: tuple[int, ...] = (0,) * ATTEMPTS
    account: str = "1"
    crashes: int = 0
    operators: tuple[Call, ...] = ()
    orders: int = 0
    keys: tuple[str, ...] = ("",) * ATTEMPTS
    altered: bool = False
    day: bool = False
    aged: bool = False
    waits: tuple[int, ...] = ()
    contents: tuple[int, ...] = ()
    sent: tuple[int, ...] = ()
    stale: int = 0
    cancelled: int = 0


class Step(NamedTuple):
    """A step: the actor, its action, and the world after it, which has None in place of a worker that ended;
    and the call of the ledger with its answer, if the step made one."""

    who: int | str
    does: str
    after: World
    call: Call | None = None
    answer: VerbAnswer | None = None

    @property
    def of_workers(self) -> bool:
        """Return whether the step happens without a person, sooner or later: a worker or `release` works, or
        time passes."""
        return self.who == "time" or (
            (isinstance(self.who, int) or self.who == RELEASE) and self.does != DIES
        )


def first(channel: Channel) -> World:
    """Return the first world: two copies of the message in its queue, or one of a message that may have to
    wait."""
    orders = channel.operators if channel.operator else 0
    copies = (1,) if channel.holds else (1, 1)
    world = World(None, copies, crashes=channel.crashes, orders=orders, stale=channel.stale)
    if not channel.scheduled:
        return world
    return world._replace(item=Item("scheduled", mark=1), queue=(1,), waits=(1,), contents=(1,))


class Steps:
    """Every next step of a world."""

    def __init__(self, channel: Channel, model: LedgerModel) -> None:
        self._channel = channel
        self._model = model
        self._restarts = channel.operator == "restart"

    def of(self, world: World) -> Iterator[Step]:
        """Yield all steps from a world."""
        yield from self._received(world)
        for at, worker in enumerate(world.workers):
            yield from self._worked(world, at, worker)
            if world.crashes:
                yield self._crashed(world, at, worker)
        yield from self._time(world)
        yield from self._of_keys(world)
        yield from self._events(world)
        yield from self._operated(world)
        yield from self._produced(world)
        if self._channel.holds:
            yield from self._released(world)
        if int(world.account) < self._channel.accounts:
            yield Step(
                "settings", "name another account", world._replace(account=str(int(world.account) + 1))
            )

    def _received(self, world: World) -> Iterator[Step]:
        """Let a worker take a copy, and claim: no other step that matters can come in between."""
        if len(world.workers) == self._channel.workers:
            return
        for copy in sorted({*world.queue}):
            queue = list(world.queue)
            queue.remove(copy)
            attempt = copy % AT_FALLBACK
            phase: Phase = "insert" if self._channel.together and attempt == 1 else "claim"
            account = FALLBACK if copy > AT_FALLBACK else world.account
            worker = Worker(attempt, phase, account)
            taken = world._replace(queue=tuple(queue), workers=(*world.workers, worker))
            yield from self._worked(taken, len(world.workers), worker)
            if len(world.waits) < self._channel.holds:
                yield from self._holds(_waiting(taken, len(world.workers)), len(world.workers))

    def _worked(self, world: World, at: int, worker: Worker) -> Iterator[Step]:
        match worker.phase:
            case "claim" | "uncertain":
                yield from self._claims(world, at, worker)
            case "insert":
                yield from self._inserts(world, at, worker)
            case "hold":
                yield from self._holds(world, at)
            case "ask" | "doubt":
                yield self._asks(world, at, worker)
            case "ready":
                yield from self._submits(world, at, worker)
            case "follow":
                for phase in self._ends_of_a_fax(worker):
                    yield from self._records(world, at, worker._replace(phase=phase))
            case _:
                yield from self._records(world, at, worker)

    def _claims(self, world: World, at: int, worker: Worker) -> Iterator[Step]:
        call = Call("claim", worker.own, worker.attempt, self._tried_at(worker))
        after, answer = self._called(world, at, call)
        if answer.kind in ("Completed", "Superseded"):
            yield Step(at, f"claims: {answer.kind}, drops the copy", _without(after, at), call, answer)
        elif answer.kind != "Claimed":
            yield Step(at, f"claims: {answer.kind}, the copy goes back", self._back(after, at), call, answer)
        else:
            yield Step(at, "claims, and the answer is lost", _now(after, at, "claim"), call, answer)
            phase = self._begins(worker, answer)
            one = phase in ("follow", "complete") and len(answer.tries) == 1
            begun = _now(after, at, phase, phase == "pass_on", settled=one)
            yield Step(at, "claims: Claimed", begun, call, answer)
        if worker.phase == "uncertain":  # no time is left: what may be a claim is given back
            yield from self._records(world, at, worker._replace(phase="release"))

    def _inserts(self, world: World, at: int, worker: Worker) -> Iterator[Step]:
        yield Step(at, "claims with others: the ledger is too busy", _now(world, at, "uncertain"))
        call = Call("claim_new", attempt=1, word=self._tried_at(worker))
        after, answer = self._called(world, at, call)
        yield Step(at, "claims with others: nothing is certain", _now(after, at, "uncertain"), call, answer)
        if answer.kind == "Claimed" or not self._model.has("deliver: what is not certain is claimed alone"):
            yield Step(at, "claims with others: Claimed", _now(after, at, "ready"), call, answer)

    def _holds(self, world: World, at: int) -> Iterator[Step]:
        """The content is there already. Whoever has had a claim does not claim again."""
        worker = world.workers[at]
        call = Call("hold", attempt=worker.attempt, version=worker.version)
        after, answer = self._called(world, at, call)
        repeats = not self._model.has("deliver: a hold is not repeated")
        lost = after if repeats else self._back(after, at)
        yield Step(at, "hold: the answer is lost", lost, call, answer)
        if answer.kind == "True":
            yield Step(at, "hold: True, the copy is deleted", _without(after, at), call, answer)
            return
        after = _without_content(after, worker.version)
        if worker.own:
            yield Step(at, "hold: False, the copy goes back", self._back(after, at), call, answer)
        else:
            yield Step(at, "hold: False, goes on to its claim", _now(after, at, "claim"), call, answer)

    def _begins(self, worker: Worker, answer: VerbAnswer) -> Phase:
        """Return a worker's phase after its claim."""
        model = self._model
        if self._of_other(worker, answer) and model.has("deliver: a try in doubt keeps its provider"):
            return "pass_on"
        if answer.submitted and model.has("deliver: what was submitted is followed"):
            return "follow" if self._channel.fax else "complete"
        if not answer.since or not model.has("deliver: evidence is asked for"):
            return "ready"
        # A later try at the other provider is a claim that was never submitted.
        one = answer.tries == self._tried_at(worker) or self._channel.fallback
        return "ask" if one or not model.has("deliver: not found counts where all was tried") else "doubt"

    def _of_other(self, worker: Worker, answer: VerbAnswer) -> bool:
        """Return whether the oldest try of unknown outcome was made at the other provider."""
        if not (self._channel.fallback and answer.since):
            return False
        if self._model.has("deliver: the oldest try in doubt decides"):
            return answer.first != worker.account
        return answer.tries != worker.account

    def _asks(self, world: World, at: int, worker: Worker) -> Step:
        """Look for evidence at the worker's own account; without evidence, `on_unknown` decides."""
        if self._channel.looks_up:
            if worker.account in world.accepted[worker.attempt - 1]:
                after = _now(world, at, self._taken(), settled=worker.phase == "ask")
                return Step(at, "finds that it was accepted", after)
            if worker.phase == "ask":
                return Step(at, "finds that nothing was submitted", _now(world, at, "ready", settled=True))
        if self._channel.keyed and worker.phase == "ask" and not self._forgotten(world):
            return Step(
                at,
                "has to make the same request again",
                _now(world, at, "ready", True, repeats=True, settled=True),
            )
        if self._channel.on_unknown == "hold" and self._model.has("deliver: `hold` gives up"):
            return Step(at, "cannot know, and gives up", _now(world, at, "fail", doubt=True))
        return Step(at, "cannot know, and submits again", _now(world, at, "ready", doubt=True))

    def _forgotten(self, world: World) -> bool:
        return world.aged and self._model.has("deliver: a request is repeated until its key is forgotten")

    def _known(self, world: World, worker: Worker) -> str:
        """Return the content of the request that the provider knows by this key, or an empty text."""
        has = self._model.has("deliver: a request that is repeated has the same key")
        _, there, rest = world.keys[worker.attempt - 1].partition(worker.account)
        return rest[:1] if there and (has or not worker.repeats) else ""

    def _submits(self, world: World, at: int, worker: Worker) -> Iterator[Step]:
        """Submit, or find that the worker may not, or get a refusal, or the response to the first request
        with the key."""
        made = "b" if world.altered else "a"
        known = self._known(world, worker) if self._channel.keyed else ""
        if known == made:
            does = f"submits attempt {worker.attempt}: answered as the first"
            yield Step(at, does, _now(world, at, self._taken()))
            return
        if known and self._model.has("deliver: a refusal of another request is held"):
            yield from self._records(world, at, worker._replace(phase="fail"))
            return
        accepted = list(world.accepted)
        accepted[worker.attempt - 1] += worker.account
        taken = _keyed(world, worker, made) if self._channel.keyed else world
        after = _now(taken, at, self._taken())._replace(accepted=tuple(accepted))
        yield Step(at, f"submits attempt {worker.attempt}: accepted", after)
        if not worker.doubt and len(world.waits) < self._channel.holds:
            yield from self._records(world, at, worker._replace(phase="let_go"))
        if self._moves(worker):
            yield from self._records(world, at, worker._replace(phase="pass_on"))
        ends: tuple[Phase, ...] = ("release", "fail", "suppress")
        # In doubt, a message of a stopped run fails instead.
        stopped: tuple[Phase, ...] = ("cancel_claimed",) if self._restarts and not worker.doubt else ()
        for phase in (*ends, *stopped):
            yield from self._records(world, at, worker._replace(phase=phase))

    def _moves(self, worker: Worker) -> bool:
        """Return whether a refused message may go to the fallback."""
        if not self._channel.fallback or worker.account != FIRST:
            return False
        return not worker.doubt or not self._model.has("deliver: only what was not sent moves")

    def _taken(self) -> Phase:
        return "checkpoint" if self._channel.fax else "complete"

    def _ends_of_a_fax(self, worker: Worker) -> tuple[Phase, ...]:
        more: tuple[Phase, ...] = ("retry_later",) if worker.attempt < ATTEMPTS else ()
        return ("complete", "fail", "hand_back", *more)

    def _records(self, world: World, at: int, worker: Worker) -> Iterator[Step]:
        """Write once as the claim's holder. Afterwards the copy is deleted, or goes back."""
        phase = "release" if worker.phase in ("let_go", "pass_on") else worker.phase
        verb: Kind = phase  # type: ignore[assignment] # such a phase has the verb's name
        doubts = {
            "complete": not worker.settled,
            **dict.fromkeys(("release", "fail", "suppress"), worker.doubt),
        }
        call = Call(verb, worker.own, doubt=doubts.get(verb, False))
        after, answer = self._called(world, at, call)
        yield Step(at, f"{verb}: the answer is lost", _now(after, at, worker.phase), call, answer)
        if worker.phase == "let_go" and answer.kind != "ClaimLost":
            yield Step(at, "release: done, and has to wait", _waiting(after, at), call, answer)
        elif worker.phase == "pass_on" and answer.kind != "ClaimLost":
            moved = self._back(after, at, to_other=True)
            yield Step(at, "release: done, goes to the other provider", moved, call, answer)
        elif answer.kind == "ClaimLost" or verb in ("release", "hand_back"):
            yield Step(at, f"{verb}: {answer.kind}, the copy goes back", self._back(after, at), call, answer)
        elif verb == "checkpoint":
            yield Step(at, "checkpoint: done", _now(after, at, "follow"), call, answer)
        else:
            yield Step(at, f"{verb}: {answer.kind}, the copy is deleted", _without(after, at), call, answer)

    def _called(self, world: World, at: int, call: Call) -> tuple[World, VerbAnswer]:
        """Make a call as a worker. A claim that is not a repeat takes the token from all others."""
        item, answer = self._model.apply(world.item, call)
        if call.verb in ("release", "hand_back", "retry_later") and item != world.item:
            world = _with(world, at, world.workers[at]._replace(holds=False))
        repeated = call.own and item == world.item
        if answer.kind == "Claimed" and not repeated:
            world = world._replace(
                operators=tuple(each._replace(own=False) for each in world.operators),
                workers=tuple(
                    each._replace(own=here == at, holds=here == at) for here, each in enumerate(world.workers)
                ),
            )
        return self._followed(world, item), answer

    def _followed(self, world: World, item: Item | None) -> World:
        """The item after a write. The stream makes a copy of a retry's next attempt, as `resend` does."""
        queue = world.queue
        if item and item.status == "retrying" and item != world.item and item.attempts < ATTEMPTS:
            queue = tuple(sorted((*queue, item.attempts + 1)))
        return world._replace(item=item, queue=queue, aged=world.aged and bool(item and item.since))

    def _crashed(self, world: World, at: int, worker: Worker) -> Step:
        """The copy comes back, at once or later. A lost answer of the provider's ends in the same way."""
        lost = list(world.lost)
        unknown = world.item is None or not (world.item.completed or world.item.submitted)
        if worker.phase in ("complete", "checkpoint") and unknown:
            lost[worker.attempt - 1] += 1
        after = world._replace(crashes=world.crashes - 1, lost=tuple(lost))
        return Step(at, DIES, self._back(after, at))

    def _back(self, world: World, at: int, *, to_other: bool = False) -> World:
        """Return the world with the worker's copy in its queue again, or in the queue of the other
        provider."""
        worker = world.workers[at]
        at_fallback = self._channel.fallback and (worker.account == FALLBACK) != to_other
        attempt = worker.attempt + AT_FALLBACK * at_fallback
        if not self._model.has("queue: what is not done comes back"):
            return _without(world, at)
        return _without(world, at)._replace(queue=tuple(sorted((*world.queue, attempt))))

    def _tried_at(self, worker: Worker) -> str:
        named = self._channel.looks_up or self._channel.keyed or self._channel.fallback
        return worker.account if named else ""

    def _time(self, world: World) -> Iterator[Step]:
        """A lease ends after the function that claimed has ended."""
        held = any(each.own for each in world.workers)
        if world.item is None or world.item.started != "live":
            return
        if held and self._model.has("lease: is longer than a function runs"):
            return
        item, _ = self._model.apply(world.item, Call("lease_ends"))
        yield Step("time", "ends the lease", world._replace(item=item))

    def _of_keys(self, world: World) -> Iterator[Step]:
        """A day passes, but not between a worker's look and its repeat. A deployment changes what requests
        are made of."""
        if not self._channel.keyed:
            return
        repeating = any(each.phase == "ready" and each.repeats for each in world.workers)
        if not world.day and not (repeating and self._model.has("deliver: a repeat is over in time")):
            aged = bool(world.item and world.item.since)
            yield Step(
                "time", "lets keys be forgotten", world._replace(day=True, aged=aged, keys=("",) * ATTEMPTS)
            )
        if not world.altered:
            yield Step("settings", "change what a request is made of", world._replace(altered=True))

    def _events(self, world: World) -> Iterator[Step]:
        """Whatever was accepted, the provider may tell of at any time, in any order, any number of times."""
        for at, accounts in enumerate(world.accepted):
            for status in EVENTS if accounts else ():
                call = Call("observe", attempt=at + 1, word=status)
                item, answer = self._model.apply(world.item, call)
                if item != world.item:
                    does = f"tells that attempt {at + 1} is {status}: {answer.kind}"
                    yield Step("provider", does, world._replace(item=item), call, answer)

    def _released(self, world: World) -> Iterator[Step]:
        """`release` reads an entry of the index, maybe one of before, and does what it says at any time
        later. What was sent to the queue loses its mark, and then its content."""
        item = world.item
        for version in range(1, len(world.waits) + 1) if item else ():
            waits = item is not None and item.status == "scheduled"
            there = item is not None and item.mark == version
            written = not any(each.phase == "hold" and each.version == version for each in world.workers)
            old = world._replace(stale=world.stale - 1) if world.stale and written else None
            over = None if there and waits else old  # a wait that is over does not come back
            if read := world if there and not waits else over:
                dropped = self._rowed(_reader(world, read), read, version, "drop")
                yield dropped._replace(after=_without_content(dropped.after, version))
            if read := world if there and waits else old:
                yield from self._handed_over(_reader(world, read), read, version)
        for version in world.sent:
            sent = world._replace(sent=())
            handed = self._rowed(RELEASE, sent, version, "hand_over")
            yield handed._replace(after=_without_content(handed.after, version))
            if world.crashes:
                yield Step(RELEASE, DIES, sent._replace(crashes=world.crashes - 1))

    def _handed_over(self, who: str, world: World, version: int) -> Iterator[Step]:
        """A round sends one message after the other. Of one that cannot be sent, its item or its content is
        gone, or its lane is not set up any more; its mark goes too."""
        yield self._rowed(who, world, version, "move")
        if world.sent:
            return
        if version in world.contents:
            queue = tuple(sorted((*world.queue, world.waits[version - 1])))
            yield Step(who, f"sends {version}", world._replace(queue=queue, sent=(version,)))
        verbs: tuple[Kind, ...] = ("lose", "cancel_scheduled") if self._channel.producer else ("lose",)
        for verb in verbs:
            step = self._rowed(who, world, version, verb)
            yield step._replace(after=step.after._replace(sent=(version,)))

    def _rowed(self, who: str, world: World, version: int, verb: Kind) -> Step:
        call = Call(verb, version=version)
        item, answer = self._model.apply(world.item, call)
        after = _ended(world._replace(item=item), call, answer)
        return Step(who, f"{verb} {version}: {answer.kind}", after, call, answer)

    def _produced(self, world: World) -> Iterator[Step]:
        """The message is taken back, or a bad copy of it refused."""
        verbs: tuple[Kind, ...] = ("cancel", "refuse")
        for verb in verbs if self._channel.producer else ():
            call = Call(verb)
            item, answer = self._model.apply(world.item, call)
            after = _ended(world._replace(item=item), call, answer)
            yield Step("producer", f"{verb}: {answer.kind}", after, call, answer)

    def _operated(self, world: World) -> Iterator[Step]:
        """Operators read the item, judge, and later say their word. So does `compose` at a restart."""
        item, who = world.item, "compose" if self._restarts else "operator"
        if item is None and who == "operator":
            return
        for at, call in enumerate(world.operators):
            after, answer = self._model.apply(item, call)
            rest = world._replace(operators=world.operators[:at] + world.operators[at + 1 :])
            if answer.kind == "True":
                rest = self._reworded(rest, call)
            done = _ended(self._followed(rest, after), call, answer)
            yield Step(who, f"{call.verb} {call.word}: {answer.kind}", done, call, answer)
        if world.orders and self._judgeable(item):
            judged = self._judged(world)
            judging = world._replace(operators=(*world.operators, judged), orders=world.orders - 1)
            yield Step(who, f"reads, and decides to {judged.verb} {judged.word}", judging)

    def _judged(self, world: World) -> Call:
        item = world.item
        if item is None:
            return Call("restart")
        # Without unused parts.
        seen = item._replace(since="", completed=False, token=False, tries="", at="", first="")
        match self._channel.operator:
            case "restart":
                return Call("restart", seen=seen._replace(completed=item.completed, mark=0, tried=0))
            case "reopen":
                return Call("reopen", seen=seen)
        accepted = item.attempts < ATTEMPTS and world.accepted[item.attempts]
        return Call("settle", own=True, word="sent" if accepted else "failed", seen=seen)

    def _judgeable(self, item: Item | None) -> bool:
        """Return the operator's next call: a resend of an ended message, an outcome for a message without
        one, or a restart of a message that was surely not sent."""
        if item is None:
            return True
        if self._restarts:
            unsent = not (item.completed or item.started or item.since or item.submitted)
            return item.attempts + unsent < ATTEMPTS and (unsent or item.status == "cancelled")
        if self._channel.operator == "reopen":
            return item.completed and item.attempts < ATTEMPTS
        return not item.completed

    def _reworded(self, world: World, call: Call) -> World:
        """Return the world with a new token, which no worker has."""
        kept = not self._model.has(f"{call.verb}: the token is new")
        workers = tuple(each._replace(own=each.own and kept, holds=False) for each in world.workers)
        operators = tuple(each._replace(own=False) for each in world.operators)
        return world._replace(workers=workers, operators=operators)


def _keyed(world: World, worker: Worker, made: str) -> World:
    """The provider knows the worker's request by its key."""
    keys = list(world.keys)
    keys[worker.attempt - 1] = "".join(sorted({keys[worker.attempt - 1], f"{worker.account}{made}"}))
    return world._replace(keys=tuple(keys))


def _now(
    world: World,
    at: int,
    phase: Phase,
    doubt: bool | None = None,
    *,
    repeats: bool | None = None,
    settled: bool | None = None,
) -> World:
    before = world.workers[at]
    after = before._replace(
        phase=phase,
        doubt=before.doubt if doubt is None else doubt,
        repeats=before.repeats if repeats is None else repeats,
        settled=before.settled if settled is None else settled,
    )
    return _with(world, at, after)


def _with(world: World, at: int, worker: Worker) -> World:
    return world._replace(workers=(*world.workers[:at], worker, *world.workers[at + 1 :]))


def _waiting(world: World, at: int) -> World:
    """The worker has written the content of a new wait."""
    version = len(world.waits) + 1
    worker = world.workers[at]._replace(phase="hold", version=version)
    return _with(world, at, worker)._replace(
        waits=(*world.waits, worker.attempt),
        contents=(*world.contents, version),
    )


def _without_content(world: World, version: int) -> World:
    return world._replace(contents=tuple(each for each in world.contents if each != version))


def _reader(world: World, read: World) -> str:
    return RELEASE if world == read else "release by an old index"


def _ended(world: World, call: Call, answer: VerbAnswer) -> World:
    """Return a world in which messages that were written before a cancel or a restart must not be sent."""
    verbs = ("cancel", "cancel_scheduled", "restart")
    if answer.kind != "True" or call.verb not in verbs or world.item is None:
        return world
    return world._replace(cancelled=world.item.attempts)


def _without(world: World, at: int) -> World:
    gone: tuple[Worker, ...] = (None,)  # type: ignore[assignment] # see Step
    return world._replace(workers=(*world.workers[:at], *gone, *world.workers[at + 1 :]))
