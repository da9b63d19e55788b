"""The fax gateway's queues, secret and sender."""

import json

from tests.support.stacks.templates import Templates

FIFO = ["mailroom-dev-fax.fifo", "mailroom-dev-fax-dlq.fifo"]


def test_the_fax_queue_keeps_the_order_of_a_line_and_has_high_throughput(dev: Templates) -> None:
    queue = dev["fax"].one("SQS::Queue", QueueName="mailroom-dev-fax.fifo")
    assert queue["FifoQueue"] is True
    assert queue["DeduplicationScope"] == "messageGroup"
    assert queue["FifoThroughputLimit"] == "perMessageGroupId"
    # A producer need not give a deduplication id: a body names its fax, so the same body is the same fax.
    assert queue["ContentBasedDeduplication"] is True


def test_the_fax_queue_and_its_dead_letter_queue_are_fifo_and_the_retry_queues_are_standard(
    dev: Templates,
) -> None:
    queues = {each["QueueName"]: each for each in dev["fax"].all("SQS::Queue")}
    assert {name for name, each in queues.items() if each.get("FifoQueue")} == set(FIFO)
    assert queues.keys() - FIFO == {"mailroom-dev-fax-retry", "mailroom-dev-fax-retry-dlq"}


def test_the_fax_secret_is_a_placeholder_that_a_deployment_does_not_overwrite(dev: Templates) -> None:
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


def test_a_stage_without_a_fax_gateway_has_no_resource_of_faxes(lean: Templates) -> None:
    assert "fax" not in lean.stacks
    routing = lean["routing"]
    dispatch, outcomes = (routing.environment(f"mailroom-dev-{name}") for name in ("dispatch", "outcomes"))
    assert json.loads(dispatch["ROUTES"]).keys() == {"mail", "chat", "webhook"}
    assert json.loads(dispatch["DELAYED_ROUTES"]) == {}
    assert outcomes["RETRY_QUEUE_URL"] == ""
    assert len(routing.policy("mailroom-dev-outcomes")["sqs:SendMessage"]) == 1
    filters = routing.mapping("mailroom-dev-outcomes")["FilterCriteria"]["Filters"]
    assert filters
    assert not any("fax" in each["Pattern"] for each in filters)
    assert json.loads(outcomes["CHANNELS"]) == ["chat", "mail", "webhook"]
