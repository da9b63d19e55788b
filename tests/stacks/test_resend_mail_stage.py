"""A stage whose mails Resend sends."""

import json

import msgspec
import pytest

from mailroom import environment
from mailroom_stacks.settings.load import load, with_providers
from tests.support.stacks.dashboard import bodies
from tests.support.stacks.refusals import with_settings
from tests.support.stacks.templates import Templates

SENDERS = ("mailroom-dev-send-mail", "mailroom-dev-send-mail-bulk")


@pytest.mark.parametrize("name", SENDERS)
def test_mail_senders_run_the_handler_of_the_provider_resend_with_all_its_settings(
    by_resend: Templates, name: str
) -> None:
    channels = by_resend["channels"]
    assert channels.one("Lambda::Function", FunctionName=name)["Handler"] == "send_mail_resend.handler"
    told = channels.environment(name)
    known = {each.encode_name for each in msgspec.structs.fields(environment.ResendSender)}
    assert {each for each in told if not each.startswith(("POWERTOOLS_", "MAILROOM_"))} <= known
    assert environment.read(environment.ResendSender, told).resend_base_url == "https://api.resend.com"


@pytest.mark.parametrize("name", SENDERS)
def test_mail_senders_may_read_the_secret_of_the_provider_resend_but_not_send_by_ses(
    by_resend: Templates, name: str
) -> None:
    may = by_resend["channels"].policy(name)
    assert not [action for action in may if action.startswith("ses:")]
    assert any("ResendSecret" in each for each in may["secretsmanager:GetSecretValue"])


def test_a_stage_with_the_provider_resend_has_its_secret_and_lacks_alarms_of_ses(
    by_resend: Templates,
) -> None:
    feedback = by_resend["feedback"]
    secret = feedback.one("SecretsManager::Secret", Name="mailroom-dev-resend")
    assert secret["GenerateSecretString"] == {
        "GenerateStringKey": "placeholder",
        "SecretStringTemplate": "{}",
    }
    alarms = [each["AlarmName"] for each in feedback.all("CloudWatch::Alarm")]
    assert alarms
    assert not [each for each in alarms if "-ses-" in each]


def test_the_dashboards_of_a_stage_with_the_provider_resend_do_not_mention_ses(by_resend: Templates) -> None:
    assert "SES" not in json.dumps(bodies(by_resend))


def test_the_url_of_the_simulator_of_resend_is_below_the_address_in_the_context_key_providers() -> None:
    changes = {"mail.provider": "resend", "channels.mail.base_url": "providers"}
    settings = with_providers(load(with_settings(changes), "dev"), "http://127.0.0.1:4711")
    assert settings.channels["mail"].base_url == "http://127.0.0.1:4711/resend"


def test_the_feedback_stack_keeps_the_event_destination_of_ses_for_earlier_mails(
    by_resend: Templates, dev: Templates
) -> None:
    kind = "SES::ConfigurationSetEventDestination"
    assert by_resend["feedback"].all(kind) == dev["feedback"].all(kind)
