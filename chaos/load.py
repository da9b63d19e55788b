"""The load: messages of all channels, drawn by a seed and put at a steady rate."""

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from local.demo.client import Item, Key
from local.demo.scenarios import CALLBACKS, MESSAGES, Notice, Scenario
from local.demo.scenarios.faxes import FaxScenario
from local.demo.scenarios.plan import expected_callbacks
from local.demo.scenarios.pushes import MARK

PARTS = {"mail": 0.56, "sms": 0.2, "push": 0.1, "webhook": 0.1, "fax": 0.04}
"""Each channel's part of the messages. Faxes are few, because each keeps its line busy."""
BULK, WITH_CALLBACK = 0.2, 0.1
"""The parts of the mails that go by the bulk lane, and that have a callback URL."""
AREAS = (206, 305, 312, 404, 415, 503, 512, 602, 617, 702, 713, 718, 773, 808, 916)
DEVICES = 40


@dataclass
class Load:
    """What is put, in its order, and what must become of it. Callbacks are by the message's id."""

    items: list[Item] = field(default_factory=list)
    people: list[Scenario] = field(default_factory=list)
    """Mails, SMS and pushes."""
    faxes: list[FaxScenario] = field(default_factory=list)
    webhooks: dict[str, Any] = field(default_factory=dict)
    """Payloads by the message's id."""

    @property
    def keys(self) -> list[Key]:
        return [(item["id"], item["event_type"]) for item in self.items]

    def callbacks(self, max_attempts: int) -> Mapping[str, Sequence[Notice]]:
        """The callbacks that must come; a fax may have so many attempts."""
        return expected_callbacks(self.people, self.faxes, max_attempts)


def draw(seed: int, count: int, providers: str) -> Load:
    """So many messages; the same ones for the same seed. `providers` is the simulators' URL."""
    chance = random.Random(seed)
    load = Load()
    for number, channel in enumerate(chance.choices(list(PARTS), list(PARTS.values()), k=count)):
        id_ = f"chaos-{number:06}"
        if channel == "fax":
            fax = FaxScenario(id_, f"+1{chance.choice(AREAS)}55501{chance.randint(30, 39)}")
            load.faxes.append(fax)
            load.items.append(fax.item(providers, bucket=""))
        elif channel == "webhook":
            load.webhooks[id_] = {"order": number}
            url = f"{providers}/receiver/ok/{MESSAGES}/{id_}"
            load.items.append({"id": id_, "event_type": channel, "url": url, "payload": load.webhooks[id_]})
        else:
            scenario = _to_people(channel, id_, chance, providers)
            load.people.append(scenario)
            load.items.append(scenario.item)
    return load


def _to_people(channel: str, id_: str, chance: random.Random, providers: str) -> Scenario:
    item: Item = {"id": id_, "event_type": channel}
    if channel == "sms":
        # Other numbers of the simulated network have trouble of their own.
        to = f"+1{chance.choice(AREAS)}55501{chance.randint(70, 99)}"
        return Scenario(item | {"to": to, "text": f"Hello from {id_}."})
    if channel == "push":
        device = f"chaos-device-{chance.randrange(DEVICES)}"
        text = {"title": "Hello", "body": f"From {id_}", "data": {MARK: id_}}
        return Scenario(item | {"to": device, "platform": "android", **text}, ends="sent")
    item |= {"to": f"{id_}@example.com", "subject": f"Hello from {id_}", "text": "Hello."}
    if chance.random() < BULK:
        item["lane"] = "bulk"
    if chance.random() < WITH_CALLBACK:
        item["callback_url"] = f"{providers}/receiver/ok/{CALLBACKS}/{id_}"
    return Scenario(item)


def put_steadily(
    items: Sequence[Item],
    rate: float,
    put: Callable[[Item], object],
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Put each item when its time has come, `rate` a second; at once where the stage is behind."""
    began = clock()
    for number, item in enumerate(items):
        wait = began + number / rate - clock()
        if wait > 0:
            sleep(wait)
        put(item)
