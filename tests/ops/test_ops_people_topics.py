"""People's choices of topics at the command line: shown, and changed for those who have asked for it."""

import json
from collections.abc import Iterator

import pytest
from moto import mock_aws
from typer.testing import Result

from mailroom.recipients.choices import Preferences
from tests.support.dynamodb import in_memory_dynamodb
from tests.support.ops.campaign import NOW, FakeFunctions
from tests.support.ops.campaign import run as cli
from tests.support.ops.shared import Session, make_deeds, make_table

ADA = "ada@example.com"
TABLE = "mailroom-dev-preferences"


@pytest.fixture
def preferences(monkeypatch: pytest.MonkeyPatch) -> Iterator[Preferences]:
    """The account, with an empty table."""
    with mock_aws(), in_memory_dynamodb():
        session = Session({"lambda": FakeFunctions()})
        make_table(session.client("dynamodb"), TABLE, "recipient", "topic")
        make_table(session.client("dynamodb"), "mailroom-dev-suppressions", "recipient", "channel")
        make_deeds(session.client("dynamodb"))
        monkeypatch.setattr("boto3.Session", lambda: session)
        yield Preferences(session.client("dynamodb"), TABLE, lambda: NOW)


def run(*arguments: str) -> Result:
    return cli("people", *arguments)


def test_the_opt_outs_of_an_address_are_shown_in_every_spelling(preferences: Preferences) -> None:
    preferences.opt_out(ADA, "followers", "one-click")
    preferences.opt_out(ADA, "news", "page")
    preferences.opt_out("eve@example.com", "news", "page")
    result = run("show", " Ada Lovelace <ADA@Example.com> ")
    assert result.exit_code == 0
    since = "since 2026-11-21 14:00:34 UTC: opted out"
    assert result.stdout.splitlines() == [
        f"ada@example.com has received no followers {since} with the button of their mail program.",
        f"ada@example.com has received no news {since} on the page that a mail links to.",
    ]


def test_a_choice_is_shown_and_undone_by_the_other_form_of_a_number(preferences: Preferences) -> None:
    preferences.opt_out("+541123456789", "news", "page")
    assert run("show", "+5491123456789").stdout.startswith("+541123456789 has received no news ")
    assert run("allow", "+5491123456789", "--topic", "news", "--yes").exit_code == 0
    assert run("show", "+5491123456789").exit_code == 1


@pytest.mark.usefixtures("preferences")
def test_a_recipient_without_opt_outs_exits_with_1() -> None:
    result = run("show", ADA)
    sentence = f"{ADA} is not suppressed in dev, and has not opted out of a topic.\n"
    assert (result.exit_code, result.stdout) == (1, sentence)
    assert run("show", ADA, "--json").stdout == '{"stage":"dev","suppressions":[],"opt_outs":[]}\n'


def test_an_operator_opts_a_recipient_out_in_the_canonical_form_of_the_address(
    preferences: Preferences,
) -> None:
    result = run("stop", "Ada <ADA@Example.com>", "--topic", "followers")
    assert result.exit_code == 0
    assert "ada@example.com has received no followers since" in result.stdout
    assert "opted out by moto (command)." in result.stdout
    assert (ADA, "followers") in preferences.find([(ADA, "followers")])


def test_an_earlier_opt_out_keeps_its_time_and_its_way_and_exits_with_1(preferences: Preferences) -> None:
    preferences.opt_out(ADA, "followers", "one-click")
    result = run("stop", ADA, "--topic", "followers")
    assert result.exit_code == 1
    assert "2026-11-21 14:00:34 UTC: opted out with the button of their mail program" in result.stdout


@pytest.mark.usefixtures("preferences")
def test_an_invalid_recipient_is_refused() -> None:
    result = run("stop", "ada at example", "--topic", "followers")
    assert result.exit_code == 2
    assert (
        "'ada at example' is not a recipient; use a mail address, a number such as +16175551234"
        in result.stderr
    )


def test_an_opt_in_is_confirmed_and_a_second_one_exits_with_1(preferences: Preferences) -> None:
    preferences.opt_out(ADA, "followers", "one-click")
    result = run("allow", "ADA@example.com", "--topic", "followers", "--yes")
    assert result.exit_code == 0
    opted_out, allowed = result.stdout.splitlines()
    assert opted_out.startswith(f"{ADA} has received no followers since 2026-11-21 14:00:34 UTC: opted out")
    assert allowed == f"{ADA} gets followers of dev again."
    assert not preferences.find([(ADA, "followers")])
    result = run("allow", ADA, "--topic", "followers", "--yes")
    assert (result.exit_code, result.stdout) == (1, f"{ADA} has not opted out of followers in dev.\n")


def test_the_json_contains_every_field_of_an_opt_out(preferences: Preferences) -> None:
    preferences.opt_out(ADA, "followers", "one-click")
    choice = {
        "recipient": ADA,
        "topic": "followers",
        "since": "2026-11-21T14:00:34.000Z",
        "by": "one_click",
        "actor": "",
    }
    expected = {"stage": "dev", "suppressions": [], "opt_outs": [choice]}
    assert json.loads(run("show", ADA, "--json").stdout) == expected
    assert json.loads(run("stop", ADA, "--topic", "followers", "--json").stdout) == expected
    result = run("allow", ADA, "--topic", "followers", "--yes", "--json")
    assert json.loads(result.stdout) == {**expected, "ses": "not_asked"}
    assert f"{ADA} gets followers of dev again." in result.stderr


def test_an_opt_in_without_a_confirmation_changes_nothing(preferences: Preferences) -> None:
    preferences.opt_out(ADA, "followers", "one-click")
    result = run("allow", ADA, "--topic", "followers")  # no input, so no answer
    assert result.exit_code == 1
    assert "Send followers of dev to it again? Do so only if they have asked for it." in result.stderr
    assert preferences.find([(ADA, "followers")])
