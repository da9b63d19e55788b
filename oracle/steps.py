"""Random calls of the ledger's verbs, and an engine's side of them."""

import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple

from botocore.exceptions import ClientError

from mailroom.aws.dynamo_values import plain, string
from mailroom.channels.mail.contract import Mail
from mailroom.errors import ClaimLost
from mailroom.ledger.claims import Claimed
from mailroom.ledger.erasure import ERASED_UNSENT, UNSENT, Erasure
from mailroom.ledger.items import LINES, where
from mailroom.ledger.ledger import Ledger, NewClaim
from mailroom.ledger.observer import observe
from mailroom.message.message import Key
from mailroom.message.outcome import Status
from tests.support.told import WORDS, told
from tests.support.unit.shared import LEASE, LEDGER, TTL, FakeClock, mail

TABLE: Any = {
    "TableName": LEDGER,
    "BillingMode": "PAY_PER_REQUEST",
    "AttributeDefinitions": [
        *({"AttributeName": name, "AttributeType": "S"} for name in ("id", "event_type", "line")),
        {"AttributeName": "submittedAt", "AttributeType": "N"},
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
        }
    ],
}
ADDRESSES = ("ada@example.com", "bob@example.com")
ACCOUNTS = (None, "-", "ses one", "ses two")
LINE = "+4930123456"
A_LIFE = 40
"""Calls about the same messages, before others take their place: few verbs change what is over."""
TOO_LONG = "x" * 2049
"""No key of a table."""
TOO_LARGE = "x" * 420_000
"""No value of an item's attribute."""


class Call(NamedTuple):
    """A verb, and whatever a verb may take. Each takes what it knows."""

    verb: str
    message: Mail
    others: tuple[Mail, ...]
    """What `claim_new` takes beside the message."""
    held: int
    """Which of the claims made so far, counted from the last one."""
    account: str | None
    word: str
    status: Status
    to: str
    moment: float
    """Seconds from now."""
    fresh: bool
    """Whether what the caller has seen is what stands there."""

    def __str__(self) -> str:
        """In one line, without what is long."""
        messages = ", ".join(
            f"{each.id[:20]} attempt {each.attempt}" for each in (self.message, *self.others)
        )
        rest = f"held={self.held} account={self.account} word={self.word} status={self.status} to={self.to}"
        return f"{self.verb}: {messages}; {rest} moment={self.moment:g} fresh={self.fresh}"


class Side:
    """The ledger on one engine. `clock` is all sides' own."""

    def __init__(self, name: str, client: Any, clock: FakeClock, *, is_moto: bool = False) -> None:
        self.name = name
        self._is_moto = is_moto
        self.answered: Any = None
        self.clock = clock
        self._client = client
        client.create_table(**TABLE)
        self._tokens = 0
        self.ledger = Ledger(client, LEDGER, lease=LEASE, ttl=TTL, clock=clock, new_token=self._token)
        self.erasure = Erasure(client, LEDGER, TTL, clock)
        self.claims: list[Claimed] = []
        self._seen: dict[Key, dict[str, Any]] = {}

    def answer(self, call: Call, first: "Side") -> Any:
        """What a verb answers, or which error it raises. moto takes over what the first side did where moto
        cannot do the same: its parser knows no INSERT with parameters."""
        if self._is_moto and call.verb == "claim_new":
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
            found = first.stands(key)
            if found:
                self._client.put_item(TableName=LEDGER, Item=found)

    def _answer(self, call: Call) -> Any:
        try:
            answer = VERBS[call.verb](self, call)
        except ClaimLost:
            return "ClaimLost"
        except ClientError as refused:
            return f"ClientError {refused.response['Error']['Code']}"
        for each in answer if isinstance(answer, list) else [answer]:
            if isinstance(each, Claimed):
                self.claims.append(each)
        return answer

    def item(self, key: Key) -> dict[str, Any]:
        """What stands in the table, in plain Python; {}: nothing, or the key is none."""
        return plain(self.stands(key))

    def stands(self, key: Key) -> dict[str, Any]:
        """The same in DynamoDB's form."""
        if not 0 < len(key.id) < len(TOO_LONG):
            return {}
        found = self._client.get_item(TableName=LEDGER, Key=where(key), ConsistentRead=True)
        return dict(found.get("Item", {}))

    def seen(self, call: Call) -> dict[str, Any]:
        """An item as an operator's page has it: just loaded, or when somebody looked last."""
        if call.fresh or call.message.key not in self._seen:
            self._seen[call.message.key] = self.item(call.message.key)
        return self._seen[call.message.key]

    def claim_of(self, call: Call) -> Claimed:
        """One of the claims made so far, maybe of another message; where there is none, one never made."""
        if not self.claims:
            return Claimed(call.message.key, "never")
        return self.claims[-1 - call.held % len(self.claims)]

    def wanted(self, call: Call, message: Mail) -> NewClaim:
        redirected = call.to if call.word == "redirected" else None
        return NewClaim(message, call.account, redirected, self.ledger.new_token())


def _repeated(side: Side, call: Call) -> Any:
    """A claim whose first answer was lost, and the SDK's second try."""
    wanted = side.wanted(call, call.message)
    return [side.ledger.claim(*wanted), side.ledger.claim(*wanted)]


def _claim_new(side: Side, call: Call) -> Any:
    # No worker names a key twice: there DynamoDB Local writes the first before it refuses, and AWS nothing.
    messages = {each.key: each for each in (call.message, *call.others)}
    return side.ledger.claim_new([side.wanted(call, each) for each in messages.values()])


def _complete(side: Side, call: Call) -> Any:
    line = LINE if call.fresh else None
    return side.ledger.complete(side.claim_of(call), "ses", call.word, {"segments": call.held}, line)


def _observe(side: Side, call: Call) -> Any:
    several = {"recipients": (call.to,), "several": True} if call.fresh else {}
    events = [
        told(call.message.key, call.status, provider_id=call.word, attempt=call.message.attempt, **several)
    ]
    if call.account:
        events.append(told(call.message.key, None, attempt=call.message.attempt))
    return observe(side.ledger, events)


def _settle(side: Side, call: Call) -> Any:
    status: Literal["sent", "failed"] = "sent" if call.account else "failed"
    before = side.clock.now + call.moment
    return side.ledger.settle(call.message.key, side.seen(call), status, before)


def _empty(side: Side, call: Call) -> Any:
    item = side.seen(call)
    return item and side.erasure.empty(call.message.key, item)


def _items(call: Call) -> dict[str, Any]:
    return {"id": call.message.id, "event_type": "mail", "to": call.message.to}


VERBS: dict[str, Callable[[Side, Call], Any]] = {
    "claim": lambda side, call: side.ledger.claim(*side.wanted(call, call.message)),
    "claim, repeated": _repeated,
    "claim_new": _claim_new,
    "checkpoint": lambda side, call: side.ledger.checkpoint(
        side.claim_of(call), "fake", call.word, LINE if call.fresh else None
    ),
    "complete": _complete,
    "fail": lambda side, call: side.ledger.fail(side.claim_of(call), "invalid", call.word, "subject"),
    "suppress": lambda side, call: side.ledger.suppress(side.claim_of(call), "suppressed", call.word),
    "suppress_one": lambda side, call: side.ledger.suppress_one(side.claim_of(call), call.to, call.word),
    "doubt": lambda side, call: side.ledger.doubt(side.claim_of(call), "no_outcome", call.word),
    "release": lambda side, call: side.ledger.release(side.claim_of(call), call.account or "", call.word),
    "hand_back": lambda side, call: side.ledger.hand_back(side.claim_of(call)),
    "retry_later": lambda side, call: side.ledger.retry_later(side.claim_of(call), "busy", call.word),
    "dead_lettered": lambda side, call: side.ledger.dead_lettered(call.message.key),
    "callbacks": lambda side, call: side.ledger.callbacks(call.message.key),
    "note_callback": lambda side, call: side.ledger.note_callback(
        call.message.key, call.word, {"reason": string("refused")}
    ),
    "advance": lambda side, call: side.ledger.advance(
        call.message.key, call.to, call.status, {"bounce_type": call.word}, call.account or ""
    ),
    "refuse": lambda side, call: side.ledger.refuse(_items(call), "invalid", call.word, "to"),
    "schedule": lambda side, call: side.ledger.schedule(call.message, side.clock.now + call.moment),
    "cancel, scheduled": lambda side, call: side.ledger.cancel(
        call.message.key, call.word, since=side.clock.now + call.moment
    ),
    "lose": lambda side, call: side.ledger.lose(call.message.key, call.word),
    "cancel": lambda side, call: side.ledger.cancel(
        call.message.key,
        call.word,
        to=call.to,
        callback_url=call.message.callback_url,
        due=side.clock.now + call.moment,
    ),
    "leave_out": lambda side, call: side.ledger.leave_out(
        call.message.key, call.to, None, "opted_out", call.word
    ),
    "reopen": lambda side, call: side.ledger.reopen(call.message.key, side.seen(call)),
    "settle": _settle,
    "observe": _observe,
    "cancel, erased": lambda side, call: side.erasure.cancel(
        call.message.key, ERASED_UNSENT, condition=UNSENT, due=side.clock.now
    ),
    "erase": _empty,
    "ids_on_line": lambda side, call: sorted(
        side.ledger.ids_on_line(LINE, (side.clock.now + min(call.moment, 0)) * 1000)
    ),
}
"""What is tried, by the name that the table of a run has for it."""
_OFTEN = {
    "claim": 5,
    "claim_new": 3,
    "observe": 3,
    "reopen": 3,
    "retry_later": 2,
    "complete": 2,
} | dict.fromkeys(("checkpoint", "hand_back", "schedule", "cancel, scheduled", "lose"), 3)


def calls(seed: int) -> Iterator[tuple[Call, float]]:
    """Calls without an end, the same for the same seed; each with the seconds that pass before it."""
    chosen = random.Random(seed)
    weights = [_OFTEN.get(verb, 1) for verb in VERBS]
    for number in itertools.count():
        life = f"{seed}-{number // A_LIFE}"
        (verb,) = chosen.choices([*VERBS], weights)
        # moto looks at no key's length.
        wrong = verb == "claim_new"
        others = tuple(_message(chosen, life, wrong) for _ in range(chosen.choice((0, 0, 1, 3)) * wrong))
        yield (
            Call(
                verb,
                _message(chosen, life, wrong),
                others,
                chosen.choice((0, 0, 0, 1, 2, 5)),
                chosen.choice(ACCOUNTS),
                chosen.choice(("p-1", "p-2", "p-3", "redirected")),
                chosen.choice([*WORDS]),
                chosen.choice(ADDRESSES),
                chosen.choice((-LEASE - 1, -1.0, 0.0, 3600.0)),
                chosen.random() < 0.6,
            ),
            chosen.choice((0.001, 0.001, 0.001, 1.0, LEASE + 1)),
        )


def _message(chosen: random.Random, life: str, wrong: bool) -> Mail:
    """One of three messages that a life is about; now and then one that DynamoDB refuses, where `wrong`."""
    id_ = f"m-{life}-{chosen.randrange(3)}"
    if wrong and chosen.random() < 0.05:
        id_ = chosen.choice(("", TOO_LONG))
    several = {"to": [*ADDRESSES]} if id_.endswith("0") else {}
    url = {"callback_url": "https://app.example/hook"} if id_.endswith("1") else {}
    topic = {"topic": TOO_LARGE} if wrong and chosen.random() < 0.03 else {}
    attempt = chosen.choice((1, 1, 1, 2, 3))
    return mail(id_, attempt=attempt, **several, **url, **topic)


class Comparison:
    """Calls made on several sides. `asked` counts the calls of each verb, `changed` those that changed an
    item."""

    def __init__(self, *sides: Side) -> None:
        self._sides = sides
        self.asked, self.changed = Counter[str](), Counter[str]()

    def make(self, call: Call) -> str:
        """Make one call on each side. How another side differs from the first, in its answer or in an item
        that the call is about; "": in nothing."""
        first = self._sides[0]
        keys = _about(first, call)
        before = [first.item(each) for each in keys]
        made = [(side, side.answer(call, first), [side.item(each) for each in keys]) for side in self._sides]
        (_, answer, items), *others = made
        self.asked[call.verb] += 1
        self.changed[call.verb] += items != before
        for side, answered, found in others:
            if answered != answer:
                return f"{first.name} answers {answer}, {side.name} {answered}"
            for held, stands in zip(items, found, strict=True):
                if held != stands:
                    return f"{first.name} has {_apart(held, stands)}, {side.name} {_apart(stands, held)}"
        return ""


def _about(side: Side, call: Call) -> list[Key]:
    return [*{each.key: None for each in (call.message, *call.others)}, side.claim_of(call).key]


def _apart(item: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """What of an item is not so in another; all of it where there is nothing else."""
    return {name: value for name, value in item.items() if other.get(name) != value} if other else item
