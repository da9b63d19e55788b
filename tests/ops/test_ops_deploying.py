"""Steps between `mailroom deploy` and AWS: programs from locks, and the judgement of a comparison."""

import subprocess
from itertools import pairwise
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mailroom_ops import cli
from mailroom_ops.deploying import commands
from mailroom_ops.deploying.judgement import FATES, losses
from mailroom_ops.shared.installed import installed, run_locked
from mailroom_ops.shared.screen import Refused

COMPARED = """
Stack mailroom-prod-mailbox
Resources
[~] AWS::DynamoDB::Table Mailbox Mailbox6ED0E2BF replace
 └─ [~] KeySchema (requires replacement)
[~] AWS::DynamoDB::Table Ledger LedgerA1B2C3D4
 └─ [+] GlobalSecondaryIndexes
[-] AWS::IAM::Role Role RoleA1B2C3D4 destroy

Stack mailroom-prod-channels
Resources
[-] AWS::SQS::Queue Sms/Queue SmsQueue37C0E395 destroy
[-] AWS::S3::Bucket Old OldA1B2C3D4 orphan
[~] AWS::SecretsManager::Secret Key KeyA1B2C3D4 may be replaced
[+] AWS::SQS::Queue Chat/Queue ChatQueueA1B2C3D4
"""


def test_the_resources_whose_data_a_deployment_may_lose_are_named_with_their_stacks() -> None:
    assert [*losses(COMPARED)] == [
        f"mailroom-prod-mailbox: the table Mailbox6ED0E2BF {FATES['replace']}.",
        f"mailroom-prod-channels: the queue SmsQueue37C0E395 {FATES['destroy']}.",
        f"mailroom-prod-channels: the bucket OldA1B2C3D4 {FATES['orphan']}.",
        f"mailroom-prod-channels: the secret KeyA1B2C3D4 {FATES['may be replaced']}.",
    ]


CHANGED = """/tmp/lib/program.js:1:63996
WARNING Periods of metrics have been overridden
Stack mailroom-prod-monitoring
Resources
[~] AWS::CloudWatch::Dashboard Dashboard Dashboard
 └─ [~] DashboardBody
     └─ [~] .Fn::Join:
[~] AWS::Lambda::Function Mail MailA1B2C3D4
 └─ [~] Environment
"""


@pytest.mark.parametrize(
    ("stack", "code", "verdict"), [("", 0, commands.NO_LOSS), (COMPARED, 1, commands.WHAT_TO_DO)]
)
def test_mailroom_diff_ends_with_a_verdict_and_names_a_changed_dashboard_without_its_json(
    monkeypatch: pytest.MonkeyPatch, stack: str, code: int, verdict: str
) -> None:
    monkeypatch.setattr(commands, "_synthesize", lambda _: "")
    compared = subprocess.CompletedProcess([], 0, stdout=CHANGED + stack)
    monkeypatch.setattr("mailroom_ops.deploying.cdk.run", lambda *_, **__: compared)
    reply = CliRunner().invoke(cli.app, ["diff", "--stage", "prod"])
    assert (reply.exit_code, reply.stdout.splitlines()[-1]) == (code, verdict)
    assert reply.stdout.startswith(
        "Stack mailroom-prod-monitoring\nResources\n"
        "[~] AWS::CloudWatch::Dashboard Dashboard Dashboard changed\n"
        "[~] AWS::Lambda::Function Mail MailA1B2C3D4\n └─ [~] Environment\n"
    )


def test_a_program_is_installed_again_only_if_its_lock_file_has_changed(tmp_path: Path) -> None:
    lock, times = tmp_path / "lock.txt", []
    for text in ("six==1", "six==1", "six==2"):
        lock.write_text(text)
        installed(tmp_path / "program", [lock], lambda folder: times.append(folder.exists()))
    assert times == [True, True]


def test_an_installation_that_failed_is_tried_again(tmp_path: Path) -> None:
    lock, tried = tmp_path / "lock.txt", []
    lock.write_text("six==1")

    def fail(folder: Path) -> None:
        tried.append(folder)
        raise Refused("the registry does not answer")

    for _ in range(2):
        with pytest.raises(Refused):
            installed(tmp_path / "program", [lock], fail)
    assert len(tried) == 2


def test_the_error_about_a_failed_installer_has_its_output_and_a_hint_about_hashes() -> None:
    with pytest.raises(Refused, match=r"(?s)no such file.*do not install it"):
        run_locked("sh", "-c", "echo no such file >&2; exit 1")


@pytest.mark.parametrize("command", ["synth", "diff", "deploy", "destroy"])
def test_a_stage_that_the_app_refuses_is_not_compared_deployed_or_destroyed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    (tmp_path / "app.py").write_text("raise SystemExit('mailroom.dev.mail: is missing')")
    monkeypatch.setattr("mailroom_ops.deploying.cdk.PROJECT", tmp_path)
    monkeypatch.setattr(commands, "OUTPUT", tmp_path / "cdk.out")
    monkeypatch.setattr("mailroom_ops.deploying.cdk.run", lambda *_, **__: pytest.fail("ran"))
    assert CliRunner().invoke(cli.app, [command, "--stage", "dev"]).exit_code == 2


@pytest.mark.parametrize(
    ("approval", "stacks_at_once"), [("never", ["3"]), ("broadening", []), ("any-change", [])]
)
def test_stacks_are_deployed_in_parallel_only_if_the_cdk_needs_no_approval(
    monkeypatch: pytest.MonkeyPatch, approval: str, stacks_at_once: list[str]
) -> None:
    """The CDK ends with an error if it would have to ask about one of several stacks at once."""
    calls: list[tuple[str, ...]] = []

    def run(*arguments: str, **_: object) -> subprocess.CompletedProcess[str]:
        calls.append(arguments)
        return subprocess.CompletedProcess([], 0)

    monkeypatch.setattr(commands, "_stacks", lambda stage: [f"mailroom-{stage}-mailbox"])
    monkeypatch.setattr("mailroom_ops.deploying.preparing.use_place_of", lambda _: "123456789012")
    monkeypatch.setattr("mailroom_ops.deploying.preparing.bootstrap_if_missing", lambda *_, **__: None)
    monkeypatch.setattr("mailroom_ops.deploying.preparing.unverified_identities", lambda *_: [])
    monkeypatch.setattr("mailroom_ops.deploying.cdk.run", run)
    assert CliRunner().invoke(cli.app, ["deploy", "--approval", approval]).exit_code == 0
    (call,) = calls
    assert call[call.index("--require-approval") + 1] == approval
    given = [after for name, after in pairwise(call) if name == "--concurrency"]
    assert given == stacks_at_once
    assert call[-1] == "mailroom-dev-mailbox"
