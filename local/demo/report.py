"""All figures of the demo: for people as tables, for programs as `.local/demo.json`."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, get_args

from rich.console import Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from local.demo.checks.callbacks import CallbackCheck
from local.demo.checks.campaign import CampaignCheck
from local.demo.checks.faxes import FaxCheck
from local.demo.checks.feedback import FeedbackCheck
from local.demo.checks.messages import MessageCheck
from local.demo.scenarios.plan import DemoFacts
from mailroom.message.outcome import Status
from ops.terminal import Terminal

SHOWN = 10
Check = MessageCheck | FaxCheck | CallbackCheck | FeedbackCheck | CampaignCheck
Row = tuple[str, object, str]


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
        return round(self.mails.messages / self.mail_seconds, 1) if self.mail_seconds else 0.0

    @property
    def failures(self) -> list[str]:
        """Every sentence about what is not as it should be."""
        parts = (self.mails, *self._others().values())
        return [*self.troubles, *(sentence for part in parts for sentence in part.failures)]

    def _others(self) -> dict[str, Check]:
        return {
            "sms": self.sms,
            "push": self.pushes,
            "faxes": self.faxes,
            "callbacks": self.callbacks,
            "feedback": self.feedback,
            "campaign": self.campaign,
        }

    def as_json(self) -> dict[str, Any]:
        """`.local/demo.json`: the mails' figures, those of the others under their names, all failures."""
        figures = ("messages", "accepted", "rejected", "sent_twice", "lost")
        return {
            **{name: getattr(self.mails, name) for name in figures},
            "duplicates": self.duplicates,
            "seconds": round(self.mail_seconds, 2),
            "rate": self.rate,
            "reasons": self.mails.reasons,
            "channels": self.channels,
            **{
                name: {key: value for key, value in asdict(each).items() if key != "failures"}
                for name, each in self._others().items()
            },
            "failures": self.failures,
        }


def show(console: Terminal, result: Result, facts: DemoFacts, mail: Mapping[str, Any] | None) -> None:
    """Print all of it; the failures last, where they are seen."""
    if mail:
        console.print(_mail(mail))
    duplicates = "duplicates", result.duplicates, "repeated puts that sent nothing more"
    seconds = f"messages, from the first put to the last that was sent: {result.mail_seconds:.1f} s"
    rate = "a second", f"{result.rate:.0f}", seconds
    segments = "segments", result.sms.segments, "that they take, counted before they are sent"
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
    for status in get_args(Status):
        if any(status in counts for counts in channels.values()):
            view.add_row(status, *(str(counts.get(status, "")) for counts in channels.values()))
    return view


def _table(title: str, rows: Iterator[Row]) -> Table:
    view = Table(title=title, title_justify="left", show_header=False)
    view.add_column()
    view.add_column(justify="right")
    view.add_column(overflow="fold")
    for row in rows:
        view.add_row(*(Text(str(cell)) for cell in row))
    return view


def _messages(check: MessageCheck, *more: Row) -> Iterator[Row]:
    yield "messages", check.messages, "put into the mailbox"
    yield "accepted", check.accepted, "by the provider, each once"
    yield "rejected", check.rejected, "failed in the ledger, with a reason:"
    yield from (("", "", f"{each['id']}: {each['message']}") for each in check.reasons)
    yield "suppressed", check.suppressed, "their recipient is on the suppression list"
    yield "sent twice", check.sent_twice, "must be 0"
    yield "lost", check.lost, "must be 0"
    yield from more


def _feedback(check: FeedbackCheck) -> Iterator[Row]:
    types = ", ".join(f"{name} {count}" for name, count in check.by_type.items())
    yield "events", check.events, f"that SES published, in any order: {types}"
    yield "doubled", check.doubled, "of them repeat another"
    yield "callbacks", check.callbacks, "that Twilio posted, signed, in any order and some twice"
    reasons = ", ".join(f"{name} {count}" for name, count in check.suppressed.items())
    yield "suppressed", sum(check.suppressed.values()), f"recipients, by reason: {reasons}"


def _faxes(check: FaxCheck, facts: DemoFacts) -> Iterator[Row]:
    yield "faxes", check.faxes, f"to {check.numbers} numbers, and one to no number"
    yield "delivered", check.delivered, f"the last after {check.seconds:.1f} s"
    yield "failed", check.failed, "with a reason:"
    yield from (("", "", f"{each['id']}: {each['message']}") for each in check.reasons)
    yield "attempts", check.attempts, f"that the provider accepted; {facts.max_attempts} each at most"
    longest = f"one fax, over functions that live for {facts.function_seconds} s at most"
    yield "longest", f"{check.longest:.0f} s", longest
    yield "in order", check.lines_in_order, "numbers whose queue's order is known, and was kept"
    yield "at once", check.most_at_once, "under way to one number, at most; must be 1"
    yield "sent twice", check.sent_twice, "must be 0"
    yield "lost", check.lost, "must be 0"


def _webhooks(check: CallbackCheck) -> Iterator[Row]:
    yield "requests", check.received, "to the receiver, which fails some of them at first"
    yield "different", check.different, "by webhook-id: callbacks about messages, and"
    yield "messages", check.webhooks, "webhooks that are messages themselves"
    yield "verified", check.verified, "with the package standardwebhooks; must be all"
    yield "missing", check.missing, "must be 0"


def _campaign(check: CampaignCheck) -> Iterator[Row]:
    yield "people", check.people, "have new followers this week; one opts out before the mail is composed"
    yield "killed at", check.before, "messages in the mailbox; everything queued or under way is lost"
    yield "sent", check.sent, "mails, after the same run was started again"
    yield "with a link", check.with_link, "for opting out with one click; must be all that were sent"
    yield "suppressed", check.suppressed, "opted out by the link in an earlier mail"
    yield "uninvited", check.uninvited, "have no news, or switched the mail off; must be 0"
    yield "sent twice", check.sent_twice, "must be 0"
    yield "lost", check.lost, "must be 0"
    yield "seconds", f"{check.seconds:.1f}", "from its start, without the time between the two starts"


def _mail(mail: Mapping[str, Any]) -> Panel:
    content = mail["content"]
    head = {"From": content["from"], "To": mail["to"], "Subject": content["subject"], **content["headers"]}
    lines = [Text(f"{name}: {value}") for name, value in head.items()]
    body = Text("\n" + (content.get("text") or content.get("html") or "").strip())
    return Panel(Group(*lines, body), title="One of the mails", title_align="left")
