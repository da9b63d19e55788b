"""Checks each message: compares what the providers accepted with the ledger and the expected outcome.

| verdict    | messages                                                                                      |
|------------|-----------------------------------------------------------------------------------------------|
| fine       | accepted as often as expected                                                                 |
| declared   | accepted again, each time after the sender logged that it sends again after an unknown        |
|            | outcome; or failed with `outcome_unknown`; or a webhook repeated with the same webhook-id     |
| sent_twice | accepted more often than that; a fax: delivered more than once                                |
| waiting    | not accepted: in a dead-letter queue, or in the bucket of records on which streams gave up    |
| failed     | not accepted: the ledger has the reason                                                       |
| lost       | not accepted, for none of these reasons                                                       |
"""

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

from lab.harness.acceptances import Acceptance, acceptances
from lab.harness.callbacks import ReceivedCallback, different, notice_faults
from lab.harness.expected import CALLBACKS, MESSAGES, Expected, Item, Key

Ledger = Mapping[Key, Mapping[str, Any]]
Verdict = Literal["fine", "declared", "sent_twice", "waiting", "failed", "lost"]
BAD: set[Verdict] = {"sent_twice", "lost"}
UNSENT = {"failed", "suppressed", "cancelled"}
"""Final statuses of messages that were not submitted, for a recorded reason."""
CLOCK_SECONDS = 0.002
"""Tolerance for comparing times, in seconds, because logs and providers write whole milliseconds."""


@dataclass(frozen=True)
class Observation:
    """Observations of a run, made when the pipeline is idle. Times are in epoch seconds.

    `inbox` has the mails, SMS and push messages that the providers accepted, `faxes` their log of faxes, and
    `requests` the requests to the webhook receiver. `announced` has the times at which a sender logged that
    it sends a message again after an unknown outcome. `dead` is the text of all dead letters, and of all
    records on which streams gave up.
    """

    inbox: Sequence[Item]
    faxes: Sequence[Item]
    requests: Sequence[ReceivedCallback]
    ledger: Ledger
    put_at: Mapping[Key, float] = field(default_factory=dict)
    announced: Mapping[Key, Sequence[float]] = field(default_factory=dict)
    dead: str = ""

    @cached_property
    def accepted(self) -> Mapping[Key, list[Acceptance]]:
        return acceptances(self.inbox, self.faxes, self.requests)


@dataclass(frozen=True)
class Figures:
    """Figures of a set of messages. `announced` is the number of messages that were sent again after an
    unknown outcome, whether they arrived twice or not. Times are the seconds from the put to the first
    acceptance."""

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
    """Result of the check. `wrong` has a sentence for each error: first lost messages and messages sent
    twice."""

    seen: Observation
    verdicts: Mapping[Key, Verdict]
    wrong: list[str]

    def figures(self, keys: Iterable[Key]) -> Figures:
        """Return the figures of these messages, which must all have been checked."""
        chosen_keys, observation = set(keys), self.seen
        counts = Counter(self.verdicts[key] for key in chosen_keys)
        accepted = [key for key in chosen_keys if observation.accepted.get(key)]
        seconds = [
            observation.accepted[key][0].at - observation.put_at[key]
            for key in accepted
            if key in observation.put_at
        ]
        return Figures(
            put=len(chosen_keys),
            accepted=len(accepted),
            sent_twice=counts["sent_twice"],
            declared=counts["declared"],
            lost=counts["lost"],
            waiting=counts["waiting"],
            failed=counts["failed"],
            announced=len(chosen_keys & observation.announced.keys()),
            median_seconds=round(statistics.median(seconds), 1) if seconds else 0.0,
            worst_seconds=round(max(seconds, default=0.0), 1),
        )


def judge(load: Sequence[Expected], observation: Observation, *, strict: bool) -> Judgement:
    """Check each message. If `strict` is true, each must also have its expected outcome. Otherwise only
    messages with the verdict `fine` must have it, because the faults of the run excuse others."""
    doubled = _repeated_webhooks(observation.requests)
    verdicts = {
        message.key: verdict(
            _times(message, observation) + doubled[message.id],
            message.submits,
            doubled[message.id] + _declared(message.key, observation),
            observation.ledger.get(message.key, {}),
            dead=message.id in observation.dead,
        )
        for message in load
    }
    checked = [message for message in load if strict or verdicts[message.key] == "fine"]
    bad = (_sentence(key, name, observation) for key, name in verdicts.items() if name in BAD)
    return Judgement(
        observation, verdicts, [*bad, *_faults(checked, observation), *_unexpected(load, observation)]
    )


def verdict(accepted: int, submits: int, declared: int, row: Mapping[str, Any], *, dead: bool) -> Verdict:
    """Return the verdict on one message. `accepted` is the number of submits that a provider accepted,
    `submits` the expected number, `declared` the number of further submits that were declared, `row` the
    ledger item, and `dead` whether the message is a dead letter."""
    again = accepted - max(submits, 1)
    if again > 0:
        return "declared" if again <= declared else "sent_twice"
    if error_of(row)["code"] == "outcome_unknown":
        return "declared"
    if accepted:
        return "fine"
    if dead:
        return "waiting"
    return "failed" if "completedAt" in row and row.get("status") in UNSENT else "lost"


def announced_again(accepted: Sequence[float], announced: Sequence[float]) -> int:
    """Return the number of repeated acceptances that follow an announcement made after the previous
    acceptance."""
    return sum(
        any(earlier < moment <= later + CLOCK_SECONDS for moment in announced)
        for earlier, later in pairwise(accepted)
    )


def faults(message: Expected, row: Mapping[str, Any], accepted: Sequence[Acceptance]) -> Iterator[str]:
    """Yield a sentence for each error of a message, the most important first."""
    id_ = message.id
    if "completedAt" not in row:
        yield f"{id_} has not ended: the ledger says {described(row)}."
    elif row["status"] != message.status:
        yield f"{id_} should be {message.status}; the ledger says {described(row)}."
    if row:
        yield from _row_faults(message, row)
    if len(accepted) != message.submits:
        yield f"{id_} was accepted {len(accepted)} times instead of {message.submits}."
    for acceptance in accepted:
        yield from _submit_faults(message, acceptance)
    provider_ids = {acceptance.provider_id for acceptance in accepted} - {None}
    if provider_ids and row and row.get("provider_id") not in provider_ids:
        yield f"{id_}: the ledger has the provider id {row.get('provider_id')!r}, which is wrong."


def described(row: Mapping[str, Any]) -> str:
    return f"{row.get('status')}, {row.get('error', 'no error')}" if row else "not in the ledger"


def error_of(row: Mapping[str, Any]) -> dict[str, str]:
    """Return the code and message of a ledger item's error, or empty strings without an error."""
    error = row.get("error") or {}
    return {"code": str(error.get("code", "")), "message": str(error.get("message", ""))}


def delivered_twice(faxes: Iterable[Acceptance]) -> dict[str, int]:
    """Return the ids of the faxes that were delivered more than once, and how often."""
    delivered = Counter(fax.key[0] for fax in faxes if fax.delivered)
    return {id_: count for id_, count in delivered.items() if count > 1}


def strangers(accepted: Iterable[Key], ids: Iterable[str]) -> list[str]:
    """Return a sentence for each message that a provider accepted but that is not among `ids`, the ids of the
    load."""
    put = set(ids)
    return [f"A provider got {id_}, which was not sent." for id_, _ in accepted if id_ not in put]


def _times(message: Expected, observation: Observation) -> int:
    """Return how often a message was accepted. A busy fax is correctly submitted again, so for a delivered
    fax only deliveries count."""
    accepted = observation.accepted.get(message.key, [])
    if message.channel == "fax":
        delivered = sum(acceptance.delivered for acceptance in accepted)
        return message.submits - 1 + delivered if delivered else min(len(accepted), message.submits)
    return len(accepted)


def _declared(key: Key, observation: Observation) -> int:
    return announced_again(
        [acceptance.at for acceptance in observation.accepted.get(key, ())],
        observation.announced.get(key, ()),
    )


def _repeated_webhooks(requests: Sequence[ReceivedCallback]) -> Counter[str]:
    """Return, for each webhook message, the number of requests that repeat a webhook-id, which its receiver
    ignores."""
    ids: dict[str, list[str]] = defaultdict(list)
    for request in requests:
        if request.kind == MESSAGES:
            ids[request.about].append(request.webhook_id)
    return Counter({id_: len(webhook_ids) - len(set(webhook_ids)) for id_, webhook_ids in ids.items()})


def _sentence(key: Key, bad: Verdict, observation: Observation) -> str:
    row = described(observation.ledger.get(key, {}))
    if bad == "lost":
        return f"{key[1]} {key[0]} is lost: the ledger says {row}."
    put = observation.put_at.get(key, 0.0)
    times = [acceptance.at for acceptance in observation.accepted[key]]
    accepted, announced = (
        ", ".join(f"{moment - put:.1f}" for moment in moments)
        for moments in (times, observation.announced.get(key, ()))
    )
    return (
        f"{key[1]} {key[0]} was accepted {accepted} s after it was put, and announced to be sent again "
        f"{announced or 'never'}: the ledger says {row}."
    )


def _faults(load: Sequence[Expected], observation: Observation) -> Iterator[str]:
    """Yield the errors of messages that must have their expected outcome."""
    arrived = {request.about: request.payload for request in observation.requests if request.kind == MESSAGES}
    callbacks = different(observation.requests)
    for message in load:
        accepted = observation.accepted.get(message.key, [])
        yield from faults(message, observation.ledger.get(message.key, {}), accepted)
        if message.callbacks:
            yield from notice_faults(message.id, callbacks, message.callbacks)
        if message.id in arrived and arrived[message.id] != message.item["payload"]:
            yield f"The webhook {message.id} arrived with another payload."


def _unexpected(load: Sequence[Expected], observation: Observation) -> Iterator[str]:
    """Yield an error for each received request that does not belong to a message of the load."""
    yield from strangers(observation.accepted, (message.id for message in load))
    expected_ids = {message.id for message in load if message.callbacks}
    for callback in observation.requests:
        if not callback.verified:
            yield f"A request about {callback.about} has a wrong signature."
        elif callback.kind == CALLBACKS and callback.about not in expected_ids:
            yield f"A callback about {callback.about} was not expected."


def _submit_faults(message: Expected, submit: Acceptance) -> Iterator[str]:
    """Yield the errors of a submit: a wrong address, an unread document, or other faxes on its line."""
    if message.channel in ("mail", "fax") and submit.to != message.address:
        yield f"{message.id} went to {submit.to} instead of {message.address}."
    if submit.unread:
        yield f"The provider could not fetch the document of {message.id}."
    if submit.overlaps:
        yield f"A fax to {submit.to} overlapped with {submit.overlaps} others on its line."


def _row_faults(message: Expected, row: Mapping[str, Any]) -> Iterator[str]:
    """Yield the errors of the ledger item: its reason, its facts, or its recipients' outcomes."""
    id_, reason = message.id, error_of(row)["message"]
    if message.reason not in reason:
        yield f"{id_}: the reason {reason!r} does not contain {message.reason!r}."
    for name, value in message.facts.items():
        if row.get(name) != value:
            yield f"{id_}: {name} should be {value!r}; the ledger says {row.get(name)!r}."
    outcomes = {recipient: entry.get("status") for recipient, entry in row.get("recipients", {}).items()}
    if message.recipients and outcomes != message.recipients:
        expected = dict(message.recipients)
        yield f"{id_}: its recipients should be {expected}; the ledger says {outcomes}."
