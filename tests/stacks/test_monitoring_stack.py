"""Who may ring, and who hears of it."""

import json
from typing import Any

import pytest

from mailroom_ops.costs.stage_cost import stage_parts
from mailroom_stacks.settings.monitoring import QUEUE_ALARMS
from mailroom_stacks.settings.sentences import SettingsError
from tests.support.stacks.alarm import queues
from tests.support.stacks.refusals import refusal
from tests.support.stacks.templates import Template, Templates, text
from tests.support.stacks.variants import variant


def statements(template: Template, kind: str, document: str) -> list[dict[str, Any]]:
    (found,) = template.all(kind)
    listed: list[dict[str, Any]] = found[document]["Statement"]
    return listed


TOPICS = ("mailroom-dev-alarms", "mailroom-dev-alarms-ended")


@pytest.mark.parametrize("name", TOPICS)
def test_a_topic_is_named_by_its_stage_and_encrypted_with_the_alarms_own_key(
    dev: Templates, name: str
) -> None:
    topic = dev["monitoring"].one("SNS::Topic", TopicName=name)
    key = topic["KmsMasterKeyId"]["Fn::GetAtt"][0]
    assert dev["monitoring"].body["Resources"][key]["Properties"]["EnableKeyRotation"] is True
    alias = dev["monitoring"].one("KMS::Alias", AliasName="alias/mailroom-dev-alarms")
    assert alias["TargetKeyId"]["Fn::GetAtt"][0] == key


def policy(template: Template, topic: str) -> list[dict[str, Any]]:
    """The statements of a topic's policy."""
    (found,) = (
        each["PolicyDocument"]["Statement"]
        for each in template.all("SNS::TopicPolicy")
        if {template.body["Resources"][of["Ref"]]["Properties"]["TopicName"] for of in each["Topics"]}
        == {topic}
    )
    listed: list[dict[str, Any]] = found
    return listed


@pytest.mark.parametrize("name", TOPICS)
def test_cloudwatch_may_publish_alarms_of_this_account_and_stage_and_only_aws_health_may_besides(
    dev: Templates, name: str
) -> None:
    allowed, *others = (each for each in policy(dev["monitoring"], name) if each["Effect"] == "Allow")
    assert (allowed["Action"], allowed["Principal"]) == (
        "sns:Publish",
        {"Service": "cloudwatch.amazonaws.com"},
    )
    health = [{"Service": "events.amazonaws.com"}] if name == TOPICS[0] else []
    assert [each["Principal"] for each in others] == health
    condition = allowed["Condition"]
    assert text(condition["StringEquals"]["aws:SourceAccount"]) == "111122223333"
    source = text(condition["ArnEquals"]["aws:SourceArn"])
    assert source == "arn:aws:cloudwatch:eu-central-1:111122223333:alarm:mailroom-dev-*"


@pytest.mark.parametrize("name", TOPICS)
def test_the_topics_refuse_requests_without_tls(dev: Templates, name: str) -> None:
    (denied,) = (each for each in policy(dev["monitoring"], name) if each["Effect"] == "Deny")
    assert denied["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


def test_cloudwatch_and_eventbridge_may_use_the_key_to_encrypt(dev: Templates) -> None:
    services = [
        each
        for each in statements(dev["monitoring"], "KMS::Key", "KeyPolicy")
        if "Service" in each["Principal"]
    ]
    assert {each["Principal"]["Service"] for each in services} == {
        "cloudwatch.amazonaws.com",
        "events.amazonaws.com",
    }
    assert all({*each["Action"]} == {"kms:GenerateDataKey", "kms:Decrypt"} for each in services)


def test_people_are_notified_of_the_beginning_of_an_alarm_and_programs_of_its_end_too(
    everything: Templates,
) -> None:
    template = everything["monitoring"]
    resources = template.body["Resources"]
    found = {
        (resources[each["TopicArn"]["Ref"]]["Properties"]["TopicName"], each["Protocol"], each["Endpoint"])
        for each in template.all("SNS::Subscription")
    }
    assert found == {
        ("mailroom-dev-alarms", "email", "ada@example.com"),
        ("mailroom-dev-alarms", "email", "on-call@example.com"),
        ("mailroom-dev-alarms", "https", "https://events.example.com/integration/abc/enqueue"),
        ("mailroom-dev-alarms-ended", "https", "https://events.example.com/integration/abc/enqueue"),
    }


def test_programs_are_not_notified_of_the_end_of_an_alarm_that_never_rang(everything: Templates) -> None:
    (ended,) = (
        each
        for each in everything["monitoring"].all("SNS::Subscription")
        if "OldStateValue" in each.get("FilterPolicy", {})
    )
    assert (ended["FilterPolicyScope"], ended["FilterPolicy"]) == (
        "MessageBody",
        {"OldStateValue": ["ALARM"]},
    )
    assert "AlarmsEnded" in ended["TopicArn"]["Ref"]


def test_programs_are_notified_of_alarms_only_and_not_of_other_notices(everything: Templates) -> None:
    begun = [
        each["FilterPolicy"]
        for each in everything["monitoring"].all("SNS::Subscription")
        if each["Protocol"] == "https" and "AlarmsEnded" not in each["TopicArn"]["Ref"]
    ]
    assert begun == [{"AlarmName": [{"exists": True}]}]


def test_a_queue_that_the_stage_does_not_have_stops_synth() -> None:
    with pytest.raises(SettingsError) as refused:
        variant({"monitoring.waiting_minutes": {"mial": 5}})
    assert str(refused.value) == (
        "mailroom.dev.monitoring.waiting_minutes.mial: is not a queue of this stage; use one of fax, "
        "fax-retry, feedback, mail, mail-bulk, sms, webhook."
    )


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("monitoring.emails", ["ada"], "mailroom.dev.monitoring.emails.0: 'ada' should match pattern"),
        (
            "monitoring.urls",
            ["http://x.example.com"],
            "mailroom.dev.monitoring.urls.0: 'http://x.example.com'",
        ),
    ],
)
def test_a_wrong_setting_stops_synth_with_a_sentence(key: str, value: object, said: str) -> None:
    assert said in refusal(key, value)


def test_a_trial_stage_has_only_the_alarms_of_its_queues_and_a_low_cost(lean: Templates) -> None:
    names = {each["AlarmName"] for part in lean.stacks.values() for each in part.all("CloudWatch::Alarm")}
    own, _ = queues(lean)
    expected = {f"{queue.removesuffix('.fifo')}-{kind}" for queue in own for kind in QUEUE_ALARMS}
    assert names == expected | {"mailroom-dev-canary-missing"}
    assert not lean["monitoring"].all("CloudWatch::Dashboard")
    for part in lean.stacks.values():
        assert not any(each["EnableKeyRotation"] for each in part.all("KMS::Key"))
        mappings = part.all("Lambda::EventSourceMapping")
        assert not any("MetricsConfig" in each for each in mappings)
    assert sum(stage_parts([part.body for part in lean.stacks.values()]).values()) < 10


def test_the_topics_are_deployed_before_the_alarms(dev: Templates) -> None:
    manifest = json.loads((dev.folder / "manifest.json").read_text())["artifacts"]
    assert "mailroom-dev-monitoring" in manifest["mailroom-dev-mailbox"]["dependencies"]
    assert not any(
        each.startswith("mailroom")
        for each in manifest["mailroom-dev-monitoring"]["dependencies"]
        if not each.endswith(".assets")
    )
