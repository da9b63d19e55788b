"""Secrets that the emulator generates for CloudFormation."""

import json
import string
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mailroom_local.aws import LocalSession, patient
from mailroom_local.processes import wait_until
from tests.support.local.emulator import emulated

if TYPE_CHECKING:
    from types_boto3_secretsmanager import SecretsManagerClient

SECRETS = {
    "Resources": {
        "Signing": {
            "Type": "AWS::SecretsManager::Secret",
            "Properties": {
                "Name": "signing",
                "GenerateSecretString": {
                    "PasswordLength": 44,
                    "ExcludePunctuation": True,
                    "IncludeSpace": False,
                },
            },
        },
        "Fax": {
            "Type": "AWS::SecretsManager::Secret",
            "Properties": {
                "Name": "fax",
                "GenerateSecretString": {
                    "SecretStringTemplate": '{"project": "put yours"}',
                    "GenerateStringKey": "token",
                    "ExcludeUppercase": True,
                    "ExcludeNumbers": True,
                    "ExcludePunctuation": True,
                    "ExcludeCharacters": "abc",
                },
            },
        },
    }
}


@pytest.fixture(scope="module")
def secrets(url: str) -> "SecretsManagerClient":
    return generated(url)


def generated(url: str) -> "SecretsManagerClient":
    """Two secrets that CloudFormation generated."""
    formation = LocalSession().client("cloudformation", endpoint_url=url, config=patient())
    formation.create_stack(StackName="secrets", TemplateBody=json.dumps(SECRETS))
    assert wait_until(
        lambda: (
            formation.describe_stacks(StackName="secrets")["Stacks"][0]["StackStatus"] == "CREATE_COMPLETE"
        ),
        10,
    )
    return LocalSession().client("secretsmanager", endpoint_url=url, config=patient())


def test_a_generated_secret_contains_no_character_that_its_template_excludes(
    secrets: "SecretsManagerClient",
) -> None:
    signing = secrets.get_secret_value(SecretId="signing")["SecretString"]
    assert len(signing) == 44
    assert set(signing) <= set(string.ascii_letters + string.digits)
    fax = json.loads(secrets.get_secret_value(SecretId="fax")["SecretString"])
    assert fax["project"] == "put yours"
    assert set(fax["token"]) <= set(string.ascii_lowercase) - set("abc")


def test_a_generated_secret_is_the_same_at_the_next_start(
    secrets: "SecretsManagerClient", tmp_path: Path
) -> None:
    with emulated(tmp_path) as url:
        again = generated(url)
        for name in ("signing", "fax"):
            first = secrets.get_secret_value(SecretId=name)["SecretString"]
            assert again.get_secret_value(SecretId=name)["SecretString"] == first
