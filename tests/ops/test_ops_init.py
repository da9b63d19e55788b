"""`init`: asks for a stage, or takes options, and writes its section into cdk.json."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from mailroom.channels.contracts import CONTRACTS
from mailroom_ops import cli, screen
from mailroom_ops.estimates import lanes
from mailroom_ops.init import command, draft
from mailroom_stacks.settings.load import load
from tests.support.stacks.refusals import OURS

FULL = OURS.read_text()
MAIL = ("--sender", "Ada <ada@acme.example>", "--alarms", "ops@acme.example")


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cdk.json that is not there yet."""
    path = tmp_path / "cdk.json"
    monkeypatch.setattr("mailroom_stacks.paths.CDK_JSON", path)
    return path


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is somebody to ask."""
    monkeypatch.setattr(command, "at_a_terminal", lambda: True)


def run(*arguments: str, typed: str = "") -> Result:
    return CliRunner().invoke(cli.app, ["init", *arguments], input=typed, env={"COLUMNS": "200"})


def stages(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.read_text())["context"]["mailroom"]
    return found


@pytest.mark.parametrize("content", [None, "", "{}", "{}\n"], ids=["lacking", "blank", "{}", "{} and a line"])
def test_without_settings_the_file_gets_all_that_the_cdk_needs(file: Path, content: str | None) -> None:
    if content is not None:
        file.write_text(content)
    assert run("--stage", "trial", *MAIL).exit_code == 0
    found = json.loads(file.read_text())
    assert found == {"app": "python app.py", "context": {"stage": "trial", "mailroom": stages(file)}}
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
            "monitoring": {"emails": ["ops@acme.example"]},
            "deployment": {
                "deletion_protection": False,
                "tags": {"service": "mailroom", "stage": "trial"},
            },
        }
    }
    assert load(stages(file), "trial").twilio is None


def test_a_new_stage_leaves_every_other_character_of_a_file_in_the_commands_form_as_it_was(
    file: Path,
) -> None:
    file.write_text(FULL)
    assert run("--stage", "trial", *MAIL, "--rate", "14").exit_code == 0
    written = file.read_text()
    end = FULL.rindex("\n    }\n  }\n}")
    assert written.startswith(FULL[:end])
    assert written.endswith(FULL[end:])
    assert stages(file)["trial"]["channels"]["mail"]["messages_per_second"] == 14


def test_run_again_it_changes_what_was_asked_and_keeps_the_rest(file: Path) -> None:
    file.write_text(FULL)
    assert run("--stage", "prod", "--rate", "50", "--alarms", "a@acme.example, b@acme.example").exit_code == 0
    # A comma comes to the line before a new one.
    before, after = ([line.rstrip(",") for line in text.splitlines()] for text in (FULL, file.read_text()))
    assert [line.strip() for line in after if line not in before] == [
        '"messages_per_second": 50',
        '"monitoring": { "emails": ["a@acme.example", "b@acme.example"] }',
    ]
    assert len(after) == len(before) + 1


def test_run_again_with_the_same_answers_it_writes_nothing(file: Path) -> None:
    given = ("--stage", "trial", "--channels", "mail,sms", *MAIL, "--set", "sms.provider=twilio")
    first = run(*given, "--set", "sms.sender=+12025550123")
    before, stamp = file.read_text(), file.stat().st_mtime_ns
    again, bare = run(*given, "--set", "sms.sender=+12025550123"), run("--stage", "trial")
    assert (first.exit_code, again.exit_code, bare.exit_code) == (0, 0, 0)
    assert (file.read_text(), file.stat().st_mtime_ns) == (before, stamp)
    assert "Stage trial is already in cdk.json." in again.stdout
    assert again.stderr == ""


def test_a_stage_by_resend_has_its_domain_verified_there_and_not_by_ses(file: Path) -> None:
    result = run("--stage", "trial", *MAIL, "--set", "mail.provider=resend", "--json")
    steps = json.loads(result.stdout)["verify"]
    (domain,) = [each for each in steps if "acme.example" in each["why"] and "verify" in each["why"]]
    assert domain == {
        "why": "Resend has to verify the domain acme.example.",
        "how": "https://resend.com/domains",
    }
    (hook,) = [each for each in steps if "/callbacks/resend" in each["why"]]
    assert hook["how"] == "https://resend.com/webhooks"
    assert "SES" not in json.dumps(steps)


def test_the_ends_of_lines_stay(file: Path) -> None:
    file.write_bytes(FULL.replace("\n", "\r\n").encode())
    assert run("--stage", "dev", "--rate", "3").exit_code == 0
    changed = FULL.replace('"messages_per_second": 1,\n', '"messages_per_second": 3,\n', 1)
    assert file.read_bytes().decode() == changed.replace("\n", "\r\n")


def test_channels_that_are_not_named_any_more_leave_and_the_way_out_is_named(file: Path) -> None:
    file.write_text(FULL)
    result = run("--stage", "dev", "--channels", "mail")
    section = stages(file)["dev"]
    assert [*section["channels"]] == ["mail"]
    assert not section.keys() & {"sms", "fax"}
    assert section["deployment"] == json.loads(FULL)["context"]["mailroom"]["dev"]["deployment"]
    assert "The stage has no sms, fax any more." in result.stdout
    assert "Taking parts out" in result.stdout


@pytest.mark.usefixtures("terminal")
def test_it_asks_for_all_and_again_where_an_answer_will_not_do(file: Path) -> None:
    answers = (
        "Trial",
        "trial",
        "pigeon",
        "mail",
        "many",
        "14",
        "ada",
        "ada@acme.example",
        "nobody",
        "o@a.example",
        "some",
        "10",
        "2",  # what a small quota has to fit
        "webhook.maximum_concurrency=2",
    )
    result = run(typed="\n".join((*answers, "y")) + "\n")
    assert result.exit_code == 0
    for sentence in (
        "'Trial' does not fit",
        "pigeon is no channel; use some of mail, sms",
        "channels.mail.messages_per_second: 'many' is not a number; use 0.1 to 100000.",
        "mail.senders: 'ada' is not a mail address",
        "monitoring.emails: 'nobody' does not fit",
        "monitoring.concurrency_quota: 'some' is not a whole number",
        '+      "trial": {',
    ):
        assert sentence in result.stderr
    section = stages(file)["trial"]
    assert section["mail"] == {"senders": ["ada@acme.example"]}
    assert section["monitoring"] == {"emails": ["o@a.example"], "concurrency_quota": 10}


@pytest.mark.usefixtures("terminal")
def test_it_asks_for_what_the_chosen_channels_need_by_their_own_rules(file: Path) -> None:
    answers = (
        *("", "", "twilio", "signalwire", "+12025550124", "acme", "+12025550123"),
        *("android=arn:aws:sns:us-east-1:111122223333:app/GCM/shop", "y"),
    )
    given = ("--stage", "trial", "--channels", "mail,sms,fax,push,webhook", "--sender", "a@acme.example")
    result = run(*given, "--rate", "2", typed="\n".join(answers) + "\n")
    assert result.exit_code == 0
    section = stages(file)["trial"]
    assert section["sms"] == {"provider": "twilio", "sender": "+12025550123"}
    assert section["fax"] == {"provider": "signalwire", "senders": ["+12025550124"], "space": "acme"}
    assert [*section["push"]["platform_applications"]] == ["android"]
    assert [*section["channels"]] == ["mail", "sms", "push"]
    assert "monitoring" not in section
    assert "webhook" not in section
    assert "Nobody hears of alarms." in result.stdout
    for secret in ("mailroom-trial-twilio", "mailroom-trial-fax"):
        assert f"--secret-id {secret} " in result.stdout


@pytest.mark.usefixtures("terminal")
def test_a_rule_of_several_settings_may_be_answered_by_any_of_them(file: Path) -> None:
    given = ("--stage", "trial", "--channels", "mail", *MAIL, "--rate", "1")
    answers = "2\nwebhook.maximum_concurrency=2\ny\n"
    result = run(*given, "--lambda-quota", "10", typed=answers)
    assert result.exit_code == 0
    assert "feedback.maximum_concurrency (or KEY=VALUE of another setting):" in result.stderr
    section = stages(file)["trial"]
    assert (section["feedback"], section["webhook"]) == ({"maximum_concurrency": 2},) * 2


@pytest.mark.usefixtures("terminal")
def test_what_a_stage_has_is_what_a_blank_answer_keeps(file: Path) -> None:
    file.write_text(FULL)
    result = run("--stage", "prod", typed="\n\n\n\n\n")
    assert (result.exit_code, file.read_text()) == (0, FULL)
    assert "[mail, sms, fax]" in result.stderr
    assert "[Mailroom <mailroom@example.com>]" in result.stderr


@pytest.mark.usefixtures("terminal")
def test_nothing_is_written_without_a_yes(file: Path) -> None:
    result = run("--stage", "trial", "--channels", "mail", *MAIL, "--rate", "1", typed="\nn\n")
    assert (result.exit_code, file.exists()) == (1, False)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ((), "--stage: is missing"),
        (("--stage", "No"), "--stage: stage: 'No' does not fit"),
        (("--stage", "trial"), "--alarms: is missing"),
        (("--stage", "trial", "--alarms", ""), "--sender: mail.senders: is missing; add it"),
        (
            ("--stage", "trial", "--channels", "pigeon", *MAIL),
            "--channels: pigeon is no channel; use some of mail",
        ),
        (("--stage", "trial", "--channels", "", *MAIL), "--channels: Nothing is no channel"),
        (
            ("--stage", "trial", "--rate", "0", *MAIL),
            "--rate: channels.mail.messages_per_second: 0 is under 0.1",
        ),
        (("--stage", "trial", "--channels", "sms", *MAIL), "--set sms.provider=…: sms.provider: is missing"),
        (("--stage", "trial", "--channels", "webhook", "--rate", "1", *MAIL), "--rate: is the rate of mails"),
        (
            ("--stage", "trial", "--set", "stage=moon", *MAIL),
            "stage: is not a setting; the section's own key",
        ),
        (("--stage", "trial", "--set", "fax", *MAIL), "--set: 'fax' has no value"),
        (
            ("--stage", "trial", "--set", "monitoring.level=LOUD", *MAIL),
            "monitoring.level: 'LOUD' is unknown; use full or minimal",
        ),
        (
            ("--stage", "trial", "--set", "moon.phase=full", *MAIL),
            "moon: is not a setting; use one of profile, channels",
        ),
        (
            ("--stage", "trial", "--set", "campaigns.enabled=nobody", *MAIL),
            "'nobody' has no file campaigns/nobody/campaign.toml",
        ),
    ],
)
def test_without_a_terminal_what_is_missing_or_wrong_names_its_option(
    file: Path, given: tuple[str, ...], sentence: str
) -> None:
    result = run(*given)
    assert (result.exit_code, result.stdout, file.exists()) == (2, "", False)
    assert sentence in result.stderr


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("{", "is not JSON"),
        ("[1]", "has no place for stages"),
        ('{"app": "x"}', 'Add "mailroom": {} to its "context"'),
        ('{"context": {"mailroom": {"dev": 1}}}', "has no place for stages"),
    ],
)
def test_a_file_that_cannot_be_read_is_left_alone(file: Path, content: str, sentence: str) -> None:
    file.write_text(content)
    result = run("--stage", "trial", *MAIL)
    assert (result.exit_code, file.read_text()) == (2, content)
    assert sentence in result.stderr


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("retention.log_days=90", 90),
        ("deployment.point_in_time_recovery=false", False),
        ("retention.mailbox_days=null", None),
        ("deployment.region=eu-central-1", "eu-central-1"),
        ("deployment.account=111122223333", "111122223333"),
        ("webhook.delays_seconds=1, 2", [1, 2]),
        ("channels.mail.lanes.bulk.batch_size=5", 5),
        ('monitoring.waiting_minutes={"mail": 5}', {"mail": 5}),
    ],
)
def test_a_further_setting_is_of_the_kind_that_its_model_has(file: Path, text: str, value: object) -> None:
    assert run("--stage", "trial", *MAIL, "--set", text).exit_code == 0
    found: Any = stages(file)["trial"]
    for name in text.partition("=")[0].split("."):
        found = found[name]
    assert found == value


def test_a_channel_of_ones_own_is_a_row_whose_function_has_to_be_there(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(draft, "CONTRACTS", {**CONTRACTS, "chat": object})
    given = ("--stage", "trial", "--channels", "mail,chat", *MAIL)
    assert "'send_chat' is none of Mailroom's and has no file channels/send_chat.py" in run(*given).stderr
    assert not file.exists()
    secret = ("--set", "channels.chat.handler=send_push", "--set", "channels.chat.secret=A token.")
    assert "--secret-id mailroom-trial-chat " in run(*given, *secret).stdout
    assert stages(file)["trial"]["channels"]["chat"] == {
        "handler": "send_push",
        "messages_per_second": 1,
        "lanes": {"normal": {"share": 1}},
        "secret": "A token.",
    }


def test_json_is_one_object_and_says_what_lanes_cannot_reach(file: Path) -> None:
    result = run("--stage", "trial", *MAIL, "--rate", "100", "--json")
    answer = json.loads(result.stdout)
    assert (answer["stage"], answer["written"], result.exit_code) == ("trial", True, 0)
    assert "mailroom-trial-channels" in answer["stacks"]
    assert "mailroom-trial-fax" not in answer["stacks"]
    assert [each["how"] for each in answer["next"]][:2] == [
        "mailroom synth --stage trial",
        "mailroom bootstrap --stage trial",
    ]
    assert "--set channels.mail.lanes.bulk.maximum_concurrency=7" in answer["notes"][1]
    many = "channels.mail.lanes.{}.maximum_concurrency=7"
    lanes_set = [word for lane in ("normal", "bulk") for word in ("--set", many.format(lane))]
    assert json.loads(run("--stage", "trial", *lanes_set, "--json").stdout)["notes"] == []


def test_an_idle_month_costs_what_the_command_cost_says(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = json.loads(run("--stage", "trial", *MAIL, "--json").stdout)["idle_dollars"]
    of_file = lanes.Stages.of(file)
    monkeypatch.setattr(lanes.Stages, "of", lambda: of_file)
    result = CliRunner().invoke(cli.app, ["cost", "--stage", "trial", "--json"])
    assert said == json.loads(result.stdout)["dollars"]


def test_without_a_terminal_nobody_is_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with (tmp_path / "empty").open("w+") as nobody:
        monkeypatch.setattr("sys.stdin", nobody)
        assert not screen.at_a_terminal()


def test_what_has_to_be_seen_to_outside_is_named_by_the_settings_that_need_it(file: Path) -> None:
    aws = ("sms.provider=aws", "sms.sender=+12025550123")
    slack = ("monitoring.slack.workspace_id=T0123456789", "monitoring.slack.channel_id=C0123456789")
    given = [each for value in (*aws, *slack) for each in ("--set", value)]
    result = run("--stage", "trial", "--channels", "sms", *MAIL, *given)
    assert result.exit_code == 0, result.output
    assert "may spend 1 US dollar a month" in result.stdout
    assert "let AWS into the Slack workspace" in result.stdout
    assert "let AWS into" not in run("--stage", "other", "--channels", "mail", *MAIL).stdout
