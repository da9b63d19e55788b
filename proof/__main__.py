"""`make proof`: stop every sender everywhere, print what became of the mails, write bench/proof.json."""

import json
import subprocess
import sys

from rich.console import Console
from rich.table import Table

from bench import REPOSITORY
from bench.functions import in_a_process
from proof.counting import COLUMNS, LABELS, Counts

RESULTS = REPOSITORY / "bench" / "proof.json"
PYTHON = REPOSITORY / ".local" / "proof" / "bin" / "python"
"""The interpreter that has AWS's SDK for durable functions."""


def main() -> None:
    command = [str(PYTHON), "-m", "proof.durable"]
    try:
        durable = subprocess.run(command, cwd=REPOSITORY, stdout=subprocess.PIPE, check=True)
        found = in_a_process("proof.senders") | json.loads(durable.stdout)
    except subprocess.CalledProcessError as failed:
        sys.exit(f"{failed}\n{failed.stderr or ''}")
    counts: dict[str, Counts] = {name: found[name] for name in LABELS}
    RESULTS.write_text(json.dumps(counts, indent=2) + "\n")
    table = Table("sender", *COLUMNS, title=f"written to {RESULTS.relative_to(REPOSITORY)}")
    for name, each in counts.items():
        table.add_row(LABELS[name], *map(str, each.values()))
    Console(highlight=False).print(table)


if __name__ == "__main__":
    main()
