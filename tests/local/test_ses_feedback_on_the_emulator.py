"""SES's events from a mail to the queue behind its topic, and the account's suppression list, with boto3."""

import json
from collections.abc import Iterator

import pytest
from botocore.exceptions import ClientError, HTTPClientError

from mailroom_local.providers.ses_feedback import VALIDATED
from tests.support.local.feedback import Stage, running
from tests.support.local.ses_feedback import at, summary


@pytest.fixture(scope="module")
def stage(url: str) -> Iterator[Stage]:
    with running(url) as stage:
        stage.mail("first@example.com")
        assert VALIDATED in stage.heard(3)
        yield stage


def test_the_events_of_a_mail_reach_the_topics_queue(stage: Stage) -> None:
    sent = stage.mail(at("bounce+queue"))
    assert summary(stage.events(sent, 2)) == [("Bounce", "Permanent", "General"), ("Send",)]


def test_early_events_are_in_the_queue_before_the_response(stage: Stage) -> None:
    sent = stage.mail(at("complaint+early"))
    assert stage.waiting() >= 3
    assert len(stage.events(sent, 3)) == 3


def test_a_mail_whose_response_is_lost_has_events_and_a_refused_mail_has_none(stage: Stage) -> None:
    with pytest.raises(ClientError):
        stage.mail(at("rejected"))
    with pytest.raises(HTTPClientError):
        stage.mail(at("lost-answer"))
    heard = [json.loads(text) for text in stage.heard(3, seconds=2)]
    assert sorted(event["eventType"] for event in heard) == ["Delivery", "Send"]


def test_events_can_be_paused_and_resumed(stage: Stage) -> None:
    assert stage.get("/events/pause", "POST")["paused"] is True
    sent = stage.mail("paused@example.com")
    assert stage.heard(1, seconds=1.1) == []
    shown = stage.get("/events")
    assert (shown["paused"], shown["waiting"]["ses"] >= 2) == (True, True)
    assert stage.get("/events/resume", "POST")["paused"] is False
    assert len(stage.events(sent, 2)) == 2


def test_the_accounts_suppression_list_is_available_by_the_api_of_ses_v2(stage: Stage) -> None:
    address = at("complaint+listed")
    sent = stage.mail(address)
    found = stage.ses.get_suppressed_destination(EmailAddress=address)["SuppressedDestination"]
    assert (found["EmailAddress"], found["Reason"]) == (address, "COMPLAINT")
    assert found["Attributes"]["MessageId"] == sent
    stage.ses.delete_suppressed_destination(EmailAddress=address)
    for call in (stage.ses.get_suppressed_destination, stage.ses.delete_suppressed_destination):
        with pytest.raises(stage.ses.exceptions.NotFoundException):
            call(EmailAddress=address)
    stage.ses.put_suppressed_destination(EmailAddress=address, Reason="BOUNCE")
    found = stage.ses.get_suppressed_destination(EmailAddress=address)["SuppressedDestination"]
    assert (found["EmailAddress"], found["Reason"]) == (address, "BOUNCE")
    stage.heard(99, seconds=1.5)
