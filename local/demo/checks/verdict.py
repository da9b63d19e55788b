"""What became of the demo's messages against what should have: pure, so that it can be tested."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from local.demo.checks.messages import described, told_wrong
from local.demo.scenarios.mails import Message

Key = tuple[str, str]


@dataclass(frozen=True)
class Verdict:
    """The figures of `.local/demo.json`.

    `duplicates` counts repeated puts that were absorbed, as they should be; `sent_twice` counts addresses
    that got more than one mail, and `lost` messages that ended nowhere or whose mail never came: both must
    be 0. `seconds` run from the first put until every message has ended; `rate` is messages a second.
    """

    messages: int
    accepted: int
    rejected: int
    duplicates: int
    sent_twice: int
    lost: int
    seconds: float
    rate: float
    reasons: list[dict[str, str]] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def judge(
    messages: Sequence[Message],
    inbox: Sequence[Mapping[str, Any]],
    ledger: Mapping[Key, Mapping[str, Any]],
    duplicates: int,
    seconds: float,
    troubles: Sequence[str] = (),
) -> Verdict:
    """Compare; `troubles` are failed expectations of others, such as a dead letter."""
    mails = Counter(str(each["to"]) for each in inbox)
    lost = [message for message in messages if _lost(message, mails, ledger)]
    twice = [address for address, count in mails.items() if count > 1]
    rejected = [message for message in messages if ledger.get(message.key, {}).get("status") == "failed"]
    return Verdict(
        messages=len(messages),
        accepted=sum(1 for message in messages if not message.reason and mails[message.address]),
        rejected=len(rejected),
        duplicates=duplicates,
        sent_twice=len(twice),
        lost=len(lost),
        seconds=round(seconds, 2),
        rate=round(len(messages) / seconds, 1) if seconds else 0.0,
        reasons=[_reason(message, ledger) for message in rejected],
        failures=[
            *troubles,
            *(f"{message.key[0]} is lost: {described(ledger.get(message.key, {}))}." for message in lost),
            *(f"{address} got {mails[address]} mails instead of one." for address in twice),
            *_unexpected(messages, mails, ledger),
        ],
    )


def _lost(message: Message, mails: Counter[str], ledger: Mapping[Key, Mapping[str, Any]]) -> bool:
    """Neither ended in the ledger, nor, if it should have been sent, in the inbox."""
    ended = "completedAt" in ledger.get(message.key, {})
    return not ended or (not message.reason and not mails[message.address])


def _unexpected(
    messages: Sequence[Message], mails: Counter[str], ledger: Mapping[Key, Mapping[str, Any]]
) -> list[str]:
    wrong = []
    for message in messages:
        row = ledger.get(message.key, {})
        if row and row.get("status") != message.status:
            wrong.append(f"{message.key[0]} should be {message.status}; the ledger says {described(row)}.")
        elif row:
            wrong += told_wrong(message, row)
    addresses = {message.address for message in messages if not message.reason}
    return wrong + [
        f"{address} got a mail that nobody asked for." for address in mails if address not in addresses
    ]


def _reason(message: Message, ledger: Mapping[Key, Mapping[str, Any]]) -> dict[str, str]:
    error = ledger[message.key].get("error", {})
    return {
        "id": message.key[0],
        "code": str(error.get("code", "")),
        "message": str(error.get("message", "")),
    }
