"""The load: messages of all channels, drawn by a seed."""

import random

from lab.demo.load.faxes import fax
from lab.harness.acceptances import MARK
from lab.harness.expected import MESSAGES, Expected, Item, with_callback

PARTS = {"mail": 0.56, "sms": 0.2, "push": 0.1, "webhook": 0.1, "fax": 0.04}
"""Each channel's part of the messages. Faxes are few, because each keeps its line busy."""
BULK, WITH_CALLBACK = 0.2, 0.1
"""The parts of the mails that go by the bulk lane, and that have a callback URL."""
AREAS = (206, 305, 312, 404, 415, 503, 512, 602, 617, 702, 713, 718, 773, 808, 916)
DEVICES = 40


def draw(seed: int, count: int, providers: str) -> list[Expected]:
    """So many messages; the same ones for the same seed. `providers` is the simulators' URL."""
    chance = random.Random(seed)
    channels = chance.choices(list(PARTS), list(PARTS.values()), k=count)
    return [_one(channel, number, chance, providers) for number, channel in enumerate(channels)]


def _one(channel: str, number: int, chance: random.Random, providers: str) -> Expected:
    id_ = f"chaos-{number:06}"
    item: Item = {"id": id_, "event_type": channel}
    if channel == "fax":
        return fax(id_, f"+1{chance.choice(AREAS)}55501{chance.randint(30, 39)}", providers=providers)
    if channel == "webhook":
        url = f"{providers}/receiver/ok/{MESSAGES}/{id_}"
        return Expected(item | {"url": url, "payload": {"order": number}})
    if channel == "sms":
        # Other numbers of the simulated network have trouble of their own.
        to = f"+1{chance.choice(AREAS)}55501{chance.randint(70, 99)}"
        return Expected(item | {"to": to, "text": f"Hello from {id_}."})
    if channel == "push":
        device = f"chaos-device-{chance.randrange(DEVICES)}"
        text = {"title": "Hello", "body": f"From {id_}", "data": {MARK: id_}}
        return Expected(item | {"to": device, "platform": "android", **text})
    item |= {"to": f"{id_}@example.com", "subject": f"Hello from {id_}", "text": "Hello."}
    if chance.random() < BULK:
        item["lane"] = "bulk"
    mail = Expected(item)
    return with_callback(mail, providers) if chance.random() < WITH_CALLBACK else mail
