"""Outcomes on EventBridge: the rules of docs/reference/events.template.yaml, deployed on the emulator, and
what reaches their queues."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from mailroom_local.aws import LocalSession, patient
from tests.support import ROOT
from tests.support.pipeline.items import mail_item
from tests.support.pipeline.shared import Pipeline, until

SECONDS = 30.0
CAMPAIGN = "weekly-followers#2026-11-18#42"
QUEUES = ("Failures", "Addresses", "Campaign", "Undelivered")
STACK = "events"
BUS = {"EVENT_BUS": "default", "EVENT_SOURCE": "mailroom.local", "CAMPAIGNS": '["weekly-followers"]'}


@pytest.fixture(scope="module")
def urls(pipeline: Pipeline) -> dict[str, str]:
    """The queues' URLs, once the template is deployed."""
    endpoint = pipeline.running.endpoints.aws
    formation = LocalSession().client("cloudformation", endpoint_url=endpoint, config=patient())
    formation.create_stack(
        StackName=STACK,
        TemplateBody=(ROOT / "docs/reference/events.template.yaml").read_text(),
        Parameters=[{"ParameterKey": "Stage", "ParameterValue": "local"}],
    )
    formation.get_waiter("stack_create_complete").wait(
        StackName=STACK, WaiterConfig={"Delay": 1, "MaxAttempts": 30}
    )
    (stack,) = formation.describe_stacks(StackName=STACK)["Stacks"]
    return {each["OutputKey"].removesuffix("QueueUrl"): each["OutputValue"] for each in stack["Outputs"]}


@pytest.fixture(scope="module")
def arrived(pipeline: Pipeline, urls: dict[str, str]) -> dict[str, list[dict[str, Any]]]:
    """By queue: the events about four mails, once all that are due have come."""
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in QUEUES}
    # The local stage lacks a bus: its function gets only failures, and changes with callbacks or retries.
    asked = {"callback_url": pipeline.receiver("ok/callbacks/events")}
    mails = (
        mail_item("event-good", topic="news", **asked),
        mail_item("event-bad", email="nobody", **asked),
        mail_item("event-bounced", email="bounce+events@simulator.amazonses.com", **asked),
        mail_item(CAMPAIGN, **asked),
    )

    def all_there() -> bool:
        for name, events in found.items():
            events += taken(pipeline, urls[name])
        return len(details_by_id(found["Failures"], "event-")) >= 2 and bool(
            found["Campaign"] and found["Addresses"]
        )

    with pipeline.configured(pipeline.output("OutcomesFunctionName"), **BUS):
        pipeline.put(*mails)
        until(all_there, SECONDS, lambda: json.dumps(found, indent=1))
    return found


def taken(pipeline: Pipeline, url: str) -> Iterator[dict[str, Any]]:
    """The events in a queue, which go."""
    while messages := pipeline.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
        for each in messages:
            pipeline.sqs.delete_message(QueueUrl=url, ReceiptHandle=each["ReceiptHandle"])
            yield json.loads(each["Body"])


def details_by_id(events: list[dict[str, Any]], prefix: str) -> dict[str, dict[str, Any]]:
    """The events' details, by their messages."""
    ids = {event["detail"]["id"]: event["detail"] for event in events}
    return {id_: detail for id_, detail in ids.items() if id_.startswith(prefix)}


Arrived = dict[str, list[dict[str, Any]]]


def test_events_of_failed_messages_reach_the_queue_for_failures_and_events_of_others_do_not(
    arrived: Arrived,
) -> None:
    failures = details_by_id(arrived["Failures"], "event-")
    assert failures.keys() == {"event-bad", "event-bounced"}
    assert (failures["event-bad"]["status"], failures["event-bad"]["code"]) == ("failed", "invalid")


def test_the_queue_for_addresses_gets_a_hard_bounce_and_otherwise_only_hard_bounces_or_complaints(
    arrived: Arrived,
) -> None:
    bounced = details_by_id(arrived["Addresses"], "event-")["event-bounced"]
    assert (bounced["status"], bounced["code"], bounced["provider"]) == ("bounced", "Permanent", "ses")
    details = [each["detail"] for each in arrived["Addresses"]]
    bounces = {each["code"] for each in details if each["status"] != "complained"}
    assert bounces == {"Permanent"}


def test_the_queue_for_campaigns_gets_a_delivery_of_a_campaigns_mail_and_not_its_acceptance(
    arrived: Arrived,
) -> None:
    (detail,) = details_by_id(arrived["Campaign"], CAMPAIGN).values()
    assert (detail["campaign"], detail["status"]) == ("weekly-followers", "delivered")
    assert {each["detail"]["campaign"] for each in arrived["Campaign"]} == {"weekly-followers"}
    assert not [each for each in arrived["Campaign"] if each["detail"]["status"] == "sent"]


def test_each_outcome_event_names_the_stage_in_its_envelope_and_does_not_contain_a_recipient(
    arrived: Arrived,
) -> None:
    events = [event for each in arrived.values() for event in each]
    assert {(event["source"], event["detail-type"]) for event in events} == {
        ("mailroom.local", "Message Outcome")
    }
    assert not [event for event in events if "@" in json.dumps(event["detail"])]
    assert arrived["Undelivered"] == []


def test_the_ledger_keeps_the_topic_for_later_events(pipeline: Pipeline, arrived: Arrived) -> None:
    assert arrived
    pipeline.until_ended("event-good")
    assert pipeline.ledger("event-good")["topic"] == "news"
