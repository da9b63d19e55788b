"""Output of the command `import`: JSON for programs, and text for the terminal."""

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from mailroom.errors import quantity
from mailroom_ops.campaigns.imported_items import LineFault
from mailroom_ops.campaigns.report import SHOWN_FAULTS, panel
from mailroom_ops.messages.rendered import Sample
from mailroom_ops.shared.screen import fold, print_line, right, screen, table_of

State = Literal["done", "interrupted", "stopped"]


class Imported(Struct, frozen=True, kw_only=True):
    """Output of the command `import`. Its counts are numbers of lines."""

    file: str
    stage: str
    dry_run: bool
    state: State
    lines: int
    put: int
    """Messages that were put; in a dry run, messages that would be put."""
    existed: int
    conflict: int
    refused: int
    failed: int
    bytes: int
    faults: list[LineFault]
    """First faults, at most 1,000."""
    samples: list[Sample] = []
    trouble: str = ""
    """Reason why the import stopped."""


_MEANING = (
    ("put", "are in the mailbox now"),
    ("existed", "were in the mailbox already, with the same content"),
    ("conflict", "have the id of another message, and were not put"),
    ("refused", "are faulty"),
    ("failed", "were refused by AWS"),
)


def show(answer: Imported) -> None:
    for sample in answer.samples:
        screen.print(panel(sample))
    for fault in answer.faults[:SHOWN_FAULTS]:
        place = f"line {fault.line}, {fault.column}" if fault.column else f"line {fault.line}"
        print_line(f"- {place}: {fault.problem}")
    hidden = answer.refused + answer.conflict - SHOWN_FAULTS
    if hidden > 0:
        screen.print(f"and {hidden:,} more; --json names the first 1,000.")
    screen.print(table_of(right("lines"), "", fold(), rows=_rows(answer)))
    if answer.dry_run:
        screen.print("A dry run: nothing was put or written.")
    if answer.faults:
        print_line("Correct these lines in the file, then run the same command again.")
    if answer.trouble:
        print_line(f"Stopped: {answer.trouble}.")
    if answer.state != "done":
        print_line("To continue, run the same command again: no message is put twice.")


def _rows(answer: Imported) -> Iterator[tuple[str, str, str]]:
    yield f"{answer.lines:,}", "all", f"{quantity(answer.bytes, 'byte')} in the file"
    for name, meaning in _MEANING:
        count = getattr(answer, name)
        if answer.dry_run and name in ("existed", "conflict", "failed"):
            continue
        yield f"{count:,}", name, "would be put" if answer.dry_run and name == "put" else meaning
