"""Events that providers publish, their permitted sources, and their destinations."""

import json
from typing import Any

from tests.support.stacks.templates import Template, Templates, text_of

PLACE = "eu-central-1:111122223333"


def policy_statements(template: Template, kind: str) -> list[dict[str, Any]]:
    """Return the statements of the only policy of a kind."""
    (policy,) = template.all(kind)
    document = policy["KeyPolicy" if kind == "KMS::Key" else "PolicyDocument"]
    found: list[dict[str, Any]] = document["Statement"]
    return found


def services(allowed: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The statements that let a service do something, by the service; CDK joins those that are alike."""
    found = {}
    for each in allowed:
        if each["Effect"] == "Allow" and "Service" in each["Principal"]:
            named = each["Principal"]["Service"]
            found.update(dict.fromkeys(named if isinstance(named, list) else [named], each))
    return found


def condition_values(statement: dict[str, Any]) -> dict[str, str]:
    """The conditions of a statement, by their keys in lower case."""
    return {
        key.lower(): text_of(value)
        for conditions in statement["Condition"].values()
        for key, value in conditions.items()
    }


def test_the_configuration_set_uses_the_suppression_list_of_ses_and_publishes_reputation_metrics(
    dev: Templates,
) -> None:
    found = dev["feedback"].one("SES::ConfigurationSet", Name="mailroom-dev")
    assert found["SuppressionOptions"] == {"SuppressedReasons": ["BOUNCE", "COMPLAINT"]}
    assert found["ReputationOptions"] == {"ReputationMetricsEnabled": True}


def test_ses_publishes_events_of_mails_and_does_not_rewrite_links(dev: Templates) -> None:
    (destination,) = dev["feedback"].all("SES::ConfigurationSetEventDestination")
    events = destination["EventDestination"]
    assert events["Enabled"] is True
    assert set(events["MatchingEventTypes"]) == {
        *("send", "delivery", "bounce", "complaint", "reject", "renderingFailure", "deliveryDelay"),
    }
    assert text_of(events["SnsDestination"]["TopicARN"]) == dev["feedback"].output("FeedbackTopicArn")


def test_the_event_destination_of_ses_is_created_after_the_policy_of_the_topic(dev: Templates) -> None:
    resources = dev["feedback"].body["Resources"].values()
    (destination,) = (
        each for each in resources if each["Type"] == "AWS::SES::ConfigurationSetEventDestination"
    )
    (policy,) = destination["DependsOn"]
    assert dev["feedback"].body["Resources"][policy]["Type"] == "AWS::SNS::TopicPolicy"


def test_the_feedback_topic_accepts_only_events_of_ses_for_the_stages_configuration_set_over_tls(
    dev: Templates,
) -> None:
    said = policy_statements(dev["feedback"], "SNS::TopicPolicy")
    (refused,) = (each for each in said if each["Effect"] == "Deny")
    assert refused["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    assert (refused["Action"], refused["Principal"]) == ("sns:Publish", "*")
    (allowed,) = (each for each in said if each["Effect"] == "Allow")
    assert (allowed["Action"], allowed["Principal"]) == ("sns:Publish", {"Service": "ses.amazonaws.com"})
    assert condition_values(allowed) == {
        "aws:sourceaccount": "111122223333",
        "aws:sourcearn": f"arn:aws:ses:{PLACE}:configuration-set/<Mail6A3D1F64>",
    }


def test_the_feedback_topic_is_encrypted_with_the_key_of_the_stage(dev: Templates) -> None:
    topic = dev["feedback"].one("SNS::Topic", TopicName="mailroom-dev-feedback")
    assert text_of(topic["KmsMasterKeyId"]).endswith(":alias/mailroom-dev-events")
    assert not dev["feedback"].all("KMS::Key")


def test_the_feedback_topic_has_one_subscription_which_keeps_the_envelope_of_sns(dev: Templates) -> None:
    (subscription,) = dev["feedback"].all("SNS::Subscription")
    assert subscription["Protocol"] == "sqs"
    queue = dev["feedback"].body["Resources"][subscription["Endpoint"]["Fn::GetAtt"][0]]["Properties"]
    assert queue["QueueName"] == "mailroom-dev-feedback"
    assert not subscription.get("RawMessageDelivery")
    assert text_of(subscription["TopicArn"]) == dev["feedback"].output("FeedbackTopicArn")


def test_the_feedback_queue_accepts_messages_of_its_topic_only(dev: Templates) -> None:
    template = dev["feedback"]
    (queue,) = (
        name
        for name, each in template.body["Resources"].items()
        if each["Properties"].get("QueueName") == "mailroom-dev-feedback"
    )
    (policy,) = (each for each in template.all("SQS::QueuePolicy") if each["Queues"] == [{"Ref": queue}])
    (allowed,) = (each for each in policy["PolicyDocument"]["Statement"] if each["Effect"] == "Allow")
    assert allowed["Principal"] == {"Service": "sns.amazonaws.com"}
    assert allowed["Action"] == "sqs:SendMessage"
    assert allowed["Resource"] == {"Fn::GetAtt": [queue, "Arn"]}
    ((operator, condition),) = allowed["Condition"].items()
    assert operator == "ArnEquals"
    assert {key: text_of(value) for key, value in condition.items()} == {
        "aws:SourceArn": template.output("FeedbackTopicArn")
    }


def test_the_function_feedback_accepts_only_its_topic_and_reads_up_to_a_hundred_events_at_once(
    dev: Templates,
) -> None:
    given = dev["feedback"].environment("mailroom-dev-feedback")
    assert json.loads(given["FEEDBACK_TOPICS"]) == [dev["feedback"].output("FeedbackTopicArn")]
    assert given["QUEUE_URL"].startswith("<FeedbackQueue")
    assert "ExportsOutputRefSuppressions" in given["SUPPRESSIONS_TABLE"]
    assert given["DEFAULT_REGION"] == "US"
    mapping = dev["feedback"].mapping("mailroom-dev-feedback")
    assert (mapping["BatchSize"], mapping["MaximumBatchingWindowInSeconds"]) == (100, 2)


def test_the_sms_service_of_aws_publishes_events_of_all_messages_to_the_feedback_topic(
    everything: Templates,
) -> None:
    aws = everything["feedback"]
    made = aws.one("SMSVOICE::ConfigurationSet", ConfigurationSetName="mailroom-dev")
    (destination,) = made["EventDestinations"]
    assert destination["Enabled"] is True
    assert destination["MatchingEventTypes"] == ["TEXT_ALL", "MEDIA_ALL", "RCS_ALL"]
    assert text_of(destination["SnsDestination"]["TopicArn"]) == aws.output("FeedbackTopicArn")
    assert aws.output("SmsConfigurationSetName") == "mailroom-dev"


def test_the_sms_service_of_aws_may_publish_to_the_feedback_topic_for_this_account(
    everything: Templates,
) -> None:
    aws = everything["feedback"]
    publishing = services(policy_statements(aws, "SNS::TopicPolicy"))
    assert publishing.keys() == {"ses.amazonaws.com", "sms-voice.amazonaws.com"}
    assert publishing["sms-voice.amazonaws.com"]["Action"] == "sns:Publish"
    assert condition_values(publishing["sms-voice.amazonaws.com"]) == {
        "aws:sourceaccount": "111122223333",
        "aws:sourcearn": f"arn:aws:sms-voice:{PLACE}:*",
    }


def test_the_sms_configuration_set_is_created_after_the_policy_of_the_topic(everything: Templates) -> None:
    aws = everything["feedback"]
    resources = aws.body["Resources"]
    (made,) = (each for each in resources.values() if each["Type"] == "AWS::SMSVOICE::ConfigurationSet")
    assert "AWS::SNS::TopicPolicy" in {resources[name]["Type"] for name in made["DependsOn"]}
