"""What the senders of SMS and push are told, and what they may do."""

import json
from typing import Any

import msgspec
import pytest

from mailroom import environment
from tests.support.stacks.refusals import REMOVED
from tests.support.stacks.templates import Template, Templates
from tests.support.stacks.variants import (
    ANDROID,
    AT_SIMULATORS,
    AWS,
    IOS,
    NEWS,
    PUSH,
    PUSH_ROW,
    SIMULATED,
    up_to,
    variant,
)

ACCOUNT = "eu-central-1:111122223333"
SMS_VOICE = f"arn:aws:sms-voice:{ACCOUNT}"
CONFIGURATION_SET = f"{SMS_VOICE}:configuration-set/mailroom-dev"
PAYLOADS = "arn:aws:s3:::mailroom-dev-payloads-111122223333-eu-central-1"
SERVICE = "MG" + "0" * 31 + "a"
POOL = "pool-" + "0" * 32
PHONE = "phone-" + "0" * 32
SERVICE_AND_BULK = {
    "sms": {"provider": "twilio", "messaging_service_sid": SERVICE},
    "channels.sms": {"handler": "send_sms", "lanes": {"normal": {"share": 0.5}, "bulk": {"share": 0.5}}},
}
SET_AND_TOPICS = {
    "sms": AWS,
    "push": {"topics": [NEWS]},
    "channels.push": PUSH_ROW,
}
SHARED = "arn:aws:sms-voice:eu-central-1:999988887777:pool/" + POOL


def beside(template: Template, function: str) -> dict[str, set[str]]:
    """What a sender may do beside reading its queue and writing its log."""
    consume = ("ReceiveMessage", "DeleteMessage", "GetQueueAttributes", "ChangeMessageVisibility")
    own = {f"sqs:{each}" for each in consume} | {"logs:CreateLogStream", "logs:PutLogEvents"}
    may = template.policy(function)
    assert own <= may.keys()
    return {action: arns for action, arns in may.items() if action not in own}


def read(template: Template, function: str, kind: type[msgspec.Struct]) -> Any:
    """What the function's code makes of its environment; everything there is known to it."""
    given = template.environment(function)
    known = {each.encode_name for each in msgspec.structs.fields(kind)}
    ours = {name for name in given if not name.startswith(("POWERTOOLS_", "MAILROOM_"))}
    assert ours <= known
    with pytest.MonkeyPatch.context() as patch:
        for name, value in given.items():
            patch.setenv(name, value)
        return environment.read(kind)


@pytest.fixture(scope="module")
def aws() -> Template:
    """The channels where AWS sends the SMS."""
    return variant({"sms": AWS})["channels"]


@pytest.fixture(scope="module")
def push() -> Template:
    """The channels, with push among them."""
    changes = {"push": PUSH, "channels.push": PUSH_ROW}
    return variant(changes)["channels"]


def test_an_sms_sender_for_twilio_is_told_of_twilio_alone(dev: Templates) -> None:
    told = read(dev["channels"], "mailroom-dev-send-sms", environment.SmsSender)
    assert (told.channel, told.sms_provider, told.sms_sender) == ("sms", "twilio", "+12025550123")
    assert told.sms_base_url == "https://api.twilio.com"
    assert "ExportsOutputRefTwilioSecret" in told.twilio_secret_arn
    assert told.callback_url.endswith("/callbacks/twilio")
    assert (told.messaging_service_sid, told.sms_configuration_set) == ("", "")
    assert (told.default_region, told.max_segments) == ("US", 10)
    assert (told.media_seconds, told.clock_skew_seconds) == (3_600, 60)
    assert "ExportsOutputRefSuppressions" in told.suppressions_table


def test_an_sms_sender_for_twilio_reads_its_secret_payloads_and_the_suppression_list(dev: Templates) -> None:
    may = beside(dev["channels"], "mailroom-dev-send-sms")
    assert may.keys() == {
        *("secretsmanager:GetSecretValue", "s3:GetObject", "s3:ListBucket"),
        *("dynamodb:BatchGetItem", "dynamodb:UpdateItem", "dynamodb:Query"),
        *("dynamodb:BatchWriteItem", "dynamodb:PartiQLInsert"),
    }
    (index,) = may["dynamodb:Query"]
    assert index.endswith("/index/lines")
    (secret,) = may["secretsmanager:GetSecretValue"]
    assert "ExportsOutputRefTwilioSecret" in secret
    assert (may["s3:GetObject"], may["s3:ListBucket"]) == ({f"{PAYLOADS}/*"}, {PAYLOADS})
    ledger, preferences, suppressions = sorted(may["dynamodb:BatchGetItem"])
    assert "ExportsOutputFnGetAttPreferences" in preferences
    assert "ExportsOutputFnGetAttSuppressions" in suppressions
    # Landlines, which Twilio refuses, are put on the suppression list.
    assert may["dynamodb:UpdateItem"] == {ledger, suppressions}
    assert "ExportsOutputFnGetAttLedger" in ledger


def test_a_messaging_service_is_named_instead_of_a_number() -> None:
    told = read(variant(SERVICE_AND_BULK)["channels"], "mailroom-dev-send-sms", environment.SmsSender)
    assert (told.messaging_service_sid, told.sms_sender, told.default_region) == (SERVICE, "", "")


def test_an_sms_sender_for_aws_is_told_of_aws_alone(aws: Template) -> None:
    told = read(aws, "mailroom-dev-send-sms", environment.SmsSender)
    assert (told.sms_provider, told.sms_sender) == ("aws", "+12025550123")
    assert told.sms_configuration_set == "mailroom-dev"
    assert (told.twilio_secret_arn, told.sms_base_url, told.callback_url) == ("", "", "")


def test_an_sms_sender_for_aws_sends_from_numbers_of_the_account_and_by_the_stages_set(aws: Template) -> None:
    may = beside(aws, "mailroom-dev-send-sms")
    assert may.keys() == {
        *("sms-voice:SendTextMessage", "sms-voice:SendMediaMessage", "s3:GetObject", "s3:ListBucket"),
        *("dynamodb:BatchGetItem", "dynamodb:UpdateItem", "dynamodb:Query"),
        *("dynamodb:BatchWriteItem", "dynamodb:PartiQLInsert"),
    }
    assert may["sms-voice:SendTextMessage"] == {f"{SMS_VOICE}:phone-number/*", CONFIGURATION_SET}
    assert may["sms-voice:SendMediaMessage"] == may["sms-voice:SendTextMessage"]
    ledger, _, suppressions = sorted(may["dynamodb:BatchGetItem"])
    assert may["dynamodb:UpdateItem"] == {ledger, suppressions}
    assert suppressions in may["dynamodb:UpdateItem"]
    assert "ExportsOutputFnGetAttLedger" in ledger


@pytest.mark.parametrize(
    ("sender", "resource"),
    [
        (POOL, f"{SMS_VOICE}:pool/{POOL}"),
        (PHONE, f"{SMS_VOICE}:phone-number/{PHONE}"),
        ("MAILROOM", f"{SMS_VOICE}:sender-id/MAILROOM/*"),
        ("12345", f"{SMS_VOICE}:phone-number/*"),
        (SHARED, SHARED),
    ],
)
def test_the_sender_may_send_as_its_origination_identity_alone(sender: str, resource: str) -> None:
    channels = up_to("channels", {"sms": {"provider": "aws", "sender": sender}})["channels"]
    assert channels.policy("mailroom-dev-send-sms")["sms-voice:SendTextMessage"] == {
        resource,
        CONFIGURATION_SET,
    }


def test_awss_configuration_set_is_the_stages_own() -> None:
    stacks = variant(SET_AND_TOPICS)
    told = stacks["channels"].environment("mailroom-dev-send-sms")
    assert told["SMS_CONFIGURATION_SET"] == "mailroom-dev"
    assert stacks["feedback"].one("SMSVOICE::ConfigurationSet", ConfigurationSetName="mailroom-dev")


def test_a_bulk_lane_of_sms_is_another_queue_with_the_same_needs() -> None:
    channels = variant(SERVICE_AND_BULK)["channels"]
    assert channels.one("SQS::Queue", QueueName="mailroom-dev-sms-bulk")
    normal, bulk = (beside(channels, f"mailroom-dev-{name}") for name in ("send-sms", "send-sms-bulk"))
    assert normal == bulk


def test_a_push_sender_is_told_the_stages_applications_and_topics(push: Template) -> None:
    told = read(push, "mailroom-dev-send-push", environment.PushSender)
    assert told.channel == "push"
    assert told.platform_applications == {"ios": IOS, "android": ANDROID}
    assert told.topics == [NEWS]
    assert "ExportsOutputRefSuppressions" in told.suppressions_table


def test_a_push_sender_publishes_to_its_applications_endpoints_and_its_topics_alone(push: Template) -> None:
    may = beside(push, "mailroom-dev-send-push")
    assert may.keys() == {
        *("sns:Publish", "sns:CreatePlatformEndpoint", "dynamodb:BatchGetItem", "dynamodb:UpdateItem"),
        *("dynamodb:BatchWriteItem", "dynamodb:PartiQLInsert", "s3:GetObject", "s3:ListBucket"),
    }
    sns = "arn:aws:sns:eu-central-1:111122223333"
    assert may["sns:Publish"] == {f"{sns}:endpoint/APNS/shop/*", f"{sns}:endpoint/GCM/shop/*", NEWS}
    assert may["sns:CreatePlatformEndpoint"] == {IOS, ANDROID}
    # The endpoints that SNS says to be disabled are put on the suppression list.
    ledger, _, suppressions = sorted(may["dynamodb:BatchGetItem"])
    assert may["dynamodb:UpdateItem"] == {ledger, suppressions}
    assert suppressions in may["dynamodb:UpdateItem"]
    assert "ExportsOutputFnGetAttLedger" in ledger


def test_topics_alone_need_no_endpoints() -> None:
    may = beside(variant(SET_AND_TOPICS)["channels"], "mailroom-dev-send-push")
    assert may["sns:Publish"] == {NEWS}
    assert "sns:CreatePlatformEndpoint" not in may


def test_dispatch_routes_pushes_to_their_queue() -> None:
    changes = {"push": PUSH, "channels.push": PUSH_ROW}
    given = variant(changes)["routing"].environment("mailroom-dev-dispatch")
    assert "PushQueue" in json.loads(given["ROUTES"])["push"]["normal"]


def test_the_simulators_stand_for_twilio_where_the_app_is_told() -> None:
    stacks = variant(AT_SIMULATORS, providers=SIMULATED)
    told = stacks["channels"].environment("mailroom-dev-send-sms")
    assert told["SMS_BASE_URL"] == "http://127.0.0.1:4711/twilio"


def test_without_sms_nothing_knows_of_sms() -> None:
    stacks = variant({"sms": None, "channels.sms": REMOVED})
    given = stacks["routing"].environment("mailroom-dev-dispatch")
    assert json.loads(given["ROUTES"]).keys() == {"mail", "fax", "webhook"}
    assert "DEFAULT_REGION" not in given
    assert "DEFAULT_REGION" not in stacks["feedback"].environment("mailroom-dev-feedback")
    assert stacks["feedback"].all("SecretsManager::Secret") == []
    assert not [
        each
        for stack in stacks.stacks.values()
        for each in stack.all("Lambda::Function")
        if "sms" in each["FunctionName"] or "twilio" in each["FunctionName"]
    ]
