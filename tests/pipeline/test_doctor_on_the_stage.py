"""The doctor on a stage that runs."""

import json
from typing import Any

import pytest

from tests.support.pipeline.campaign import operator
from tests.support.pipeline.shared import Pipeline

DENIED = {"sms": "TwilioSecretName", "fax": "FaxSecretName"}
"""Secrets without which a subject fails."""


def diagnosed(pipeline: Pipeline, *only: str) -> tuple[int, dict[str, Any], str]:
    """Exit code, the answer and what was told beside it, as an operator gets them."""
    done = operator(pipeline, "doctor", "--stage", "local", "--json", "--only", ",".join(only))
    return done.exit_code, json.loads(done.stdout), done.stderr


def test_doctor_passes_each_check_of_the_channels_and_functions_of_a_running_stage(
    pipeline: Pipeline,
) -> None:
    subjects = ("stacks", "mail", "sms", "push", "fax", "webhook", "functions")
    code, said, errors = diagnosed(pipeline, *subjects)
    assert errors == ""
    assert [each for each in said["checks"] if each["state"] == "failed"] == []
    assert code == 0
    good = {each["subject"] for each in said["checks"] if each["state"] == "ok"}
    assert good == set(subjects)


def test_the_doctor_checks_dead_letter_queues_and_alarms(pipeline: Pipeline) -> None:
    # Other tests leave dead letters: what is found differs, that it is found does not.
    _, said, errors = diagnosed(pipeline, "queues", "alarms")
    assert errors == ""
    sentences = [each["sentence"] for each in said["checks"]]
    assert any("dead-letter queues are empty" in each for each in sentences)
    assert any("alarms notify somebody" in each for each in sentences)


@pytest.mark.parametrize(("subject", "output"), DENIED.items())
def test_doctor_reports_a_wrong_secret_and_does_not_print_its_value(
    pipeline: Pipeline, subject: str, output: str
) -> None:
    name = pipeline.output(output)
    before = pipeline.secrets.get_secret_value(SecretId=name)["SecretString"]
    pipeline.secrets.put_secret_value(SecretId=name, SecretString='{"wrong": "not-a-secret"}')
    try:
        code, said, errors = diagnosed(pipeline, subject)
    finally:
        pipeline.secrets.put_secret_value(SecretId=name, SecretString=before)
    assert code == 1
    failed = [each for each in said["checks"] if each["state"] == "failed"]
    assert len(failed) == 1
    assert "aws secretsmanager put-secret-value" in failed[0]["fix"]
    assert "not-a-secret" not in json.dumps(said) + errors
