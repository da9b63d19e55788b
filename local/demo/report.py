"""The demo's figures, for people: a table, the reasons, one mail as it was sent."""

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console, Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from local.demo.checks.callback_verdict import CallbackVerdict
from local.demo.checks.campaign import CampaignVerdict
from local.demo.checks.faxes import FaxVerdict
from local.demo.checks.feedback import FeedbackVerdict
from local.demo.checks.messages import ChannelVerdict
from local.demo.checks.standing import STATUSES
from local.demo.checks.verdict import Verdict
from local.demo.facts import Facts
from local.demo.result import Result

SHOWN = 10
Row = tuple[str, str, str]


def show(console: Console, result: Result, facts: Facts, mail: Mapping[str, Any] | None) -> None:
    """Print all of it; the failures last, where they are seen."""
    if mail:
        console.print(_mail(mail))
    console.print(_table("Mails", _mails(result.mails)))
    console.print(_table("SMS", _sms(result.sms)))
    console.print(_table("Pushes", _channel(result.pushes)))
    console.print(_table("Faxes", _faxes(result.faxes, facts)))
    console.print(_table("Webhooks", _webhooks(result.callbacks)))
    console.print(_table("What came back", _feedback(result.feedback)))
    console.print(standing_table(result.channels))
    console.print(_table("Campaign", _campaign(result.campaign)))
    for failure in result.failures[:SHOWN]:
        console.print(Text(f"WRONG: {failure}", style="red"))
    if len(result.failures) > SHOWN:
        console.print(Text(f"and {len(result.failures) - SHOWN} more, in .local/demo.json", style="red"))
    if not result.failures:
        console.print("All came out as it should: nothing lost, nothing twice.", style="green")


def standing_table(channels: Mapping[str, Mapping[str, int]]) -> Table:
    """Final status by channel; only statuses that occur have a row, in the order of what is known."""
    view = Table(title="Where all of them stand in the end", title_justify="left")
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


def _mails(verdict: Verdict) -> Iterator[Row]:
    yield "messages", str(verdict.messages), "different (id, event_type) in the mailbox"
    yield "accepted", str(verdict.accepted), "sent to the provider, one mail each"
    yield "rejected", str(verdict.rejected), "failed in the ledger, with a reason:"
    yield from (("", "", f"{each['id']}: {each['message']}") for each in verdict.reasons)
    yield "duplicates", str(verdict.duplicates), "repeated puts that sent nothing more"
    yield "sent twice", str(verdict.sent_twice), "must be 0"
    yield "lost", str(verdict.lost), "must be 0"
    seconds = f"messages, from the first put to the last that was sent: {verdict.seconds:.1f} s"
    yield "a second", f"{verdict.rate:.0f}", seconds


def _channel(verdict: ChannelVerdict) -> Iterator[Row]:
    yield "messages", str(verdict.messages), "put into the mailbox"
    yield "accepted", str(verdict.accepted), "by the provider, each once"
    yield "rejected", str(verdict.rejected), "failed in the ledger, with a reason:"
    yield from (("", "", f"{each['id']}: {each['message']}") for each in verdict.reasons)
    yield "suppressed", str(verdict.suppressed), "to somebody whom nothing reaches any more"
    yield "sent twice", str(verdict.sent_twice), "must be 0"
    yield "lost", str(verdict.lost), "must be 0"


def _sms(verdict: ChannelVerdict) -> Iterator[Row]:
    yield from _channel(verdict)
    yield "segments", str(verdict.segments), "that they take, counted before they are sent"


def _feedback(verdict: FeedbackVerdict) -> Iterator[Row]:
    types = ", ".join(f"{name} {count}" for name, count in verdict.by_type.items())
    yield "events", str(verdict.events), f"that SES published, in any order: {types}"
    yield "doubled", str(verdict.doubled), "of them repeat another"
    yield "callbacks", str(verdict.callbacks), "that Twilio posted, signed, in any order and some twice"
    reasons = ", ".join(f"{name} {count}" for name, count in verdict.suppressed.items())
    yield "suppressed", str(sum(verdict.suppressed.values())), f"recipients, by reason: {reasons}"


def _faxes(verdict: FaxVerdict, facts: Facts) -> Iterator[Row]:
    yield "faxes", str(verdict.faxes), f"to {verdict.numbers} numbers, and one that is none"
    yield "delivered", str(verdict.delivered), f"the last after {verdict.seconds:.1f} s"
    yield "failed", str(verdict.failed), "with a reason:"
    yield from (("", "", f"{each['id']}: {each['message']}") for each in verdict.reasons)
    yield "attempts", str(verdict.attempts), f"that the provider accepted; {facts.max_attempts} each at most"
    longest = f"one fax, over functions that live for {facts.function_seconds} s at most"
    yield "longest", f"{verdict.longest:.0f} s", longest
    yield "in order", str(verdict.lines_in_order), "numbers of which the queue's order is known, and was kept"
    yield "at once", str(verdict.most_at_once), "under way to one number, at most; must be 1"
    yield "sent twice", str(verdict.sent_twice), "must be 0"
    yield "lost", str(verdict.lost), "must be 0"


def _webhooks(verdict: CallbackVerdict) -> Iterator[Row]:
    yield "requests", str(verdict.received), "to the receiver, which fails some of them at first"
    yield "different", str(verdict.different), "by webhook-id: callbacks about messages, and:"
    yield "messages", str(verdict.webhooks), "webhooks in their own right"
    yield "verified", str(verdict.verified), "with the package standardwebhooks; must be all"
    yield "missing", str(verdict.missing), "must be 0"


def _campaign(verdict: CampaignVerdict) -> Iterator[Row]:
    yield (
        "people",
        str(verdict.people),
        "have new followers this week; one opts out before the mail is composed",
    )
    yield (
        "killed at",
        str(verdict.before),
        "messages in the mailbox: all that was queued or under way is lost",
    )
    yield "sent", str(verdict.sent), "mails, after the same run was started again"
    yield "with a link", str(verdict.with_link), "for opting out with one click; must be all that were sent"
    yield "suppressed", str(verdict.suppressed), "has opted out by that link in an earlier mail"
    yield "uninvited", str(verdict.uninvited), "without news, or who switched it off; must be 0"
    yield "sent twice", str(verdict.sent_twice), "must be 0"
    yield "lost", str(verdict.lost), "must be 0"
    yield "seconds", f"{verdict.seconds:.1f}", "from its start, without the time that it lay dead"


def _mail(mail: Mapping[str, Any]) -> Panel:
    content = mail["content"]
    head = {"From": content["from"], "To": mail["to"], "Subject": content["subject"], **content["headers"]}
    lines = [Text(f"{name}: {value}") for name, value in head.items()]
    body = Text("\n" + (content.get("text") or content.get("html") or "").strip())
    return Panel(Group(*lines, body), title="One of the mails", title_align="left")
