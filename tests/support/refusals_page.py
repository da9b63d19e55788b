"""The page docs/reference/refusals.md, which has the providers' tables of refusals.

`make schema` writes it.
"""

from collections.abc import Iterator, Mapping

from mailroom.channels.mail import ses
from mailroom.channels.sms import aws_refusals, twilio_refusals
from mailroom.message.outcome import Fault, Row
from tests.support import ROOT

PAGE = ROOT / "docs" / "reference" / "refusals.md"
TABLES: dict[str, dict[str, Mapping[str, Row]]] = {
    "Amazon SES": {"refusals": ses.REFUSALS | ses.TEXTS},
    "AWS End User Messaging": {"refusals": aws_refusals.REFUSALS, "events": aws_refusals.EVENTS},
    "Twilio": {"refusals": twilio_refusals.REFUSALS, "events": twilio_refusals.EVENTS},
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
        "[day-used-up](../alarms/day-used-up.md) rings for mail",
        "the message ends as `undelivered`",
    ),
    "account": (
        "the message is retried, and becomes a [dead letter](../alarms/dlq-not-empty.md)",
        "the message ends as `undelivered`, and the alarm [misconfigured](../alarms/misconfigured.md) rings",
    ),
    "throttled": ("the message is retried after a growing wait", "the message ends as `undelivered`"),
    "undecided": (
        "the message is retried once. If it is refused again, the provider's newest acceptance decides: if "
        "the same sender function has had another message accepted in between, it ends as `failed`, and "
        "otherwise it is treated as for `account`",
        "the message ends as `undelivered`",
    ),
}
"""Results of each fault: of a refusal, and of an event."""
HEAD = """\
# What a refusal means

Made by `make schema` from the providers' tables in the code. A refusal is a provider's response by which it does not
accept a message. An event is its later report that it did not deliver an accepted message. A code that a table lacks is
treated as the account's fault if it refuses a message; in an event it only gives the message its status.
"""


def page() -> str:
    """Return the page: the results of each fault, and the tables by provider."""
    return "\n".join(_parts())


def _parts() -> Iterator[str]:
    yield HEAD
    yield "| fault | after a refusal | after an event |\n|---|---|---|"
    for fault, results in FAULTS.items():
        yield f"| `{fault}` | {' | '.join(results)} |"
    for provider, tables in TABLES.items():
        for kind, rows in tables.items():
            yield f"\n## {provider}: {kind}\n\n| code or text | fault | the provider's words | source |\n|---|---|---|---|"
            for row in rows.values():
                yield f"| `{_cell(row.code)}` | {row.fault} | {_cell(row.words)} | {_sources(row)}, {row.read} |"
    yield ""


def _sources(row: Row) -> str:
    """Return the sources of a row, with URLs as links."""
    urls = row.source.split(", ") if row.source.startswith("https://") else []
    return ", ".join(f"[{number}]({url})" for number, url in enumerate(urls, 1)) or row.source


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page())
