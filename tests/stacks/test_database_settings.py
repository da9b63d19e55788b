"""A database is asked by no more workers than it has connections for, and gives up before they do."""

from pathlib import Path
from typing import Any

import pytest

from mailroom_stacks.settings.times import AWS, LOCAL, Times
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


@pytest.mark.parametrize("times", [AWS, LOCAL])
def test_queries_and_puts_end_within_the_functions_time(times: Times) -> None:
    connected, most_people, put_seconds = 2 * times.database_connect, 500, 0.02
    assert connected + 2 * times.database_statement < times.campaigns_timeout
    assert connected + times.database_statement + most_people * put_seconds < times.campaigns_timeout


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
