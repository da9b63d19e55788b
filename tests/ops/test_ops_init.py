"""`init`: asks for a stage, or takes options, and writes its section into cdk.json."""

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mailroom_ops import cli
from mailroom_ops.setup import init as command
from mailroom_ops.shared import screen
from mailroom_stacks.settings.concurrency import functions_at_once
from mailroom_stacks.settings.load import load
from tests.support.ops.run_app import run_app
from tests.support.stacks.refusals import OURS

FULL = OURS.read_text()
MAIL = ("--set", "mail.senders=Ada <ada@acme.example>", "--set", "monitoring.emails=ops@acme.example")


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cdk.json that is not there yet."""
    path = tmp_path / "cdk.json"
    monkeypatch.setattr("mailroom_stacks.paths.CDK_JSON", path)
    return path


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes standard input a terminal."""
    monkeypatch.setattr(command, "at_a_terminal", lambda: True)


run_init = partial(run_app, cli.app, "init")


def stages(file: Path) -> dict[str, Any]:
    sections: dict[str, Any] = json.loads(file.read_text())["context"]["mailroom"]
    return sections


def test_init_without_a_terminal_names_the_settings_that_it_assumed(file: Path) -> None:
    first = run_init("--stage", "trial", *MAIL[:2]).stdout
    assert (
        "Assumed, as nothing was asked: channels: mail; channels.mail.messages_per_second: 1; "
        "monitoring.emails: not set. Change them with --set."
    ) in first
    assert stages(file)["trial"]["channels"]["mail"]["messages_per_second"] == 1
    assert "Assumed" not in run_init("--stage", "trial", *MAIL).stdout


@pytest.mark.parametrize("content", [None, "", "{}\n"], ids=["lacking", "blank", "{}"])
def test_init_writes_every_setting_that_the_cdk_needs_into_a_missing_or_empty_cdk_json(
    file: Path, content: str | None
) -> None:
    if content is not None:
        file.write_text(content)
    assert run_init("--stage", "trial", *MAIL).exit_code == 0
    document = json.loads(file.read_text())
    assert document == {"app": "python3 app.py", "context": {"stage": "trial", "mailroom": stages(file)}}
    assert stages(file) == {
        "trial": {
            "channels": {
                "mail": {
                    "handler": "send_mail",
                    "messages_per_second": 1,
                    "lanes": {"normal": {"share": 0.5}, "bulk": {"share": 0.5}},
                }
            },
            "mail": {"senders": ["Ada <ada@acme.example>"]},
            "items": {"unknown": "allow"},
            "monitoring": {"emails": ["ops@acme.example"]},
            "deployment": {
                "deletion_protection": False,
                "tags": {"service": "mailroom", "stage": "trial"},
            },
        }
    }
    assert [*stages(file)["trial"]] == ["channels", "mail", "items", "monitoring", "deployment"]


def test_init_adds_a_new_stage_to_cdk_json_without_a_change_to_the_rest(file: Path) -> None:
    file.write_text(FULL)
    assert run_init("--stage", "trial", *MAIL).exit_code == 0
    document = json.loads(file.read_text())
    del document["context"]["mailroom"]["trial"]
    assert json.dumps(document) == json.dumps(json.loads(FULL))


def test_init_changes_only_the_answered_settings_of_an_existing_stage(file: Path) -> None:
    file.write_text(FULL)
    expected = json.loads(FULL)
    prod = expected["context"]["mailroom"]["prod"]
    run_init("--stage", "prod", "--set", "channels.mail.messages_per_second=50", *MAIL[2:])
    prod["channels"]["mail"]["messages_per_second"] = 50
    prod["monitoring"]["emails"] = ["ops@acme.example"]
    assert json.dumps(json.loads(file.read_text())) == json.dumps(expected)


def test_init_does_not_write_cdk_json_if_it_has_the_answers_already(file: Path) -> None:
    file.write_text(FULL)
    stamp = file.stat().st_mtime_ns
    assert run_init("--stage", "prod", "--set", "sms.provider=twilio").exit_code == 0
    assert (file.read_text(), file.stat().st_mtime_ns) == (FULL, stamp)


def test_init_removes_the_channels_of_a_stage_that_the_option_channels_does_not_name(file: Path) -> None:
    file.write_text(FULL)
    run_init("--stage", "dev", "--channels", "mail")
    section = stages(file)["dev"]
    assert [*section["channels"]] == ["mail"]
    assert not section.keys() & {"sms", "fax"}
    assert section["deployment"] == json.loads(FULL)["context"]["mailroom"]["dev"]["deployment"]


@pytest.mark.usefixtures("terminal")
def test_init_asks_once_for_each_setting_of_the_chosen_channels(file: Path) -> None:
    answers = (
        *("trial", "mail,sms,fax,push,webhook", "2", "a@acme.example, b@acme.example", "o@acme.example"),
        *("twilio", "+12025550123", '{"ios": "arn:aws:sns:us-east-1:111122223333:app/APNS/shop"}'),
        *("signalwire", "+12025550124", "acme"),
    )
    result = run_init(typed="\n".join(answers) + "\n")
    assert result.exit_code == 0, result.stderr
    section = stages(file)["trial"]
    assert section["channels"]["mail"]["messages_per_second"] == 2
    assert section["mail"] == {"senders": ["a@acme.example", "b@acme.example"]}
    assert section["sms"] == {"provider": "twilio", "sender": "+12025550123"}
    assert section["fax"] == {"provider": "signalwire", "senders": ["+12025550124"], "space": "acme"}
    assert [*section["push"]["platform_applications"]] == ["ios"]
    assert [*section["channels"]] == ["mail", "sms", "push"]
    assert section["monitoring"] == {"emails": ["o@acme.example"]}


@pytest.mark.usefixtures("terminal")
def test_a_blank_answer_to_init_keeps_the_setting_of_an_existing_stage(file: Path) -> None:
    full = FULL.replace("@example.com", "@acme.example")
    file.write_text(full)
    result = run_init("--stage", "prod", typed="\n" * 10)
    assert (result.exit_code, file.read_text()) == (0, full)
    assert "[mail, sms, fax]" in result.stderr
    assert "[Mailroom <mailroom@acme.example>]" in result.stderr


@pytest.mark.usefixtures("terminal")
def test_init_does_not_offer_a_placeholder_in_cdk_json_as_the_default_sender(file: Path) -> None:
    file.write_text(FULL)
    run_init("--stage", "prod", "--channels", "mail", typed="\n\n\nada@acme.example\n\n\n")
    assert stages(file)["prod"]["mail"]["senders"] == ["ada@acme.example"]


@pytest.mark.usefixtures("terminal")
def test_init_does_not_write_cdk_json_after_a_wrong_answer_at_a_terminal(file: Path) -> None:
    result = run_init("--stage", "trial", "--channels", "mail", *MAIL, typed="many\n\n")
    assert (result.exit_code, file.exists()) == (2, False)
    assert "messages_per_second: 'many' should be a valid number." in result.stderr


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ((), "--stage: is missing"),
        (("--stage", "No", *MAIL), "mailroom.No.stage: 'No' should match pattern"),
        (("--stage", "trial"), "mailroom.trial.mail.senders: is missing; add it"),
        (("--stage", "trial", "--channels", "pigeon", *MAIL), "'send_pigeon' is not a handler of Mailroom"),
        (
            ("--stage", "trial", "--channels", "", *MAIL),
            "trial.channels: {} should have at least 1 item",
        ),
        (("--stage", "trial", "--channels", "sms", *MAIL), "mailroom.trial.sms.provider: is missing"),
        (("--stage", "trial", "--set", "fax", *MAIL), "--set: 'fax' has no value"),
        (
            ("--stage", "trial", "--set", "monitoring.level=LOUD", *MAIL),
            "monitoring.level: 'LOUD' should be 'full' or 'minimal'",
        ),
        (
            ("--stage", "trial", "--set", 'campaigns.enabled=["nobody"]', *MAIL),
            "'nobody' has no file campaigns/nobody/campaign.toml",
        ),
        (
            ("--stage", "trial", "--set", "monitoring.concurrency_quota=10", *MAIL),
            "feedback.maximum_concurrency: ",
        ),
    ],
)
def test_init_refuses_a_missing_or_wrong_option_with_a_sentence_and_does_not_write_cdk_json(
    file: Path, given: tuple[str, ...], sentence: str
) -> None:
    result = run_init(*given)
    assert (result.exit_code, result.stdout, file.exists()) == (2, "", False)
    assert sentence in result.stderr


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("{", "is not JSON"),
        ("[1]", "has no section for stages"),
        ('{"app": "x"}', 'Add "mailroom": {} to its "context"'),
        ('{"context": {"mailroom": {"dev": 1}}}', "has no section for stages"),
        (
            '{"context": {"mailroom": {"trial": {"channels": 1}}}}',
            "trial.channels: 1 should be an object",
        ),
    ],
)
def test_init_leaves_an_invalid_settings_file_unchanged(file: Path, content: str, sentence: str) -> None:
    file.write_text(content)
    result = run_init("--stage", "trial", *MAIL)
    assert (result.exit_code, file.read_text()) == (2, content)
    assert sentence in result.stderr


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("retention.log_days=90", 90),
        ("retention.mailbox_days=null", None),
        ("deployment.region=eu-central-1", "eu-central-1"),
        ('deployment.account="111122223333"', "111122223333"),
        ("webhook.delays_seconds=[1, 2]", [1, 2]),
        ('mail.senders=["ada@acme.example"]', ["ada@acme.example"]),
        ("channels.mail.lanes.bulk.maximum_concurrency=5", 5),
    ],
)
def test_init_reads_the_value_of_the_option_set_as_json_or_else_as_text(
    file: Path, text: str, value: object
) -> None:
    assert run_init("--stage", "trial", *MAIL, "--set", text).exit_code == 0
    setting: Any = stages(file)["trial"]
    for name in text.partition("=")[0].split("."):
        setting = setting[name]
    assert setting == value


def test_the_output_of_init_names_the_next_commands(file: Path) -> None:
    words = run_init("--stage", "trial", *MAIL).stdout
    commands = re.findall(r"^  mailroom (\w+) --stage trial", words, re.MULTILINE)
    assert commands == ["init", "deploy", "init"]


def test_init_prints_the_number_of_concurrent_functions_and_a_command_for_a_smaller_quota(file: Path) -> None:
    words = run_init("--stage", "trial", *MAIL).stdout
    settings = load(stages(file), "trial")
    number = sum(functions_at_once(settings).values())
    assert f"It may run {number} functions at a time, besides those of its HTTP API." in words
    (command,) = re.findall(r"mailroom init (--stage trial .*) \\\n +(.*)$", words, re.MULTILINE)
    assert run_init(*" ".join(command).split()).exit_code == 0
    monitoring = stages(file)["trial"]["monitoring"]
    assert monitoring["concurrency_quota"] == 10


def test_a_file_as_standard_input_does_not_count_as_a_terminal(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with (tmp_path / "empty").open("w+") as nobody:
        monkeypatch.setattr("sys.stdin", nobody)
        assert not screen.at_a_terminal()
