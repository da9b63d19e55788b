"""The handler send_mail, with its environment, its events and its responses."""

import json
import re
from pathlib import Path
from typing import Any

import boto3
import pytest

from mailroom.content.templates import Templates
from tests.support.unit.events import failures, lambda_context, sqs_event, stream_event
from tests.support.unit.functions import Load
from tests.support.unit.shared import LEDGER, Aws, Item, image, item
from tests.support.unit.shelf import OURS
from tests.support.unit.unsubscribing import KEY, TOPIC, URL, token

_NAMES = iter(range(1000))


@pytest.fixture(autouse=True)
def _links(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    """Create a secret for the signatures of links for opting out, for each handler that is loaded."""
    name, text = f"mailroom-test-links-{next(_NAMES)}", json.dumps({"key": KEY})
    arn = boto3.client("secretsmanager").create_secret(Name=name, SecretString=text)["ARN"]
    monkeypatch.setenv("UNSUBSCRIBE_URL", URL)
    monkeypatch.setenv("UNSUBSCRIBE_SECRET_ARN", arn)


def test_a_mailbox_item_is_sent_once_by_ses(load: Load, aws: Aws, outbox: list[Any]) -> None:
    smallest = item(to=..., subject=..., text=..., email="vincent@example.com", first_name="V", last_name="G")
    load("dispatch")(stream_event(image(**smallest)), lambda_context())
    (message,) = aws.receive()
    sender = load("send_mail")
    for _ in range(2):
        assert sender(sqs_event(message["Body"]), lambda_context()) == {"batchItemFailures": []}
    (sent,) = outbox
    assert sent.subject == "V, there is a message for you"
    assert sent.destinations["ToAddresses"] == ["vincent@example.com"]
    assert (aws.item()["status"], aws.item()["provider"]) == ("sent", "ses")


def test_a_mail_with_a_topic_has_an_unsubscribe_link_made_from_the_stages_url_and_secret(
    load: Load, aws: Aws, outbox: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "subject.txt").write_text("Hello")
    (tmp_path / "a" / "body.txt").write_text("{{ unsubscribe_url }}")
    monkeypatch.setenv("TEMPLATES", str(tmp_path))
    event = sqs_event(item(text=..., subject=..., template="a", topic=TOPIC))
    assert failures(load("send_mail")(event, lambda_context())) == []
    (sent,) = outbox
    assert sent.body == f"{URL}/{token('vincent@example.com')}"


def test_if_the_unsubscribe_secret_is_missing_mails_with_a_topic_wait_and_all_other_mails_are_sent(
    load: Load, aws: Aws, outbox: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNSUBSCRIBE_SECRET_ARN", "arn:aws:secretsmanager:eu-central-1:123456789012:secret:no")
    event = sqs_event(item(id="with", topic=TOPIC), item(id="without"))
    assert failures(load("send_mail")(event, lambda_context())) == ["r-0"]
    assert "completedAt" not in aws.item("with")
    assert aws.item("without")["status"] == "sent"
    assert len(outbox) == 1


INVALID_FOR_A_SENDER: list[tuple[Item, str]] = [
    (
        {"text": ..., "subject": ..., "template": "nosuch"},
        f"template: 'nosuch' is unknown; use one of: {', '.join(Templates(OURS).names())}",
    ),
    (
        {"text": ..., "subject": ..., "email": "v@example.com", "first_name": "V"},
        "last_name: is missing; default/body.html:9 uses it, so the message must have it",
    ),
]


@pytest.mark.parametrize(("changes", "sentence"), INVALID_FOR_A_SENDER)
def test_an_invalid_mail_ends_as_failed_with_its_reason(
    load: Load, aws: Aws, outbox: list[Any], changes: Item, sentence: str
) -> None:
    event = sqs_event(item(id="bad", **changes), item(id="good"))
    assert failures(load("send_mail")(event, lambda_context())) == []
    field = "variable" if sentence.startswith("last_name") else re.split(r"\W", sentence)[0]
    assert aws.item("bad")["error"] == {"code": "invalid", "message": sentence, "field": field}
    assert aws.item("good")["status"] == "sent"
    assert len(outbox) == 1


PATTERN = {"greeting": "%(a).1s" * 9_000, "order": {"a": [0] * 28_000}}
TEMPLATES: dict[str, tuple[str, dict[str, Any], str]] = {
    "loop": (
        "{% for a in range(n) %}{% for b in range(n) %}{% endfor %}{% endfor %}",
        {"n": 9000},
        "template: loop/body.txt:1 failed: it takes over 250,000 steps of work",
    ),
    "internals": ("{{ to.__class__.__mro__ }}", {}, "to.__class__: is missing"),
    "pattern": (
        "{{ greeting|format(order) }}",
        PATTERN,
        "template: pattern/body.txt takes more than 0.8 s or 18 MB",
    ),
}


@pytest.mark.process
@pytest.mark.parametrize("name", TEMPLATES)
def test_a_mail_with_a_hostile_template_or_variable_fails_and_the_rest_of_its_batch_is_sent(
    load: Load, aws: Aws, outbox: list[Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    source, variables, reason = TEMPLATES[name]
    (tmp_path / name).mkdir()
    (tmp_path / name / "subject.txt").write_text("Hello")
    (tmp_path / name / "body.txt").write_text(source)
    monkeypatch.setenv("TEMPLATES", str(tmp_path))
    bad = item(id="bad", text=..., subject=..., template=name, **variables)
    event = sqs_event(bad, *(item(id=f"good-{number}") for number in range(9)))
    assert failures(load("send_mail")(event, lambda_context())) == []
    refused = aws.item("bad")
    assert (refused["status"], refused["error"]["code"]) == ("failed", "invalid")
    assert refused["error"]["message"].startswith(reason)
    assert {aws.item(f"good-{number}")["status"] for number in range(9)} == {"sent"}
    assert len(outbox) == 9


def test_send_mail_returns_unfinished_records_to_the_queue(load: Load, aws: Aws, outbox: list[Any]) -> None:
    aws.put(LEDGER, id="held", event_type="mail", status="sending", startedAt=2**42, claim_token="another")
    event = sqs_event(item(id="held"), "not json", item(id="sent"))
    assert failures(load("send_mail")(event, lambda_context())) == ["r-0", "r-1"]
    assert len(outbox) == 1
