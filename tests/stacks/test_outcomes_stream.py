"""How the ledger's stream is read."""

import json

import pytest

from mailroom.message.outcome import FAILED, SILENT
from mailroom_stacks.settings.load import load
from mailroom_stacks.settings.sentences import SettingsError
from tests.support.stacks.refusals import refusal_of_setting, with_settings
from tests.support.stacks.templates import Template, Templates, text_of
from tests.support.stacks.variants import BUS


def test_the_function_outcomes_reads_only_changes_with_callbacks_failures_or_fax_retries(
    dev: Templates,
) -> None:
    filters = dev["routing"].mapping("mailroom-dev-outcomes")["FilterCriteria"]["Filters"]
    changes = {"eventName": ["INSERT", "MODIFY"]}
    assert [json.loads(each["Pattern"]) for each in filters] == [
        {
            **changes,
            "dynamodb": {
                "NewImage": {
                    "callback_url": {"S": [{"exists": True}]},
                    "status": {"S": [{"anything-but": ["sending", "scheduled"]}]},
                }
            },
        },
        {**changes, "dynamodb": {"NewImage": {"status": {"S": [*FAILED]}}}},
        {
            **changes,
            "dynamodb": {"NewImage": {"event_type": {"S": ["fax"]}, "status": {"S": ["retrying"]}}},
        },
    ]


def test_the_ledger_stream_is_read_with_the_limits_and_the_bucket_of_the_mailbox_stream(
    dev: Templates,
) -> None:
    routing = dev["routing"]
    dispatch, outcomes = (dict(routing.mapping(f"mailroom-dev-{name}")) for name in ("dispatch", "outcomes"))
    assert "ExportsOutputFnGetAttLedger" in text_of(outcomes["EventSourceArn"])
    own = ("EventSourceArn", "FilterCriteria", "FunctionName")
    assert {name: value for name, value in outcomes.items() if name not in own} == {
        name: value for name, value in dispatch.items() if name not in own
    }
    (bucket,) = routing.all("S3::Bucket")
    assert "unprocessed" in text_of(bucket["BucketName"])


def put_events(routing: Template) -> list[dict[str, object]]:
    """The statements of all roles that let somebody put events."""
    return [
        statement
        for role in routing.all("IAM::Role")
        for policy in role["Policies"]
        for statement in policy["PolicyDocument"]["Statement"]
        if "events:PutEvents" in statement["Action"]
    ]


def test_a_stage_without_an_event_bus_may_not_put_events(dev: Templates) -> None:
    assert put_events(dev["routing"]) == []
    assert (
        not {"EVENT_BUS", "EVENT_SOURCE", "CAMPAIGNS"}
        & dev["routing"].environment("mailroom-dev-outcomes").keys()
    )


def test_the_function_outcomes_reads_all_outcomes_and_may_put_only_its_own_events_on_a_bus(
    everything: Templates,
) -> None:
    routing = everything["routing"]
    filters = routing.mapping("mailroom-dev-outcomes")["FilterCriteria"]["Filters"]
    (pattern,) = (json.loads(each["Pattern"]) for each in filters)
    assert pattern["dynamodb"]["NewImage"] == {"status": {"S": [{"anything-but": [*SILENT]}]}}
    given = routing.environment("mailroom-dev-outcomes")
    assert (given["EVENT_BUS"], given["EVENT_SOURCE"]) == ("orders", "mailroom.dev")
    assert json.loads(given["CAMPAIGNS"]) == ["csv", "jsonl", "module", "postgresql"]
    (statement,) = put_events(routing)
    assert text_of(statement["Resource"]) == "arn:aws:events:eu-central-1:111122223333:event-bus/orders"
    assert statement["Condition"] == {
        "ForAllValues:StringEquals": {"events:source": "mailroom.dev"},
        "StringEquals": {"events:detail-type": "Message Outcome"},
    }


def test_an_event_bus_may_belong_to_another_account(otherwise: Templates) -> None:
    routing = otherwise["routing"]
    (statement,) = put_events(routing)
    assert statement["Resource"] == BUS
    assert routing.environment("mailroom-dev-outcomes")["EVENT_BUS"] == BUS


def test_an_event_bus_in_another_region_than_the_stage_is_refused() -> None:
    stages = with_settings({"outcomes.event_bus": BUS, "deployment.region": "us-east-1"})
    with pytest.raises(SettingsError) as refused:
        load(stages, "dev")
    assert str(refused.value) == (
        "mailroom.dev.outcomes.event_bus: is in region eu-central-1, and the stage in "
        "deployment.region us-east-1; use one in us-east-1."
    )


@pytest.mark.parametrize("bus", ["", "my bus", "arn:aws:sqs:eu-central-1:111122223333:orders", "a" * 257])
def test_an_invalid_name_of_an_event_bus_is_refused(bus: str) -> None:
    assert refusal_of_setting("outcomes.event_bus", bus).startswith("mailroom.dev.outcomes.event_bus: ")
