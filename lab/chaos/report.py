"""Results of a run: a JSON file for programs, and a table for people."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from lab import REPOSITORY, figures
from lab.chaos.faults import Done, Kind
from lab.harness.judge import Judgement
from lab.harness.totals import Totals
from mailroom_ops.shared.terminal import Terminal

STEP_SECONDS = 5
"""Length of a step of the timeline, in seconds."""
SHOWN = 20
FAULTS: dict[Kind, str] = {
    "kill": "processes killed",
    "pump": "second pump",
    "deploy": "deployments of all functions",
    "day": "stops of bulk mails by a used-up daily quota",
    "stop": "stop of release",
}


@dataclass(frozen=True)
class Report:
    """A checked run. Times are in epoch seconds. `troubles` is the number of submits with each fault, by
    provider, and `measured` is the description of the code and the machine."""

    judgement: Judgement
    seed: int
    rate: float
    began: float
    ended: float
    done: Sequence[Done]
    troubles: Mapping[str, Mapping[str, int]]
    mail: str
    measured: str

    @property
    def file(self) -> Path:
        """Path of the JSON file."""
        return figures("chaos.json" if self.mail == "ses" else f"chaos_{self.mail}.json")

    @cached_property
    def totals(self) -> Totals:
        """Figures by channel."""
        return Totals.of(self.judgement)

    def as_json(self) -> dict[str, Any]:
        """Return the content of the JSON file. Each row of `timeline` has a second, and the numbers of
        messages put, messages accepted and processes killed until then. `marks` has the second of each other
        fault. `windows` has the faults of providers with their first and last second."""
        counts = Counter(fault.kind for fault in self.done)
        return {
            "messages": self.totals.sum("put"),
            "kills": counts["kill"],
            **self.totals.as_json(),
            "seed": self.seed,
            "rate": self.rate,
            "seconds": round(self.ended - self.began),
            "measured": self.measured,
            "faults": {**{kind: counts[kind] for kind in FAULTS}, "trouble": counts["trouble"]},
            "troubles": self.troubles,
            "mails_by_provider": dict(
                Counter(
                    row.get("provider", "none")
                    for (_, channel), row in self.judgement.seen.ledger.items()
                    if channel == "mail"
                )
            ),
            "killed": dict(Counter(fault.what for fault in self.done if fault.kind == "kill").most_common()),
            "marks": [
                [round(fault.at - self.began), fault.kind]
                for fault in self.done
                if fault.kind in ("pump", "deploy", "day", "stop")
            ],
            "windows": windows(self.done, self.began, self.ended),
            "timeline": self._timeline(),
        }

    def _timeline(self) -> list[list[int]]:
        kills = [fault.at for fault in self.done if fault.kind == "kill"]
        observation = self.judgement.seen
        accepted = [acceptances[0].at for acceptances in observation.accepted.values()]
        series = (list(observation.put_at.values()), accepted, kills)
        last = max(chain.from_iterable(series)) - self.began
        return [
            [second, *(sum(moment <= self.began + second for moment in moments) for moments in series)]
            for second in range(0, int(last) + 2 * STEP_SECONDS, STEP_SECONDS)
        ]

    def write(self) -> None:
        """Write the file with one line for each name, because the timeline would fill pages."""
        lines = [f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in self.as_json().items()]
        self.file.write_text("{\n" + ",\n".join(lines) + "\n}\n")

    def show(self, console: Terminal) -> None:
        """Print the table, the faults, and the errors."""
        figures, judgement = self.as_json(), self.judgement
        console.print(self.totals.table(f"written to {self.file.relative_to(REPOSITORY)}"))
        for name, state in (("waiting", "are dead letters"), ("failed", "failed with a reason")):
            if count := self.totals.sum(name):
                console.print(f"{count:,} of the messages {state}.")
        sentences = [f"{figures['faults'][kind]} {words}" for kind, words in FAULTS.items()]
        console.print(f"In {figures['seconds']} seconds: {', '.join(sentences)}.")
        console.print(f"Killed: {_counts(figures['killed'])}.", soft_wrap=True)
        console.print(f"Mails by provider: {_counts(figures['mails_by_provider'])}.")
        for provider, had in self.troubles.items():
            console.print(f"Submits to {provider}: {_counts(had)}.")
        for sentence in judgement.wrong[:SHOWN]:
            console.print(f"WRONG: {sentence}", style="red", soft_wrap=True)
        if len(judgement.wrong) > SHOWN:
            console.print(f"and {len(judgement.wrong) - SHOWN} more", style="red")
        if not judgement.wrong:
            console.print(
                "No message was lost. None was sent twice, except those counted as declared.", style="green"
            )


def windows(done: Sequence[Done], began: float, end: float) -> list[list[Any]]:
    """Return the periods in which providers had faults: provider, fault, first and last second. A fault that
    still lasted when the run was stopped ends with the run."""
    rows: list[list[Any]] = []
    for number, fault in enumerate(done):
        if fault.kind == "trouble":
            provider, kind = fault.what.split()
            calm = (later.at for later in done[number:] if later.kind == "calm" and later.what == provider)
            ends = next(calm, end)
            rows.append([provider, kind, round(fault.at - began), round(ends - began)])
    return rows


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items())
