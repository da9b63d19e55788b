"""SES refuses, breaks the connection, or does not respond: the design's promise for each case."""

from datetime import datetime

import pytest

from tests.support.pipeline.shared import LEASE_SECONDS, Pipeline
from tests.support.pipeline.trouble import Trouble


def accepted_after(pipeline: Pipeline, id_: str, started: float, nth: int = 0) -> float:
    """Seconds from the put to the acceptance of the message's n-th mail."""
    return datetime.fromisoformat(pipeline.mails(id_)[nth]["received_at"]).timestamp() - started


def test_a_throttled_mail_is_sent_once_and_has_one_attempt(pipeline: Pipeline, trouble: Trouble) -> None:
    pipeline.one_mail("throttled-once")
    row = trouble.rows["throttled-once"]
    assert row["attempts"] == 1
    assert [entry["status"] for entry in row["history"]] == ["sent"]


def test_a_throttled_mail_is_sent_before_its_lease_has_ended(pipeline: Pipeline, trouble: Trouble) -> None:
    assert accepted_after(pipeline, "throttled-once", trouble.put_at) < LEASE_SECONDS


def test_a_mail_to_which_ses_answered_with_a_server_error_is_sent_once_after_its_lease(
    pipeline: Pipeline, trouble: Trouble
) -> None:
    pipeline.one_mail("error-once")
    assert accepted_after(pipeline, "error-once", trouble.put_at) > LEASE_SECONDS
    pipeline.until_logged(pipeline.output("SendMailFunctionName"), "resending", '"error-once"')


def test_a_mail_with_a_lost_response_and_without_evidence_is_sent_once_more_after_its_lease(
    pipeline: Pipeline, trouble: Trouble
) -> None:
    first, second = pipeline.mails("lost-answer-once")
    row = trouble.rows["lost-answer-once"]
    assert (row["status"], row["provider_id"]) == ("sent", second["provider_id"])
    assert first["provider_id"] != second["provider_id"]
    assert first["content"] == second["content"]
    assert accepted_after(pipeline, "lost-answer-once", trouble.put_at, nth=1) > LEASE_SECONDS


@pytest.mark.usefixtures("trouble")
def test_a_mail_with_a_lost_response_is_not_sent_again_if_an_event_proves_it(pipeline: Pipeline) -> None:
    (sent,) = pipeline.mails("observed")
    row = pipeline.ledger("observed")
    assert (row["status"], row["provider_id"]) == ("delivered", sent["provider_id"])


def test_a_mail_with_a_lost_response_fails_and_is_not_sent_again_if_on_unknown_is_hold(
    pipeline: Pipeline, trouble: Trouble
) -> None:
    assert len(pipeline.mails("held")) == 1
    row = trouble.rows["held"]
    assert (row["status"], row["error"]["code"]) == ("failed", "outcome_unknown")


@pytest.mark.usefixtures("trouble")
def test_a_mail_that_failed_as_unknown_becomes_delivered_if_its_events_arrive(pipeline: Pipeline) -> None:
    pipeline.until_status("delivered", "held")
    assert not {"error", "failed_as"} & pipeline.ledger("held").keys()


@pytest.mark.usefixtures("trouble")
def test_a_mail_that_ses_rejects_fails_with_the_error_of_ses(pipeline: Pipeline) -> None:
    assert pipeline.failure("rejected").startswith("MessageRejected: ")
    assert pipeline.ledger("rejected")["attempts"] == 1
