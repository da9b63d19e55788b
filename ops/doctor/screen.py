"""A diagnosis as an operator reads it."""

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ops.doctor.verdict import Checked, Diagnosis, State
from ops.screen import plain

_STYLES: dict[State, str] = {"ok": "green", "warning": "yellow", "failed": "bold red", "skipped": "dim"}


def show(diagnosis: Diagnosis, screen: Console) -> None:
    """Print it: a table of what was found, then what mends it, whole and ready to be copied."""
    place = f"account {diagnosis.account}, {diagnosis.region}"
    screen.print(plain(f"Stage {diagnosis.stage}, {place}"), style="bold", soft_wrap=True)
    screen.print(_table(diagnosis.checks))
    for each in diagnosis.checks:
        if each.fix and each.state in ("failed", "warning"):
            screen.print(Text(f"{each.subject}, {each.check}: ", style=_STYLES[each.state]), end="")
            screen.print(plain(each.sentence), soft_wrap=True)
            screen.print(Text("  → ").append_text(plain(each.fix)), soft_wrap=True)
    screen.print(_counted(diagnosis))


def _table(checks: list[Checked]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("")
    table.add_column("state", no_wrap=True)
    table.add_column("check", no_wrap=True)
    table.add_column("what was found", overflow="fold")
    subject = name = ""
    for each in checks:
        if subject and each.subject != subject:
            table.add_section()
        new = (each.subject, each.check) != (subject, name)
        table.add_row(
            Text(each.subject if each.subject != subject else "", style="bold"),
            Text(each.state, style=_STYLES[each.state]),
            each.check if new else "",
            plain(each.sentence),
        )
        subject, name = each.subject, each.check
    return table


def _counted(diagnosis: Diagnosis) -> Text:
    text = Text()
    for state, style in _STYLES.items():
        text.append(f"{diagnosis.counts.get(state, 0)} {state}  ", style=style)
    return text
