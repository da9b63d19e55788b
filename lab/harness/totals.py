"""Figures of a run by channel: as JSON for programs, and as a table for people."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rich.box import SIMPLE
from rich.table import Table

from lab.harness.judge import Figures, Judgement
from mailroom.channels.contracts import CONTRACTS

COUNTED = ("put", "accepted", "sent_twice", "declared", "lost", "failed")


@dataclass(frozen=True)
class Totals:
    """Figures of a run, by channel."""

    by_channel: Mapping[str, Figures]

    @classmethod
    def of(cls, judgement: Judgement) -> "Totals":
        """Count the verdicts of all messages, by channel."""
        keys = judgement.verdicts
        return cls(
            {channel: judgement.figures(key for key in keys if key[1] == channel) for channel in CONTRACTS}
        )

    def sum(self, name: str) -> int:
        """Return the sum of a figure over all channels."""
        return sum(int(getattr(figures, name)) for figures in self.by_channel.values())

    def as_json(self) -> dict[str, Any]:
        """Return all figures, first the sums over all channels."""
        channels = {channel: asdict(figures) for channel, figures in self.by_channel.items()}
        return {name: self.sum(name) for name in COUNTED} | {"by_channel": channels}

    def table(self, title: str) -> Table:
        """Return the figures as a table with a row for each channel."""
        table = Table(title=title, title_justify="left", box=SIMPLE, padding=(0, 1, 0, 0))
        table.add_column("")
        for heading in (*COUNTED, "median", "worst"):
            table.add_column(heading.replace("_", " "), justify="right")
        for channel, figures in self.by_channel.items():
            counts = [f"{getattr(figures, name):,}" for name in COUNTED]
            seconds = f"{figures.median_seconds:.1f} s", f"{figures.worst_seconds:.0f} s"
            table.add_row(channel, *counts, *seconds)
        table.add_row("all", *(f"{self.sum(name):,}" for name in COUNTED), "", "")
        return table
