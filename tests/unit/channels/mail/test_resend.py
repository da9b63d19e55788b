"""The Resend adapter against a server that answers by a script."""

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest

from mailroom.channels.contracts import CONTRACTS
from mailroom.channels.mail.contract import Mail
from mailroom.channels.mail.resend import Request
from mailroom.content.payloads import Payloads
from mailroom.content.templates import Templates
from mailroom.errors import OutcomeUnknown
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
from tests.support.unit.publishing import publish
from tests.support.unit.resend import adapter
from tests.support.unit.scripted_server import Answer, Break, ScriptedServer, Silence, Step, closed, scripted
from tests.support.unit.shared import BUCKET, NOW, NOW_MS, SENDER, TEMPLATES, Aws, mail
from tests.support.unit.shelf import OURS
from tests.support.unit.unsubscribing import KEY, NEWER, TOPIC, URL, keys, tokens

ACCEPTED = Answer(200, {"id": "49a3999c-0ce1-4ea6-ab68-afcd6dc2e794"})
DAY = 86_400


def submitted(step: Step, message: Mail | None = None) -> tuple[Outcome, ScriptedServer]:
    with scripted(step) as server:
        sender = adapter(server.url)
        return sender.open().submit(sender.prepare(message or mail())), server


def refused(status: int, name: str, message: str = "no", **headers: str) -> Answer:
    return Answer(status, {"statusCode": status, "name": name, "message": message}, headers)


def test_a_mail_is_asked_for_once_with_all_that_matters() -> None:
    message = mail(
        to=["Ada <ada@example.com>"],
        cc="eve@example.com",
        reply_to="team@example.com",
        html="<p>Hi</p>",
        headers={"X-Team": "a"},
    )
    outcome, server = submitted(ACCEPTED, message)
    assert outcome == Sent("49a3999c-0ce1-4ea6-ab68-afcd6dc2e794", {"subject": "Hello"})
    (asked,) = server.requests
    assert (asked.method, asked.target) == ("POST", "/emails")
    assert asked.headers["authorization"] == "Bearer re_123"
    assert asked.headers["user-agent"] == "mailroom"  # without one Resend refuses
    assert asked.json == {
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


def test_attachments_go_as_their_bytes(aws: Aws) -> None:
    aws.s3.put_object(Bucket=BUCKET, Key="logo.png", Body=b"\x89PNG")
    attachment = {"ref": f"s3://{BUCKET}/logo.png", "content_id": "logo"}
    request = adapter(s3=aws.s3).prepare(with_attachments(attachment))
    (part,) = body(request)["attachments"]
    assert part == {
        "filename": "logo.png",
        "content_type": "image/png",
        "content": base64.b64encode(b"\x89PNG").decode(),
        "content_id": "logo",
    }


def with_attachments(*attachments: dict[str, str]) -> Mail:
    return parsed(subject="Hello", text="Hi", attachments=[*attachments])


def parsed(**content: Any) -> Mail:
    item = {"id": "m-1", "event_type": "mail", "to": "vincent@example.com", **content}
    message = parse(item, CONTRACTS)
    assert isinstance(message, Mail)
    return message


def body(request: Request) -> Any:
    return json.loads(request.body)


def test_a_key_is_of_one_attempt_of_one_message_of_one_stage() -> None:
    first, again = adapter().prepare(mail()), adapter().prepare(mail())
    assert first.key == again.key
    assert len(first.key) == 64
    others = [
        adapter().prepare(mail(attempt=2)),
        adapter().prepare(mail("m-2")),
        adapter(scope="another-stage").prepare(mail()),
    ]
    assert first.key not in {each.key for each in others}
    assert len({each.key for each in others}) == 3


def again(message: Mail, **settings: Any) -> Request:
    """The request that goes again after a crash, which began at NOW."""
    found = adapter(**settings).open().look_up(message, NOW_MS, ())
    assert isinstance(found, Repeatable)
    request = found.prepare(message)
    assert isinstance(request, Request)
    return request


def test_what_goes_again_is_the_same_to_the_byte(aws: Aws) -> None:
    aws.s3.put_object(Bucket=BUCKET, Key="a.pdf", Body=b"%PDF")
    message = with_attachments({"ref": f"s3://{BUCKET}/a.pdf"})
    first = adapter(s3=aws.s3).prepare(message)
    assert again(message, s3=aws.s3) == first


def test_what_goes_again_has_the_templates_version_of_its_first_try(aws: Aws) -> None:
    published = Templates(OURS, Payloads(aws.s3, TEMPLATES))
    publish(aws, 7, "seven")
    message = parsed(template="a", template_version=7)
    first = adapter(templates=published).prepare(message)
    publish(aws, 8, "eight")
    assert body(first)["text"] == "seven"
    assert again(message, templates=Templates(OURS, Payloads(aws.s3, TEMPLATES))) == first


def test_what_goes_again_carries_the_link_of_its_first_try_though_the_links_key_was_replaced() -> None:
    secrets, message = keys(KEY), mail(topic=TOPIC)
    first = adapter(secrets=secrets).prepare(message)
    secrets.rotate(f'{{"key": "{NEWER}", "previous": ["{KEY}"]}}', NOW + 60)
    assert adapter(secrets=secrets).prepare(message).body != first.body
    assert again(message, secrets=secrets) == first
    link = body(first)["headers"]["List-Unsubscribe"].strip("<>")
    assert tokens(NEWER, KEY).read(link.removeprefix(f"{URL}/")).topic == TOPIC


def test_a_request_may_go_again_for_a_quarter_of_an_hour_less_than_a_day() -> None:
    found = adapter().open().look_up(mail(), NOW_MS, ())
    assert isinstance(found, Repeatable)
    assert found.until == NOW + DAY - 900


def test_an_object_whose_attributes_come_in_another_order_is_the_same_request() -> None:
    one = mail(headers={"X-A": "1", "X-B": "2"})
    two = mail(headers={"X-B": "2", "X-A": "1"})
    assert adapter().prepare(one) == adapter().prepare(two)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (refused(400, "validation_error", "The `to` field is invalid."), Rejected),
        (refused(422, "missing_required_field", "Missing `subject`."), Rejected),
        (refused(422, "invalid_attachment"), Rejected),
        (
            refused(422, "validation_error", "Invalid `to` field. Use `email@…`."),
            Rejected,
        ),
        (refused(400, "validation_error", "API key is invalid"), Misconfigured),
        (refused(422, "validation_error", "Invalid `tags` field."), Misconfigured),
        (refused(422, "invalid_parameter", "Invalid `to` field."), Misconfigured),
        (refused(422, "a_new_one", "Invalid `to` field."), Misconfigured),
        (Answer(400, {"name": "", "message": ""}), Misconfigured),
        (refused(451, "security_error"), Misconfigured),
        (refused(422, "invalid_from_address", "Invalid `from` field."), Misconfigured),
        (refused(422, "validation_error", "Invalid `from` field."), Misconfigured),
        (refused(401, "missing_api_key"), Misconfigured),
        (refused(401, "restricted_api_key"), Misconfigured),
        (refused(403, "invalid_api_key"), Misconfigured),
        (refused(403, "validation_error", "The example.com domain is not verified."), Misconfigured),
        (refused(404, "not_found"), Misconfigured),
        (refused(400, "invalid_idempotency_key"), Misconfigured),
        (refused(429, "rate_limit_exceeded"), Retry),
        (refused(429, "daily_quota_exceeded"), DayUsedUp),
        (refused(429, "monthly_quota_exceeded"), DayUsedUp),
        (refused(409, "invalid_idempotent_request"), Conflict),
    ],
    ids=lambda value: getattr(value, "__name__", "") or f"{value.status}-{value.body['name']}",
)
def test_a_refusal_says_whose_fault_it_is(answer: Answer, kind: type) -> None:
    outcome, _ = submitted(answer)
    assert isinstance(outcome, kind)
    assert answer.body["message"] in outcome.reason  # type: ignore[union-attr] # no Sent


def test_a_rate_that_is_exceeded_waits_as_long_as_resend_asks() -> None:
    outcome, _ = submitted(refused(429, "rate_limit_exceeded", **{"retry-after": "3"}))
    assert isinstance(outcome, Retry)
    assert outcome.after == 3


def test_a_reason_quotes_no_address() -> None:
    outcome, _ = submitted(refused(422, "validation_error", "ada.lovelace@example.com is no address"))
    assert isinstance(outcome, Misconfigured)
    assert "ada.lovelace@" not in outcome.reason


@pytest.mark.parametrize(
    "step",
    [
        Silence,
        Break,
        lambda: refused(500, "application_error"),
        lambda: refused(409, "concurrent_idempotent_requests"),
        lambda: Answer(200, {}),
        lambda: Answer(200, b"<html>"),
        lambda: Answer(302, {}),
    ],
)
def test_what_is_no_clear_answer_leaves_the_outcome_unknown(step: Callable[[], Step]) -> None:
    with scripted(step()) as server:
        sender = adapter(server.url, seconds=0.5)
        with pytest.raises(OutcomeUnknown):
            sender.open().submit(sender.prepare(mail()))


def test_a_provider_that_cannot_be_reached_has_not_got_it() -> None:
    sender = adapter(closed())
    assert isinstance(sender.open().submit(sender.prepare(mail())), Retry)


def test_its_account_is_told_by_the_key_and_does_not_tell_the_key() -> None:
    assert adapter().open().account.startswith("resend/")
    assert "re_123" not in adapter().open().account
