"""Every queue is the same worker: queue, dead-letter queue, alarm, function and mapping."""

import json
from typing import Any

import pytest

from mailroom.dead_letters.queue import MARGIN_SECONDS
from mailroom_ops.repair.dead_letter_queues import HIDDEN_SECONDS
from mailroom_stacks.settings.fax import fax_rules
from mailroom_stacks.settings.load import load
from mailroom_stacks.settings.webhook import webhook_rules
from tests.support.stacks.refusals import STAGES
from tests.support.stacks.templates import Template, Templates, text_of

WORKERS = [
    ("channels", "mail", "send-mail"),
    ("channels", "mail-bulk", "send-mail-bulk"),
    ("channels", "sms", "send-sms"),
    ("feedback", "feedback", "feedback"),
    ("fax", "fax", "send-fax"),
    ("fax", "fax-retry", "retry-fax"),
    ("webhook", "webhook", "send-webhook"),
    ("campaigns", "collect", "collect"),
    ("campaigns", "audience", "compose"),
]
BATCHES = {
    "mail": 1,
    "mail-bulk": 9,
    "sms": 1,
    "fax": 1,
    "webhook": 1,
    "feedback": 100,
    "collect": 1,
    "audience": 1,
}
CONCURRENCY = {"webhook": 10, "feedback": 10, "audience": 4}
every_worker = pytest.mark.parametrize(("stack", "name", "function"), WORKERS)


def physical(name: str) -> str:
    """The queue's whole name: AWS wants an ending on the FIFO one and its dead-letter queue."""
    return f"mailroom-dev-{name}{'.fifo' if name in ('fax', 'fax-dlq') else ''}"


def queue_of(template: Template, name: str) -> dict[str, Any]:
    return template.one("SQS::Queue", QueueName=physical(name))


@pytest.mark.parametrize(("stack", "name", "function"), [each for each in WORKERS if each[1] != "fax"])
def test_the_visibility_timeout_of_a_queue_is_six_timeouts_of_its_function_plus_the_batch_window(
    whole: Templates, stack: str, name: str, function: str
) -> None:
    found = whole[stack].one("Lambda::Function", FunctionName=f"mailroom-dev-{function}")
    window = whole[stack].mapping(f"mailroom-dev-{function}")["MaximumBatchingWindowInSeconds"]
    assert queue_of(whole[stack], name)["VisibilityTimeout"] == 6 * found["Timeout"] + window


@every_worker
def test_a_message_that_is_received_too_often_goes_to_the_queues_own_dead_letter_queue(
    whole: Templates, stack: str, name: str, function: str
) -> None:
    redrive = queue_of(whole[stack], name)["RedrivePolicy"]
    target = whole[stack].body["Resources"][redrive["deadLetterTargetArn"]["Fn::GetAtt"][0]]["Properties"]
    assert target["QueueName"] == physical(f"{name}-dlq")
    assert target["RedriveAllowPolicy"]["redrivePermission"] == "byQueue"
    (source,) = target["RedriveAllowPolicy"]["sourceQueueArns"]
    assert text_of(source) == f"arn:aws:sqs:eu-central-1:111122223333:{physical(name)}"
    assert target["MessageRetentionPeriod"] == 14 * 86_400


@every_worker
def test_an_event_source_mapping_reports_single_failures_and_has_its_concurrency_and_batch_size(
    whole: Templates, stack: str, name: str, function: str
) -> None:
    mapping = whole[stack].mapping(f"mailroom-dev-{function}")
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert mapping["ScalingConfig"] == {"MaximumConcurrency": CONCURRENCY.get(name, 2)}
    assert mapping["BatchSize"] == BATCHES.get(name, 10)
    source = whole[stack].body["Resources"][mapping["EventSourceArn"]["Fn::GetAtt"][0]]["Properties"]
    assert source["QueueName"] == physical(name)


@every_worker
def test_an_alarm_rings_if_a_message_waited_for_half_of_its_queues_retention(
    whole: Templates, stack: str, name: str, function: str
) -> None:
    alarm = whole[stack].one("CloudWatch::Alarm", AlarmName=f"mailroom-dev-{name}-backlog-old")
    assert alarm["MetricName"] == "ApproximateAgeOfOldestMessage"
    # The fax queue keeps as long as a dead-letter queue: what waits behind others may wait for long.
    assert alarm["Threshold"] == (7 if name == "fax" else 2) * 86_400
    assert queue_of(whole[stack], name)["MessageRetentionPeriod"] == 2 * alarm["Threshold"]
    assert alarm["Dimensions"] == [{"Name": "QueueName", "Value": physical(name)}]


@pytest.mark.parametrize("stack", ["campaigns", "channels", "fax", "feedback", "routing", "webhook"])
def test_every_queue_is_encrypted_and_refuses_requests_without_tls(whole: Templates, stack: str) -> None:
    resources = whole[stack].body["Resources"]
    queues = {name for name, each in resources.items() if each["Type"] == "AWS::SQS::Queue"}
    assert all(resources[name]["Properties"]["SqsManagedSseEnabled"] for name in queues)
    guarded = set()
    for policy in whole[stack].all("SQS::QueuePolicy"):
        (statement,) = (each for each in policy["PolicyDocument"]["Statement"] if each["Effect"] == "Deny")
        assert (statement["Action"], statement["Principal"]) == ("sqs:*", {"AWS": "*"})
        assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
        guarded |= {each["Ref"] for each in policy["Queues"]}
    assert guarded == queues


@every_worker
def test_the_alarm_of_dead_letters_rings_for_a_single_dead_letter_even_while_it_is_received(
    whole: Templates, stack: str, name: str, function: str
) -> None:
    alarm = whole[stack].one("CloudWatch::Alarm", AlarmName=f"mailroom-dev-{name}-dlq-not-empty")
    assert alarm["MetricName"] == "ApproximateNumberOfMessagesVisible"
    assert alarm["Dimensions"] == [{"Name": "QueueName", "Value": physical(f"{name}-dlq")}]
    assert (alarm["ComparisonOperator"], alarm["Threshold"]) == ("GreaterThanOrEqualToThreshold", 1)
    assert (alarm["TreatMissingData"], alarm["DatapointsToAlarm"]) == ("ignore", 1)
    function_seconds = whole["dead-letters"].one("Lambda::Function")["Timeout"]
    longest = max(HIDDEN_SECONDS, function_seconds) + MARGIN_SECONDS
    assert alarm["Period"] * alarm["EvaluationPeriods"] > longest


@every_worker
def test_an_alarm_rings_before_a_queue_has_the_most_messages_in_flight_that_sqs_allows(
    whole: Templates, stack: str, name: str, function: str
) -> None:
    alarm = whole[stack].one("CloudWatch::Alarm", AlarmName=f"mailroom-dev-{name}-in-flight-many")
    assert alarm["MetricName"] == "ApproximateNumberOfMessagesNotVisible"
    assert alarm["Threshold"] == 100_000 < 120_000
    assert alarm["Dimensions"] == [{"Name": "QueueName", "Value": physical(name)}]


@pytest.mark.parametrize(
    ("stack", "name", "function"), [worker for worker in WORKERS if worker[2].startswith("send-")]
)
def test_a_lease_outlives_its_function_and_ends_before_the_queue_delivers_again(
    whole: Templates, stack: str, name: str, function: str
) -> None:
    properties = whole[stack].one("Lambda::Function", FunctionName=f"mailroom-dev-{function}")
    lease = float(whole[stack].environment(f"mailroom-dev-{function}")["LEASE_SECONDS"])
    assert properties["Timeout"] < lease < queue_of(whole[stack], name)["VisibilityTimeout"]


def test_queues_and_senders_have_the_receive_counts_paces_and_delays_of_the_settings(dev: Templates) -> None:
    settings = load(STAGES, "dev")
    mail, bulk, sms = settings.lane_rows()
    fax, webhook = fax_rules(settings.times), webhook_rules(settings.webhook, settings.times)
    for stack, queue, rules in (
        *(("channels", "mail", mail.rules), ("channels", "mail-bulk", bulk.rules)),
        *(("channels", "sms", sms.rules), ("fax", "fax", fax), ("webhook", "webhook", webhook)),
    ):
        receives = queue_of(dev[stack], queue)["RedrivePolicy"]["maxReceiveCount"]
        assert receives == rules.max_receives, queue
    variables = dev["fax"].environment("mailroom-dev-send-fax")
    assert variables["LAST_SUBMIT_RECEIVE"] == str(fax.last_submit_receive)
    variables = dev["channels"].environment("mailroom-dev-send-mail-bulk")
    assert float(variables["PACE_SECONDS"]) == bulk.pace
    delays = json.loads(dev["webhook"].environment("mailroom-dev-send-webhook")["DELAYS"])
    assert delays == list(settings.webhook.delays_seconds)
