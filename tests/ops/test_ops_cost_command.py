"""`cost` as an operator runs it, and the figures that its page quotes."""

import json
import re
from collections.abc import Iterator

import jsonschema  # type: ignore[import-untyped]
import msgspec
import pytest
import typer
from typer.testing import CliRunner, Result

from local.stage.workspace import REPOSITORY
from ops.cost import fixed
from ops.cost.answer import Cost
from ops.cost.command import cost, money, small

app = typer.Typer()
app.command()(cost)
PAGE = (REPOSITORY / "docs" / "costs.md").read_text()


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments], env={"COLUMNS": "100"})


def said(*arguments: str) -> Cost:
    result = run(*arguments, "--json", "--stage", "prod")
    assert result.exit_code == 0
    return msgspec.json.decode(result.stdout, type=Cost)


def test_json_is_one_object_of_its_schema() -> None:
    result = run("--mail", "1000", "--webhook", "5", "--api", "3", "--json")
    answer = json.loads(result.stdout)
    jsonschema.validate(answer, msgspec.json.schema(Cost))
    assert result.exit_code == 0
    assert [each["channel"] for each in answer["channels"]] == ["mail", "webhook", "api"]
    assert answer["fixed"]["resources"]["source"] == "settings"


def test_a_table_a_channel_and_one_for_the_stage() -> None:
    result = run("--mail", "1000000", "--sms", "10", "--bulk", "--stage", "prod")
    assert result.exit_code == 0
    for part in ("1,000,000 messages by mail, lane bulk", "10 messages by sms", "The stage prod itself"):
        assert part in result.stdout
    assert "The provider's price for sms is not included" in result.stdout
    assert "composing" in result.stdout
    assert "Together: " in result.stdout
    assert "Assumed: " in result.stdout


def test_nothing_to_send_costs_the_stage_alone() -> None:
    answer = said()
    assert (answer.channels, answer.dollars, answer.dollars_per_1000) == ([], answer.fixed.dollars, None)
    assert answer.fixed.dollars > 10
    assert "The stage dev itself" in run().stdout


def test_fixed_costs_are_counted_in_the_templates_where_that_is_wanted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    def templates(stage: str) -> Iterator[dict[str, object]]:
        asked.append(stage)
        return iter([{"Resources": {"Key": {"Type": "AWS::KMS::Key"}}}])

    monkeypatch.setattr(fixed, "templates", templates)
    answer = said("--fixed")
    assert asked == ["prod"]
    assert (answer.fixed.resources.source, answer.fixed.resources.keys, answer.fixed.dollars) == (
        "templates",
        1,
        1,
    )
    assert "were counted in its templates" in run("--fixed").stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--push", "5"), "channel: 'push' is not in dev"),
        (("--stage", "moon"), "use one of dev, prod, local"),
        (("--mail", "-1"), "--mail"),
        (("--messages", "chat=5"), "channel: 'chat' is not in dev"),
        (("--messages", "chat"), "use chat=10000"),
    ],
)
def test_what_there_is_not_exits_with_2_and_a_sentence(arguments: tuple[str, ...], words: str) -> None:
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert words in result.stderr


def test_the_help_has_an_example() -> None:
    assert "Example: mailroom cost --mail 1000000" in run("--help").stdout


@pytest.mark.parametrize(
    ("dollars", "words"), [(0.004, "< 0.01"), (0.005, "0.01"), (1234.5, "1,234.50"), (12_345.6, "12,346")]
)
def test_money_has_no_more_digits_than_mean_something(dollars: float, words: str) -> None:
    assert money(dollars) == words


def test_the_pages_months_are_what_the_command_says() -> None:
    rows = re.findall(r"^\| ([\d,]+) \| (.+) \|$", PAGE, re.MULTILINE)
    assert [row[0] for row in rows] == ["10,000", "1,000,000", "100,000,000"]
    for messages, cells in rows:
        answer = said("--mail", messages.replace(",", ""))
        mail = answer.channels[0]
        names = ("mailbox and ledger writes", "what the provider tells", "kept in tables", "sender's time")
        figures = [
            answer.fixed.dollars,
            *(mail.parts[name] for name in names),
            mail.dollars - mail.parts["SES"],
            mail.parts["SES"],
            answer.dollars,
        ]
        assert cells == " | ".join(money(each) for each in figures)


@pytest.mark.parametrize("channel", ["mail", "sms", "fax", "webhook"])
def test_the_pages_thousands_are_what_the_command_says(channel: str) -> None:
    (quoted,) = re.findall(rf"^\| {channel} \| ([\d.]+) \|", PAGE, re.MULTILINE)
    (found,) = said(f"--{channel}", "1000000").channels
    assert quoted == small((found.dollars - found.parts.get("SES", 0)) / 1000)
