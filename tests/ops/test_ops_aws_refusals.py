"""How a command ends where AWS refuses."""

import boto3
import pytest
import typer
from botocore.parsers import ResponseParserError

from mailroom.aws.dynamo_batches import UnprocessedKeys
from mailroom_ops.shared.screen import aws_faults
from tests.support.unit.fakes import client_error


def stderr_of(fault: str | Exception, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(typer.Exit) as ended, aws_faults("prod"):
        raise client_error(fault) if isinstance(fault, str) else fault
    assert ended.value.exit_code == 2
    return " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    "code",
    [
        *("SignatureDoesNotMatch", "InvalidSignatureException"),
        *("RequestTimeTooSkewed", "RequestExpired", "RequestInTheFuture"),
    ],
)
def test_the_error_about_a_refused_signature_has_the_command_that_sets_the_clock(
    code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = stderr_of(code, capsys)
    assert "this machine's clock" in text
    assert "timedatectl set-ntp true" in text


def test_the_error_about_denied_access_names_the_stage_and_not_the_clock(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = stderr_of("AccessDenied", capsys)
    assert "clock" not in text
    assert "--stage prod" in text


@pytest.mark.parametrize(
    "code",
    [
        *("ResourceNotFoundException", "NoSuchBucket", "QueueDoesNotExist"),
        "AWS.SimpleQueueService.NonExistentQueue",
    ],
)
def test_the_error_about_a_missing_resource_of_aws_advises_to_deploy_or_check_the_stage(
    code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = stderr_of(code, capsys)
    assert text.startswith("There is no such table, function, bucket or queue of prod")
    assert text.endswith("Deploy the stage, or check --stage, the credentials and the region.")


@pytest.mark.parametrize("url", ["localhost:4566", "http://", "http://[::1"])
def test_the_error_about_an_invalid_endpoint_url_names_its_environment_variable(
    url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", url)
    with pytest.raises(typer.Exit) as ended, aws_faults("prod"):
        boto3.Session(region_name="us-east-1").client("sqs")
    assert ended.value.exit_code == 2
    text = capsys.readouterr().err
    assert text.startswith("Invalid")
    assert "Write AWS_ENDPOINT_URL as a URL" in text


def test_an_error_in_the_code_of_a_command_is_raised_and_not_reported_as_a_refusal_by_aws() -> None:
    with pytest.raises(ValueError, match="invalid literal"), aws_faults("prod"):
        int("x")


def test_a_command_reports_keys_that_dynamodb_left_unprocessed_as_throttling(
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = stderr_of(UnprocessedKeys("DynamoDB left 3 keys out"), capsys)
    assert "DynamoDB throttled the requests, and did not return all items. Run the command again." in said


def test_the_error_about_an_unreadable_response_names_the_setting_of_the_endpoint(
    capsys: pytest.CaptureFixture[str],
) -> None:
    error = ResponseParserError("Unable to parse response (syntax error), invalid XML received")
    assert "AWS_ENDPOINT_URL" in stderr_of(error, capsys)
