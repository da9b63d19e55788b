"""Imports of a cold start: psycopg takes longer than all of Mailroom, and only a database needs it."""

import os
import subprocess
import sys

import pytest

from tests.support import ROOT

ENVIRONMENT = os.environ | {
    "PYTHONPATH": str(ROOT / "lambdas"),
    "AWS_DEFAULT_REGION": "eu-central-1",
}
START = """
import sys
from mailroom.campaigns.sources import databases_of
from mailroom.environment import DatabaseSettings
databases_of({settings})
print(*{{"psycopg"}} & sys.modules.keys())
"""


@pytest.mark.process
@pytest.mark.parametrize(
    ("settings", "loaded"),
    [
        ("{}", set()),
        ('{"app": DatabaseSettings(secret_arn="arn", connect_seconds=5, statement_seconds=60)}', {"psycopg"}),
    ],
    ids=["without a database", "with one"],
)
def test_a_cold_start_loads_psycopg_only_if_the_stage_has_a_database(settings: str, loaded: set[str]) -> None:
    command = [sys.executable, "-c", START.format(settings=settings)]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == loaded
