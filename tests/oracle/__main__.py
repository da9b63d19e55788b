"""`make oracle`: the same random calls of the ledger's verbs on three engines, compared after each call."""

import os
import sys

import boto3
from moto import mock_aws
from rich.console import Console
from rich.progress import track
from rich.table import Column, Table

from lab import size
from tests.oracle.engine import install, running
from tests.oracle.steps import VERBS, Call, Comparison, Side, calls
from tests.support.dynamodb import in_memory_client
from tests.support.unit.shared import REGION, FakeClock

CALLS = int(os.environ.get("CALLS", size(5000, 200)))
SEED = int(os.environ.get("SEED", "1"))
BEFORE = 10
"""Calls before the one that differs, which are printed with it."""


def main() -> None:
    console = Console(highlight=False)
    console.print(
        "Fetching DynamoDB Local, by AWS; whoever runs it accepts AWS's licence, which lies beside it."
    )
    install()
    os.environ |= dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "oracle")
    clock, made = FakeClock(), list[Call]()
    with running() as local, mock_aws():
        comparison = Comparison(
            Side("AWS's engine", local, clock),
            Side("the double", in_memory_client(), clock),
            Side("moto", boto3.client("dynamodb", region_name=REGION), clock, is_moto=True),
        )
        numbered = zip(range(CALLS), calls(SEED), strict=False)
        for _, (call, seconds) in track(numbered, "Comparing", CALLS, console=console):
            clock.advance(seconds)
            made.append(call)
            differs = comparison.make(call)
            if differs:
                told = "\n".join(map(str, made[-BEFORE:]))
                sys.exit(f"After {len(made)} calls (SEED={SEED}):\n{told}\n{differs}")
    table = Table("verb", *(Column(each, justify="right") for each in ("calls", "changed an item")))
    for verb in VERBS:
        table.add_row(verb, f"{comparison.asked[verb]:,}", f"{comparison.changed[verb]:,}")
    console.print(table)
    console.print(f"{len(made):,} calls: AWS's engine, the double and moto gave the same answers and items.")


if __name__ == "__main__":
    main()
