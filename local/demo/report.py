"""The demo's figures, for people: a table, the reasons, one mail as it was sent."""

from collections.abc import Mapping
from typing import Any

from rich.console import Console, Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from local.demo.verdict import Verdict

SHOWN = 10


def show(console: Console, verdict: Verdict, mail: Mapping[str, Any] | None) -> None:
    """Print all of it; the failures last, where they are seen."""
    if mail:
        console.print(_mail(mail))
    console.print(_table(verdict))
    for failure in verdict.failures[:SHOWN]:
        console.print(Text(f"WRONG: {failure}", style="red"))
    if len(verdict.failures) > SHOWN:
        console.print(Text(f"and {len(verdict.failures) - SHOWN} more, in .local/demo.json", style="red"))
    if not verdict.failures:
        console.print("All came out as it should: nothing lost, nothing twice.", style="green")


def _table(verdict: Verdict) -> Table:
    view = Table(title="Demo", title_justify="left", show_header=False)
    view.add_column()
    view.add_column(justify="right")
    view.add_column(overflow="fold")
    rows = (
        ("messages", str(verdict.messages), "different (id, event_type) in the mailbox"),
        ("accepted", str(verdict.accepted), "sent to the provider, one mail each"),
        ("rejected", str(verdict.rejected), "failed in the ledger, with a reason:"),
        *(("", "", f"{each['id']}: {each['message']}") for each in verdict.reasons),
        ("duplicates", str(verdict.duplicates), "repeated puts that sent nothing more"),
        ("sent twice", str(verdict.sent_twice), "must be 0"),
        ("lost", str(verdict.lost), "must be 0"),
        (
            "a second",
            f"{verdict.rate:.0f}",
            f"messages, from the first put to the last end: {verdict.seconds:.1f} s",
        ),
    )
    for row in rows:
        view.add_row(*(Text(cell) for cell in row))
    return view


def _mail(mail: Mapping[str, Any]) -> Panel:
    content = mail["content"]
    head = {"From": content["from"], "To": mail["to"], "Subject": content["subject"], **content["headers"]}
    lines = [Text(f"{name}: {value}") for name, value in head.items()]
    body = Text("\n" + (content.get("text") or content.get("html") or "").strip())
    return Panel(Group(*lines, body), title="One of the mails", title_align="left")
