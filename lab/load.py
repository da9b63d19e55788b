"""Messages to put on a stage: a random load of all channels, determined by a seed, and some messages that
fail or bounce."""

import random

from lab.harness.acceptances import MARK
from lab.harness.expected import CALLBACKS, MESSAGES, Expected, Item, Notice, with_callback
from mailroom_local.providers.ses_events import SIMULATOR_DOMAIN

PARTS = {"mail": 0.56, "sms": 0.2, "push": 0.1, "webhook": 0.1, "fax": 0.04}
"""Share of each channel in the load. There are few faxes, because each keeps its line busy."""
BULK, WITH_CALLBACK = 0.2, 0.1
"""Share of the mails that use the bulk lane, and share of the mails that have a callback URL."""
AREAS = (206, 305, 312, 404, 415, 503, 512, 602, 617, 702, 713, 718, 773, 808, 916)
DEVICES = 40
NAMES = {"first_name": "Ada", "last_name": "Lovelace"}
"""Variables of the template `default`, which is used for a mail without a text."""
BOUNCES = f"bounce+awkward@{SIMULATOR_DOMAIN}"
TWO_TIMES_BUSY, REFUSING = "+12025550112", "+12025550115"
NO_MOBILE, LANDLINE = "+12025550141", "+12025550132"


def draw(seed: int, count: int, providers: str) -> list[Expected]:
    """Return `count` random messages, the same for the same seed. `providers` is the simulators' URL."""
    chance = random.Random(seed)
    channels = chance.choices(list(PARTS), list(PARTS.values()), k=count)
    return [_drawn(channel, number, chance, providers) for number, channel in enumerate(channels)]


def _drawn(channel: str, number: int, chance: random.Random, providers: str) -> Expected:
    id_ = f"load-{number:06}"
    item: Item = {"id": id_, "event_type": channel}
    if channel == "fax":
        return fax(id_, f"+1{chance.choice(AREAS)}55501{chance.randint(30, 39)}", providers=providers)
    if channel == "webhook":
        url = f"{providers}/receiver/ok/{MESSAGES}/{id_}"
        return Expected(item | {"url": url, "payload": {"order": number}})
    if channel == "sms":
        # The last two digits determine the outcome of the simulated number. Other digits could cause errors.
        to = f"+1{chance.choice(AREAS)}55501{chance.randint(70, 99)}"
        return Expected(item | {"to": to, "text": f"Hello from {id_}."})
    if channel == "push":
        device = f"load-device-{chance.randrange(DEVICES)}"
        text = {"title": "Hello", "body": f"From {id_}", "data": {MARK: id_}}
        return Expected(item | {"to": device, "platform": "android", **text})
    item |= {"to": f"{id_}@example.com"} | NAMES
    if chance.random() < BULK:
        item["lane"] = "bulk"
    mail = Expected(item)
    return with_callback(mail, providers) if chance.random() < WITH_CALLBACK else mail


def awkward(providers: str, max_attempts: int) -> list[Expected]:
    """Return messages that fail or bounce, each with its expected outcome. `max_attempts` is the stage's
    limit of attempts for a fax."""
    mail = {"event_type": "mail", "to": "awkward@example.com"} | NAMES
    text = {"event_type": "sms", "text": "Hello."}
    push = {"event_type": "push", "platform": "ios", "body": "Hello."}
    webhook = {"event_type": "webhook", "payload": {"answer": "503 first"}}
    injection = {"X-Order": "7\r\nBcc: eve@example.com"}
    flaky = f"{providers}/receiver/flaky/1/{MESSAGES}/awkward-flaky-endpoint"
    return [
        Expected(_awkward(mail, "no-address", to=None), reason="to"),
        Expected(_awkward(mail, "no-first-name", first_name=None), reason="first_name"),
        Expected(_awkward(mail, "header-injection", headers=injection), reason="X-Order"),
        Expected(_awkward(mail, "unknown-channel", event_type="pigeon"), reason="event_type"),
        with_callback(Expected(_awkward(mail, "bounce", to=BOUNCES), ends="bounced"), providers),
        Expected(_awkward(mail, "complaint", to=f"complaint@{SIMULATOR_DOMAIN}"), ends="complained"),
        Expected(_awkward(text, "no-mobile", to=NO_MOBILE), reason="21614"),
        with_callback(Expected(_awkward(text, "landline", to=LANDLINE), ends="undelivered"), providers),
        Expected(_awkward(push, "malformed-token", to="not-hexadecimal"), reason="oken"),
        Expected(_awkward(webhook, "flaky-endpoint", url=flaky)),
        fax("awkward-busy-twice", TWO_TIMES_BUSY, providers=providers, fails=2, max_attempts=max_attempts),
        fax("awkward-refused", REFUSING, providers=providers, reason="number"),
    ]


def suppressed() -> list[Expected]:
    """Return messages to recipients of `awkward` that are suppressed after a permanent bounce."""
    mail = {"id": "awkward-bounced-before", "event_type": "mail", "to": BOUNCES} | NAMES
    text = {"id": "awkward-landline-before", "event_type": "sms", "to": LANDLINE, "text": "Hello."}
    return [Expected(item, reason="bounced", ends="suppressed") for item in (mail, text)]


def _awkward(item: Item, name: str, **changes: object) -> Item:
    """Return the item with these changes, without attributes whose value is None."""
    changed = item | {"id": f"awkward-{name}"} | changes
    return {attribute: value for attribute, value in changed.items() if value is not None}


def fax(
    id_: str, line: str, *, providers: str, max_attempts: int = 1, fails: int = 0, reason: str = ""
) -> Expected:
    """Return a fax to the number `line`. The line is busy in its first `fails` attempts of at most
    `max_attempts`. `reason` is a word of the ledger's error if the fax is not delivered."""
    item = {
        "id": id_,
        "event_type": "fax",
        "to": line,
        "pdf_url": f"https://example.com/faxes/{id_}.pdf",
        "callback_url": f"{providers}/receiver/ok/{CALLBACKS}/{id_}",
    }
    callbacks = _fax_callbacks(fails, max_attempts, reason)
    return Expected(item, reason=reason, callbacks=callbacks, failing=fails)


def _fax_callbacks(fails: int, max_attempts: int, reason: str) -> list[Notice]:
    attempts = [
        ("tmp_fail", f"Failed to deliver fax (attempt {attempt} of {max_attempts}). Fax status: busy")
        for attempt in range(1, min(fails, max_attempts - 1) + 1)
    ]
    if not reason:
        return [*attempts, ("sent", "Fax sent successfully")]
    if fails:
        last = f"Failed to deliver fax after {max_attempts} tries. Last attempt status: busy"
        return [*attempts, ("perm_fail", last)]
    return [("perm_fail", "Failed to deliver fax: ")]
