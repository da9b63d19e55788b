"""`python -m lab.bench`: measure all sections or the given ones, and write lab/bench/results.json. With
SHORT=1, only check that each section runs."""

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from rich.console import Console

from lab import REPOSITORY, SHORT, figures, measured
from lab.bench import (
    counted,
    cpu,
    emulator,
    latency,
    rendering,
    template_operations,
)
from mailroom_local.stage import lifecycle

console = Console(highlight=False)


def _announce(line: str) -> None:
    console.print(f"  {line}")


SECTIONS: dict[str, Callable[[], dict[str, Any]]] = {
    "calls": counted.mails,
    "cpu": cpu.measure,
    "latency": latency.measure,
    "lone": lambda: emulator.lone_mails(_announce),
    "rendering": rendering.measure,
    "rate": lambda: emulator.mails(_announce),
    "templates": template_operations.measure,
}


def main() -> None:
    """Measure the sections, write the figures, and print them."""
    parser = argparse.ArgumentParser(prog="python -m lab.bench", description=__doc__)
    parser.add_argument("section", nargs="*", choices=[*SECTIONS, []], help="default: all; about 25 minutes")
    sections = parser.parse_args().section or list(SECTIONS)
    conditions = measured()  # before the sections run, because a commit may follow while they do
    found: dict[str, Any] = {}
    lifecycle.stop(emulator.WORKSPACE)  # an earlier run that was killed may have left a stage
    try:
        for name in sections:
            console.print(f"- {name}")
            found |= SECTIONS[name]()
    except subprocess.CalledProcessError as failed:
        sys.exit(f"{name}: {failed}\n{failed.stderr}")
    finally:
        lifecycle.stop(emulator.WORKSPACE)
    results = figures("results.json")
    recorded: dict[str, Any] = {"measured": {}} if SHORT else json.loads(results.read_text())
    # Figures and dates are stored by section, so that a section that is not run now keeps its earlier ones.
    recorded |= found | {"measured": recorded["measured"] | dict.fromkeys(sections, conditions)}
    results.write_text(json.dumps(recorded, indent=2) + "\n")
    console.print(f"written to {results.relative_to(REPOSITORY)}:")
    console.print_json(data=found)
    # A sender that loses or repeats mails, by the simulators' count, makes the run fail: its speed is not
    # meaningful.
    if wrong := [f"{name}: {found[name]}" for name in ("rate_lost", "rate_duplicates") if found.get(name)]:
        sys.exit(", ".join(wrong))


if __name__ == "__main__":
    main()
