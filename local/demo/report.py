"""All figures of the demo: for people as tables, for programs as `.local/demo.json`."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console, Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from local.demo.checks.callbacks import CallbackCheck
from local.demo.checks.campaign import CampaignCheck
from local.demo.checks.faxes import FaxCheck
from local.demo.checks.feedback import FeedbackCheck
from local.demo.checks.messages import STATUSES, MessageCheck
from local.demo.scenarios.plan import DemoFacts

SHOWN = 10
Row = tuple[str, str, str]


@dataclass(frozen=True)
class Result:
    """`duplicates` counts repeated puts that sent nothing more; `mail_seconds` run from the first put until
    every mail has ended. `channels` counts the messages of each channel by final status, without the
    campaign's. `troubles` are failed expectations of the stage as a whole, such as a dead letter."""

    mails: MessageCheck
    duplicates: int
    mail_seconds: float
    sms: MessageCheck
    pushes: MessageCheck
    faxes: FaxCheck
    callbacks: CallbackCheck
    feedback: FeedbackCheck
    campaign: CampaignCheck
    channels: dict[str, dict[str, int]]
    troubles: list[str]

    @property
    def rate(self) -> float:
        """Mails a second."""
        return round(self.mails.messages / self.mail_seconds, 1) if self.mail_seconds else 0.0

    @property
    def failures(self) -> list[str]:
        """Every sentence about what is not as it should be."""
        parts = (self.mails, self.sms, self.pushes, self.faxes, self.callbacks, self.feedback, self.campaign)
        return [*self.troubles, *(sentence for part in parts for sentence in part.failures)]

    def as_json(self) -> dict[str, Any]:
        """`.local/demo.json`: the mails' figures, those of the others under their names, all failures."""
        every = asdict(self)
        mails = every["mails"]
        others = {
            "sms": every["sms"],
            "push": every["pushes"],
            **{name: every[name] for name in ("faxes", "callbacks", "feedback", "campaign")},
        }
        figures = {name: mails[name] for name in ("messages", "accepted", "rejected", "sent_twice", "lost")}
        return {
            **figures,
            "duplicates": self.duplicates,
            "seconds": round(self.mail_seconds, 2),
            "rate": self.rate,
            "reasons": self.mails.reasons,
            "channels": self.channels,
            **{
                name: {key: value for key, value in each.items() if key != "failures"}
                for name, each in others.items()
            },
            "failures": self.failures,
        }


def show(console: Console, result: Result, facts: DemoFacts, mail: Mapping[str, Any] | None) -> None:
    """Print all of it; the failures last, where they are seen."""
    if mail:
        console.print(_mail(mail))
    duplicates = "duplicates", str(result.duplicates), "repeated puts that sent nothing more"
    seconds = f"messages, from the first put to the last that was sent: {result.mail_seconds:.1f} s"
    rate = "a second", f"{result.rate:.0f}", seconds
    segments = "segments", str(result.sms.segments), "that they take, counted before they are sent"
    console.print(_table("Mails", _messages(result.mails, duplicates, rate)))
    console.print(_table("SMS", _messages(result.sms, segments)))
    console.print(_table("Pushes", _messages(result.pushes)))
    console.print(_table("Faxes", _faxes(result.faxes, facts)))
    console.print(_table("Webhooks", _webhooks(result.callbacks)))
    console.print(_table("What came back", _feedback(result.feedback)))
    console.print(totals_table(result.channels))
    console.print(_table("Campaign", _campaign(result.campaign)))
    for failure in result.failures[:SHOWN]:
        console.print(Text(f"WRONG: {failure}", style="red"))
    if len(result.failures) > SHOWN:
        console.print(Text(f"and {len(result.failures) - SHOWN} more, in .local/demo.json", style="red"))
    if not result.failures:
        console.print("Everything came out as it should: nothing lost, nothing twice.", style="green")


def totals_table(channels: Mapping[str, Mapping[str, int]]) -> Table:
    """Final status by channel; only statuses that occur have a row, in the order of what is known."""
    view = Table(title="Final statuses", title_justify="left")
    view.add_column("status")
    for channel in channels:
        view.add_column(channel, justify="right")
    for status in STATUSES:
        if any(status in counts for counts in channels.values()):
            view.add_row(status, *(str(counts.get(status, "")) for counts in channels.values()))
    return view


def _table(title: str, rows: Iterator[Row]) -> Table:
    view = Table(title=title, title_justify="left", show_header=False)
    view.add_column()
    view.add_column(justify="right")
    view.add_column(overflow="fold")
    for row in rows:
        view.add_row(*(Text(cell) for cell in row))
    return view


def _messages(check: MessageCheck, *more: Row) -> Iterator[Row]:
    yield "messages", str(check.messages), "put into the mailbox"
    yield "accepted", str(check.accepted), "by the provider, each once"
    yield "rejected", str(check.rejected), "failed in the ledger, with a reason:"
    yield from (("", "", f"{each['id']}: {each['message']}") for each in check.reasons)
    yield "suppressed", str(check.suppressed), "their recipient is on the suppression list"
    yield "sent twice", str(check.sent_twice), "must be 0"
    yield "lost", str(check.lost), "must be 0"
    yield from more


def _feedback(check: FeedbackCheck) -> Iterator[Row]:
    types = ", ".join(f"{name} {count}" for name, count in check.by_type.items())
    yield "events", str(check.events), f"that SES published, in any order: {types}"
    yield "doubled", str(check.doubled), "of them repeat another"
    yield "callbacks", str(check.callbacks), "that Twilio posted, signed, in any order and some twice"
    reasons = ", ".join(f"{name} {count}" for name, count in check.suppressed.items())
    yield "suppressed", str(sum(check.suppressed.values())), f"recipients, by reason: {reasons}"


def _faxes(check: FaxCheck, facts: DemoFacts) -> Iterator[Row]:
    yield "faxes", str(check.faxes), f"to {check.numbers} numbers, and one to no number"
    yield "delivered", str(check.delivered), f"the last after {check.seconds:.1f} s"
    yield "failed", str(check.failed), "with a reason:"
    yield from (("", "", f"{each['id']}: {each['message']}") for each in check.reasons)
    yield "attempts", str(check.attempts), f"that the provider accepted; {facts.max_attempts} each at most"
    longest = f"one fax, over functions that live for {facts.function_seconds} s at most"
    yield "longest", f"{check.longest:.0f} s", longest
    yield "in order", str(check.lines_in_order), "numbers whose queue's order is known, and was kept"
    yield "at once", str(check.most_at_once), "under way to one number, at most; must be 1"
    yield "sent twice", str(check.sent_twice), "must be 0"
    yield "lost", str(check.lost), "must be 0"


def _webhooks(check: CallbackCheck) -> Iterator[Row]:
    yield "requests", str(check.received), "to the receiver, which fails some of them at first"
    yield "different", str(check.different), "by webhook-id: callbacks about messages, and"
    yield "messages", str(check.webhooks), "webhooks that are messages themselves"
    yield "verified", str(check.verified), "with the package standardwebhooks; must be all"
    yield "missing", str(check.missing), "must be 0"


def _campaign(check: CampaignCheck) -> Iterator[Row]:
    yield (
        "people",
        str(check.people),
        "have new followers this week; one opts out before the mail is composed",
    )
    yield (
        "killed at",
        str(check.before),
        "messages in the mailbox; everything queued or under way is lost",
    )
    yield "sent", str(check.sent), "mails, after the same run was started again"
    yield "with a link", str(check.with_link), "for opting out with one click; must be all that were sent"
    yield "suppressed", str(check.suppressed), "opted out by the link in an earlier mail"
    yield "uninvited", str(check.uninvited), "have no news, or switched the mail off; must be 0"
    yield "sent twice", str(check.sent_twice), "must be 0"
    yield "lost", str(check.lost), "must be 0"
    yield "seconds", f"{check.seconds:.1f}", "from its start, without the time between the two starts"


def _mail(mail: Mapping[str, Any]) -> Panel:
    content = mail["content"]
    head = {"From": content["from"], "To": mail["to"], "Subject": content["subject"], **content["headers"]}
    lines = [Text(f"{name}: {value}") for name, value in head.items()]
    body = Text("\n" + (content.get("text") or content.get("html") or "").strip())
    return Panel(Group(*lines, body), title="One of the mails", title_align="left")
