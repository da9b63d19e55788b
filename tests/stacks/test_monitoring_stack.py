"""Alarms, and the topics that they notify."""

import json
import re
from typing import Any

import pytest

from mailroom_ops.costs.stage_cost import stage_parts
from mailroom_ops.setup.init import IDLE
from mailroom_stacks.constructs.topic import PUBLISHERS
from mailroom_stacks.settings.monitoring import MINIMAL
from mailroom_stacks.settings.sentences import SettingsError
from tests.support.stacks.alarm import queues, streams, values_with_alarm
from tests.support.stacks.refusals import REMOVED, refusal_of_setting
from tests.support.stacks.templates import Template, Templates, text_of
from tests.support.stacks.variants import variant


def document_statements(template: Template, kind: str, document: str) -> list[dict[str, Any]]:
    (found,) = template.all(kind)
    listed: list[dict[str, Any]] = found[document]["Statement"]
    return listed


TOPICS = ("mailroom-dev-alarms", "mailroom-dev-alarms-ended")


@pytest.mark.parametrize("name", TOPICS)
def test_an_alarm_topic_is_named_by_its_stage_and_encrypted_with_the_stages_key(
    dev: Templates, name: str
) -> None:
    topic = dev["monitoring"].one("SNS::Topic", TopicName=name)
    key = topic["KmsMasterKeyId"]["Fn::GetAtt"][0]
    assert dev["monitoring"].body["Resources"][key]["Properties"]["EnableKeyRotation"] is True
    alias = dev["monitoring"].one("KMS::Alias", AliasName="alias/mailroom-dev-events")
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
def test_only_cloudwatch_for_alarms_of_the_stage_and_aws_health_may_publish_to_the_alarm_topics(
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
    assert text_of(condition["StringEquals"]["aws:SourceAccount"]) == "111122223333"
    source = text_of(condition["ArnEquals"]["aws:SourceArn"])
    assert source == "arn:aws:cloudwatch:eu-central-1:111122223333:alarm:mailroom-dev-*"


@pytest.mark.parametrize("name", TOPICS)
def test_the_alarm_topics_refuse_requests_without_tls(dev: Templates, name: str) -> None:
    (denied,) = (each for each in policy(dev["monitoring"], name) if each["Effect"] == "Deny")
    assert denied["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


def test_the_services_that_publish_to_topics_may_encrypt_with_the_stages_key(dev: Templates) -> None:
    services = [
        each
        for each in document_statements(dev["monitoring"], "KMS::Key", "KeyPolicy")
        if "Service" in each["Principal"]
    ]
    allowed = {
        name: "Condition" in each
        for each in services
        for name in [each["Principal"]["Service"], *each["Principal"]["Service"]]
        if isinstance(name, str) and name.endswith(".amazonaws.com")
    }
    # For the others, AWS documents no condition.
    assert allowed == {f"{name}.amazonaws.com": name == "cloudwatch" for name in PUBLISHERS}
    assert all({*each["Action"]} == {"kms:GenerateDataKey", "kms:Decrypt"} for each in services)


def test_people_are_notified_only_of_the_beginning_of_an_alarm_and_programs_also_of_its_end(
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


def test_the_setting_waiting_minutes_is_refused_for_a_queue_that_the_stage_does_not_have() -> None:
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
def test_an_invalid_address_for_notices_of_alarms_is_refused_with_its_setting(
    key: str, value: object, said: str
) -> None:
    assert said in refusal_of_setting(key, value)


def test_a_stage_of_the_default_monitoring_level_has_only_alarms_of_the_minimal_kinds(
    lean: Templates,
) -> None:
    names = {each["AlarmName"] for part in lean.stacks.values() for each in part.all("CloudWatch::Alarm")}
    own, _ = queues(lean)
    kinds = {kind for kind in MINIMAL if any(name.endswith(f"-{kind}") for name in names)}
    assert kinds == {*MINIMAL} - {"run-paused"}  # which only a campaign has
    assert [name for name in names if not name.endswith(MINIMAL)] == []
    for queue in own:
        assert {
            f"{queue.removesuffix('.fifo')}-{kind}" for kind in ("dlq-not-empty", "waiting-long")
        } <= names
    assert not lean["monitoring"].all("CloudWatch::Dashboard")
    for part in lean.stacks.values():
        assert not any(each["EnableKeyRotation"] for each in part.all("KMS::Key"))


@pytest.mark.parametrize(
    ("which", "watched"),
    [("lean", ["dispatch"]), ("prod", ["dispatch", "index-messages", "outcomes"])],
)
def test_alarms_about_lost_records_watch_exactly_the_stream_mappings_that_count_events(
    request: pytest.FixtureRequest, which: str, watched: list[str]
) -> None:
    stage: Templates = request.getfixturevalue(which)
    found = dict(streams(stage))
    counted = {
        name
        for part in stage.stacks.values()
        for name, each in part.body["Resources"].items()
        if "EventCount" in each.get("Properties", {}).get("MetricsConfig", {}).get("Metrics", [])
    }
    for metric in ("OnFailureDestinationDeliveredEventCount", "DroppedEventCount"):
        assert values_with_alarm(stage, "AWS/Lambda", metric, "EventSourceMappingUUID") == counted
    assert sorted(found[each].split("-", 2)[2] for each in counted) == watched


MAIL_ALONE = {"sms": None, "channels.sms": REMOVED, "fax": None}


def idle(**changes: object) -> float:
    """Return the price of a month of the stage dev without messages."""
    stage = variant({"monitoring": {}, **changes})
    return round(sum(stage_parts([part.body for part in stage.stacks.values()]).values()), 2)


def test_an_idle_stage_costs_under_nine_dollars_a_month_and_under_six_for_mail_alone() -> None:
    assert idle(**MAIL_ALONE) < 6
    assert idle() < 9


def test_the_prices_of_both_monitoring_levels_that_init_prints_are_those_of_the_templates() -> None:
    assert {
        "minimal": idle(**MAIL_ALONE),
        "full": idle(**MAIL_ALONE, **{"monitoring.level": "full"}),
    } == IDLE


def test_the_dashboard_has_at_most_the_fifty_metrics_of_a_free_dashboard(prod: Templates) -> None:
    (dashboard,) = prod["monitoring"].all("CloudWatch::Dashboard")
    body = json.dumps(dashboard["DashboardBody"])
    assert 20 < len(set(re.findall(r'\[\\*"(?:Mailroom|AWS/\w+)\\*",[^\]]*\]', body))) <= 50


def test_the_monitoring_stack_with_the_topics_is_deployed_before_the_stacks_with_alarms(
    dev: Templates,
) -> None:
    manifest = json.loads((dev.folder / "manifest.json").read_text())["artifacts"]
    assert "mailroom-dev-monitoring" in manifest["mailroom-dev-mailbox"]["dependencies"]
    assert not any(
        each.startswith("mailroom")
        for each in manifest["mailroom-dev-monitoring"]["dependencies"]
        if not each.endswith(".assets")
    )
