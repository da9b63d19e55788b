"""A wrong database stops synth, and queries end before the functions that make them."""

from pathlib import Path
from typing import Any

import pytest

from mailroom_stacks.settings.times import AWS, LOCAL, Times
from tests.support.stacks.campaign_folders import MODULE, SECRET, put_campaign, refusal_of_campaigns
from tests.support.stacks.refusals import refusal_of_setting


def app(**settings: Any) -> dict[str, dict[str, Any]]:
    return {"app": {"secret_arn": SECRET.format("app"), **settings}}


def test_the_error_about_a_missing_certificate_file_of_a_database_names_its_setting(tmp_path: Path) -> None:
    databases = app(ca_file="campaigns/rds.pem")
    assert refusal_of_campaigns(put_campaign(tmp_path, module=MODULE), "weekly", databases=databases) == (
        "mailroom.dev.databases.app.ca_file: 'campaigns/rds.pem' does not exist; add it (for RDS: "
        "https://truststore.pki.rds.amazonaws.com/global/global-bundle.pem), or use null for the CA "
        "certificates of the system."
    )


@pytest.mark.parametrize("times", [AWS, LOCAL])
def test_the_queries_and_puts_of_a_campaigns_function_fit_into_its_timeout(times: Times) -> None:
    connected, most_people, put_seconds = times.database_connect, 500, 0.02
    assert connected + 2 * times.database_statement < times.campaigns_timeout
    assert connected + times.database_statement + most_people * put_seconds < times.campaigns_timeout


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
def test_the_error_about_a_wrong_setting_of_a_database_names_it(settings: dict[str, Any], said: str) -> None:
    assert refusal_of_setting("databases", app(**settings)).startswith(f"mailroom.dev.databases.{said}")
