"""The demo's mails: 500 good ones from a CSV file, awkward ones, and some that bounce or draw complaints.

`mailroom_local/providers/ses_events.py` says what a simulator address does.
"""

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lab.harness.expected import Expected, Item
from mailroom_local.providers.ses_events import SIMULATOR_DOMAIN

RECIPIENTS = Path(__file__).with_name("recipients.csv")
BIG_BODY_BYTES = 300 * 1024
HARD = {"bounce_type": "Permanent", "bounce_subtype": "General"}
DAY = "day-"
"""How the ids of mails begin that are put while the day is closed."""
BOUNCES = 3
"""The first so many returning mails, which bounce and have no callback in between."""


def good() -> list[Expected]:
    with RECIPIENTS.open(encoding="utf-8", newline="") as file:
        return [Expected({**row, "event_type": "mail"}) for row in csv.DictReader(file)]


def awkward() -> list[Expected]:
    """Mails that a mailroom meets sooner or later."""
    injection = {"X-Order": "7\r\nBcc: eve@example.com"}
    long_text = "A long line.\n" * (BIG_BODY_BYTES // 13)
    return [
        Expected(_awkward("no-address", email=None), reason="to"),
        Expected(_awkward("header-injection", headers=injection), reason="X-Order"),
        Expected(_awkward("no-first-name", first_name=None), reason="first_name"),
        Expected({**_awkward("unknown-channel"), "event_type": "pigeon"}, reason="event_type"),
        Expected(_awkward("big-body", subject="The annual report", text=long_text)),
    ]


def returning() -> list[Expected]:
    """Mails that bounce and the like. The final status does not depend on the order of the events."""
    several = ["ada-1@example.com", at("bounce", "several"), "ada-2@example.com"]
    outcomes = dict(zip(several, ("delivered", "bounced", "delivered"), strict=True))
    listed = {"bounce_subtype": "OnAccountSuppressionList"}
    return [
        *(_returning(f"bounce-{n}", at("bounce", str(n)), "bounced", HARD) for n in range(BOUNCES)),
        *(
            _returning(f"complaint-{n}", at("complaint", str(n)), "complained", {"complaint_type": "abuse"})
            for n in range(2)
        ),
        *(_returning(f"out-of-office-{n}", at("ooto", str(n)), "delivered") for n in range(2)),
        _returning("mailbox-full", at("soft", "0"), "undelivered", {"bounce_subtype": "MailboxFull"}),
        _returning("virus", at("reject", "0"), "undelivered"),
        _returning("on-the-list-of-ses", at("suppressionlist", "0"), "bounced", listed),
        _returning("headers-cut-short", at("bounce", "truncated"), "bounced", HARD),
        _returning("told-early", at("complaint", "early"), "complained"),
        _returning("to-several", several, "bounced", recipients=outcomes),
    ]


def over_the_day() -> list[Expected]:
    """Mails of bulk and codes, put while the day is closed for bulk: bulk waits, and codes do not."""
    bulk = [_mail(f"{DAY}bulk-{n}") | {"to": f"bulk-{n}@example.com", "lane": "bulk"} for n in range(20)]
    codes = [_mail(f"{DAY}code-{n}") | {"to": f"code-{n}@example.com"} for n in range(5)]
    return [Expected(item) for item in (*bulk, *codes)]


def suppressed() -> dict[str, str]:
    """The addresses that must be on the suppression list in the end, and why."""
    listed = {
        each.address: "complaint" if each.status == "complained" else "bounce"
        for each in returning()
        if each.status in {"bounced", "complained"} and not each.recipients
    }
    return listed | {at("bounce", "several"): "bounce"}


def again() -> Expected:
    """A second mail to the first address that bounced, to be put when that bounce has come in."""
    first = _returning("again", at("bounce", "0"), "suppressed")
    return Expected(first.item, reason="bounced", ends="suppressed")


def at(name: str, label: str) -> str:
    return f"{name}+{label}@{SIMULATOR_DOMAIN}"


def _awkward(name: str, **attributes: object) -> Item:
    """A mail that is good but for these attributes; None leaves an attribute out."""
    item = _mail(f"awkward-{name}") | {"email": f"{name}@example.com"} | attributes
    return {key: value for key, value in item.items() if value is not None}


def _returning(
    name: str,
    to: str | list[str],
    ends: str,
    facts: Mapping[str, object] | None = None,
    recipients: Mapping[str, str] | None = None,
) -> Expected:
    item = _mail(f"returns-{name}") | {"to": to}
    return Expected(item, ends=ends, facts=facts or {}, recipients=recipients or {})


def _mail(id_: str) -> dict[str, Any]:
    return {"id": id_, "event_type": "mail", "first_name": "Ada", "last_name": "Lovelace"}
