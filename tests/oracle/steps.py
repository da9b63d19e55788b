"""Random calls of the ledger's operations, called verbs here, and their execution on an engine."""

import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple

from botocore.exceptions import ClientError

from mailroom.aws.dynamo_values import plain, string
from mailroom.budget import Budget
from mailroom.channels.mail.contract import Mail
from mailroom.dispatch.release import Lease
from mailroom.errors import ClaimLost
from mailroom.ledger.claims import Claimed
from mailroom.ledger.contents import Contents, Held
from mailroom.ledger.erasure import ERASED_UNSENT, Erasure
from mailroom.ledger.items import LINES, where
from mailroom.ledger.ledger import Ledger, NewClaim
from mailroom.ledger.observer import observe
from mailroom.ledger.waits import INDEX, PROJECTED, REASONS, SHARDS, Wait, WaitingRow, Waits
from mailroom.message.message import CampaignStart, Key
from mailroom.message.outcome import Status
from tests.support.told import WORDS, ses_event
from tests.support.unit.shared import LEASE, LEDGER, TTL, FakeClock, mail

TABLE: Any = {
    "TableName": LEDGER,
    "BillingMode": "PAY_PER_REQUEST",
    "AttributeDefinitions": [
        *({"AttributeName": name, "AttributeType": "S"} for name in ("id", "event_type", "line", "waits_in")),
        *({"AttributeName": name, "AttributeType": "N"} for name in ("submittedAt", "waits_at")),
    ],
    "KeySchema": [
        {"AttributeName": "id", "KeyType": "HASH"},
        {"AttributeName": "event_type", "KeyType": "RANGE"},
    ],
    "GlobalSecondaryIndexes": [
        {
            "IndexName": LINES,
            "KeySchema": [
                {"AttributeName": "line", "KeyType": "HASH"},
                {"AttributeName": "submittedAt", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "ALL"},
        },
        {
            "IndexName": INDEX,
            "KeySchema": [
                {"AttributeName": "waits_in", "KeyType": "HASH"},
                {"AttributeName": "waits_at", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": [*PROJECTED]},
        },
    ],
}
CONTENTS, BUDGETS = "contents", "budgets"
PER_DAY = (("2020-01-01", 12),)
ADDRESSES = ("ada@example.com", "bob@example.com")
ACCOUNTS = (None, "-", "ses one", "ses two")
LINE = "+4930123456"
START = CampaignStart("weekly", "r", 1)
A_LIFE = 40
"""Number of calls about the same messages. Then other messages replace them, because few verbs change a
message that has ended."""
TOO_LONG = "x" * 2049
"""Text that is too long for a key."""
TOO_LARGE = "x" * 420_000
"""Text that is too large for an item."""


class Call(NamedTuple):
    """Verb with values for all parameters of all verbs. Each verb uses only its own parameters."""

    verb: str
    message: Mail
    others: tuple[Mail, ...]
    """Further messages of a verb that takes several, such as `claim_new`."""
    held: int
    """Number of a claim, counted back from the latest one."""
    account: str | None
    word: str
    status: Status
    to: str
    moment: float
    """Seconds from now."""
    fresh: bool
    """Whether the caller has read the present item."""

    def __str__(self) -> str:
        """Return the call in one line, without long values."""
        messages = ", ".join(
            f"{message.id[:20]} attempt {message.attempt}" for message in (self.message, *self.others)
        )
        values = f"held={self.held} account={self.account} word={self.word} status={self.status} to={self.to}"
        return f"{self.verb}: {messages}; {values} moment={self.moment:g} fresh={self.fresh}"


class Side:
    """Ledger on one engine. All sides have the same `clock`."""

    def __init__(self, name: str, client: Any, clock: FakeClock, *, is_moto: bool = False) -> None:
        self.name = name
        self._is_moto = is_moto
        self.answered: Any = None
        self.clock = clock
        self._client = client
        client.create_table(**TABLE)
        _create(client, CONTENTS, "message", "version")
        _create(client, BUDGETS, "name")
        self._tokens = 0
        self.ledger = Ledger(client, LEDGER, lease=LEASE, ttl=TTL, clock=clock, new_token=self._token)
        self.erasure = Erasure(client, LEDGER, TTL, clock)
        self.waits = Waits(client, LEDGER, TTL, clock)
        self.contents = Contents(client, CONTENTS)
        self.lease = Lease(client, BUDGETS, LEASE, clock)
        self.budget = Budget(client, BUDGETS, "mail", PER_DAY, 0.25, clock)
        self.claims: list[Claimed] = []
        self._seen: dict[Key, dict[str, Any]] = {}

    def answer(self, call: Call, first: "Side") -> Any:
        """Return the result of a verb, or the name of its error. moto cannot parse an INSERT with parameters,
        so for the verbs with such an INSERT it copies the items and the claims of the first side."""
        if self._is_moto and call.verb in ("claim_new", "hold, new"):
            self._take_over(call, first)
            return first.answered
        self.answered = self._answer(call)
        return self.answered

    def _token(self) -> str:
        self._tokens += 1
        return f"token-{self._tokens}"

    def _take_over(self, call: Call, first: "Side") -> None:
        self.claims, self._tokens = [*first.claims], first._tokens
        for key in _about(first, call):
            image = first.image(key)
            if image:
                self._client.put_item(TableName=LEDGER, Item=image)

    def _answer(self, call: Call) -> Any:
        try:
            answer = VERBS[call.verb](self, call)
        except ClaimLost:
            return "ClaimLost"
        except ClientError as refused:
            return f"ClientError {refused.response['Error']['Code']}"
        for result in answer if isinstance(answer, list) else [answer]:
            if isinstance(result, Claimed):
                self.claims.append(result)
        return answer

    def item(self, key: Key) -> dict[str, Any]:
        """Return the item with a key in plain Python. The dictionary is empty if the table lacks the item,
        or if the key is invalid."""
        return plain(self.image(key))

    def image(self, key: Key) -> dict[str, Any]:
        """Return the item with a key in DynamoDB's form, or an empty dictionary as `item` does."""
        if not 0 < len(key.id) < len(TOO_LONG):
            return {}
        response = self._client.get_item(TableName=LEDGER, Key=where(key), ConsistentRead=True)
        return dict(response.get("Item", {}))

    def seen(self, call: Call) -> dict[str, Any]:
        """Return the call's item as an operator's page shows it: read now if `fresh`, or else earlier."""
        if call.fresh or call.message.key not in self._seen:
            self._seen[call.message.key] = self.item(call.message.key)
        return self._seen[call.message.key]

    def claim_of(self, call: Call) -> Claimed:
        """Return one of the claims so far, which may be of another message. Before the first claim, return a
        claim that does not exist in the ledger."""
        if not self.claims:
            return Claimed(call.message.key, "never")
        return self.claims[-1 - call.held % len(self.claims)]

    def wait_of(self, call: Call, message: Mail, *, new: bool) -> Wait:
        due, put_at = self.clock.now + call.moment, self.clock.now - 1 if call.fresh else None
        reason = REASONS[call.held % len(REASONS)]
        lines_up = call.account is not None
        return Wait(message, reason, due, self.ledger.new_token(), put_at, lines_up=lines_up, new=new)

    def version(self, call: Call) -> str:
        """Return the version of the wait in the item that `seen` returns. If that item does not wait, return
        a version that does not exist."""
        return str(self.seen(call).get("wait", {}).get("version", "never"))

    def row(self, call: Call) -> WaitingRow:
        second, waits = int(self.clock.now), call.account is not None
        of_wait = (self.version(call), "normal", REASONS[0], second, second, 1, None)
        return WaitingRow(call.message.key, *of_wait, lines_up=False, start=START, expires=None, waits=waits)

    def budget_item(self) -> dict[str, Any]:
        response = self._client.get_item(TableName=BUDGETS, Key={"name": string("mail")})
        return plain(response.get("Item", {}))

    def new_claim(self, call: Call, message: Mail) -> NewClaim:
        redirected = call.to if call.word == "redirected" else None
        return NewClaim(message, call.account, redirected, self.ledger.new_token())


def _repeated(side: Side, call: Call) -> Any:
    """Make a claim twice, as the SDK does if the first response is lost."""
    claim = side.new_claim(call, call.message)
    return [side.ledger.claim(*claim), side.ledger.claim(*claim)]


def _claim_new(side: Side, call: Call) -> Any:
    # Each key occurs once, as in a worker's request. If a key occurs twice, the engines differ: DynamoDB
    # Local writes the first item before it refuses the request, and AWS does not write.
    messages = {message.key: message for message in (call.message, *call.others)}
    return side.ledger.claim_new([side.new_claim(call, message) for message in messages.values()])


def _hold(side: Side, call: Call, *, new: bool) -> Any:
    messages = {message.key: message for message in (call.message, *call.others)}
    return side.waits.hold([side.wait_of(call, message, new=new) for message in messages.values()])


def _cancel_together(side: Side, call: Call) -> Any:
    messages = [(message, None) for message in (call.message, *call.others)]
    return side.ledger.cancel_together(messages, "stopped", call.word)


def _rows(side: Side, call: Call) -> Any:
    """Return the entries of the index, sorted, because the order of entries of the same time is undefined."""
    until = side.clock.now + max(call.moment, 0)
    due = [row for shard in range(SHARDS) for row in side.waits.due(shard, until)]
    return sorted([*due, *side.waits.line("mail")], key=repr), side.waits.before("mail", int(until))


def _of_budget(change: Callable[[Budget, Call], Any]) -> Callable[["Side", Call], Any]:
    """Return a verb that calls the budget, and returns the result and the budget's item after the call."""
    return lambda side, call: (change(side.budget, call), side.budget_item())


def _close_line(budget: Budget, call: Call) -> Any:
    line = budget.line()
    return line, budget.close_line(line.joined - (not call.fresh))


def _contents(side: Side, call: Call) -> Any:
    """Write contents, read one, delete it, read it again, and erase the contents of a message."""
    keys = [*{message.key: None for message in (call.message, *call.others)}]
    names = [*dict.fromkeys(Held(key, word) for key in keys for word in ("p-1", call.word, "p-3"))]
    side.contents.put([(name, f"{name.version} {call.to}", 0) for name in names])
    before = side.contents.get(names[:1])
    side.contents.delete(names[:1])
    return before, side.contents.get(names[:1]), side.contents.erase(call.message.key)


def _create(client: Any, table: str, *keys: str) -> None:
    client.create_table(
        TableName=table,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in keys],
        KeySchema=[
            {"AttributeName": name, "KeyType": kind}
            for name, kind in zip(keys, ("HASH", "RANGE"), strict=False)
        ],
    )


def _complete(side: Side, call: Call) -> Any:
    line = LINE if call.fresh else None
    return side.ledger.complete(side.claim_of(call), "ses", call.word, {"segments": call.held}, line)


def _observe(side: Side, call: Call) -> Any:
    several = {"recipients": (call.to,), "several": True} if call.fresh else {}
    events = [
        ses_event(
            call.message.key, call.status, provider_id=call.word, attempt=call.message.attempt, **several
        )
    ]
    if call.account:
        events.append(ses_event(call.message.key, None, attempt=call.message.attempt))
    return observe(side.ledger, events)


def _settle(side: Side, call: Call) -> Any:
    status: Literal["sent", "failed"] = "sent" if call.account else "failed"
    before = side.clock.now + call.moment
    return side.ledger.settle(call.message.key, side.seen(call), status, before)


def _empty(side: Side, call: Call) -> Any:
    item = side.seen(call)
    return item and side.erasure.empty(call.message.key, item)


def _item_of_call(call: Call) -> dict[str, Any]:
    return {"id": call.message.id, "event_type": "mail", "to": call.message.to}


VERBS: dict[str, Callable[[Side, Call], Any]] = {
    "claim": lambda side, call: side.ledger.claim(*side.new_claim(call, call.message)),
    "claim, repeated": _repeated,
    "claim_new": _claim_new,
    "checkpoint": lambda side, call: side.ledger.checkpoint(
        side.claim_of(call), "fake", call.word, LINE if call.fresh else None
    ),
    "complete": _complete,
    "fail": lambda side, call: side.ledger.fail(side.claim_of(call), "invalid", call.word, "subject"),
    "suppress": lambda side, call: side.ledger.suppress(side.claim_of(call), "suppressed", call.word),
    "suppress_one": lambda side, call: side.ledger.suppress_one(side.claim_of(call), call.to, call.word),
    "doubt": lambda side, call: side.ledger.doubt(side.claim_of(call), call.word),
    "release": lambda side, call: side.ledger.release(side.claim_of(call), call.account or "", call.word),
    "hand_back": lambda side, call: side.ledger.hand_back(side.claim_of(call)),
    "retry_later": lambda side, call: side.ledger.retry_later(side.claim_of(call), "busy", call.word),
    "dead_lettered": lambda side, call: side.ledger.dead_lettered(call.message.key),
    "note_callback": lambda side, call: side.ledger.note_callback(
        call.message.key, call.word, {"reason": string("refused")}
    ),
    "advance": lambda side, call: side.ledger.advance(
        call.message.key, call.to, call.status, {"bounce_type": call.word}, call.account or ""
    ),
    "refuse": lambda side, call: side.ledger.refuse(_item_of_call(call), "invalid", call.word, "to"),
    "hold": lambda side, call: _hold(side, call, new=False),
    "hold, new": lambda side, call: _hold(side, call, new=True),
    "hand_over": lambda side, call: side.waits.hand_over(side.row(call)),
    "move": lambda side, call: side.waits.move(
        side.row(call), side.clock.now + call.moment if call.fresh else None
    ),
    "cancel, scheduled": lambda side, call: side.ledger.cancel(
        call.message.key, call.word, since=side.clock.now + call.moment, version=side.version(call)
    ),
    "lose": lambda side, call: side.ledger.lose(call.message.key, side.version(call), call.word),
    "cancel": lambda side, call: side.ledger.cancel(
        call.message.key, call.word, to=call.to, callback_url=call.message.callback_url
    ),
    "cancel_together": _cancel_together,
    "cancel_together, scheduled": lambda side, call: side.waits.cancel_together(
        [side.row(call)], "stopped", call.word
    ),
    "rows": _rows,
    "contents": _contents,
    "lease": lambda side, call: side.lease.take(call.to),
    "lease, back": lambda side, call: side.lease.give_back(call.to),
    "budget, ask": _of_budget(
        lambda budget, call: budget.ask(call.held + 1, 1e9 + call.held, whole=call.fresh)
    ),
    "budget, join": _of_budget(lambda budget, call: budget.join(1e9 + call.held)),
    "budget, move_line": _of_budget(lambda budget, call: budget.move_line(1e9 + call.held)),
    "budget, close_line": _of_budget(_close_line),
    "leave_out": lambda side, call: side.ledger.leave_out(
        call.message.key, call.to, None, "opted_out", call.word, START
    ),
    "reopen": lambda side, call: side.ledger.reopen(call.message.key, side.seen(call)),
    "restart": lambda side, call: side.ledger.restart(call.message.key, side.seen(call), START),
    "settle": _settle,
    "observe": _observe,
    "cancel, erased": lambda side, call: side.erasure.cancel(call.message.key, ERASED_UNSENT),
    "erase": _empty,
    "ids_on_line": lambda side, call: sorted(
        side.ledger.ids_on_line(LINE, (side.clock.now + min(call.moment, 0)) * 1000)
    ),
}
"""Verbs of the comparison, by their names in the table that a run prints."""
SEVERAL = ("claim_new", "hold, new", "hold", "contents", "cancel_together")
"""Verbs that take several messages."""
_OFTEN = {
    "claim": 5,
    "claim_new": 3,
    "observe": 3,
    "reopen": 3,
    "retry_later": 2,
    "complete": 2,
    "cancel, scheduled": 5,
} | dict.fromkeys(
    ("checkpoint", "hand_back", "hold", "hand_over", "move", "cancel_together, scheduled", "lose"), 3
)


def random_calls(seed: int) -> Iterator[tuple[Call, float]]:
    """Yield calls endlessly, the same for the same seed, each with the seconds that pass before it."""
    draw = random.Random(seed)
    weights = [_OFTEN.get(verb, 1) for verb in VERBS]
    for number in itertools.count():
        life = f"{seed}-{number // A_LIFE}"
        (verb,) = draw.choices([*VERBS], weights)
        # Only `claim_new` gets messages that DynamoDB refuses: moto does not check the length of keys.
        wrong, several = verb == "claim_new", verb in SEVERAL
        further = tuple(_message(draw, life, wrong) for _ in range(draw.choice((0, 0, 1, 3)) * several))
        yield (
            Call(
                verb,
                _message(draw, life, wrong),
                further,
                draw.choice((0, 0, 0, 1, 2, 5)),
                draw.choice(ACCOUNTS),
                draw.choice(("p-1", "p-2", "p-3", "redirected")),
                draw.choice([*WORDS]),
                draw.choice(ADDRESSES),
                draw.choice((-LEASE - 1, -1.0, 0.0, 3600.0)),
                draw.random() < 0.6,
            ),
            draw.choice((0.001, 0.001, 0.001, 1.0, LEASE + 1)),
        )


def _message(draw: random.Random, life: str, wrong: bool) -> Mail:
    """Return one of the three messages of a life. If `wrong` is true, return sometimes a message that
    DynamoDB refuses."""
    id_ = f"m-{life}-{draw.randrange(3)}"
    if wrong and draw.random() < 0.05:
        id_ = draw.choice(("", TOO_LONG))
    several = {"to": [*ADDRESSES]} if id_.endswith("0") else {}
    url = {"callback_url": "https://app.example/hook"} if id_.endswith("1") else {}
    topic = {"topic": TOO_LARGE} if wrong and draw.random() < 0.03 else {}
    attempt = draw.choice((1, 1, 1, 2, 3))
    return mail(id_, attempt=attempt, **several, **url, **topic)


class Comparison:
    """Calls made on several sides. `asked` counts the calls of each verb, `changed` those that changed an
    item."""

    def __init__(self, *sides: Side) -> None:
        self._sides = sides
        self.asked, self.changed = Counter[str](), Counter[str]()

    def make(self, call: Call) -> str:
        """Make one call on each side. Return the difference of another side from the first, in its answer or
        in an item of the call; the text is empty if all sides agree."""
        first = self._sides[0]
        keys = _about(first, call)
        before = [first.item(key) for key in keys]
        answers = [(side, side.answer(call, first), [side.item(key) for key in keys]) for side in self._sides]
        (_, answer, items), *further = answers
        self.asked[call.verb] += 1
        self.changed[call.verb] += items != before
        for side, second_answer, second_items in further:
            if second_answer != answer:
                return f"{first.name} answers {answer}, {side.name} {second_answer}"
            for item, second in zip(items, second_items, strict=True):
                if item != second:
                    return f"{first.name} has {_apart(item, second)}, {side.name} {_apart(second, item)}"
        return ""


def _about(side: Side, call: Call) -> list[Key]:
    return [*{message.key: None for message in (call.message, *call.others)}, side.claim_of(call).key]


def _apart(item: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of an item that a second one lacks or has with other values."""
    return {name: value for name, value in item.items() if second.get(name) != value} if second else item
