"""Variables and permissions of the senders of SMS and push."""

import json
from typing import Any

import msgspec
import pytest
from aws_cdk import Stack

from mailroom import environment
from mailroom_stacks.providers.aws_sms import send_sms
from tests.support.stacks.templates import Template, Templates, text_of
from tests.support.stacks.variants import ANDROID, IOS, NEWS, SERVICE

ACCOUNT = "eu-central-1:111122223333"
SMS_VOICE = f"arn:aws:sms-voice:{ACCOUNT}"
CONFIGURATION_SET = f"{SMS_VOICE}:configuration-set/mailroom-dev"
POOL = "pool-" + "0" * 32
PHONE = "phone-" + "0" * 32
SHARED = "arn:aws:sms-voice:eu-central-1:999988887777:pool/" + POOL


def beside(template: Template, function: str) -> dict[str, set[str]]:
    """Return a sender's permissions besides reading its queue and writing its log."""
    consume = ("ReceiveMessage", "DeleteMessage", "GetQueueAttributes", "ChangeMessageVisibility")
    own = {f"sqs:{each}" for each in consume} | {"logs:CreateLogStream", "logs:PutLogEvents"}
    may = template.policy(function)
    assert own <= may.keys()
    return {action: arns for action, arns in may.items() if action not in own}


def read_environment(template: Template, function: str, kind: type[msgspec.Struct]) -> Any:
    """Return the settings that the function's code reads from its environment, which has these variables
    only."""
    given = template.environment(function)
    known = {each.encode_name for each in msgspec.structs.fields(kind)}
    ours = {name for name in given if not name.startswith(("POWERTOOLS_", "MAILROOM_"))}
    assert ours <= known
    with pytest.MonkeyPatch.context() as patch:
        for name, value in given.items():
            patch.setenv(name, value)
        return environment.read(kind)


def test_an_sms_sender_for_twilio_has_only_twilios_settings(dev: Templates) -> None:
    told = read_environment(dev["channels"], "mailroom-dev-send-sms", environment.SmsSender)
    assert (told.channel, told.sms_provider, told.sms_sender) == ("sms", "twilio", "+12025550123")
    assert told.sms_base_url == "https://api.twilio.com"
    assert "ExportsOutputRefTwilioSecret" in told.twilio_secret_arn
    assert told.callback_url.endswith("/callbacks/twilio")
    assert (told.messaging_service_sid, told.sms_configuration_set) == ("", "")
    assert (told.default_region, told.max_segments) == ("US", 10)
    assert (told.media_seconds, told.clock_skew_seconds) == (3_600, 60)
    assert "ExportsOutputRefSuppressions" in told.suppressions_table


def test_a_messaging_service_of_twilio_replaces_the_from_number_of_the_sms_sender(
    otherwise: Templates,
) -> None:
    told = read_environment(otherwise["channels"], "mailroom-dev-send-sms", environment.SmsSender)
    assert (told.messaging_service_sid, told.sms_sender, told.default_region) == (SERVICE, "", "")


def test_an_sms_sender_for_aws_has_only_awss_settings(everything: Templates) -> None:
    told = read_environment(everything["channels"], "mailroom-dev-send-sms", environment.SmsSender)
    assert (told.sms_provider, told.sms_sender) == ("aws", "+12025550123")
    assert told.sms_configuration_set == "mailroom-dev"
    assert (told.twilio_secret_arn, told.sms_base_url, told.callback_url) == ("", "", "")


def test_an_sms_sender_for_aws_may_use_only_numbers_of_the_account_and_the_configuration_set(
    everything: Templates,
) -> None:
    may = beside(everything["channels"], "mailroom-dev-send-sms")
    assert may.keys() == {
        *("sms-voice:SendTextMessage", "sms-voice:SendMediaMessage", "s3:GetObject", "s3:ListBucket"),
        *("dynamodb:BatchGetItem", "dynamodb:UpdateItem", "dynamodb:Query"),
        *("dynamodb:BatchWriteItem", "dynamodb:PartiQLInsert"),
    }
    assert may["sms-voice:SendTextMessage"] == {f"{SMS_VOICE}:phone-number/*", CONFIGURATION_SET}
    assert may["sms-voice:SendMediaMessage"] == may["sms-voice:SendTextMessage"]
    ledger, _preferences, _runs, suppressions = sorted(may["dynamodb:BatchGetItem"])
    assert may["dynamodb:UpdateItem"] == {ledger, suppressions}
    assert suppressions in may["dynamodb:UpdateItem"]
    assert "ExportsOutputFnGetAttLedger" in ledger


@pytest.mark.parametrize(
    ("sender", "resource"),
    [
        (POOL, f"{SMS_VOICE}:pool/{POOL}"),
        (PHONE, f"{SMS_VOICE}:phone-number/{PHONE}"),
        ("rcs-a1b2c3d4", f"{SMS_VOICE}:rcs-agent/rcs-a1b2c3d4"),
        ("MAILROOM", f"{SMS_VOICE}:sender-id/MAILROOM/*"),
        ("pool-party", f"{SMS_VOICE}:sender-id/pool-party/*"),
        ("12345", f"{SMS_VOICE}:phone-number/*"),
        (SHARED, SHARED),
    ],
)
def test_an_sms_sender_for_aws_may_send_only_as_its_origination_identity(sender: str, resource: str) -> None:
    stack = Stack()
    (granted,) = send_sms(stack, sender).resources
    assert text_of(stack.resolve(granted)) == resource


def test_the_bulk_lane_of_sms_has_its_own_queue_and_a_sender_with_the_same_permissions(
    otherwise: Templates,
) -> None:
    channels = otherwise["channels"]
    assert channels.one("SQS::Queue", QueueName="mailroom-dev-sms-bulk")
    normal, bulk = (beside(channels, f"mailroom-dev-{name}") for name in ("send-sms", "send-sms-bulk"))
    assert normal == bulk


def test_the_stages_applications_and_topics_are_passed_to_a_push_sender(everything: Templates) -> None:
    told = read_environment(everything["channels"], "mailroom-dev-send-push", environment.PushSender)
    assert told.channel == "push"
    assert told.platform_applications == {"ios": IOS, "android": ANDROID}
    assert told.topics == [NEWS]
    assert "ExportsOutputRefSuppressions" in told.suppressions_table


def test_the_api_gets_the_names_of_the_applications_of_a_stage_that_sends_pushes(
    everything: Templates, otherwise: Templates, dev: Templates
) -> None:
    names = [
        read_environment(
            templates["api"], "mailroom-dev-messages-api", environment.MessagesApiSettings
        ).push_applications
        for templates in (everything, otherwise, dev)
    ]
    assert names == [["android", "ios"], [], None]


def test_a_push_sender_of_a_stage_with_topics_only_may_not_create_endpoints(otherwise: Templates) -> None:
    may = beside(otherwise["channels"], "mailroom-dev-send-push")
    assert may["sns:Publish"] == {NEWS}
    assert "sns:CreatePlatformEndpoint" not in may


def test_the_function_dispatch_has_a_route_for_pushes_to_the_push_queue(everything: Templates) -> None:
    given = everything["routing"].environment("mailroom-dev-dispatch")
    assert "PushQueue" in json.loads(given["ROUTES"])["push"]["normal"]


def test_a_stage_without_sms_has_no_resource_of_sms(lean: Templates) -> None:
    given = lean["routing"].environment("mailroom-dev-dispatch")
    assert json.loads(given["ROUTES"]).keys() == {"mail", "chat", "webhook"}
    assert "DEFAULT_REGION" not in given
    assert "DEFAULT_REGION" not in lean["feedback"].environment("mailroom-dev-feedback")
    assert lean["feedback"].all("SecretsManager::Secret") == []
    assert not [
        each
        for stack in lean.stacks.values()
        for each in stack.all("Lambda::Function")
        if "sms" in each["FunctionName"] or "twilio" in each["FunctionName"]
    ]
