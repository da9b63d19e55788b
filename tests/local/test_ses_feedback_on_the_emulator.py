"""SES's events from a mail to the queue behind its topic, and the account's suppression list, with boto3."""

import json
from collections.abc import Iterator

import pytest
from botocore.exceptions import ClientError, HTTPClientError

from mailroom_local.providers.ses_feedback import VALIDATED
from tests.support.local.feedback import FeedbackStage, running_feedback
from tests.support.local.ses_feedback import simulator_address, summary


@pytest.fixture(scope="module")
def validated_stage(url: str) -> Iterator[FeedbackStage]:
    with running_feedback(url) as stage:
        stage.mail("first@example.com")
        assert VALIDATED in stage.heard(3)
        yield stage


def test_the_events_of_a_mail_reach_the_topics_queue(validated_stage: FeedbackStage) -> None:
    sent = validated_stage.mail(simulator_address("bounce+queue"))
    assert summary(validated_stage.events(sent, 2)) == [("Bounce", "Permanent", "General"), ("Send",)]


def test_events_of_a_mail_with_the_label_early_are_in_the_queue_before_the_response_to_its_submit(
    validated_stage: FeedbackStage,
) -> None:
    sent = validated_stage.mail(simulator_address("complaint+early"))
    assert validated_stage.waiting() >= 3
    assert len(validated_stage.events(sent, 3)) == 3


def test_a_mail_whose_response_is_lost_has_events_and_a_refused_mail_has_none(
    validated_stage: FeedbackStage,
) -> None:
    with pytest.raises(ClientError):
        validated_stage.mail(simulator_address("rejected"))
    with pytest.raises(HTTPClientError):
        validated_stage.mail(simulator_address("lost-answer"))
    heard = [json.loads(text) for text in validated_stage.heard(3, seconds=2)]
    assert sorted(event["eventType"] for event in heard) == ["Delivery", "Send"]


def test_the_events_of_the_ses_simulator_can_be_paused_and_resumed(validated_stage: FeedbackStage) -> None:
    assert validated_stage.get("/events/pause", "POST")["paused"] is True
    sent = validated_stage.mail("paused@example.com")
    assert validated_stage.heard(1, seconds=1.1) == []
    shown = validated_stage.get("/events")
    assert (shown["paused"], shown["waiting"]["ses"] >= 2) == (True, True)
    assert validated_stage.get("/events/resume", "POST")["paused"] is False
    assert len(validated_stage.events(sent, 2)) == 2


def test_the_accounts_suppression_list_is_available_by_the_api_of_ses_v2(
    validated_stage: FeedbackStage,
) -> None:
    address = simulator_address("complaint+listed")
    sent = validated_stage.mail(address)
    found = validated_stage.ses.get_suppressed_destination(EmailAddress=address)["SuppressedDestination"]
    assert (found["EmailAddress"], found["Reason"]) == (address, "COMPLAINT")
    assert found["Attributes"]["MessageId"] == sent
    validated_stage.ses.delete_suppressed_destination(EmailAddress=address)
    for call in (
        validated_stage.ses.get_suppressed_destination,
        validated_stage.ses.delete_suppressed_destination,
    ):
        with pytest.raises(validated_stage.ses.exceptions.NotFoundException):
            call(EmailAddress=address)
    validated_stage.ses.put_suppressed_destination(EmailAddress=address, Reason="BOUNCE")
    found = validated_stage.ses.get_suppressed_destination(EmailAddress=address)["SuppressedDestination"]
    assert (found["EmailAddress"], found["Reason"]) == (address, "BOUNCE")
    validated_stage.heard(99, seconds=1.5)
