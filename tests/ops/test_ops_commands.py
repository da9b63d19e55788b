"""The operator's commands: what they print, and the exit codes that scripts go by."""

import os
from functools import partial
from typing import Any

import pytest

from mailroom_ops import cli
from mailroom_ops.shared.screen import Refused, sentences_of
from tests.support.ops.run_app import run_app
from tests.support.ops.shared import FakeDispatch, Session, Shelf, dispatch_event, document, key
from tests.support.unit.fakes import client_error

FAILED = {"batchItemFailures": [{"itemIdentifier": "0"}]}


@pytest.fixture
def dispatch(monkeypatch: pytest.MonkeyPatch) -> FakeDispatch:
    """A dispatch that takes everything."""
    return in_place_of_aws(monkeypatch, FakeDispatch())


def in_place_of_aws(monkeypatch: pytest.MonkeyPatch, dispatch: FakeDispatch) -> FakeDispatch:
    session = Session({"lambda": dispatch})
    monkeypatch.setattr("boto3.Session", lambda: session)
    return dispatch


run = partial(run_app, cli.app, columns=80)


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        ("ThrottlingException", "AWS throttles requests. Try again in a minute."),
        ("ProvisionedThroughputExceededException", "AWS throttles requests. Try again in a minute."),
        ("ExpiredTokenException", "Sign in again, and repeat the command."),
        ("AccessDenied", "The credentials do not have this permission. Ask for it if the account is right."),
        ("InternalError", "Check the credentials, the region, and --stage dev."),
    ],
)
def test_the_remedy_for_an_error_of_aws_depends_on_its_code(code: str, remedy: str) -> None:
    assert sentences_of(client_error(code), "dev")[1] == remedy


def test_messages_resend_exits_with_1_after_an_incomplete_replay_and_names_the_logs_to_read(
    shelf_in_s3: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf_in_s3.put("one", document(dispatch_event("a")))
    shelf_in_s3.put("two", document(dispatch_event("b")))
    in_place_of_aws(monkeypatch, FakeDispatch([FAILED]))
    result = run("messages", "resend", "--given-up", "--yes")
    assert result.exit_code == 1
    assert "1 batch replayed, 1 left." in result.stdout
    assert "logs of these functions" in result.stdout
    assert shelf_in_s3.keys() == [key("one"), f"replayed/{key('two')}"]


@pytest.mark.usefixtures("shelf_in_s3", "dispatch")
def test_a_command_for_an_undeployed_stage_exits_with_2_and_names_the_settings_to_check() -> None:
    result = run("messages", "resend", "--given-up", "--stage", "prod")
    assert result.exit_code == 2
    assert "There is no such table, function, bucket or queue of prod (ListObjectsV2)" in result.stderr
    assert "Deploy the stage, or check --stage, the credentials and the region." in result.stderr
    assert not result.stdout


@pytest.mark.usefixtures("shelf_in_s3", "dispatch")
def test_the_environment_variable_mailroom_stage_sets_the_stage_of_a_command() -> None:
    result = run("messages", "resend", "--given-up", environment={"MAILROOM_STAGE": "elsewhere"})
    assert "queue of elsewhere (" in result.stderr


@pytest.mark.parametrize(
    ("given", "trouble"),
    [
        ({"AWS_DEFAULT_REGION": "us-east-1"}, "Unable to locate credentials"),
        ({"AWS_REGION": "us-east-1"}, "Unable to locate credentials"),
        ({"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x"}, "You must specify a region."),
        ({"AWS_PROFILE": "nobody"}, "The config profile (nobody) could not be found"),
    ],
    ids=["credentials", "credentials, the region as all but botocore read it", "region", "profile"],
)
def test_a_command_without_credentials_region_or_profile_names_the_settings_to_check(
    given: dict[str, str], trouble: str
) -> None:
    nothing = {name: None for name in os.environ if name.startswith("AWS_")}
    nowhere = dict.fromkeys(("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"), os.devnull)
    result = run(
        "messages",
        "resend",
        "--given-up",
        environment={**nothing, **nowhere, "AWS_EC2_METADATA_DISABLED": "true", **given},
    )
    assert result.exit_code == 2
    assert trouble in result.stderr
    assert "Check the credentials, the region, and --stage dev." in result.stderr


@pytest.mark.parametrize(
    ("given", "region"),
    [
        ({"AWS_REGION": "eu-west-1", "AWS_DEFAULT_REGION": None}, "eu-west-1"),
        ({"AWS_REGION": "eu-west-1", "AWS_DEFAULT_REGION": "us-east-1"}, "eu-west-1"),
        ({"AWS_REGION": None, "AWS_DEFAULT_REGION": "us-east-1"}, "us-east-1"),
    ],
    ids=["alone", "before the other", "not set"],
)
def test_a_command_uses_the_region_in_aws_region_or_else_in_aws_default_region(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, str | None], region: str
) -> None:
    def refuse(session: Any, _stage: str) -> None:
        raise Refused(f"It would ask {session.region_name}.")

    monkeypatch.setattr("mailroom_ops.repair.replay.FailedBatches", refuse)
    assert run("messages", "resend", "--given-up", environment=given).stderr == f"It would ask {region}.\n"
