"""All figures of the demo: for people as tables, for programs as `.local/demo.json`."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, get_args

from rich.console import Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from mailroom.channels.contracts import CONTRACTS
from mailroom.message.outcome import Status
from lab.demo.campaign import PREFIX, CampaignRun, has_link
from lab.demo.day import DayRun
from lab.demo.feedback import FeedbackCheck
from lab.demo.load.mails import DAY
from lab.demo.plan import DemoFacts
from lab.harness.callbacks import different
from lab.harness.expected import MESSAGES, Expected, Item
from lab.harness.judge import Judgement, Ledger, by_group, delivered_twice, error_of, in_order
from mailroom_ops.terminal import Terminal

SHOWN = 10
Figures = dict[str, Any]
Row = tuple[str, object, str]


@dataclass(frozen=True)
class Result:
    """A demo that was judged. `duplicates` counts repeated puts that sent nothing more. `mail_seconds` are
    from the first put until every mail has ended, `fax_seconds` until every fax has."""

    judgement: Judgement
    load: Sequence[Expected]
    facts: DemoFacts
    weekly: CampaignRun
    day: DayRun
    feedback: FeedbackCheck
    duplicates: int
    mail_seconds: float
    fax_seconds: float

    @property
    def failures(self) -> list[str]:
        """Every sentence about what is not as it should be."""
        return [*self.judgement.wrong, *self.feedback.failures]

    @cached_property
    def figures(self) -> Figures:
        """`.local/demo.json`: the figures of the mails, those of the others under their names."""
        seconds = self.mail_seconds
        mails = self._of(lambda each: each.channel not in ("sms", "push", "fax", "webhook"))
        del mails["suppressed"], mails["segments"]
        reasons = mails.pop("reasons")
        return {
            **mails,
            "duplicates": self.duplicates,
            "seconds": round(seconds, 2),
            "rate": round(mails["messages"] / seconds, 1) if seconds else 0.0,
            "reasons": reasons,
            "channels": totals(self._ledger(campaigns=False)),
            "sms": self._of(lambda each: each.channel == "sms"),
            "push": self._of(lambda each: each.channel == "push"),
            "faxes": self._faxes(),
            "callbacks": self._callbacks(),
            "feedback": {name: value for name, value in asdict(self.feedback).items() if name != "failures"},
            "campaign": self._campaign(),
            "day": self._day(),
        }

    def as_json(self) -> Figures:
        """All figures, and all failures."""
        return {**self.figures, "failures": self.failures}

    @property
    def example(self) -> Item | None:
        """One of the mails, as SES has it."""
        return next((each for each in self.judgement.seen.inbox if each["channel"] == "mail"), None)

    def _ledger(self, *, campaigns: bool) -> Ledger:
        rows = self.judgement.seen.ledger
        return {key: row for key, row in rows.items() if key[0].startswith(PREFIX) == campaigns}

    def _of(self, wanted: Callable[[Expected], bool]) -> Figures:
        """The figures of mails, SMS or pushes, without the campaign's and those of the closed day."""
        seen = self.judgement.seen
        own = [each for each in self.load if wanted(each) and not each.id.startswith((PREFIX, DAY))]
        found = self.judgement.figures(each.key for each in own)
        rows = {each.id: seen.ledger.get(each.key, {}) for each in own}
        failed = [id_ for id_, row in rows.items() if row.get("status") == "failed"]
        return {
            "messages": found.put,
            "accepted": found.accepted,
            "rejected": len(failed),
            "suppressed": sum(row.get("status") == "suppressed" for row in rows.values()),
            "sent_twice": found.sent_twice,
            "lost": found.lost,
            "segments": sum(int(row.get("segments", 0)) for row in rows.values()),
            "reasons": [{"id": id_, **error_of(rows[id_])} for id_ in failed],
        }

    def _faxes(self) -> Figures:
        """`attempts` are faxes that the provider accepted, `lines_in_order` numbers whose queue's order is
        known and was kept; `most_at_once` is the most faxes under way to one number, and must be 1."""
        seen = self.judgement.seen
        own = [each for each in self.load if each.channel == "fax"]
        found = self.judgement.figures(each.key for each in own)
        calls = [call for each in own for call in seen.accepted.get(each.key, ())]
        failed = [each for each in own if seen.ledger.get(each.key, {}).get("status") == "failed"]
        lengths = [call.raw["ended"] - call.raw["created"] for call in calls if call.raw["ended"]]
        groups = {group: members for group, members in by_group(own).items() if group.startswith("+")}
        return {
            "faxes": len(own),
            "numbers": len({each.arrives_at for each in own if each.arrives_at}),
            "delivered": len({call.key for call in calls if call.delivered}),
            "failed": len(failed),
            "attempts": len(calls),
            "lines_in_order": sum(in_order(members, seen) for members in groups.values()),
            "most_at_once": max((call.overlaps + 1 for call in calls), default=0),
            "sent_twice": len(delivered_twice(calls)),
            "lost": found.lost,
            "longest": round(max(lengths, default=0), 1),
            "seconds": round(self.fax_seconds, 2),
            "reasons": [{"id": each.id, **error_of(seen.ledger[each.key])} for each in failed],
        }

    def _callbacks(self) -> Figures:
        """`received` counts requests, `different` their webhook-ids; `missing` counts callbacks and webhooks
        that should have come, `webhooks` messages that arrived."""
        requests = self.judgement.seen.requests
        once = different(requests)
        return {
            "received": len(requests),
            "different": len(once),
            "verified": sum(each.verified for each in once),
            "missing": sum(": no callback " in each for each in self.judgement.wrong)
            + self.judgement.figures(each.key for each in self.load if each.channel == "webhook").lost,
            "webhooks": sum(each.kind == MESSAGES for each in once),
        }

    def _campaign(self) -> Figures:
        """`people` have news, and one of them opts out; `uninvited` were sent a mail and should not have."""
        weekly, seen = self.weekly, self.judgement.seen
        wanted = {each.key for each in weekly.of_the_run if not each.reason}
        sent = {key: each for key, each in seen.accepted.items() if weekly.has(key[0])}
        rows = [row for (id_, _), row in seen.ledger.items() if weekly.has(id_)]
        found = self.judgement.figures(each.key for each in weekly.of_the_run)
        return {
            "people": len(weekly.of_the_run),
            "before": weekly.before,
            "sent": len(sent.keys() & wanted),
            "suppressed": sum(row.get("status") == "suppressed" for row in rows),
            "sent_twice": found.sent_twice,
            "lost": found.lost,
            "uninvited": len(sent.keys() - wanted),
            "with_link": sum(all(has_link(each.raw) for each in those) for those in sent.values()),
            "seconds": round(weekly.seconds, 1),
        }

    def _day(self) -> Figures:
        """`waited` mails had no room before the day opened, and `meanwhile` codes went out all the same."""
        figures = self.judgement.figures(message.key for message in self.load if message.id.startswith(DAY))
        return {
            "waited": self.day.waited,
            "meanwhile": self.day.meanwhile,
            "accepted": figures.accepted,
            "sent_twice": figures.sent_twice,
            "lost": figures.lost,
            "seconds": round(self.day.seconds, 1),
        }


def totals(ledger: Ledger) -> dict[str, dict[str, int]]:
    """How many messages of each channel have each status, both in their usual order."""
    counts = Counter((event_type, str(row.get("status"))) for (_, event_type), row in ledger.items())
    return {
        channel: {status: counts[channel, status] for status in get_args(Status) if counts[channel, status]}
        for channel in CONTRACTS
    }


def show(console: Terminal, result: Result) -> None:
    """Print all of it; the failures last, where they are seen."""
    if result.example:
        console.print(_mail(result.example))
    found = result.figures
    seconds = f"messages, from the first put to the last that was sent: {result.mail_seconds:.1f} s"
    console.print(
        _table(
            "Mails",
            [
                *_messages(found),
                ("duplicates", found["duplicates"], "repeated puts that sent nothing more"),
                ("a second", f"{found['rate']:.0f}", seconds),
            ],
        )
    )
    segments = "segments", found["sms"]["segments"], "that they take, counted before they are sent"
    console.print(_table("SMS", [*_messages(found["sms"]), segments]))
    console.print(_table("Pushes", _messages(found["push"])))
    console.print(_table("Faxes", _faxes(found["faxes"], result.facts)))
    console.print(_table("Webhooks", _webhooks(found["callbacks"])))
    console.print(_table("What came back", _feedback(result.feedback)))
    console.print(totals_table(found["channels"]))
    console.print(_table("Campaign", _campaign(found["campaign"])))
    console.print(_table("A day that was closed for bulk", _day(found["day"])))
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


def _table(title: str, rows: Iterable[Row]) -> Table:
    view = Table(title=title, title_justify="left", show_header=False)
    view.add_column()
    view.add_column(justify="right")
    view.add_column(overflow="fold")
    for row in rows:
        view.add_row(*(Text(str(cell)) for cell in row))
    return view


def _messages(found: Figures) -> Iterator[Row]:
    yield "messages", found["messages"], "put into the mailbox"
    yield "accepted", found["accepted"], "by the provider, each once"
    yield "rejected", found["rejected"], "failed in the ledger, with a reason:"
    yield from (("", "", f"{each['id']}: {each['message']}") for each in found["reasons"])
    if "suppressed" in found:
        yield "suppressed", found["suppressed"], "their recipient is on the suppression list"
    yield "sent twice", found["sent_twice"], "must be 0"
    yield "lost", found["lost"], "must be 0"


def _feedback(check: FeedbackCheck) -> Iterator[Row]:
    types = ", ".join(f"{name} {count}" for name, count in check.by_type.items())
    yield "events", check.events, f"that SES published, in any order: {types}"
    yield "doubled", check.doubled, "of them repeat another"
    yield "callbacks", check.callbacks, "that Twilio posted, signed, in any order and some twice"
    reasons = ", ".join(f"{name} {count}" for name, count in check.suppressed.items())
    yield "suppressed", sum(check.suppressed.values()), f"recipients, by reason: {reasons}"


def _faxes(found: Figures, facts: DemoFacts) -> Iterator[Row]:
    yield "faxes", found["faxes"], f"to {found['numbers']} numbers, and one to no number"
    yield "delivered", found["delivered"], f"the last after {found['seconds']:.1f} s"
    yield "failed", found["failed"], "with a reason:"
    yield from (("", "", f"{each['id']}: {each['message']}") for each in found["reasons"])
    yield "attempts", found["attempts"], f"that the provider accepted; {facts.max_attempts} each at most"
    longest = f"one fax, over functions that live for {facts.function_seconds} s at most"
    yield "longest", f"{found['longest']:.0f} s", longest
    yield "in order", found["lines_in_order"], "numbers whose queue's order is known, and was kept"
    yield "at once", found["most_at_once"], "under way to one number, at most; must be 1"
    yield "sent twice", found["sent_twice"], "must be 0"
    yield "lost", found["lost"], "must be 0"


def _webhooks(found: Figures) -> Iterator[Row]:
    yield "requests", found["received"], "to the receiver, which fails some of them at first"
    yield "different", found["different"], "by webhook-id: callbacks about messages, and"
    yield "messages", found["webhooks"], "webhooks that are messages themselves"
    yield "verified", found["verified"], "with the package standardwebhooks; must be all"
    yield "missing", found["missing"], "must be 0"


def _campaign(found: Figures) -> Iterator[Row]:
    yield "people", found["people"], "have new followers this week; one opts out before the mail is composed"
    yield "killed at", found["before"], "messages in the mailbox; everything queued or under way is lost"
    yield "sent", found["sent"], "mails, after the same run was started again"
    yield "with a link", found["with_link"], "for opting out with one click; must be all that were sent"
    yield "suppressed", found["suppressed"], "opted out by the link in an earlier mail"
    yield "uninvited", found["uninvited"], "have no news, or switched the mail off; must be 0"
    yield "sent twice", found["sent_twice"], "must be 0"
    yield "lost", found["lost"], "must be 0"
    yield "seconds", f"{found['seconds']:.1f}", "from its start, without the time between the two starts"


def _day(figures: Figures) -> Iterator[Row]:
    yield "waited", figures["waited"], "mails of bulk, in line by the time when they were put"
    yield "meanwhile", figures["meanwhile"], "codes went out at once, in the normal lane"
    yield (
        "accepted",
        figures["accepted"],
        f"of both; bulk within {figures['seconds']:.1f} s of the day's opening",
    )
    yield "sent twice", figures["sent_twice"], "must be 0"
    yield "lost", figures["lost"], "must be 0"


def _mail(mail: Mapping[str, Any]) -> Panel:
    content = mail["content"]
    head = {"From": content["from"], "To": mail["to"], "Subject": content["subject"], **content["headers"]}
    lines = [Text(f"{name}: {value}") for name, value in head.items()]
    body = Text("\n" + (content.get("text") or content.get("html") or "").strip())
    return Panel(Group(*lines, body), title="One of the mails", title_align="left")
