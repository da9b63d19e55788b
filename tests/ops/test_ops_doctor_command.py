"""`doctor` as an operator runs it: what is printed, exit codes, and checks that go wrong themselves."""

import json
from collections.abc import Iterator

import jsonschema  # type: ignore[import-untyped]
import msgspec
import pytest
import typer
from typer.testing import CliRunner, Result

from mailroom_ops.doctor.checks import Check
from mailroom_ops.doctor.doctor import doctor
from mailroom_ops.doctor.examined_stage import ExaminedStage
from mailroom_ops.doctor.report import CheckFinding, Diagnosis, ok
from mailroom_ops.doctor.run import run
from tests.support.ops.doctor import SECRETS, STAGE, TEXTS, Answer, Aws, healthy, resolver

app = typer.Typer()
app.command()(doctor)


@pytest.fixture
def healthy_answers(monkeypatch: pytest.MonkeyPatch) -> dict[str, Answer]:
    found = healthy()
    monkeypatch.setattr("boto3.Session", lambda: Aws(found))
    monkeypatch.setattr("dns.resolver.resolve", resolver(TEXTS))
    return found


def command(*arguments: str) -> Result:
    # Checks that only ask AWS, because a test never uses the network.
    only = () if "--only" in arguments else ("--only", "stacks,mail,push,webhook,functions,queues,alarms")
    return CliRunner().invoke(app, [*arguments, *only], env={"COLUMNS": "120"})


def test_doctor_exits_with_0_on_a_healthy_stage(healthy_answers: dict[str, Answer]) -> None:
    result = command()
    assert result.exit_code == 0
    assert "Stage dev, account 123456789012, us-east-1" in result.stdout
    assert "0 failed" in result.stdout


def test_doctor_prints_the_fix_of_a_failed_check_on_one_line_and_exits_with_1(
    healthy_answers: dict[str, Answer],
) -> None:
    healthy_answers["lambda.GetFunctionConcurrency"] = {"ReservedConcurrentExecutions": 0}
    result = CliRunner().invoke(app, ["--only", "functions"], env={"COLUMNS": "60"})
    assert result.exit_code == 1
    assert (
        "  → aws lambda delete-function-concurrency --function-name mailroom-dev-send-mail" in result.stdout
    )


def test_doctor_exits_with_0_if_the_worst_finding_is_a_warning(healthy_answers: dict[str, Answer]) -> None:
    healthy_answers["sns.ListSubscriptionsByTopic"] = {"Subscriptions": []}
    result = command("--only", "alarms", "--json")
    said = json.loads(result.stdout)
    assert (result.exit_code, said["state"], said["counts"]["warning"]) == (0, "warning", 1)


def test_the_json_of_doctor_is_one_object_of_its_schema(healthy_answers: dict[str, Answer]) -> None:
    result = command("--json")
    said = json.loads(result.stdout)
    jsonschema.validate(said, msgspec.json.schema(Diagnosis))
    assert (said["stage"], said["account"], said["region"], said["state"]) == (
        "dev",
        "123456789012",
        "us-east-1",
        "ok",
    )
    assert said["at"].endswith("Z")
    assert sum(said["counts"].values()) == len(said["checks"])


def test_the_doctor_never_prints_a_secret(healthy_answers: dict[str, Answer]) -> None:
    result = command("--json")
    shown = command()
    words = [each.strip('"{} ') for text in SECRETS.values() for each in text.split(":")]
    for secret in [SECRETS["signing"], "a-long-and-random-key", *words]:
        if len(secret) > 12:
            assert secret not in result.output + shown.output


def test_doctor_checks_only_the_subjects_that_an_option_names(healthy_answers: dict[str, Answer]) -> None:
    said = json.loads(command("--only", "push, queues", "--json").stdout)
    assert {each["subject"] for each in said["checks"]} == {"push", "queues"}


def test_doctor_exits_with_2_at_an_unknown_subject_and_lists_the_valid_ones(
    healthy_answers: dict[str, Answer],
) -> None:
    result = command("--only", "mial")
    assert result.exit_code == 2
    assert "mial is unknown; use stacks, mail" in " ".join(result.stderr.replace("│", " ").split())


def test_doctor_exits_with_2_if_the_stage_is_not_deployed(healthy_answers: dict[str, Answer]) -> None:
    healthy_answers["lambda.ListFunctions"] = {"Functions": []}
    result = command()
    assert (result.exit_code, result.stdout) == (2, "")
    assert "There is no function of stage dev in account 123456789012, us-east-1. Deploy" in result.stderr


@pytest.mark.parametrize(
    ("code", "remedy"),
    [("InvalidClientTokenId", "--stage dev"), ("SignatureDoesNotMatch", "timedatectl set-ntp true")],
)
def test_doctor_exits_with_2_and_prints_a_remedy_if_aws_refuses_the_credentials(
    healthy_answers: dict[str, Answer], code: str, remedy: str
) -> None:
    healthy_answers["sts.GetCallerIdentity"] = code
    result = command()
    assert (result.exit_code, result.stdout) == (2, "")
    assert remedy in result.stderr


def _examined_stage() -> ExaminedStage:
    return ExaminedStage(Aws(healthy()), STAGE)


def _broken(_: ExaminedStage) -> Iterator[CheckFinding]:
    yield ok("So far so good.")
    raise KeyError("a-secret")


def test_a_check_that_raises_an_error_is_reported_with_its_line_and_its_earlier_findings() -> None:
    good = Check("mail", "good", lambda _: iter([ok("Good.")]))
    checked = run(_examined_stage(), [Check("mail", "broken", _broken), good])
    assert [(each.check, each.state) for each in checked] == [
        ("broken", "ok"),
        ("broken", "failed"),
        ("good", "ok"),
    ]
    assert checked[1].sentence == "The check itself is broken: KeyError."
    line = _broken.__code__.co_firstlineno + 2
    assert checked[1].fix == f"Report it: {__file__}, line {line}."


def test_a_check_of_the_doctor_without_findings_is_reported_as_skipped() -> None:
    (found,) = run(_examined_stage(), [Check("mail", "empty", lambda _: iter(()))])
    assert found.state == "skipped"


def test_a_check_is_skipped_if_the_local_aws_lacks_its_operation_and_fails_elsewhere(
    healthy_answers: dict[str, Answer],
) -> None:
    def asking(stage: ExaminedStage) -> Iterator[CheckFinding]:
        stage.client("pinpoint-sms-voice-v2").describe_spend_limits()
        yield ok("Known.")

    unknown: dict[str, Answer] = {
        **healthy_answers,
        "pinpoint-sms-voice-v2.DescribeSpendLimits": "UnknownOperationException",
    }
    stage = ExaminedStage(Aws(unknown), STAGE)
    states = []
    for stage.local in (True, False):
        states.append(run(stage, [Check("sms", "limit", asking)])[0].state)
    assert states == ["skipped", "failed"]
