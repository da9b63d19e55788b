"""`python -m bench`: measure everything, or the sections named, and write bench/results.json."""

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.table import Table

from bench import (
    REPOSITORY,
    bundles,
    calls,
    campaigns,
    cpu,
    feedback,
    gateway,
    imports,
    imports_of_files,
    rate,
)
from local.stage import lifecycle
from local.stage.workspace import DOT_LOCAL, Workspace

RESULTS = REPOSITORY / "bench" / "results.json"
TARGETS: dict[str, Callable[[Any], bool]] = {
    "calls_per_mail": lambda figure: figure <= 3.2,
    "write_units_per_mail": lambda figure: figure <= 2,
    "cpu_ratio_method": lambda figure: figure <= 0.5,
    "cpu_ratio_http": lambda figure: figure <= 0.8,
    "import_ratio": lambda figure: max(figure.values()) <= 1.3,
    "bundle_mb": lambda figure: figure["send_mail"] <= 6 and figure["send_fax"] <= 15,
    "fax_ledger_writes": lambda figure: figure["short"] <= 3,
    "faxes_held_per_function_second": lambda figure: min(figure.values()) >= 0.9,
    "memory_mb": lambda figure: max(figure.values()) <= 128,
    "rate_ratio_powertools": lambda figure: figure >= 1.2,
    "rate_10000": lambda figure: figure >= 10_000 / 60,
    "rate_duplicates": lambda figure: figure == 0,
    "rate_lost": lambda figure: figure == 0,
}
"""What the project wants of its figures; a miss is shown, not hidden, and fails nothing."""

console = Console(highlight=False)


def _deployed() -> dict[str, Any]:
    workspace = Workspace(DOT_LOCAL / "bench")
    lifecycle.synthesize(workspace)
    found = bundles.found(workspace.assembly)
    return bundles.measure(found) | imports.measure(found)


SECTIONS: dict[str, Callable[[], dict[str, Any]]] = {
    "calls": calls.measure,
    "campaigns": lambda: campaigns.measure(lambda line: console.print(f"  {line}")),
    "cpu": cpu.measure,
    "deployed": _deployed,
    "feedback": feedback.measure,
    "gateway": lambda: gateway.measure(lambda line: console.print(f"  {line}")),
    "imports_of_files": lambda: imports_of_files.measure(lambda line: console.print(f"  {line}")),
    "rate": lambda: rate.measure(lambda line: console.print(f"  {line}")),
}


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("section", nargs="*", choices=[*SECTIONS, []], help="default: all, about 10 minutes")
    chosen = parser.parse_args().section or list(SECTIONS)
    figures: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in chosen:
        console.print(f"- {name}")
        try:
            figures |= SECTIONS[name]()
        except subprocess.CalledProcessError as failed:
            sys.exit(f"{name}: {failed}\n{failed.stderr}")
    date, machine = datetime.now(UTC).date().isoformat(), f"{platform.machine()}, {os.cpu_count()} cores"
    now = f"{date}, Python {platform.python_version()}, {machine}"
    # By section, for one that was not run now keeps the figures, and the date, of before.
    figures["measured"] = figures.get("measured", {}) | dict.fromkeys(chosen, now)
    RESULTS.write_text(json.dumps(figures, indent=2) + "\n")
    _show(figures)


def _show(figures: dict[str, Any]) -> None:
    table = Table("figure", "measured", "reached", title=f"written to {RESULTS.relative_to(REPOSITORY)}")
    for name, figure in figures.items():
        reached = TARGETS[name](figure) if name in TARGETS else None
        text = ", ".join(f"{k} {v}" for k, v in figure.items()) if isinstance(figure, dict) else str(figure)
        table.add_row(name, text, {True: "yes", False: "no", None: ""}[reached])
    console.print(table)


if __name__ == "__main__":
    main()
