"""send_mail, as Lambda runs it: an environment, an event, and what must come back."""

import json
import re
from pathlib import Path
from typing import Any

import boto3
import pytest

from mailroom.aws.dynamo_values import plain
from mailroom.content.templates import Templates
from tests.support.unit.events import failures, lambda_context, sqs_event, stream_event
from tests.support.unit.functions import Load
from tests.support.unit.shared import BUCKET, LEDGER, MAILBOX, Aws, Item, image, item
from tests.support.unit.shelf import OURS
from tests.support.unit.unsubscribing import KEY, TOPIC, URL, token

_NAMES = iter(range(1000))


@pytest.fixture(autouse=True)
def _links(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    """The secret that links for opting out are signed with, once for each process that begins."""
    name, text = f"mailroom-test-links-{next(_NAMES)}", json.dumps({"key": KEY})
    arn = boto3.client("secretsmanager").create_secret(Name=name, SecretString=text)["ARN"]
    for name, value in (
        ("UNSUBSCRIBE_URL", URL),
        ("UNSUBSCRIBE_SECRET_ARN", arn),
    ):
        monkeypatch.setenv(name, value)


def test_a_mail_goes_from_the_table_to_ses_once(load: Load, aws: Aws, outbox: list[Any]) -> None:
    smallest = {
        "id": "m-1",
        "event_type": "mail",
        "email": "vincent@example.com",
        "first_name": "V",
        "last_name": "G",
    }
    load("dispatch")(stream_event(image(**smallest)), lambda_context())
    (message,) = aws.receive()
    sender = load("send_mail")
    for _ in range(2):
        assert sender(sqs_event(message["Body"]), lambda_context()) == {"batchItemFailures": []}
    (sent,) = outbox
    assert sent.subject == "V, there is a message for you"
    assert sent.destinations["ToAddresses"] == ["vincent@example.com"]
    assert (aws.item()["status"], aws.item()["provider"]) == ("sent", "ses")


def test_send_mail_sends_attachments_of_the_payload_bucket(load: Load, aws: Aws, outbox: list[Any]) -> None:
    aws.s3.put_object(Bucket=BUCKET, Key="bill.pdf", Body=b"%PDF")
    body = item(attachments=[{"ref": f"s3://{BUCKET}/bill.pdf"}])
    assert failures(load("send_mail")(sqs_event(body), lambda_context())) == []
    assert len(outbox) == 1


def test_a_mail_with_a_topic_carries_the_link_of_the_stages_own_url_and_secret(
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


def test_where_the_links_secret_cannot_be_read_only_mails_with_a_topic_wait(
    load: Load, aws: Aws, outbox: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNSUBSCRIBE_SECRET_ARN", "arn:aws:secretsmanager:eu-central-1:123456789012:secret:no")
    event = sqs_event(item(id="with", topic=TOPIC), item(id="without"))
    assert failures(load("send_mail")(event, lambda_context())) == ["r-0"]
    assert "completedAt" not in aws.item("with")
    assert aws.item("without")["status"] == "sent"
    assert len(outbox) == 1


BAD_FOR_A_SENDER: list[tuple[Item, str]] = [
    (
        {"text": ..., "subject": ..., "template": "nosuch"},
        f"template: 'nosuch' is unknown; use one of: {', '.join(Templates(OURS).names())}",
    ),
    (
        {"text": ..., "subject": ..., "email": "v@example.com", "first_name": "V"},
        "last_name: is missing; default/body.html uses it, so the item must have it",
    ),
    (
        {
            "text": ...,
            "subject": ...,
            "email": "v@example.com",
            "first_name": "V\nBcc: x@example.com",
            "last_name": "G",
        },
        "subject: the rendered one holds a line break; a variable in it must be one line",
    ),
    (
        {"attachments": [{"ref": f"s3://{BUCKET}/none"}]},
        f"attachments[0].ref: 's3://{BUCKET}/none' does not exist; put the object before the message",
    ),
    (
        {"from": "ceo@elsewhere.example"},
        "from: is not among this stage's senders; use one of post@mailroom.example",
    ),
    (
        {"payload_ref": f"s3://{BUCKET}/none"},
        f"payload_ref: 's3://{BUCKET}/none' does not exist; put the object before the message",
    ),
]


@pytest.mark.parametrize(("changes", "sentence"), BAD_FOR_A_SENDER)
def test_a_bad_item_that_only_the_sender_can_tell_is_failed_with_its_reason(
    load: Load, aws: Aws, outbox: list[Any], changes: Item, sentence: str
) -> None:
    event = sqs_event(item(id="bad", **changes), item(id="good"))
    assert failures(load("send_mail")(event, lambda_context())) == []
    field = "variable" if sentence.startswith("last_name") else re.split(r"\W", sentence)[0]
    assert aws.item("bad")["error"] == {"code": "invalid", "message": sentence, "field": field}
    assert aws.item("good")["status"] == "sent"
    assert len(outbox) == 1


TEMPLATES = {
    "loop": (
        "{% for a in range(n) %}{% for b in range(n) %}{% endfor %}{% endfor %}",
        "it takes over 10000000 steps of work",
    ),
    "internals": ("{{ to.__class__.__mro__ }}", "SecurityError"),
}


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_that_loops_or_reaches_for_internals_fails_its_message_alone(
    load: Load, aws: Aws, outbox: list[Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    source, reason = TEMPLATES[name]
    (tmp_path / name).mkdir()
    (tmp_path / name / "subject.txt").write_text("Hello")
    (tmp_path / name / "body.txt").write_text(source)
    monkeypatch.setenv("TEMPLATES", str(tmp_path))
    event = sqs_event(item(id="bad", text=..., subject=..., template=name, n=9000), item(id="good"))
    assert failures(load("send_mail")(event, lambda_context())) == []
    message = aws.item("bad")["error"]["message"]
    assert message.startswith(f"template: {name}/body.txt failed: ")
    assert reason in message
    assert len(outbox) == 1


def test_send_mail_sends_back_what_it_cannot_finish_and_names_it(
    load: Load, aws: Aws, outbox: list[Any]
) -> None:
    aws.put(LEDGER, id="held", event_type="mail", status="sending", startedAt=2**42, claim_token="another")
    event = sqs_event(item(id="held"), "not json", item(id="sent"))
    assert failures(load("send_mail")(event, lambda_context())) == ["r-0", "r-1"]
    assert len(outbox) == 1


def test_a_sender_that_nobody_verified_fails_no_message(
    load: Load, aws: Aws, outbox: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAIL_SENDERS", '["nobody@unverified.example"]')
    assert failures(load("send_mail")(sqs_event(item()), lambda_context())) == ["r-0"]
    assert "completedAt" not in aws.item()
    assert outbox == []


def test_without_time_left_send_mail_sends_everything_back_untouched(
    load: Load, aws: Aws, outbox: list[Any]
) -> None:
    event = sqs_event(item(id="a"), item(id="b"))
    assert failures(load("send_mail")(event, lambda_context(5_000))) == ["r-0", "r-1"]
    assert (aws.item("a"), aws.item("b"), outbox) == ({}, {}, [])


def test_a_replayed_stream_image_is_the_item_that_was_put(aws: Aws) -> None:
    aws.put(MAILBOX, **item(age=37))
    found = aws.dynamodb.get_item(TableName=MAILBOX, Key=image(id="m-1", event_type="mail"))["Item"]
    assert plain(found) == item(age=37)
