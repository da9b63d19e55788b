"""The judgement: what the providers accepted, against what the system says of each message.

| verdict    | of a message                                                                                  |
|------------|-----------------------------------------------------------------------------------------------|
| fine       | accepted once                                                                                 |
| declared   | accepted more than once, each further time after the sender had said that it sends again in   |
|            | doubt; or held as `outcome_unknown`; or a webhook that came again under its webhook-id        |
| sent_twice | accepted more often than that; a fax: delivered more than once                                |
| waiting    | not accepted: in a dead-letter queue, or in the bucket of what streams gave up on             |
| failed     | not accepted: the ledger has the reason                                                       |
| lost       | anything else that was not accepted                                                           |

What is fine has to pass the checks of the demo as well: its ledger item, its callbacks, one fax at a time.
"""

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any, Literal
from urllib.parse import urlsplit

from chaos.load import PARTS, Load
from local.demo.checks import messages
from local.demo.checks.callbacks import ReceivedCallback, check_callbacks
from local.demo.checks.faxes import check_faxes, delivered_twice
from local.demo.client import Item, Key
from local.demo.scenarios import MESSAGES

Verdict = Literal["fine", "declared", "sent_twice", "waiting", "failed", "lost"]
BAD: set[Verdict] = {"sent_twice", "lost"}
UNSENT = {"failed", "suppressed", "cancelled"}
"""Statuses that end a message with a reason, and without a submit."""


CLOCK_SECONDS = 0.002
"""Logs and providers write whole milliseconds."""


@dataclass(frozen=True)
class Observation:
    """What was seen when everything had come to rest. Times are epoch seconds.

    `announced` has when a sender said of a message that it sends it again in doubt. `dead` is the text of all
    dead letters and of all that the streams gave up on."""

    put_at: Mapping[Key, float]
    inbox: Sequence[Item]
    fax_log: Sequence[Item]
    webhooks: Sequence[tuple[ReceivedCallback, float]]
    ledger: messages.Ledger
    announced: Mapping[Key, Sequence[float]]
    dead: str = ""


@dataclass(frozen=True)
class Figures:
    """Figures of one channel. `announced` counts messages that were sent again in doubt, doubled or not; the
    seconds are from put to first accepted."""

    put: int
    accepted: int
    sent_twice: int
    declared: int
    lost: int
    waiting: int
    failed: int
    announced: int
    median_seconds: float
    worst_seconds: float


@dataclass(frozen=True)
class Judgement:
    """`wrong` are sentences about anything that is not as it should be: lost and doubled messages first."""

    by_channel: dict[str, Figures]
    wrong: list[str] = field(default_factory=list)
    accepted_at: list[float] = field(default_factory=list)
    """When each message was first accepted, sorted."""

    def total(self, name: str) -> int:
        """A figure of all channels together."""
        return sum(int(getattr(each, name)) for each in self.by_channel.values())


def judge(load: Load, seen: Observation, max_attempts: int) -> Judgement:
    """Judge each message; a fax may have `max_attempts`."""
    times = acceptances(seen)
    repeats = _repeats(seen)
    delivered = {(id_, "fax"): count for id_, count in delivered_twice(seen.fax_log).items()}
    verdicts: dict[Key, Verdict] = {}
    for key in load.keys:
        # A fax that was busy is submitted again, and rightly so.
        count = delivered.get(key, min(1, len(times[key]))) if key[1] == "fax" else len(times[key])
        declared = repeats[key] + doubted(times[key], seen.announced.get(key, ()))
        verdicts[key] = verdict(count, declared, seen.ledger.get(key, {}), dead=key[0] in seen.dead)
    return Judgement(
        {channel: _figures(channel, verdicts, times, seen) for channel in PARTS},
        [
            *(_sentence(key, each, times[key], seen) for key, each in verdicts.items() if each in BAD),
            *_faults(load, seen, {key for key, each in verdicts.items() if each == "fine"}, max_attempts),
        ],
        sorted(times[key][0] for key in load.keys if times[key]),
    )


def verdict(accepted: int, declared: int, row: Mapping[str, Any], *, dead: bool) -> Verdict:
    """Judge one message: how often a provider accepted it, how many further ones were declared, its ledger
    item, and whether it is a dead letter."""
    if accepted > 1:
        return "declared" if accepted - 1 <= declared else "sent_twice"
    if messages.error_of(row)["code"] == "outcome_unknown":
        return "declared"
    if accepted:
        return "fine"
    if dead:
        return "waiting"
    return "failed" if "completedAt" in row and row.get("status") in UNSENT else "lost"


def acceptances(seen: Observation) -> dict[Key, list[float]]:
    """When each message was accepted, oldest first."""
    times: dict[Key, list[float]] = defaultdict(list)
    for id_, entries in messages.by_message(seen.inbox).items():
        for each in entries:
            times[id_, each["channel"]].append(datetime.fromisoformat(each["received_at"]).timestamp())
    for fax in seen.fax_log:
        times[_fax_key(fax)].append(fax["created"])
    for webhook, at in seen.webhooks:
        if webhook.kind == MESSAGES:
            times[webhook.about, "webhook"].append(at)
    return defaultdict(list, {key: sorted(each) for key, each in times.items()})


def doubted(accepted: Sequence[float], announced: Sequence[float]) -> int:
    """How many further acceptances follow an announcement that is younger than the acceptance before."""
    return sum(
        any(earlier < said <= later + CLOCK_SECONDS for said in announced)
        for earlier, later in pairwise(accepted)
    )


def _repeats(seen: Observation) -> Counter[Key]:
    """How many requests of each webhook have the webhook-id of another one: its receiver drops them."""
    ids: dict[str, list[str]] = defaultdict(list)
    for webhook, _ in seen.webhooks:
        if webhook.kind == MESSAGES:
            ids[webhook.about].append(webhook.webhook_id)
    return Counter({(about, "webhook"): len(those) - len(set(those)) for about, those in ids.items()})


def _figures(
    channel: str,
    verdicts: Mapping[Key, Verdict],
    times: Mapping[Key, Sequence[float]],
    seen: Observation,
) -> Figures:
    own = {key: each for key, each in verdicts.items() if key[1] == channel}
    counts = Counter(own.values())
    seconds = [times[key][0] - seen.put_at[key] for key in own if times[key]]
    return Figures(
        put=len(own),
        accepted=len(seconds),
        sent_twice=counts["sent_twice"],
        declared=counts["declared"],
        lost=counts["lost"],
        waiting=counts["waiting"],
        failed=counts["failed"],
        announced=len(own.keys() & seen.announced.keys()),
        median_seconds=round(statistics.median(seconds), 1) if seconds else 0.0,
        worst_seconds=round(max(seconds, default=0.0), 1),
    )


def _sentence(key: Key, bad: Verdict, times: Sequence[float], seen: Observation) -> str:
    said = messages.described(seen.ledger.get(key, {}))
    if bad == "lost":
        return f"{key[1]} {key[0]} is lost: the ledger says {said}."
    accepted, announced = (
        ", ".join(f"{at - seen.put_at[key]:.1f}" for at in moments)
        for moments in (times, seen.announced.get(key, ()))
    )
    return (
        f"{key[1]} {key[0]} was accepted {accepted} s after it was put, and announced to be sent again "
        f"{announced or 'never'}: the ledger says {said}."
    )


def _faults(load: Load, seen: Observation, fine: set[Key], max_attempts: int) -> Iterable[str]:
    """What the demo's checks find wrong with messages that were accepted once."""
    inbox = messages.by_message(seen.inbox)
    ids = {id_ for id_, _ in load.keys}
    for scenario in load.people:
        if scenario.key in fine:
            yield from messages.faults(scenario, seen.ledger.get(scenario.key, {}), inbox[scenario.id])
    faxes = [fax for fax in load.faxes if fax.key in fine]
    log = [each for each in seen.fax_log if _fax_key(each) in fine or _fax_key(each)[0] not in ids]
    yield from check_faxes(faxes, log, seen.ledger, max_attempts, 0).failures
    expected = {
        id_: each
        for id_, each in load.callbacks(max_attempts).items()
        if {(id_, "mail"), (id_, "fax")} & fine
    }
    webhooks = {id_: payload for id_, payload in load.webhooks.items() if (id_, "webhook") in fine}
    about = [each for each, _ in seen.webhooks if each.about in expected or each.about in webhooks]
    yield from check_callbacks(about, expected, webhooks).failures
    yield from messages.unexpected(inbox, ids)


def _fax_key(fax: Item) -> Key:
    """The message of a fax in the provider's log: its document has the id as its name."""
    return PurePosixPath(urlsplit(fax["media_url"]).path).stem, "fax"
