"""The ledger's item and verbs as a model: each verb is a condition on the item and an effect on it.

tests/model/test_model.py holds this against the real ledger.
"""

from typing import Literal, NamedTuple

from mailroom.message.outcome import Status, rank

Kind = Literal[
    "claim",
    "claim_new",
    "checkpoint",
    "complete",
    "fail",
    "suppress",
    "cancel_claimed",
    "release",
    "hand_back",
    "retry_later",
    "hold",
    "hand_over",
    "drop",
    "move",
    "lose",
    "cancel",
    "cancel_scheduled",
    "refuse",
    "reopen",
    "restart",
    "settle",
    "observe",
    "lease_ends",
]


class Item(NamedTuple):
    """Parts of a ledger's item that decide the result of a verb. `started` is `startedAt`, by its lease;
    `since` is `unsettled_since`, by whether the present claim or an earlier one began it; `submitted`: there
    is a `provider_id`. The accounts of `unsettled_tries`: `at` has that of the present claim, `tries` those
    of earlier ones, `first` that of the oldest, and `tried` is how many there are. `mark` is the version of
    its wait: 0 without one, HALF if only a place in the index is left."""

    status: Status
    started: Literal["", "live", "over"] = ""
    since: Literal["", "own", "earlier"] = ""
    completed: bool = False
    attempts: int = 0
    submitted: bool = False
    token: bool = False
    tries: str = ""
    at: str = ""
    generation: int = 0
    mark: int = 0
    tried: int = 0
    first: str = ""


class Call(NamedTuple):
    """A verb with arguments. `own`: the caller's token is that of the item; an operator's token is the one
    that was in `seen`. `word`: a status to write, or the account of a claim. `doubt`: the caller does not
    know the outcome of an earlier try; of `complete`: the tries may have sent it more than once."""

    verb: Kind
    own: bool = False
    attempt: int = 0
    word: str = ""
    seen: Item | None = None
    doubt: bool = False
    version: int = 0


class VerbAnswer(NamedTuple):
    """The class of what a verb answers; of a claim also what is known of earlier tries."""

    kind: str
    since: bool = False
    submitted: bool = False
    tries: str = ""
    first: str = ""


HALF = -1
MOST_TRIES = 5
"""A number that is larger than that of any message of an exploration, except for mutants whose tries would
not end."""
DONE, LOST, YES, NO, NOT_CERTAIN = map(VerbAnswer, ("done", "ClaimLost", "True", "False", "not certain"))


class LedgerModel:
    """The verbs. A mutant is the model without some of its conditions or effects, which have names; `named`
    has those that were asked for, and `known` every call so far with what it did."""

    def __init__(self, *without: str) -> None:
        self._without = without
        self.named: set[str] = set()
        self.known: dict[tuple[Item | None, Call], tuple[Item | None, VerbAnswer]] = {}

    def apply(self, item: Item | None, call: Call) -> tuple[Item | None, VerbAnswer]:
        """The item after a call, and the answer."""
        known = self.known.get((item, call))
        if known is None:
            known = self.known[item, call] = self._verb(item, call)
        return known

    def has(self, name: str) -> bool:
        """Whether this model has the condition or effect of this name."""
        self.named.add(name)
        return name not in self._without

    def _if(self, name: str, holds: bool) -> bool:
        return not self.has(name) or holds

    def _verb(self, item: Item | None, call: Call) -> tuple[Item | None, VerbAnswer]:
        match call.verb:
            case "claim":
                return self._claim(item, call)
            case "claim_new":
                new = self._if("claim_new: there is no item", item is None)
                return (self._claimed(None, call.word), VerbAnswer("Claimed")) if new else (item, NOT_CERTAIN)
            case "refuse":
                return self._refuse(item)
            case "cancel":
                return self._ended_unsent(item, call, "cancelled")
            case "hold":
                return self._hold(item, call)
            case "restart":
                return self._restart(item, call)
        if item is None:
            return None, VerbAnswer("Foreign") if call.verb == "observe" else LOST
        return self._existing(item, call)

    def _existing(self, item: Item, call: Call) -> tuple[Item | None, VerbAnswer]:
        match call.verb:
            case "observe":
                return self._observe(item, call)
            case "reopen":
                return self._reopen(item, call)
            case "settle":
                return self._settle(item, call)
            case "cancel_scheduled" | "lose":
                return self._given_up(item, call)
            case "hand_over" | "drop" | "move":
                return self._of_row(item, call)
            case "lease_ends":
                return item._replace(started="over"), DONE
        return self._own(item, call)

    def _claim(self, item: Item | None, call: Call) -> tuple[Item | None, VerbAnswer]:
        had = item or Item("sending")
        free = self._if("claim: nobody has it, or the lease is over", had.started != "live")
        unended = self._if("claim: no outcome", not had.completed)
        following = self._if("claim: the attempt before has ended", had.attempts == call.attempt - 1)
        if free and unended and following:
            tries = _all_tries(had)
            return self._claimed(item, call.word), _claimed_answer(had, had.since != "", tries)
        if call.own and self._if("claim repeated: no outcome meanwhile", not had.completed):
            return item, _claimed_answer(had, had.since == "earlier", had.tries)
        if had.completed:
            return item, VerbAnswer("Completed")
        if had.attempts >= call.attempt:
            return item, VerbAnswer("Superseded")
        return item, VerbAnswer("InProgress" if had.started else "OutOfSequence")

    def _claimed(self, item: Item | None, account: str) -> Item:
        had = item or Item("sending")
        kept = had.since and self.has("claim: the first unsettled start stays")
        stay = self.has("claim: earlier tries stay")
        tries = _all_tries(had) if stay else ""
        return had._replace(
            status="sending",
            started="live",
            since="earlier" if kept else "own",
            token=True,
            tries=tries,
            at=account,
            tried=min(MOST_TRIES, had.tried + 1) if stay else 1,
            first=had.first if tries else account,
        )

    def _own(self, item: Item, call: Call) -> tuple[Item, VerbAnswer]:
        """The verbs of a claim's holder."""
        verb = call.verb
        own = self._if(f"{verb}: the token is the caller's", call.own)
        allowed = own and self._if(f"{verb}: no outcome", not item.completed)
        if verb == "hand_back":
            allowed = allowed and self._if("hand_back: submitted", item.submitted)
        if verb in ("release", "retry_later"):
            allowed = allowed and self._if(f"{verb}: still claimed", item.started != "")
        if allowed:
            return self._written(item, call), DONE
        if not own:
            return item, LOST
        return (item._replace(submitted=True) if verb == "complete" else item), DONE

    def _written(self, item: Item, call: Call) -> Item:
        certain = item._replace(since="", tries="", at="", tried=0, first="")
        unsent = item._replace(at="", tried=item.tried - bool(item.started)) if call.doubt else certain
        settled = certain._replace(started="")
        match call.verb:
            case "checkpoint":
                return item._replace(submitted=True)
            case "release":
                doubt = call.doubt and self.has("release: an earlier try stays in doubt")
                if not doubt:
                    return settled
                stays = item.at and not self.has("release: its own try goes")
                return (item._replace(tries=_all_tries(item), at="") if stays else unsent)._replace(
                    started=""
                )
            case "hand_back":
                return settled._replace(submitted=self.has("hand_back: the provider's id stays"))
            case "retry_later":
                submitted = not self.has("retry_later: the provider's id goes") and item.submitted
                return settled._replace(status="retrying", attempts=item.attempts + 1, submitted=submitted)
        status: dict[str, Status] = {
            "complete": "sent",
            "fail": "failed",
            "suppress": "suppressed",
            "cancel_claimed": "cancelled",
        }
        counted = item.attempts + self.has(f"{call.verb}: the attempt counts as ended")
        ended = unsent
        if call.verb == "complete":
            stay = call.doubt and self.has("complete: the tries stay if it may have arrived twice")
            ended = (item if stay else certain)._replace(submitted=True)
        return ended._replace(status=status[call.verb], completed=True, attempts=counted)

    def _refuse(self, item: Item | None) -> tuple[Item | None, VerbAnswer]:
        """The end of a message that no worker has had."""
        had = item or Item("sending")
        free = self._if("refuse: nobody has it", had.started == "")
        unended = self._if("refuse: no outcome", not had.completed)
        if free and unended and self._if("refuse: nobody ever had it", not had.token):
            return had._replace(status="failed", completed=True), YES
        return item, YES if had.completed else NO

    def _unsent(self, item: Item, verb: str) -> bool:
        """Whether a message has not ended, and was certainly not sent."""
        free = self._if(f"{verb}: nobody has it", item.started == "")
        settled = self._if(f"{verb}: no try may have sent it", item.since == "")
        untaken = self._if(f"{verb}: no provider has it", not item.submitted)
        return self._if(f"{verb}: no outcome", not item.completed) and free and settled and untaken

    def _hold(self, item: Item | None, call: Call) -> tuple[Item | None, VerbAnswer]:
        had = item or Item("scheduled")
        following = self._if("hold: the attempt before has ended", had.attempts == call.attempt - 1)
        if self._unsent(had, "hold") and following:
            return had._replace(status="scheduled", mark=call.version), YES
        return item, NO

    def _ended_unsent(self, item: Item | None, call: Call, status: Status) -> tuple[Item | None, VerbAnswer]:
        had = item or Item("sending")
        if not self._unsent(had, call.verb):
            return item, NO
        counted = had.attempts + self.has(f"{call.verb}: the attempt counts as ended")
        return had._replace(status=status, completed=True, attempts=counted), YES

    def _given_up(self, item: Item, call: Call) -> tuple[Item | None, VerbAnswer]:
        """The end of a message that cannot be released."""
        stands = self._if(f"{call.verb}: its mark stands", item.mark == call.version)
        if not (stands and self._if(f"{call.verb}: it waits", item.status == "scheduled")):
            return item, NO
        return self._ended_unsent(item, call, "failed" if call.verb == "lose" else "cancelled")

    def _of_row(self, item: Item, call: Call) -> tuple[Item, VerbAnswer]:
        """Handle an entry of the index; `drop` is `hand_over` of one that does not wait."""
        stands = self._if(f"{call.verb}: its mark stands", item.mark == call.version)
        if not stands:
            return item, NO
        if call.verb == "move":
            return item if item.mark else item._replace(mark=HALF), YES
        return item._replace(mark=0), YES

    def _reopen(self, item: Item, call: Call) -> tuple[Item, VerbAnswer]:
        ended = self._if("reopen: there is an outcome", item.completed)
        if not (ended and self._as_seen(item, call)):
            return item, NO
        submitted = not self.has("reopen: the provider's id goes") and item.submitted
        return Item(
            "retrying",
            attempts=item.attempts,
            submitted=submitted,
            token=True,
            generation=item.generation + 1,
            mark=item.mark,
        ), YES

    def _restart(self, item: Item | None, call: Call) -> tuple[Item | None, VerbAnswer]:
        """Create the next attempt for a later start of the message's run; `seen` is None if the item did not
        exist."""
        had, ended = item or Item("retrying"), call.seen is not None and call.seen.completed
        if call.seen is None:
            right = self._if("restart: there is no item", item is None)
        else:
            right = self._as_seen(had, call) and (ended or self._unsent(had, "restart"))
        if not right:
            return item, NO
        counted = not ended and self.has("restart: the attempt counts as ended")
        return Item(
            "retrying",
            attempts=had.attempts + counted,
            submitted=had.submitted,
            token=True,
            generation=had.generation + 1,
            mark=had.mark,
        ), YES

    def _settle(self, item: Item, call: Call) -> tuple[Item, VerbAnswer]:
        unended = self._if("settle: no outcome", not item.completed)
        seen = call.seen
        over = seen is not None and (seen.submitted or (seen.started, item.started) == ("over", "over"))
        still = self._as_seen(item, call) and self._if(
            "settle: no worker had it when it was seen", over or item.started == ""
        )
        id_same = seen is not None and seen.submitted == item.submitted
        same = self._if("settle: the provider's id is the one seen", id_same) and self._if(
            "settle: the claim is the one seen", call.own or item.submitted
        )
        if not (unended and still and same):
            return item, NO
        status: Status = "sent" if call.word == "sent" else "failed"
        return item._replace(status=status, completed=True, attempts=item.attempts + 1, token=True), YES

    def _as_seen(self, item: Item, call: Call) -> bool:
        seen = call.seen
        lives = seen is not None and (seen.attempts, seen.generation) == (item.attempts, item.generation)
        return self._if(f"{call.verb}: attempt and generation are those seen", lives) and self._if(
            f"{call.verb}: the status is the one seen", seen is not None and seen.status == item.status
        )

    def _observe(self, item: Item, call: Call) -> tuple[Item, VerbAnswer]:
        under_way = item.attempts == call.attempt - 1
        ended = item.attempts == call.attempt and item.completed
        current = self._if("observe: the attempt is the latest", under_way or ended)
        status: Status = call.word  # type: ignore[assignment] # the word of an event is a status
        if current and self._if("observe: the status moves forward", rank(item.status) < rank(status)):
            completed = item.completed or self.has("observe: there is an outcome now")
            attempts = call.attempt if self.has("observe: the attempt counts as ended") else item.attempts
            return item._replace(
                status=status, completed=completed, attempts=attempts, submitted=True
            ), VerbAnswer("Seen")
        if not current:
            return item, VerbAnswer("Outdated")
        return item._replace(submitted=True), VerbAnswer("Seen")


def _all_tries(item: Item) -> str:
    return "".join(sorted({*item.tries, *item.at}))


def _claimed_answer(item: Item, since: bool, tries: str) -> VerbAnswer:
    return VerbAnswer("Claimed", since, item.submitted, tries if since else "", item.first if since else "")
