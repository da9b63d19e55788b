"""The operator's commands about messages, as real processes, on a stage that runs."""

import json
from typing import Any

import pytest

from tests.support.pipeline.campaign import answer_of, operator
from tests.support.pipeline.shared import Pipeline

LOCAL = ("--stage", "local", "--json")


@pytest.fixture(scope="module")
def operators_mail(pipeline: Pipeline) -> dict[str, Any]:
    """Send a mail as an operator, and wait for its end."""
    words = ("--to", "ada@example.com", "--subject", "Hello", "--text", "By hand.", "--id", "by-operator")
    return answer_of(pipeline, "send", "mail", *words, "--wait", "--wait-seconds", "60")


def test_the_command_send_puts_a_mail_that_arrives_and_waits_for_its_outcome(
    pipeline: Pipeline, operators_mail: dict[str, Any]
) -> None:
    assert operators_mail["result"] == "accepted"
    assert operators_mail["status"] in ("sent", "delivered")
    assert pipeline.one_mail("by-operator")["to"] == "ada@example.com"


def test_a_repeated_command_send_reports_that_the_message_exists_and_the_mail_is_not_sent_twice(
    pipeline: Pipeline, operators_mail: dict[str, Any]
) -> None:
    words = ("--to", "ada@example.com", "--subject", "Hello", "--text", "By hand.", "--id", "by-operator")
    assert answer_of(pipeline, "send", "mail", *words)["result"] == "existed"
    assert pipeline.one_mail("by-operator")


def test_messages_show_prints_the_outcome_of_a_message_and_not_its_content(
    pipeline: Pipeline, operators_mail: dict[str, Any]
) -> None:
    answer = answer_of(pipeline, "messages", "show", "by-operator")
    (message,) = answer["messages"]
    assert message["status"] in ("sent", "delivered")
    assert message["provider_id"]
    assert "By hand." not in json.dumps(answer)
    assert answer_of(pipeline, "messages", "show", "nobody-sent-this", codes=(1,))["messages"] == []


def test_the_command_send_refuses_a_message_that_the_stage_would_refuse_and_does_not_put_it(
    pipeline: Pipeline,
) -> None:
    words = ("--to", "+16175551234", "--text", "Hi", "--lane", "bulk", "--id", "never-put")
    done = operator(pipeline, "send", "sms", *words, *LOCAL)
    assert done.exit_code == 2
    assert "lane: 'bulk' is not set up for sms" in done.stderr
    assert answer_of(pipeline, "messages", "show", "never-put", codes=(1,))["messages"] == []


def test_messages_list_with_the_option_mask_shows_a_failed_message_without_its_recipient(
    pipeline: Pipeline,
) -> None:
    pipeline.put({"id": "failing-17", "event_type": "mail", "to": "vincent@", "subject": "S", "text": "T"})
    pipeline.until_ended("failing-17")
    words = ("--status", "failure", "--since", "1h", "--channel", "mail", "--reason", "invalid")
    answer = answer_of(pipeline, "messages", "list", *words, "--mask")
    (found,) = [each for each in answer["messages"] if each["id"] == "failing-17"]
    assert "is not a mail address" in found["message"]
    assert "vincent" not in json.dumps(found)
