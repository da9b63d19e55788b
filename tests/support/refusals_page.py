"""The page docs/reference/refusals.md, which has the providers' tables of refusals.

`make schema` writes it.
"""

from collections.abc import Iterator, Mapping

from mailroom.message.outcome import Fault, Row
from mailroom.providers.aws_sms import refusals as aws_refusals
from mailroom.providers.resend import events as resend_events
from mailroom.providers.resend import sender as resend_mail
from mailroom.providers.ses import sender as ses
from mailroom.providers.signalwire import sender as signalwire
from mailroom.providers.sns import sender as sns
from mailroom.providers.telnyx import sender as telnyx
from mailroom.providers.twilio import refusals as twilio_refusals
from tests.support import ROOT

PAGE = ROOT / "docs" / "reference" / "refusals.md"
TABLES: dict[str, dict[str, Mapping[str, Row]]] = {
    "Amazon SES": {"refusals": ses.REFUSALS | ses.TEXTS},
    "AWS End User Messaging": {"refusals": aws_refusals.REFUSALS, "events": aws_refusals.EVENTS},
    "Twilio": {"refusals": twilio_refusals.REFUSALS, "events": twilio_refusals.EVENTS},
    "Resend": {"refusals": resend_mail.REFUSALS, "events": resend_events.EVENTS},
    "Amazon SNS": {"refusals": sns.REFUSALS | sns.TEXTS},
    "SignalWire": {"refusals": signalwire.REFUSALS},
    "Telnyx": {"refusals": telnyx.REFUSALS, "failure reasons of an accepted fax": telnyx.EVENTS},
}
"""Tables of refusals and of events about failed deliveries, by provider."""
FAULTS: dict[Fault, tuple[str, str]] = {
    "message": ("the message ends as `failed`", "the message ends as `undelivered`"),
    "destination": (
        "the message ends as `failed`; as `suppressed` if the recipient has opted out",
        "the message ends as `undelivered`",
    ),
    "day": (
        "the message waits until the provider's limit has capacity, and the alarm "
        "[day-used-up](../alarms/day-used-up.md) rings for mail, SMS by Twilio and faxes",
        "the message ends as `undelivered`, and the alarm [misconfigured](../alarms/misconfigured.md) rings",
    ),
    "account": (
        "the message is retried, and becomes a [dead letter](../alarms/dlq-not-empty.md)",
        "the message ends as `undelivered`, and the alarm [misconfigured](../alarms/misconfigured.md) rings",
    ),
    "throttled": ("the message is retried after a growing wait", "the message ends as `undelivered`"),
    "undecided": (
        "the message is retried. If acceptances of other messages of the same sender function separate "
        "three of its refusals, it goes to the fallback provider, or ends as `failed`: a fault of the "
        "account would have had to come and go three times. A refusal without an acceptance since the one "
        "before is treated as for `account`",
        "the message ends as `undelivered`",
    ),
}
"""Results of each fault: of a refusal, and of an event."""
HEAD = """\
# What a refusal means

Made by `make schema` from the providers' tables in the code. A refusal is a response by which a provider does
not accept a message. An event is a later report that the provider did not deliver an accepted message. If a
table lacks the code of a refusal, the account is at fault; if it lacks the code of an event, the event only
gives the message its status.

AWS, Resend and Telnyx have codes for any invalid field. Such a row of the fault `message` applies only if the
field comes from the item, and otherwise the account is at fault. SES quotes an invalid address: if it is the
sender's, the account is at fault.

A fax that was accepted is attempted again after a failure of the line, as often as the settings allow, and
after a `day` without a limit. After a fault of the `account` the fax becomes a dead letter, and is attempted
again after its redrive. Attempts that failed by a `day` or the `account` do not count towards the limit.
"""


def whole_page() -> str:
    """Return the page: the results of each fault, and the tables by provider."""
    return "\n".join(_parts())


def _parts() -> Iterator[str]:
    yield HEAD
    yield "| fault | after a refusal | after an event |\n|---|---|---|"
    for fault, results in FAULTS.items():
        yield f"| `{fault}` | {' | '.join(results)} |"
    for provider, tables in TABLES.items():
        for kind, rows in tables.items():
            yield f"\n## {provider}: {kind}\n"
            yield "| code or text | fault | the provider's words | source |\n|---|---|---|---|"
            for row in rows.values():
                cells = (f"`{_cell(row.code)}`", row.fault, _cell(row.words), f"{_sources(row)}, {row.read}")
                yield f"| {' | '.join(cells)} |"
    yield ""


def _sources(row: Row) -> str:
    """Return the sources of a row, with URLs as links."""
    urls = row.source.split(", ") if row.source.startswith("https://") else []
    return ", ".join(f"[{number}]({url})" for number, url in enumerate(urls, 1)) or row.source


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(whole_page())
