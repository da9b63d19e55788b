"""`cost` as an operator runs it, and the figures that its page quotes."""

import json
import re

import jsonschema  # type: ignore[import-untyped]
import msgspec
import pytest
import typer
from msgspec import structs
from typer.testing import CliRunner, Result

from local.stage.workspace import REPOSITORY
from ops.cost import answer, fixed
from ops.cost.answer import Cost
from ops.cost.command import cost, money, small
from ops.cost.parts import MessagePath, bus_cost, callbacks_cost, storage_cost
from ops.estimates import prices
from ops.estimates.forecast import WAITING, WORKING
from ops.estimates.lanes import Stages

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
    document = json.loads(result.stdout)
    jsonschema.validate(document, msgspec.json.schema(Cost))
    assert result.exit_code == 0
    assert [each["channel"] for each in document["channels"]] == ["mail", "webhook", "api"]


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
    alone = said()
    assert (alone.channels, alone.dollars, alone.dollars_per_1000) == ([], alone.fixed.dollars, None)
    assert alone.fixed.dollars > 10
    assert "The stage dev itself" in run().stdout


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
        month = said("--mail", messages.replace(",", ""))
        mail = month.channels[0]
        names = ("mailbox and ledger writes", "what the provider tells", "kept in tables", WORKING, WAITING)
        figures = [
            month.fixed.dollars,
            *(mail.parts[name] for name in names),
            mail.dollars - mail.parts["SES"],
            mail.parts["SES"],
            month.dollars,
        ]
        assert cells == " | ".join(money(each) for each in figures)


def test_the_pages_idle_month_is_what_the_command_prints() -> None:
    rows = re.findall(r"^\| ([a-z ]+) \| (\d*) ?\| ([\d.]+) \|$", PAGE, re.MULTILINE)
    printed = re.findall(
        r"^ ([a-z ]+?) {2,}(\d*) +([\d.]+) $",
        run("--stage", "prod").stdout.replace("< 0.01", ""),
        re.MULTILINE,
    )
    assert rows == printed
    assert [row[0] for row in rows][:-1] == [name for name, price in said().fixed.parts.items() if price]


def test_the_pages_sentences_have_the_figures_that_the_command_computes_with() -> None:
    kept = said("--mail", "1000000").channels[0].parts["kept in tables"]
    rotation = said().fixed.parts["rotation of keys"]
    quoted = {
        r"a million mails a month cost ([\d.]+) to keep instead": _kept(mailbox_days=30),
        r"to keep instead of ([\d.]+) ": kept,
        r"([\d.]+) of the [\d.]+ that a GB kept": prices.RECOVERY_GB,
        r"of the ([\d.]+) that a GB kept": prices.RECOVERY_GB + prices.TABLE_GB,
        r"a million mails cost ([\d.]+) for the wait with 2": _waiting(2),
        r"and would cost ([\d.]+) with 4": _waiting(4),
        r"requests and a write: ([\d.]+) a million": callbacks_cost(_path(Stages.of())) / 2 * 1e6,
        r"an event for each outcome is ([\d.]+) a million": prices.BUS_EVENT * 1e6,
        r"([\d.]+) for a million mails \|": bus_cost(_path(Stages.of())) * 1e6,
        r"They cost up to ([\d.]+) a million more": said("--mail", "1000000").alone,
        r"which is ([\d.]+) a queue and month": _polling(queues=1),
        r"stage costs ([\d.]+) less in its first year": rotation,
        r"and ([\d.]+) less in its second": rotation / 2,
        r"one three more, ([\d.]+) each": prices.CUSTOM_METRIC,
    }
    for pattern, figure in quoted.items():
        assert re.findall(pattern, PAGE) == [f"{figure:.2f}"], pattern


def _path(stages: Stages) -> MessagePath:
    return MessagePath(stages.settings("prod"), stages.lane("prod", "mail", "normal"))


def _polling(queues: int) -> float:
    resources = structs.replace(said().fixed.resources, queues=queues, fifo_queues=0)
    return fixed.dollars(resources, 0)["polling of queues"]


def _kept(mailbox_days: int) -> float:
    return storage_cost(_path(Stages.of().changed("prod", "retention.mailbox_days", mailbox_days))) * 1e6


def _waiting(workers: int) -> float:
    stages = Stages.of().changed("prod", "channels.mail.lanes.normal.maximum_concurrency", workers)
    found = answer.cost(stages, "prod", [answer.WantedMessages("mail", 1_000_000)], said().fixed.resources)
    return found.channels[0].parts[WAITING]


@pytest.mark.parametrize("channel", ["mail", "sms", "fax", "webhook"])
def test_the_pages_thousands_are_what_the_command_says(channel: str) -> None:
    (quoted,) = re.findall(rf"^\| {channel} \| ([\d.]+) \|", PAGE, re.MULTILINE)
    (found,) = said(f"--{channel}", "1000000").channels
    assert quoted == small((found.dollars - found.parts.get("SES", 0)) / 1000)


def test_the_plan_of_the_account_at_ses_decides_about_its_part() -> None:
    def ses(*plan: str) -> float:
        result = run("--mail", "1000000", "--json", *plan)
        return float(json.loads(result.stdout)["channels"][0]["parts"]["SES"])

    assert (ses(), ses("--ses-plan", "none"), ses("--ses-plan", "ESSENTIALS")) == (100, 100, 160)
    refused = run("--mail", "1", "--ses-plan", "pro")
    assert refused.exit_code == 2
    assert "https://aws.amazon.com/ses/pricing/" in refused.stderr.replace("\n", "").replace("│", "").replace(
        " ", ""
    )
