"""People's choices of topics at the command line: shown, and changed for those who have asked for it."""

import json
from collections.abc import Iterator
from functools import partial

import pytest
from moto import mock_aws

from mailroom.recipients.choices import Preferences
from tests.support.dynamodb import in_memory_dynamodb
from tests.support.ops.campaign import NOW, FakeFunctions, run
from tests.support.ops.shared import Session, make_deeds, make_table

ADA = "ada@example.com"
TABLE = "mailroom-dev-preferences"


@pytest.fixture
def empty_preferences(monkeypatch: pytest.MonkeyPatch) -> Iterator[Preferences]:
    """The account, with an empty table."""
    with mock_aws(), in_memory_dynamodb():
        session = Session({"lambda": FakeFunctions()})
        make_table(session.client("dynamodb"), TABLE, "recipient", "topic")
        make_table(session.client("dynamodb"), "mailroom-dev-suppressions", "recipient", "channel")
        make_deeds(session.client("dynamodb"))
        monkeypatch.setattr("boto3.Session", lambda: session)
        yield Preferences(session.client("dynamodb"), TABLE, lambda: NOW)


run_people = partial(run, "people")


def test_people_show_finds_the_opt_outs_of_an_address_in_another_spelling(
    empty_preferences: Preferences,
) -> None:
    empty_preferences.opt_out(ADA, "followers", "one-click")
    empty_preferences.opt_out(ADA, "news", "page")
    empty_preferences.opt_out("eve@example.com", "news", "page")
    result = run_people("show", " Ada Lovelace <ADA@Example.com> ")
    assert result.exit_code == 0
    since = "since 2026-11-21 14:00:34 UTC: opted out"
    assert result.stdout.splitlines() == [
        f"ada@example.com has received no followers {since} with the button of their mail program.",
        f"ada@example.com has received no news {since} on the page that a mail links to.",
    ]


def test_people_show_and_people_allow_find_an_opt_out_by_the_other_form_of_the_number(
    empty_preferences: Preferences,
) -> None:
    empty_preferences.opt_out("+541123456789", "news", "page")
    assert run_people("show", "+5491123456789").stdout.startswith("+541123456789 has received no news ")
    assert run_people("allow", "+5491123456789", "--topic", "news", "--yes").exit_code == 0
    assert run_people("show", "+5491123456789").exit_code == 1


def test_people_stop_stores_an_opt_out_in_the_canonical_form_of_the_address(
    empty_preferences: Preferences,
) -> None:
    result = run_people("stop", "Ada <ADA@Example.com>", "--topic", "followers")
    assert result.exit_code == 0
    assert "ada@example.com has received no followers since" in result.stdout
    assert "opted out by moto (command)." in result.stdout
    assert (ADA, "followers") in empty_preferences.find([(ADA, "followers")])


def test_people_stop_for_a_topic_keeps_an_earlier_opt_out_with_its_time_and_exits_with_1(
    empty_preferences: Preferences,
) -> None:
    empty_preferences.opt_out(ADA, "followers", "one-click")
    before = empty_preferences.get(ADA, "followers")
    result = run_people("stop", ADA, "--topic", "followers")
    assert result.exit_code == 1
    assert "2026-11-21 14:00:34 UTC: opted out with the button of their mail program" in result.stdout
    assert before
    assert empty_preferences.get(ADA, "followers") == before


@pytest.mark.usefixtures("empty_preferences")
def test_people_stop_for_a_topic_refuses_an_invalid_recipient() -> None:
    result = run_people("stop", "ada at example", "--topic", "followers")
    assert result.exit_code == 2
    assert (
        "'ada at example' is not a recipient; use a mail address, a number such as +16175551234"
        in result.stderr
    )


def test_people_allow_for_a_topic_removes_the_opt_out_and_a_second_allow_exits_with_1(
    empty_preferences: Preferences,
) -> None:
    empty_preferences.opt_out(ADA, "followers", "one-click")
    result = run_people("allow", "ADA@example.com", "--topic", "followers", "--yes")
    assert result.exit_code == 0
    opted_out, allowed = result.stdout.splitlines()
    assert opted_out.startswith(f"{ADA} has received no followers since 2026-11-21 14:00:34 UTC: opted out")
    assert allowed == f"{ADA} gets followers of dev again."
    assert not empty_preferences.find([(ADA, "followers")])
    result = run_people("allow", ADA, "--topic", "followers", "--yes")
    assert (result.exit_code, result.stdout) == (1, f"{ADA} has not opted out of followers in dev.\n")


def test_the_commands_of_people_print_every_field_of_an_opt_out_as_json(
    empty_preferences: Preferences,
) -> None:
    empty_preferences.opt_out(ADA, "followers", "one-click")
    choice = {
        "recipient": ADA,
        "topic": "followers",
        "since": "2026-11-21T14:00:34.000Z",
        "by": "one_click",
        "actor": "",
    }
    expected = {"stage": "dev", "suppressions": [], "opt_outs": [choice]}
    assert json.loads(run_people("show", ADA, "--json").stdout) == expected
    assert json.loads(run_people("stop", ADA, "--topic", "followers", "--json").stdout) == expected
    result = run_people("allow", ADA, "--topic", "followers", "--yes", "--json")
    assert json.loads(result.stdout) == {**expected, "ses": "not_asked"}
    assert f"{ADA} gets followers of dev again." in result.stderr


def test_people_allow_for_a_topic_keeps_the_opt_out_without_a_confirmation(
    empty_preferences: Preferences,
) -> None:
    empty_preferences.opt_out(ADA, "followers", "one-click")
    result = run_people("allow", ADA, "--topic", "followers")  # no input, so no answer
    assert result.exit_code == 1
    assert "Send followers of dev to it again? Do so only if they have asked for it." in result.stderr
    assert empty_preferences.find([(ADA, "followers")])
