"""The Resend adapter and a server that responds by a script."""

import base64
import json
from typing import Any

import pytest

from mailroom.channels.contracts import CONTRACTS
from mailroom.channels.mail.contract import Mail
from mailroom.content.payloads import Payloads
from mailroom.content.templates import Templates
from mailroom.message.message import Reference, encoded, parse
from mailroom.message.outcome import (
    Conflict,
    DayUsedUp,
    Misconfigured,
    Outcome,
    Rejected,
    Repeatable,
    Retry,
    Sent,
)
from mailroom.providers.resend.sender import Request
from mailroom.telemetry import masked
from tests.support.unit.publishing import publish
from tests.support.unit.resend_mail import resend_adapter
from tests.support.unit.scripted_server import Answer, ScriptedServer, Step, scripted
from tests.support.unit.shared import BUCKET, NOW, NOW_MS, SENDER, TEMPLATES, Aws, mail
from tests.support.unit.shelf import OURS
from tests.support.unit.unsubscribing import KEY, NEWER, TOPIC, URL, secrets_with_key, tokens

ACCEPTED = Answer(200, {"id": "49a3999c-0ce1-4ea6-ab68-afcd6dc2e794"})
DAY = 86_400


def submit_to_resend(step: Step, message: Mail | None = None) -> tuple[Outcome, ScriptedServer]:
    with scripted(step) as server:
        sender = resend_adapter(server.url)
        return sender.open().submit(sender.prepare(message or mail())), server


def resend_refusal(status: int, name: str, message: str = "no", **headers: str) -> Answer:
    return Answer(status, {"statusCode": status, "name": name, "message": message}, headers)


def test_a_mail_is_submitted_to_the_provider_resend_in_one_complete_request() -> None:
    message = mail(
        to=["Ada <ada@example.com>"],
        cc="eve@example.com",
        reply_to="team@example.com",
        html="<p>Hi</p>",
        headers={"X-Team": "a"},
    )
    outcome, server = submit_to_resend(ACCEPTED, message)
    assert outcome == Sent("49a3999c-0ce1-4ea6-ab68-afcd6dc2e794", {"subject": "Hello"})
    (call,) = server.requests
    assert (call.method, call.target) == ("POST", "/emails")
    assert call.headers["authorization"] == "Bearer re_123"
    assert call.headers["user-agent"] == "mailroom"  # without one Resend refuses
    assert call.json == {
        "from": SENDER,
        "to": ["Ada <ada@example.com>"],
        "cc": ["eve@example.com"],
        "reply_to": ["team@example.com"],
        "subject": "Hello",
        "html": "<p>Hi</p>",
        "text": "Hi",
        "headers": {"X-Correlation-ID": Reference("m-1").text, "X-Team": "a"},
        "tags": [
            {"name": "correlation", "value": encoded("m-1")},
            {"name": "attempt", "value": "1"},
            {"name": "event_type", "value": "mail"},
            {"name": "several", "value": "true"},
        ],
    }


def test_a_request_to_the_provider_resend_contains_the_bytes_of_attachments(aws: Aws) -> None:
    aws.s3.put_object(Bucket=BUCKET, Key="logo.png", Body=b"\x89PNG")
    attachment = {"ref": f"s3://{BUCKET}/logo.png", "content_id": "logo"}
    request = resend_adapter(s3=aws.s3).prepare(with_attachments(attachment))
    (part,) = body(request)["attachments"]
    assert part == {
        "filename": "logo.png",
        "content": base64.b64encode(b"\x89PNG").decode(),
        "content_id": "logo",
    }


@pytest.mark.parametrize(
    ("filename", "kind", "sent"),
    [
        ("data.csv", None, None),
        ("data.csv", "text/csv", None),
        ("data.txt", "text/csv", None),
        ("invoice.pdf", "application/octet-stream", None),
        ("invoice", "application/pdf", None),
        ("data.custom", "text/x-custom", None),
        ("invite.ics", "text/calendar; method=REQUEST", "text/calendar; method=REQUEST"),
        ("invite.ICS", "TEXT/Calendar ;method=REQUEST", "TEXT/Calendar ;method=REQUEST"),
        ("invite.txt", "text/calendar; method=REQUEST", None),
        ("report.csv.gz", "text/csv; charset=utf-8", None),
    ],
)
def test_the_provider_resend_gets_an_attachments_type_only_if_it_has_parameters_and_fits_the_name(
    aws: Aws, filename: str, kind: str | None, sent: str | None
) -> None:
    aws.s3.put_object(Bucket=BUCKET, Key="a", Body=b"a")
    attachment = {"ref": f"s3://{BUCKET}/a", "filename": filename, **({"content_type": kind} if kind else {})}
    (part,) = body(resend_adapter(s3=aws.s3).prepare(with_attachments(attachment)))["attachments"]
    assert (part["filename"], part.get("content_type")) == (filename, sent)


def with_attachments(*attachments: dict[str, str]) -> Mail:
    return parsed(subject="Hello", text="Hi", attachments=[*attachments])


def parsed(**content: Any) -> Mail:
    item = {"id": "m-1", "event_type": "mail", "to": "vincent@example.com", **content}
    message = parse(item, CONTRACTS)
    assert isinstance(message, Mail)
    return message


def body(request: Request) -> Any:
    return json.loads(request.body)


def test_each_attempt_of_each_message_of_each_stage_has_a_different_idempotency_key() -> None:
    key = resend_adapter().prepare(mail()).key
    assert (resend_adapter().prepare(mail()).key, len(key)) == (key, 64)
    requests = [
        resend_adapter().prepare(mail(attempt=2)),
        resend_adapter().prepare(mail("m-2")),
        resend_adapter(scope="another-stage").prepare(mail()),
    ]
    assert len({key, *(request.key for request in requests)}) == 4


def repeated_request(message: Mail, **settings: Any) -> Request:
    """Return the request that is repeated after a crash. The first one was made at NOW."""
    evidence = resend_adapter(**settings).open().look_up(message, NOW_MS, ())
    assert isinstance(evidence, Repeatable)
    request = evidence.prepare(message)
    assert isinstance(request, Request)
    return request


def test_a_repeated_request_to_the_provider_resend_is_identical_to_the_first_request(aws: Aws) -> None:
    aws.s3.put_object(Bucket=BUCKET, Key="a.pdf", Body=b"%PDF")
    message = with_attachments({"ref": f"s3://{BUCKET}/a.pdf"})
    first = resend_adapter(s3=aws.s3).prepare(message)
    assert repeated_request(message, s3=aws.s3) == first


def test_a_repeated_request_to_the_provider_resend_uses_the_template_version_of_the_first_try(
    aws: Aws,
) -> None:
    published = Templates(OURS, Payloads(aws.s3, TEMPLATES))
    publish(aws, 7, "seven")
    message = parsed(template="a", template_version=7)
    first = resend_adapter(templates=published).prepare(message)
    publish(aws, 8, "eight")
    assert body(first)["text"] == "seven"
    assert repeated_request(message, templates=Templates(OURS, Payloads(aws.s3, TEMPLATES))) == first


def test_a_repeated_request_keeps_the_unsubscribe_link_of_the_first_try_after_a_link_key_change() -> None:
    secrets, message = secrets_with_key(KEY), mail(topic=TOPIC)
    first = resend_adapter(secrets=secrets).prepare(message)
    secrets.rotate(f'{{"key": "{NEWER}", "previous": ["{KEY}"]}}', NOW + 60)
    assert resend_adapter(secrets=secrets).prepare(message).body != first.body
    assert repeated_request(message, secrets=secrets) == first
    link = body(first)["headers"]["List-Unsubscribe"].strip("<>")
    assert tokens(NEWER, KEY).read(link.removeprefix(f"{URL}/")).topic == TOPIC


def test_a_request_to_the_provider_resend_may_be_repeated_for_23_hours_and_45_minutes() -> None:
    evidence = resend_adapter().open().look_up(mail(), NOW_MS, ())
    assert isinstance(evidence, Repeatable)
    assert evidence.until == NOW + DAY - 900


def test_the_order_of_a_mails_headers_does_not_change_the_request_to_the_provider_resend() -> None:
    message, reordered = (mail(headers={f"X-{name}": name for name in names}) for names in ("ab", "ba"))
    assert resend_adapter().prepare(message) == resend_adapter().prepare(reordered)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (resend_refusal(400, "validation_error", "The `to` field is invalid."), Rejected),
        (resend_refusal(422, "missing_required_field", "Missing `subject`."), Rejected),
        (resend_refusal(422, "invalid_attachment"), Rejected),
        (resend_refusal(422, "validation_error", "Invalid `to` field. Use `email@…`."), Rejected),
        (resend_refusal(400, "validation_error", "API key is invalid"), Misconfigured),
        (resend_refusal(422, "validation_error", "Invalid `tags` field."), Misconfigured),
        (resend_refusal(422, "invalid_parameter", "Invalid `to` field."), Misconfigured),
        (resend_refusal(422, "a_new_one", "Invalid `to` field."), Misconfigured),
        (resend_refusal(451, "security_error"), Misconfigured),
        (resend_refusal(422, "invalid_from_address", "Invalid `from` field."), Misconfigured),
        (resend_refusal(422, "validation_error", "Invalid `from` field."), Misconfigured),
        (resend_refusal(401, "missing_api_key"), Misconfigured),
        (resend_refusal(401, "restricted_api_key"), Misconfigured),
        (resend_refusal(403, "invalid_api_key"), Misconfigured),
        (resend_refusal(403, "validation_error", "The example.com domain is not verified."), Misconfigured),
        (
            resend_refusal(
                403,
                "validation_error",
                "You can only send testing emails to your own email address (ada@example.com).",
            ),
            Rejected,
        ),
        (resend_refusal(404, "not_found"), Misconfigured),
        (resend_refusal(400, "invalid_idempotency_key"), Misconfigured),
        (resend_refusal(429, "rate_limit_exceeded"), Retry),
        (resend_refusal(429, "daily_quota_exceeded"), DayUsedUp),
        (resend_refusal(429, "monthly_quota_exceeded"), DayUsedUp),
        (resend_refusal(409, "invalid_idempotent_request"), Conflict),
    ],
    ids=lambda value: getattr(value, "__name__", "") or f"{value.status}-{value.body['name']}",
)
def test_each_refusal_by_the_provider_resend_becomes_the_outcome_that_its_name_and_message_mean(
    answer: Answer, kind: type
) -> None:
    outcome, _ = submit_to_resend(answer)
    assert isinstance(outcome, kind)
    assert masked(answer.body["message"]) in outcome.reason  # type: ignore[union-attr] # no Sent


def test_the_account_name_of_the_provider_resend_does_not_contain_the_api_key() -> None:
    assert resend_adapter().open().account.startswith("resend/")
    assert "re_123" not in resend_adapter().open().account
