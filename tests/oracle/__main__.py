"""`make oracle`: make the same random calls on three engines, DynamoDB Local, moto and the tests' double, and
compare results and items after each call."""

import os
import sys

import boto3
from moto import mock_aws
from rich.console import Console
from rich.progress import track
from rich.table import Column, Table

from lab import size
from tests.oracle.engine import install, running_engine
from tests.oracle.steps import VERBS, Call, Comparison, Side, random_calls
from tests.support.dynamodb import in_memory_client
from tests.support.unit.shared import REGION, FakeClock

CALLS = int(os.environ.get("CALLS", size(5000, 200)))
SEED = int(os.environ.get("SEED", "1"))
BEFORE = 10
"""Number of the latest calls that are printed after a difference, including the call that differs."""


def main() -> None:
    console = Console(highlight=False)
    console.print("Fetching DynamoDB Local. By running it you accept AWS's licence, which is in its folder.")
    install()
    os.environ |= dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "oracle")
    clock, history = FakeClock(), list[Call]()
    with running_engine() as local, mock_aws():
        comparison = Comparison(
            Side("AWS's engine", local, clock),
            Side("the double", in_memory_client(), clock),
            Side("moto", boto3.client("dynamodb", region_name=REGION), clock, is_moto=True),
        )
        numbered = zip(range(CALLS), random_calls(SEED), strict=False)
        for _, (call, seconds) in track(numbered, "Comparing", CALLS, console=console):
            clock.advance(seconds)
            history.append(call)
            difference = comparison.make(call)
            if difference:
                latest = "\n".join(map(str, history[-BEFORE:]))
                sys.exit(f"After {len(history)} calls (SEED={SEED}):\n{latest}\n{difference}")
    table = Table("verb", *(Column(title, justify="right") for title in ("calls", "changed an item")))
    for verb in VERBS:
        table.add_row(verb, f"{comparison.asked[verb]:,}", f"{comparison.changed[verb]:,}")
    console.print(table)
    console.print(
        f"{len(history):,} calls: AWS's engine, the double and moto gave the same answers and items."
    )


if __name__ == "__main__":
    main()
