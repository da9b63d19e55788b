"""The callbacks and webhooks that came against those that should have: pure, so that it can be tested."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from local.demo.checks.callbacks import CALLBACKS, MESSAGES, Callback, different
from local.demo.scenarios.faxes import Told

Expected = Mapping[str, Sequence[Told]]
"""The callbacks that a message must have, by its id, in order of time."""


@dataclass(frozen=True)
class CallbackVerdict:
    """`received` counts requests, `different` their webhook-ids, of which `verified` had a right signature;
    `missing` counts callbacks and webhooks that should have come and did not."""

    received: int
    different: int
    verified: int
    missing: int
    webhooks: int
    """Messages with event_type webhook that arrived."""
    failures: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def judge_callbacks(
    callbacks: Sequence[Callback], expected: Expected, webhooks: Mapping[str, Any]
) -> CallbackVerdict:
    """Compare; `webhooks` are payloads of webhook messages by id."""
    once = different(callbacks)
    told = {id_: _told(once, id_) for id_ in expected}
    expected = {id_: _without_overtaken(told[id_], wanted) for id_, wanted in expected.items()}
    missing = {id_: _missing(told[id_], wanted) for id_, wanted in expected.items()}
    arrived = {each.about: each.payload for each in once if each.kind == MESSAGES}
    lost = [id_ for id_ in webhooks if id_ not in arrived]
    return CallbackVerdict(
        received=len(callbacks),
        different=len(once),
        verified=sum(each.verified for each in once),
        missing=sum(map(len, missing.values())) + len(lost),
        webhooks=len(arrived),
        failures=[
            *(f"What came about {each.about} is signed wrongly." for each in callbacks if not each.verified),
            *(f"{id_}: no callback {told[0]!r}." for id_, lacking in missing.items() for told in lacking),
            *_unexpected(told, expected),
            *(f"The webhook {id_} did not arrive." for id_ in lost),
            *_unasked(once, expected, webhooks),
        ],
    )


def _told(callbacks: Sequence[Callback], id_: str) -> list[Told]:
    """What was told of a message, by the payloads' own ids and in the order of their timestamps."""
    payloads = [each.payload for each in callbacks if each.kind == CALLBACKS and each.about == id_]
    own = [each for each in payloads if isinstance(each, dict) and each.get("fax_id", each.get("id")) == id_]
    own.sort(key=lambda each: (each.get("timestamp", 0), _nth(each)))
    return [(str(each.get("status")), str(each.get("message"))) for each in own]


def _without_overtaken(told: Sequence[Told], wanted: Sequence[Told]) -> Sequence[Told]:
    """A provider may tell what became of a message before its sender has recorded that it is sent: then it
    never was in that status, and nobody is told of it."""
    first, *later = wanted
    overtaken = first[0] == "sent" and any(_matches(each, want) for each in told for want in later)
    return later if overtaken and not any(_matches(each, first) for each in told) else wanted


def _nth(payload: Mapping[str, Any]) -> int:
    """Timestamps are whole seconds: within one, sent comes before what followed, attempts by their number."""
    if payload.get("status") != "tmp_fail":
        return 1_000 if payload.get("status") == "sent" else 1_001
    number = str(payload.get("message")).partition("attempt ")[2].partition(" ")[0]
    return int(number) if number.isdecimal() else 0


def _missing(told: Sequence[Told], wanted: Sequence[Told]) -> list[Told]:
    left = list(told)
    missing = []
    for want in wanted:
        match = next((each for each in left if _matches(each, want)), None)
        if match is None:
            missing.append(want)
        else:
            left.remove(match)
    return missing


def _unexpected(told: Mapping[str, Sequence[Told]], expected: Expected) -> list[str]:
    wrong = []
    for id_, wanted in expected.items():
        extra = [each for each in told[id_] if not any(_matches(each, want) for want in wanted)]
        wrong += [f"{id_} was told {each[0]!r}: {each[1]}" for each in extra]
        if not extra and len(told[id_]) > len(wanted):
            wrong.append(f"{id_} had {len(told[id_])} different callbacks instead of {len(wanted)}.")
        pairs = zip(told[id_], wanted, strict=False)
        if len(told[id_]) == len(wanted) and not extra and not all(_matches(*pair) for pair in pairs):
            wrong.append(f"The timestamps of the callbacks about {id_} tell another order.")
    return wrong


def _matches(told: Told, wanted: Told) -> bool:
    return told[0] == wanted[0] and told[1].startswith(wanted[1])


def _unasked(once: Sequence[Callback], expected: Expected, webhooks: Mapping[str, Any]) -> list[str]:
    """What nobody asked for, or not so."""
    wrong = []
    for each in once:
        if each.kind == MESSAGES and each.about in webhooks:
            if each.payload != webhooks[each.about]:
                wrong.append(f"The webhook {each.about} arrived with another payload.")
        elif each.kind != CALLBACKS or each.about not in expected:
            wrong.append(f"Nobody asked to hear about {each.about}.")
    return wrong
