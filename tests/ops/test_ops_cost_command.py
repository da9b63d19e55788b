"""`cost` as an operator runs it."""

import json
from functools import partial

import jsonschema  # type: ignore[import-untyped]
import msgspec
import pytest
import typer

from mailroom_ops.costs.cost import Cost, cost, money
from tests.ops.test_ops_cost import TEMPLATES
from tests.support.ops.run_app import run_app

app = typer.Typer()
app.command()(cost)


@pytest.fixture(autouse=True)
def _synthesized(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mailroom_stacks.deploy_policy.policies.read", lambda *_: (None, TEMPLATES))


run = partial(run_app, app, columns=100)


def said(*arguments: str) -> Cost:
    result = run(*arguments, "--json", "--stage", "prod")
    assert result.exit_code == 0
    return msgspec.json.decode(result.stdout, type=Cost)


def test_the_json_of_the_cost_command_is_one_object_of_its_schema() -> None:
    result = run("mail=1000", "webhook=5", "--json")
    document = json.loads(result.stdout)
    jsonschema.validate(document, msgspec.json.schema(Cost))
    assert result.exit_code == 0
    assert [each["queue"] for each in document["queues"]] == ["mail", "webhook"]


def test_the_cost_command_prints_a_table_for_each_queue_and_one_for_the_stage() -> None:
    result = run("mail-bulk=1000000", "sms=10", "--stage", "prod")
    assert result.exit_code == 0
    for part in ("messages of mail-bulk (ses)", "10 messages of sms (twilio)", "The stage prod itself"):
        assert part in result.stdout
    assert "Not included: the provider's price; it differs by country" in result.stdout
    assert "Together: " in result.stdout
    assert "Assumed for the cost: " in result.stdout


def test_the_cost_command_shows_how_long_a_queues_messages_take_and_which_setting_limits_them() -> None:
    lines = run("mail-bulk=40000", "fax=500", "--stage", "prod").stdout.splitlines()
    rate, calls = "mailroom.prod.channels.mail.messages_per_second", "mailroom.prod.fax.concurrent_calls"
    assert f"Put at the same time, they take 1 h 35 min, limited by {rate}." in lines
    assert f"Put at the same time, they take 4 h 10 min, limited by {calls}." in lines
    assert (
        "Faxes to the same number are sent one by one, so many take longer; so do further attempts." in lines
    )


def test_the_cost_command_shows_the_maximum_if_messages_would_outlast_the_retention_of_a_queue() -> None:
    (mail,) = said("mail=5").queues
    maximum = f"if over {mail.most_at_once:,} wait in the queue."
    assert (
        f"SQS deletes the last ones {maximum}"
        in run(f"mail={mail.most_at_once + 1}", "--stage", "prod").stdout
    )
    assert maximum not in run(f"mail={mail.most_at_once}", "--stage", "prod").stdout


def test_the_cost_command_without_messages_prints_the_cost_of_the_stage_alone() -> None:
    alone = said()
    assert (alone.queues, alone.dollars > 10) == ([], True)
    assert "The stage dev itself" in run().stdout


@pytest.mark.parametrize(
    ("arguments", "dollars"), [((), 160), (("--ses-plan", "none"), 100), (("--ses-plan", "pro"), 220)]
)
def test_mails_cost_the_price_of_the_plan_that_an_option_names(
    arguments: tuple[str, ...], dollars: float
) -> None:
    assert said("mail=1000000", *arguments).queues[0].parts["SES"] == dollars


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--ses-plan", "gold"), "essentials"),
        (("push=5",), "queue: 'push' is not in dev; use one of mail, mail-bulk, sms, fax, webhook."),
        (("--stage", "moon"), "use one of dev, prod, local"),
        (("mail=1e6",), "use mail=10000"),
        (("mail",), "use mail=10000"),
        (("mail=0",), "use mail=10000"),
    ],
)
def test_the_cost_command_exits_with_2_for_an_invalid_argument_and_prints_the_valid_values(
    arguments: tuple[str, ...], words: str
) -> None:
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert words in result.stderr


@pytest.mark.parametrize(
    ("dollars", "words"), [(0.004, "< 0.01"), (0.005, "0.01"), (1234.5, "1,234.50"), (12_345.6, "12,346")]
)
def test_small_amounts_are_printed_with_cents_and_large_amounts_in_whole_dollars(
    dollars: float, words: str
) -> None:
    assert money(dollars) == words
