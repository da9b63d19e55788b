"""The demo's mails that something comes back about: bounces, complaints and the rest, by simulator address.

What an address does stands in `local/providers/ses_events.py`.
"""

from local.demo.scenarios.mails import Item, Message
from local.providers.ses_events import SIMULATOR_DOMAIN

HARD = {"bounce_type": "Permanent", "bounce_subtype": "General"}
SEVERAL = "several"
BOUNCES = 3
"""The first so many: of these nothing is told in between."""


def mails() -> list[Message]:
    """Each with the status that it must end in, whatever order its events come in."""
    several = ["ada-1@example.com", at("bounce", SEVERAL), "ada-2@example.com"]
    return [
        *(
            Message(_mail(f"bounce-{n}", at("bounce", str(n))), ends="bounced", facts=HARD)
            for n in range(BOUNCES)
        ),
        *(
            Message(
                _mail(f"complaint-{n}", at("complaint", str(n))),
                ends="complained",
                facts={"complaint_type": "abuse"},
            )
            for n in range(2)
        ),
        *(Message(_mail(f"out-of-office-{n}", at("ooto", str(n)))) for n in range(2)),
        Message(
            _mail("mailbox-full", at("soft", "0")),
            ends="undelivered",
            facts={"bounce_subtype": "MailboxFull"},
        ),
        Message(_mail("virus", at("reject", "0")), ends="undelivered"),
        Message(
            _mail("on-the-list-of-ses", at("suppressionlist", "0")),
            ends="bounced",
            facts={"bounce_subtype": "OnAccountSuppressionList"},
        ),
        Message(_mail("headers-cut-short", at("bounce", "truncated")), ends="bounced", facts=HARD),
        Message(_mail("told-early", at("complaint", "early")), ends="complained"),
        Message(
            _mail("to-several", several),
            ends="bounced",
            recipients=dict(zip(several, ("delivered", "bounced", "delivered"), strict=True)),
        ),
    ]


def marked() -> dict[str, str]:
    """The addresses that must be on the suppression list in the end, and why."""
    listed = {
        message.address: "complaint" if message.status == "complained" else "bounce"
        for message in mails()
        if message.status in {"bounced", "complained"} and not message.recipients
    }
    return listed | {at("bounce", SEVERAL): "bounce"}


def again() -> Message:
    """A second mail to the first that bounced: to be put once its bounce is in."""
    return Message(_mail("again", at("bounce", "0")), reason="bounced", ends="suppressed")


def at(name: str, label: str) -> str:
    """A simulator address."""
    return f"{name}+{label}@{SIMULATOR_DOMAIN}"


def _mail(name: str, to: str | list[str]) -> Item:
    return {
        "id": f"returns-{name}",
        "event_type": "mail",
        "to": to,
        "first_name": "Ada",
        "last_name": "Lovelace",
    }
