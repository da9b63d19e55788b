"""A database is asked by no more workers than it has connections for, and gives up before they do."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailroom_stacks.settings.sentences import SettingsError
from tests.support.stacks.campaign_folders import MODULE, SECRET, enabled, put, refused
from tests.support.stacks.refusals import refusal

KEY = "mailroom.dev.databases.app"


def app(**settings: Any) -> dict[str, dict[str, Any]]:
    return {"app": {"secret_arn": SECRET.format("app"), "connections": 20, **settings}}


@pytest.mark.parametrize(
    ("database", "said"),
    [
        (
            app(connections=6),
            "connections: (collect 2 + compose 5 workers at once) = 7 must be at most 6; lower the "
            "campaigns' concurrency, or let Mailroom have 7 connections.",
        ),
        (
            app(statement_seconds=25),
            "statement_seconds: 10 to connect + 2 x 25 = 60 s must be under "
            "campaigns.collect.timeout_seconds 60; use 24 or less, or raise that time-out.",
        ),
        (
            app(ca_file="campaigns/rds.pem"),
            "ca_file: 'campaigns/rds.pem' is not there; put it there (that of RDS is "
            "https://truststore.pki.rds.amazonaws.com/global/global-bundle.pem), or set it to null for the "
            "system's.",
        ),
    ],
)
def test_a_database_that_cannot_bear_its_campaigns_is_named_with_the_formula(
    tmp_path: Path, database: dict[str, Any], said: str
) -> None:
    assert refused(put(tmp_path, module=MODULE), "weekly", databases=database) == f"{KEY}.{said}"


def test_what_is_composed_together_has_the_time_for_its_query_and_its_puts(tmp_path: Path) -> None:
    folder = put(tmp_path, module=MODULE, recipients_per_message=250)
    patient = {"campaigns__collect": {"timeout_seconds": 600}}
    said = refused(folder, "weekly", databases=app(statement_seconds=45), **patient)
    assert said == (
        f"{KEY}.statement_seconds: 10 to connect + 1 x 45 + recipients_per_message 250 x 0.02 = "
        "60 s must be under campaigns.compose.timeout_seconds 60; use 44 or "
        "less, or raise that time-out."
    )
    assert enabled(folder, "weekly", databases=app(statement_seconds=44), **patient)


def test_of_several_campaigns_the_one_with_the_most_people_together_counts(tmp_path: Path) -> None:
    put(tmp_path, "small", MODULE, recipients_per_message=10)
    put(tmp_path, "elsewhere", MODULE, recipients_per_message=500, audience__database="shop")
    folder = put(tmp_path, "large", MODULE, recipients_per_message=100)
    said = refused(
        folder,
        "small",
        "elsewhere",
        "large",
        databases={**app(statement_seconds=48), "shop": app()["app"]},
        campaigns__collect={"timeout_seconds": 600},
    )
    assert said.startswith(f"{KEY}.statement_seconds: ")
    assert "recipients_per_message 100 x 0.02" in said


def test_a_database_with_nothing_but_what_it_needs_fits(tmp_path: Path) -> None:
    assert enabled(put(tmp_path, module=MODULE, recipients_per_message=500), "weekly", databases=app())


def takes(**changes: Any) -> bool:
    with TemporaryDirectory() as folder:
        try:
            enabled(put(Path(folder), module=MODULE, recipients_per_message=100), "weekly", **changes)
        except SettingsError:
            return False
    return True


@given(
    statement=st.integers(1, 120),
    timeout=st.integers(61, 300),
)
def test_synth_takes_just_what_ends_within_the_functions_time(statement: int, timeout: int) -> None:
    connected = 2 * 5
    fits = connected + 2 * statement < timeout and connected + statement + 100 * 0.02 < timeout
    limits = {"timeout_seconds": timeout}
    databases = app(statement_seconds=statement)
    assert takes(databases=databases, campaigns__collect=limits, campaigns__compose=limits) == fits


def test_the_seeds_numbers_fit_exactly(tmp_path: Path) -> None:
    folder = put(tmp_path, module=MODULE, concurrency=5)
    assert enabled(folder, "weekly", databases=app(connections=7))


def test_compose_takes_no_connection_where_no_campaign_has_code_of_its_own(tmp_path: Path) -> None:
    folder = put(tmp_path)
    assert enabled(folder, "weekly", databases=app(connections=2))


def test_a_database_that_no_campaign_asks_may_be_as_small_as_it_likes(tmp_path: Path) -> None:
    databases = {**app(), "shop": {"secret_arn": SECRET.format("shop"), "connections": 2}}
    assert enabled(put(tmp_path), "weekly", databases=databases)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"secret_arn": "app"}, "app.secret_arn: 'app' should match pattern "),
        ({"ca_file": "../rds.pem"}, "app.ca_file: '../rds.pem' should match pattern "),
        ({"host": "one,two"}, "app.host: 'one,two' should match pattern "),
        ({"host": "/tmp"}, "app.host: '/tmp' should match pattern "),
        ({"dbname": ""}, "app.dbname: '' should match pattern "),
    ],
)
def test_a_wrong_setting_of_a_database_is_named(settings: dict[str, Any], said: str) -> None:
    assert refusal("databases", app(**settings)).startswith(f"mailroom.dev.databases.{said}")
