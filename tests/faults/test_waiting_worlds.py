"""Random worlds in which messages wait: windows, days, corrections, copies and crashes in any mixture."""

import json
from random import Random
from typing import Any

import pytest

from mailroom.clock import epoch, iso
from mailroom.message.message import Key
from tests.support.faults.world import BULK, HOUR, LINE, MAIL, MINUTE, World, mail

SEEDS = range(8)
DAY = 86_400
LIMITS = (4, 6, 10, 16)
"""Recipients per day, half of which bulk may use."""
WINDOWS: tuple[dict[str, Any] | None, ...] = (
    None,
    {"from": "09:00", "to": "20:00", "zone": "UTC"},
    {"from": "22:00", "to": "23:30", "zone": "UTC"},
)
STEPS = 40


class RandomWorld(World):
    """World in which anything may happen, and that judges what goes out."""

    def __init__(self, seed: int, *, keyed: bool) -> None:
        super().__init__(keyed=keyed)
        self.random = Random(seed)
        self.puts: dict[str, dict[str, Any]] = {}
        """Return the present items of the messages by their ids."""
        self.cancelled: set[str] = set()
        self.doubted: set[str] = set()
        """Messages whose worker died while it held them: their time is not asked any more."""
        self.bulk_at: list[float] = []
        """Times when bulk was accepted."""
        self.limit(LIMITS[0])

    def limit(self, per_day: int) -> None:
        """Let the channel's day have this limit from now on."""
        self.day = {"budgets_table": "budgets", "per_day": (("0001-01-01", per_day),), "reserve": 0.5}

    def play(self) -> None:
        """Take a random step."""
        steps = (self._put, self._pass, self._crash, self._copy, self._cancel, self._correct, self._limit)
        self.random.choices(steps, (6, 12, 6, 2, 1, 2, 1))[0]()
        self.send_events()

    def _put(self) -> None:
        name = f"m{len(self.puts)}"
        more: dict[str, Any] = {"lane": self.random.choice(("normal", "bulk", "bulk"))}
        if (window := self.random.choice(WINDOWS)) is not None:
            more["window"] = window
        if self.random.random() < 0.2:
            more["expires_at"] = iso(self.clock.now + self.random.choice((6, 30)) * HOUR)
        elif self.random.random() < 0.3:
            more["send_at"] = iso(self.clock.now + self.random.randrange(1, 2 * DAY))
        self.puts[name] = mail(name, **more)
        self.put(self.puts[name])
        self.stream()

    def _pass(self) -> None:
        due = self.next_due()
        seconds = self.random.choice((1, MINUTE, HOUR))
        later = self.clock.now + seconds if self.random.random() < 0.3 else due or 0
        self.clock.now = max(self.clock.now, later)
        self._step()

    def _step(self) -> None:
        before = len(self.accepted_ids())
        open_before = self._open()
        self.step()
        self._judge(before, open_before)

    def _open(self) -> dict[str, bool]:
        return {name: self._may_go(name) for name in self.puts}

    def _may_go(self, name: str) -> bool:
        window = self.puts[name].get("window")
        hour = self.clock.now % DAY / HOUR
        is_open = window is None or _hours(window["from"]) <= hour < _hours(window["to"])
        send_at = self.puts[name].get("send_at")
        return is_open and (send_at is None or epoch(send_at) <= self.clock.now)

    def _judge(self, before: int, may_go: dict[str, bool]) -> None:
        for name in self.accepted_ids()[before:]:
            assert may_go[name] or name in self.doubted, f"{name} was sent outside of its time"
            if self.puts[name]["lane"] == "bulk" and name not in self.doubted:
                self.bulk_at.append(self.clock.now)
                last_day = [at for at in self.bulk_at if at > self.clock.now - DAY]
                assert len(last_day) <= self.budget().part(), f"bulk is over its part with {name}"

    def _crash(self) -> None:
        at = len(self.outside.calls) + self.random.randrange(12)
        self.outside.stop = at, self.random.choice(("before", "after"))
        before, may_go = len(self.accepted_ids()), self._open()
        self.step()
        self.outside.stop = None
        for item in self.dynamodb.tables["ledger"].items.values():
            if "startedAt" in item:
                self.doubted.add(item["id"]["S"])
        self._judge(before, may_go)

    def _copy(self) -> None:
        if queued := [(url, each) for url in (MAIL, BULK) for each in self.queues.messages[url]]:
            url, message = self.random.choice(queued)
            texts = {name: each["stringValue"] for name, each in message.attributes.items()}
            attributes = {name: {"StringValue": text} for name, text in texts.items()}
            # A queue delivers a copy no earlier than its delay says.
            delay = 0 if message.receives else max(0, message.visible_at - self.clock.now)
            self.queues.put(url, message.body, delay + self.random.choice((0, MINUTE, HOUR)), attributes)

    def _cancel(self) -> None:
        if self.puts:
            name = self.random.choice([*self.puts])
            if self.ledger.cancel(Key(name, "mail")):
                self.cancelled.add(name)

    def _correct(self) -> None:
        if not self.puts:
            return
        name = self.random.choice([*self.puts])
        if self.ledger.cancel(Key(name, "mail")):
            new = {**self.puts[name], "first_name": "Corrected"}
            new.pop("send_at", None)
            self.puts[name] = new
            self.put(new)
            attempt = self.ledger.reopen(Key(name, "mail"), self.found(name))
            assert attempt is not None
            self.enqueue({**new, "attempt": attempt}, url=BULK if new["lane"] == "bulk" else MAIL)
            self.cancelled.discard(name)

    def _limit(self) -> None:
        self.limit(self.random.choice(LIMITS))

    def round(self, part: str) -> None:
        """Judge which messages a round hands over: those at the front of the line."""
        if part != LINE:
            super().round(part)
            return
        behind = len(self.queues.messages[BULK])
        items = [*self.dynamodb.tables["ledger"].items.values()]
        at = {item["id"]["S"]: int(item["waits_at"]["N"]) for item in items if "waits_at" in item}
        super().round(part)
        names = [json.loads(message.body)["id"] for message in self.queues.messages[BULK][behind:]]
        places = [at[name] for name in names]
        assert places == sorted(places), "the line is out of order"
        for item in self.dynamodb.tables["ledger"].items.values():
            name, status = item["id"]["S"], item["status"]["S"]
            in_line = status == "scheduled" and item.get("waits_in", {"S": ""})["S"].startswith(LINE)
            if places and in_line and name not in names and self._may_go(name):
                assert int(item["waits_at"]["N"]) >= places[-1], "a message behind went first"

    def finish(self) -> None:
        """Let time pass until no message waits, and judge the whole."""
        for _ in range(3000):
            due = self.next_due()
            if due is None:
                break
            self.clock.now = max(self.clock.now, due)
            self._step()
            self.send_events()
        assert self.next_due() is None
        for name in self.puts:
            self._judge_end(name)
        assert not any(self.queues.dead.values())

    def _judge_end(self, name: str) -> None:
        end, sends = self.end(name), self.sends()[name]
        assert end in {"sent", "cancelled: cancelled", "failed: expired"}, (name, end)
        assert sends == (end == "sent"), (name, end, sends)
        assert (end == "cancelled: cancelled") == (name in self.cancelled), name
        assert end != "failed: expired" or "expires_at" in self.puts[name], name
        accepted = self.ses.accepted if self.resend is None else self.resend.accepted
        mails = [text for text in map(json.dumps, accepted) if f'"{name}@' in text]
        assert all(self.puts[name]["first_name"] in text for text in mails), (
            f"{name} is not the corrected one"
        )


def _hours(text: str) -> float:
    hours, minutes = map(int, text.split(":"))
    return hours + minutes / 60


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_waiting_message_is_not_lost_or_sent_twice_early_or_out_of_order_under_random_faults(
    seed: int, *, keyed: bool
) -> None:
    world = RandomWorld(seed, keyed=keyed)
    for _ in range(STEPS):
        world.play()
    world.finish()
