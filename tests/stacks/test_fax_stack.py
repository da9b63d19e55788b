"""The fax gateway's queues, secret and sender."""

import json
import math

import pytest

from mailroom.environment import FaxSender, read
from tests.support.stacks.templates import Templates
from tests.support.stacks.variants import AT_SIMULATORS, SIMULATED, up_to, variant

FIFO = ["mailroom-dev-fax.fifo", "mailroom-dev-fax-dlq.fifo"]


def test_the_fax_queue_keeps_order_within_a_line_and_is_fast_over_all_of_them(dev: Templates) -> None:
    queue = dev["fax"].one("SQS::Queue", QueueName="mailroom-dev-fax.fifo")
    assert queue["FifoQueue"] is True
    assert queue["DeduplicationScope"] == "messageGroup"
    assert queue["FifoThroughputLimit"] == "perMessageGroupId"
    # A producer need not give a deduplication id: a body names its fax, so the same body is the same fax.
    assert queue["ContentBasedDeduplication"] is True


def test_a_fifo_queues_dead_letter_queue_is_fifo_and_the_others_are_standard(dev: Templates) -> None:
    queues = {each["QueueName"]: each for each in dev["fax"].all("SQS::Queue")}
    assert {name for name, each in queues.items() if each.get("FifoQueue")} == set(FIFO)
    assert queues.keys() - FIFO == {"mailroom-dev-fax-retry", "mailroom-dev-fax-retry-dlq"}


def test_a_crash_holds_a_line_for_the_lease_and_a_minute_not_for_six_time_outs(dev: Templates) -> None:
    queue = dev["fax"].one("SQS::Queue", QueueName="mailroom-dev-fax.fifo")
    given = dev["fax"].environment("mailroom-dev-send-fax")
    assert given["LEASE_SECONDS"] == str(900 + 60)
    assert queue["VisibilityTimeout"] == 900 + 60 + 60


def test_a_fifo_mapping_has_no_window_and_as_many_workers_as_the_provider_takes_calls(
    dev: Templates,
) -> None:
    mapping = dev["fax"].mapping("mailroom-dev-send-fax")
    assert "MaximumBatchingWindowInSeconds" not in mapping
    assert mapping["BatchSize"] == 1
    assert mapping["ScalingConfig"] == {"MaximumConcurrency": 2}
    # Each waits so long before it submits: one call a second of two workers.
    assert dev["fax"].environment("mailroom-dev-send-fax")["PACE_SECONDS"] == "2.0"


def test_no_receive_submits_after_which_too_few_are_left_to_see_the_fax_through(dev: Templates) -> None:
    queue = dev["fax"].one("SQS::Queue", QueueName="mailroom-dev-fax.fifo")
    last_submit = int(dev["fax"].environment("mailroom-dev-send-fax")["LAST_SUBMIT_RECEIVE"])
    outlast = math.ceil(7_200 / (900 / 2))  # in an outage each backs off for half of the cap at least
    assert queue["RedrivePolicy"]["maxReceiveCount"] == last_submit + outlast + 5
    assert last_submit == 1 + 8 + 31  # as many as cover four hours of throttling


def test_the_senders_provider_and_patience_are_the_stages(dev: Templates) -> None:
    given = read(FaxSender, dev["fax"].environment("mailroom-dev-send-fax"))
    assert (given.channel, given.fax_provider) == ("fax", "signalwire")
    assert given.fax_base_url == "https://example.signalwire.com"
    assert given.fax_senders == ["+12025550123"]
    assert (given.longest_fax_seconds, given.max_attempts) == (7200, 20)
    assert (given.callback_schemes, given.callback_ports) == (["https"], [443, 8443])


def test_the_retry_mover_moves_from_its_queue_to_the_fax_queue(dev: Templates) -> None:
    given = dev["fax"].environment("mailroom-dev-retry-fax")
    assert given["QUEUE_URL"].startswith("<FaxRetryQueue")
    assert given["FAX_QUEUE_URL"].startswith("<FaxQueue")


def test_the_credentials_are_a_placeholder_until_somebody_puts_them(dev: Templates) -> None:
    secret = dev["fax"].one("SecretsManager::Secret", Name="mailroom-dev-fax")
    # A change of this would make CloudFormation write over what was put.
    assert secret["GenerateSecretString"] == {
        "GenerateStringKey": "placeholder",
        "SecretStringTemplate": "{}",
    }
    assert dev["fax"].output("FaxSecretName") == "mailroom-dev-fax"
    assert (
        dev["fax"].output("FaxSecretArn") == dev["fax"].environment("mailroom-dev-send-fax")["FAX_SECRET_ARN"]
    )


def test_a_stages_secrets_share_the_fate_of_its_tables(dev: Templates, prod: Templates) -> None:
    for stage, fate in ((dev, "Delete"), (prod, "RetainExceptOnCreate")):
        stacks = (stage[name].body["Resources"].values() for name in ("fax", "webhook", "feedback"))
        secrets = [
            each
            for resources in stacks
            for each in resources
            if each["Type"] == "AWS::SecretsManager::Secret"
        ]
        assert [each["DeletionPolicy"] for each in secrets] == [fate] * 3


def test_another_provider_is_a_setting() -> None:
    telnyx = {"provider": "telnyx", "connection_id": "149", "senders": ["+12025550123"]}
    given = up_to("fax", {"fax": telnyx})["fax"].environment("mailroom-dev-send-fax")
    assert (given["FAX_PROVIDER"], given["FAX_CONNECTION_ID"]) == ("telnyx", "149")
    assert given["FAX_BASE_URL"] == "https://api.telnyx.com"


def test_a_base_url_that_is_known_only_now_comes_with_the_apps_context() -> None:
    stacks = variant(AT_SIMULATORS, providers=SIMULATED)
    given = stacks["fax"].environment("mailroom-dev-send-fax")
    assert given["FAX_BASE_URL"] == "http://127.0.0.1:4711/signalwire"


def test_without_a_fax_gateway_nothing_knows_of_faxes() -> None:
    stacks = variant({"fax": None})
    assert "fax" not in stacks.stacks
    routing = stacks["routing"]
    dispatch, outcomes = (routing.environment(f"mailroom-dev-{name}") for name in ("dispatch", "outcomes"))
    assert json.loads(dispatch["ROUTES"]).keys() == {"mail", "sms", "webhook"}
    assert json.loads(dispatch["DELAYED_ROUTES"]) == {}
    assert outcomes["RETRY_QUEUE_URL"] == ""
    assert len(routing.policy("mailroom-dev-outcomes")["sqs:SendMessage"]) == 1
    filters = routing.mapping("mailroom-dev-outcomes")["FilterCriteria"]["Filters"]
    assert filters
    assert not any("fax" in each["Pattern"] for each in filters)
    assert json.loads(outcomes["CHANNELS"]) == ["mail", "sms", "webhook"]


@pytest.mark.parametrize("queue", ["Fax", "FaxRetry"])
def test_output_names_are_without_the_ending_of_fifo_queues(dev: Templates, queue: str) -> None:
    for what in ("QueueUrl", "QueueArn", "DlqUrl", "DlqArn", "DlqAlarmName", "DlqAlarmArn"):
        assert dev["fax"].output(f"{queue}{what}")
