"""`make proof`: kill each sender at each of its calls, and print how the mails ended. Then kill an
application at each of its calls, for each way to commit an order with its message. Writes
lab/bench/sent_once.json with the table and picture of its page, proof.json and proof_orders.json.

With ROW=celery, only the rows whose names contain this word are run. Their figures are printed."""

import json
import os
import subprocess
import sys

from rich.console import Console
from rich.table import Table

from lab import REPOSITORY, SHORT, figures, measured
from lab.bench.functions import in_a_process
from mailroom_stacks.paths import LIBRARY
from tests.proof import orders, page, suite, trial
from tests.proof.counting import COLUMNS, LABELS, TWO_PROVIDERS, Counts
from tests.proof.rows import ROWS, SHORT_ROWS

RESULTS, ORDERS, SUITE = figures("proof.json"), figures("proof_orders.json"), figures("sent_once.json")
PYTHON = REPOSITORY / ".local" / "proof" / "bin" / "python"
"""Python of the environment with AWS's SDK for durable functions."""
NEEDS = "needs "
"""Beginning of the reason why a row cannot be judged on a machine that lacks a program."""


def main() -> None:
    word, screen = os.environ.get("ROW", ""), Console(highlight=False)
    rows = {name: row for name, row in ROWS.items() if word in name and (name in SHORT_ROWS or not SHORT)}
    results = suite.count_rows(rows)
    table = Table("sender", *trial.COLUMNS)
    for name, ends in results.items():
        table.add_row(rows[name].label, *([ends] if isinstance(ends, str) else map(str, ends.values())))
    screen.print(table)
    if not word:
        record = {"measured": measured(), "runs": suite.RUNS, "rows": results}
        earlier = json.loads(SUITE.read_text()) if SUITE.exists() else {}
        SUITE.write_text(json.dumps(record | {"again": earlier.get("rows")}, indent=2) + "\n")
        if not SHORT:
            page.write_pages(record)
        _models(screen)
    _check_suite(results)


def _check_suite(results: dict[str, suite.Result]) -> None:
    """Exit with an error if Mailroom breaks a promise, or if a row fails that this machine can run."""
    if reasons := [ends for ends in results.values() if isinstance(ends, str) and not ends.startswith(NEEDS)]:
        sys.exit("\n".join(reasons))
    mailroom = results.get("mailroom")
    if isinstance(mailroom, dict) and any(mailroom[name] for name in trial.PROMISED):
        sys.exit(f"{ROWS['mailroom'].label}: {', '.join(trial.PROMISED)} must be 0")


def _models(screen: Console) -> None:
    """Count the rows that run on models of AWS, and the orders."""
    command = [str(PYTHON), "-m", "tests.proof.durable"]
    try:
        # Mailroom is not installed in that environment.
        variables = {**os.environ, "PYTHONPATH": str(LIBRARY)}
        durable = subprocess.run(command, cwd=REPOSITORY, env=variables, stdout=subprocess.PIPE, check=True)
        results = in_a_process("tests.proof.senders") | json.loads(durable.stdout)
    except subprocess.CalledProcessError as failed:
        sys.exit(f"{failed}\n{failed.stderr or ''}")
    counts: dict[str, Counts] = {name: results[name] for name in LABELS}
    conditions = {"measured": measured()}
    RESULTS.write_text(json.dumps(conditions | counts, indent=2) + "\n")
    table = Table("sender", *COLUMNS, title=f"written to {RESULTS.relative_to(REPOSITORY)}")
    for name, ends in counts.items():
        table.add_row(LABELS[name], *map(str, ends.values()))
    screen.print(table)
    by_time = orders.counted()
    ORDERS.write_text(json.dumps(conditions | by_time, indent=2) + "\n")
    for when, ways in by_time.items():
        title = f"an order and its message, {when}; written to {ORDERS.relative_to(REPOSITORY)}"
        table = Table("way", *orders.COLUMNS, title=title)
        for name, ends in ways.items():
            table.add_row(orders.LABELS[name], *map(str, ends.values()))
        screen.print(table)
    _check(counts, by_time)


def _check(counts: dict[str, Counts], by_time: dict[str, dict[str, Counts]]) -> None:
    """Exit with an error if Mailroom's figures break a promise."""
    promises = {
        f"{orders.LABELS['transaction']}, {when}": ways["transaction"] for when, ways in by_time.items()
    }
    for label, (_stops, *faults) in ((label, ends.values()) for label, ends in promises.items()):
        if any(faults):
            sys.exit(f"{label}: all counts in the table except `stops` must be 0")
    for trouble in TWO_PROVIDERS:
        ends = counts[f"mailroom_{trouble}"]
        if ends["sent_twice"] or ends["lost"]:
            sys.exit(f"{LABELS[f'mailroom_{trouble}']}: mails were sent twice or lost")


if __name__ == "__main__":
    main()
