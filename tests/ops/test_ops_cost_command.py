"""`cost` as an operator runs it."""

import json

import jsonschema  # type: ignore[import-untyped]
import msgspec
import pytest
import typer
from typer.testing import CliRunner, Result

from mailroom_ops.costs.cost import Cost, cost, money
from tests.ops.test_ops_cost import TEMPLATES

app = typer.Typer()
app.command()(cost)


@pytest.fixture(autouse=True)
def _synthesized(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mailroom_stacks.deploy_policy.policies.read", lambda *_: (None, TEMPLATES))


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments], env={"COLUMNS": "100"})


def said(*arguments: str) -> Cost:
    result = run(*arguments, "--json", "--stage", "prod")
    assert result.exit_code == 0
    return msgspec.json.decode(result.stdout, type=Cost)


def test_json_is_one_object_of_its_schema() -> None:
    result = run("mail=1000", "webhook=5", "--json")
    document = json.loads(result.stdout)
    jsonschema.validate(document, msgspec.json.schema(Cost))
    assert result.exit_code == 0
    assert [each["channel"] for each in document["channels"]] == ["mail", "webhook"]


def test_a_table_a_channel_and_one_for_the_stage() -> None:
    result = run("mail=1000000", "sms=10", "--bulk", "--stage", "prod")
    assert result.exit_code == 0
    for part in ("messages by mail (ses), lane bulk", "10 messages by sms (twilio)", "The stage prod itself"):
        assert part in result.stdout
    assert "Not included: the provider's price for sms" in result.stdout
    assert "Together: " in result.stdout
    assert "Assumed for the cost: " in result.stdout


def test_the_cost_of_no_messages_is_that_of_the_stage() -> None:
    alone = said()
    assert (alone.channels, alone.dollars > 10) == ([], True)
    assert "The stage dev itself" in run().stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("push=5",), "channel: 'push' is not in dev"),
        (("--stage", "moon"), "use one of dev, prod, local"),
        (("mail=1e6",), "use mail=10000"),
        (("mail",), "use mail=10000"),
    ],
)
def test_an_unknown_stage_or_channel_exits_with_2_and_a_sentence(
    arguments: tuple[str, ...], words: str
) -> None:
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert words in result.stderr


@pytest.mark.parametrize(
    ("dollars", "words"), [(0.004, "< 0.01"), (0.005, "0.01"), (1234.5, "1,234.50"), (12_345.6, "12,346")]
)
def test_dollars_are_rounded_to_significant_digits(dollars: float, words: str) -> None:
    assert money(dollars) == words
