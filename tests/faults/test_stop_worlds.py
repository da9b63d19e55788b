"""Random worlds of starts, stops, pauses, corrections, deployments, losses and crashes, judged by a model of
the rules about stops."""

import json
from collections import Counter
from random import Random
from typing import Any

import pytest
from msgspec import structs

from mailroom.aws.dynamo_values import image_of, plain
from mailroom.campaigns.audience import Found, Page, Recipient
from mailroom.clock import iso
from mailroom.delivery.worker import Worker
from mailroom.message.message import key_of
from tests.support.faults.campaign_world import AUDIENCE, COLLECT, RUN, People, address
from tests.support.faults.outside import Ses
from tests.support.faults.rules_of_starts import RulesOfStarts
from tests.support.faults.stop_world import StopWorld
from tests.support.faults.stops import SIDES
from tests.support.faults.world import BULK, MAIL

PEOPLE, SEEDS = 25, 80
"""People of each world, and number of worlds: 2,000 people in all."""
ACTS = {
    "play_for_a_while": 14,
    "crash": 6,
    "race": 8,
    "start_again": 3,
    **dict.fromkeys(("stop", "pause", "resume", "correct_content", "correct_audience", "pause_lane"), 2),
    **dict.fromkeys(("back_up", "lose_run", "restore_run"), 2),
    **dict.fromkeys(("deploy", "expire_items", "restart_process"), 1),
}
"""Acts of operators, functions and time: methods of `RandomWorld`, with their weights."""
RUN_KEY: Any = image_of({"campaign": "weekly", "run": RUN})


class ChangingPeople(People):
    """An audience that changes. Each person's first name tells the start that has read the page, and the
    content's version."""

    def __init__(self, world: "RandomWorld") -> None:
        super().__init__(PEOPLE)
        self.world = world
        self.present = {f"p{at}" for at in range(PEOPLE)}
        self.version = 0

    def page(self, page: Page) -> Found:
        found = super().page(page)
        marked = f"start {self.world.campaign.run().valid_from} version {self.version};"
        people = [
            Recipient(person.key, {**person.attributes, "first_name": marked})
            for person in found.recipients
            if person.key in self.present
        ]
        return Found(people, found.cursor, found.faults)


class RandomWorld(StopWorld):
    """A world that plays random acts, and checks each mail that the provider accepts."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        super().__init__(PEOPLE, self.random.choice((10**6, 10**6, 20)))
        self.people = ChangingPeople(self)
        self.campaign.people = self.people
        self.campaign._people = self.outside.watch(self.people, "page")
        window = self.random.choice((None, None, "open", "closed"))
        hour = int(self.clock.now % 86_400 // 3600) + (1 if window == "closed" else 0)
        hours = {"from": f"{hour % 24:02}:00", "to": f"{(hour + 2) % 24:02}:00", "zone": "UTC"}
        self.campaign.definition = structs.replace(
            self.campaign.definition,
            attributes={"template": "default", **({"window": hours} if window else {})},
            page_size=10,
            recipients_per_message=5,
        )
        self.rules = RulesOfStarts()
        self.numbers: list[int] = []
        self.deployed, self.lane_is_paused = True, False
        self.backup: Any = None
        self.begun_batches: list[float] = []
        self.wrong: list[tuple[str, int, float, int]] = []
        """Mails that the rules did not permit, with the number of acts before."""
        self.crashes = 0
        self.log: list[str] = []
        self.ses.send_email = self.judge  # type: ignore[method-assign]
        self.bulk_worker = super().worker(BULK)

    def worker(self, url: str = MAIL) -> Worker:
        """Return a worker. The bulk lane's worker keeps its memory between invocations, as in Lambda."""
        return self.bulk_worker if url == BULK else super().worker(url)

    def deliver(self, url: str = MAIL) -> None:
        if url == BULK and self.lane_is_paused:
            return
        self.begun_batches.append(self.clock.now)
        super().deliver(url)
        self.begun_batches.pop()

    def judge(self, **request: Any) -> Any:
        """Check that the rules permit a mail, by the time when its batch has begun."""
        self.note_starts()  # the function that begins a start may still run
        number = int(json.dumps(request["Content"]).partition("start ")[2].split()[0])
        person, begun = request["Destination"]["ToAddresses"][0], self.begun_batches[-1]
        if not self.rules.permits(number, begun):
            self.wrong.append((person, number, begun, len(self.log)))
        return Ses.send_email(self.ses, **request)

    def play(self) -> bool:
        """Do the next due step, and mark dead letters in the ledger. Returns False if no step is due."""
        is_due = super().play()
        for dead in self.queues.dead[BULK]:
            self._feedback.dead_lettered(key_of(json.loads(dead.body)))
        return is_due

    def run_campaign(self) -> None:
        self.collect()
        if self.deployed:
            self.campaign.deliver(AUDIENCE)

    def next_due(self) -> float | None:
        idle = (*(() if self.deployed else (COLLECT, AUDIENCE)), *((BULK,) if self.lane_is_paused else ()))
        waiting = {url: self.queues.messages.pop(url, []) for url in idle}
        due = super().next_due()
        self.queues.messages |= waiting
        return due

    def note_starts(self) -> None:
        run = self.campaign.runs.read("weekly", RUN)
        if run is None or run.state == "stopped" or run.valid_from in self.numbers:
            return
        assert run.valid_from > max(self.numbers, default=0), "a start's number is above all earlier ones"
        self.numbers.append(run.valid_from)
        self.rules.exists = True
        self.rules.begun(self.clock.now, run.valid_from)

    def act(self) -> None:
        """Do a random act."""
        name = self.random.choices([*ACTS], [*ACTS.values()])[0]
        self.log.append(f"{self.clock.now:.1f} {name}")
        getattr(self, name)()

    def play_for_a_while(self) -> None:
        self.play_on(self.random.choice((0, 1, 1, 30, 300, 3600)))

    def crash(self) -> None:
        self.crashes += 1
        self.outside.stop = len(self.outside.calls) + self.random.randrange(60), self.random.choice(SIDES)
        self.play()
        self.outside.stop = None
        self.note_starts()

    def race(self) -> None:
        """Let another function, or an operator, act just before a call of a function."""
        self.outside.intrude = len(self.outside.calls) + self.random.randrange(60), self.act_at_once
        self.play()
        self.outside.intrude = None
        self.note_starts()

    def act_at_once(self) -> None:
        """Do a few acts that take no time."""
        acts = (
            *(self.stop, self.pause, self.resume, self.start_again, self.start_again, self.release),
            *(self.collect, self.compose, self.compose, self.dispatch),
            *(lambda: self.deliver(BULK), lambda: self.deliver(BULK)),
        )
        for act in self.random.choices(acts, k=self.random.randrange(1, 6)):
            self.log.append(f"  race: {getattr(act, '__name__', '')}")
            act()

    def collect(self) -> None:
        if self.deployed:
            self.campaign.deliver(COLLECT, 1)
            self.note_starts()

    def compose(self) -> None:
        if self.deployed:
            self.campaign.deliver(AUDIENCE, 1)
            self.dispatch()

    def pause_lane(self) -> None:
        """Let the lane's sender pause, so that messages stay in its queue, or resume."""
        self.lane_is_paused = not self.lane_is_paused

    def correct_content(self) -> None:
        self.people.version += 1

    def correct_audience(self) -> None:
        everybody = sorted(f"p{at}" for at in range(PEOPLE))
        self.people.present = {*self.random.sample(everybody, self.random.randrange(5, PEOPLE))}

    def start_again(self) -> None:
        if self.rules.exists:  # operators' commands refuse to start a lost run
            self.begin()

    def stop(self) -> None:
        super().stop()
        self.rules.stopped(self.clock.now)

    def pause(self) -> None:
        super().pause()
        self.rules.pause(self.clock.now, paused=True)

    def resume(self) -> None:
        super().resume()
        self.rules.pause(self.clock.now, paused=False)

    def deploy(self) -> None:
        """Deploy without campaigns, or with them again. Their queues are deleted with the stack."""
        self.deployed = not self.deployed
        for url in (COLLECT, AUDIENCE):
            self.queues.messages[url].clear()

    def back_up(self) -> None:
        self.backup = self.dynamodb.get_item(TableName="runs", Key=RUN_KEY).get("Item", self.backup)

    def lose_run(self) -> None:
        # The start of a run that is lost would be a new run.
        if self.backup is not None and not self.queues.messages[COLLECT]:
            self.dynamodb.delete_item(TableName="runs", Key=RUN_KEY)
            self.rules.lost(self.clock.now)

    def restore_run(self) -> None:
        if self.backup is None or self.rules.exists:
            return
        self.clock.now += 3600  # a recovery of the table takes long
        words = {"S": f"since {iso(self.clock.now)}: restored from a backup"}
        self.dynamodb.put_item(TableName="runs", Item={**self.backup, "paused": words})
        self.rules.restored(self.clock.now, int(self.backup["valid_from"]["N"]))

    def expire_items(self) -> None:
        """Delete the items of the mailbox that were dispatched, like DynamoDB after their `ttl`."""
        self.dispatch()
        for item in [*self.dynamodb.tables["mailbox"].items.values()]:
            key: Any = {name: item[name] for name in ("id", "event_type")}
            self.dynamodb.delete_item(TableName="mailbox", Key=key)

    def restart_process(self) -> None:
        self.bulk_worker = super().worker(BULK)

    def finish(self) -> None:
        """Deploy the campaign, restore its run, start it for the present audience, and play to the end."""
        self.lane_is_paused = False
        if not self.deployed:
            self.deploy()
        self.restore_run()
        self.begin()
        self.play_on()


def check_end(world: RandomWorld) -> None:
    """Check that after the last start each person of the present audience has exactly one message, and that
    no other message waits. After a crash, the outcome of a batch may stay unknown."""
    assert not world.wrong, (world.wrong, world.log)
    counts = Counter(request["Destination"]["ToAddresses"][0] for request in world.ses.accepted)
    assert {*counts.values()} <= {1}, world.log
    unknown = set[str]()
    for item in (plain(item) for item in world.dynamodb.tables["ledger"].items.values()):
        person = item["id"].split("#")[2]
        is_waiting, code = "completedAt" not in item, item.get("error", {}).get("code")
        if code == "outcome_unknown" or (is_waiting and "unsettled_tries" in item):
            unknown.add(person)
        # A message whose outcome is unknown becomes a dead letter during a long pause. An attempt that was
        # prepared before a crash, and whose start has ended, waits only if its person has left the audience.
        ends = not is_waiting or ("dead_lettered_at" in item and person in unknown)
        prepared = item["status"] == "retrying" and item.keys().isdisjoint(("startedAt", "unsettled_tries"))
        assert ends or (prepared and person not in world.people.present), (item, world.log)
    assert len(unknown) <= 10 * world.crashes
    without = {key for key in world.people.present if address(key) not in counts} - unknown
    assert not without, (without, world.log)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_after_random_stops_and_starts_each_person_of_the_present_audience_gets_exactly_one_message(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A look a few times an hour, not each minute, whether a day or a pause is over.
    monkeypatch.setattr("mailroom.campaigns.collector.LOOK_AGAIN_SECONDS", 900)
    monkeypatch.setattr("tests.support.faults.world.MINUTE", 900)
    world = RandomWorld(seed)
    world.begin()
    for _ in range(40):
        world.act()
    world.finish()
    check_end(world)
