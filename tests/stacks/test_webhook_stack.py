"""The webhook queue's sender and its signing secrets."""

import json
from collections.abc import Callable

from tests.support.stacks.templates import Templates


def test_the_webhook_sender_may_reach_only_public_https_endpoints(dev: Templates) -> None:
    given = dev["webhook"].environment("mailroom-dev-send-webhook")
    assert given["ALLOWED_NETWORKS"] == "[]"
    assert json.loads(given["ALLOWED_SCHEMES"]) == ["https"]
    assert json.loads(given["ALLOWED_PORTS"]) == [443, 8443]


def test_the_webhook_sender_of_the_local_stage_may_reach_its_own_machine(
    templates_of_stage: Callable[[str], Templates],
) -> None:
    given = templates_of_stage("local")["webhook"].environment("mailroom-local-send-webhook")
    assert json.loads(given["ALLOWED_NETWORKS"]) == ["127.0.0.0/8"]
    assert json.loads(given["ALLOWED_SCHEMES"]) == ["https", "http"]
    assert given["ALLOWED_PORTS"] == "[]"


def test_the_signing_secret_has_44_letters_and_digits_which_are_33_bytes_in_base64(dev: Templates) -> None:
    secret = dev["webhook"].one("SecretsManager::Secret", Name="mailroom-dev-webhook-keys")
    generated = dict(secret["GenerateSecretString"])
    excluded = set(generated.pop("ExcludeCharacters"))
    assert {"+", "/", "=", '"', "\\"} <= excluded
    assert not any(each.isalnum() for each in excluded)
    assert generated == {"ExcludePunctuation": True, "IncludeSpace": False, "PasswordLength": 44}


def test_a_new_stage_has_one_signing_secret_which_remains_valid_for_a_day_after_a_rotation(
    dev: Templates,
) -> None:
    given = dev["webhook"].environment("mailroom-dev-send-webhook")
    dev["webhook"].one("SecretsManager::Secret", Name="mailroom-dev-webhook-keys")
    assert len(dev["webhook"].all("SecretsManager::Secret")) == 1
    assert dev["webhook"].output("WebhookKeysSecretName") == "mailroom-dev-webhook-keys"
    assert dev["webhook"].output("WebhookKeysSecretArn") == given["SIGNING_SECRET_ARN"]
    assert given["SIGNING_OVERLAP_SECONDS"] == str(24 * 3600)
