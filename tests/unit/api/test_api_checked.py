"""Checks of the API before it takes a message: the same as those of its sender, in the same words."""

from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.support.unit.api_requests import Api
from tests.support.unit.publishing import choose, publish
from tests.support.unit.shared import BUCKET, MAILBOX, TEMPLATES, Aws, FakeClock
from tests.support.unit.shelf import Shelf


def mail_of_template(id_: str = "m", **more: Any) -> dict[str, Any]:
    return {"id": id_, "event_type": "mail", "to": "ada@example.com", "template": "a", **more}


@pytest.fixture
def checked_api(aws: Aws, clock: FakeClock, tmp_path: Path) -> Api:
    Shelf(tmp_path / "mail").put("a", subject="Hello {{ name }}", text="Hi")
    return Api(clock, templates=str(tmp_path), mail_senders=["us@example.com"])


def test_the_response_to_a_single_message_names_its_unused_attributes(checked_api: Api) -> None:
    answer = checked_api.post(mail_of_template(name="Ada", shoe=7))
    assert answer.status == 202
    assert answer.json["unused"] == ["shoe"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, "name: is missing; a/subject.txt:1 uses it, so the message must have it"),
        ({"template": "b"}, "template: 'b' is unknown; use one of: a"),
        ({"name": "x", "sendAt": "now"}, "sendAt: is not used here; did you mean `send_at`?"),
        (
            {"name": "x", "from": "eve@example.com"},
            "from: is not among this stage's senders; use one of us@ex",
        ),
        ({"name": "x", "attachments": [{"ref": "s3://b/k"}]}, "attachments[0].ref: 's3://b/k' is outside"),
    ],
)
def test_the_api_refuses_a_single_message_that_its_sending_function_would_refuse(
    checked_api: Api, aws: Aws, more: dict[str, Any], said: str
) -> None:
    answer = checked_api.post(mail_of_template(**more))
    assert answer.status == 422
    assert answer.json["detail"].startswith(said)
    assert aws.item("m", "mail", MAILBOX) == {}


def test_a_push_for_an_unknown_platform_application_is_refused(clock: FakeClock) -> None:
    api = Api(clock, lanes={"push": ["normal"]}, push_applications=["ios"])
    answer = api.post({"id": "p", "event_type": "push", "to": "token", "title": "T", "platform": "android"})
    assert (answer.status, answer.json["detail"]) == (422, "platform: 'android' is unknown; use ios")


def test_an_attachment_whose_object_is_missing_is_refused(checked_api: Api, aws: Aws) -> None:
    ref = f"s3://{BUCKET}/invoices/42.pdf"
    answer = checked_api.post(mail_of_template(name="Ada", attachments=[{"ref": ref}]))
    problem = f"attachments[0].ref: {ref!r} does not exist; put the object before the message"
    assert (answer.status, answer.json["detail"]) == (422, problem)
    aws.s3.put_object(Bucket=BUCKET, Key="invoices/42.pdf", Body=b"%PDF")
    assert checked_api.post(mail_of_template(name="Ada", attachments=[{"ref": ref}])).status == 202


def test_a_mail_without_content_is_refused_and_the_error_names_the_missing_attributes(
    checked_api: Api,
) -> None:
    answer = checked_api.post({"id": "m", "event_type": "mail", "to": "ada@example.com"})
    needed = "set subject and text or html, or use a template"
    problem = f"template: is missing, and so is other content; {needed}: a"
    assert (answer.status, answer.json["detail"]) == (422, problem)


@pytest.mark.parametrize(
    ("send_at", "in_utc"),
    [("2026-11-22T09:00", "2026-11-22T09:00:00.000Z"), ("2026-11-22T09:00:00+01:00", None)],
)
def test_the_response_contains_send_at_in_utc_only_if_send_at_has_no_offset(
    checked_api: Api, send_at: str, in_utc: str | None
) -> None:
    assert checked_api.post(mail_of_template(name="Ada", send_at=send_at)).json.get("send_at") == in_utc
    several = {"messages": [mail_of_template("m-1", send_at=send_at), mail_of_template("m-2")]}
    assert [each.get("send_at") for each in checked_api.post(several).json["messages"]] == [in_utc, None]


def test_a_list_of_messages_is_accepted_except_those_with_an_unknown_template_or_attribute(
    checked_api: Api,
) -> None:
    entries = [
        mail_of_template("m-1"),
        mail_of_template("m-2", template="b"),
        mail_of_template("m-3", replyTo="x"),
    ]
    answer = checked_api.post({"messages": entries})
    found = answer.json["messages"]
    # The variable of the first is missing, which its sender will find.
    assert [each["result"] for each in found] == ["accepted", "refused", "refused"]


def test_the_from_address_of_a_mail_with_a_payload_is_checked(checked_api: Api) -> None:
    payload = f"s3://{BUCKET}/x"
    assert checked_api.post(mail_of_template(payload_ref=payload)).status == 202
    answer = checked_api.post(mail_of_template("m-2", payload_ref=payload, **{"from": "eve@example.com"}))
    assert answer.fields == ["from"]


def test_a_message_is_checked_against_the_published_version_of_its_template(
    aws: Aws, clock: FakeClock, tmp_path: Path
) -> None:
    api = Api(clock, templates=str(tmp_path), mail_senders=["us@example.com"], templates_bucket=TEMPLATES)
    publish(aws, 3, "{{ city }}")
    choose(aws, a=3)
    assert "city: is missing" in api.post(mail_of_template()).text
    assert api.post(mail_of_template(city="Rome")).status == 202


def test_a_message_is_accepted_unchecked_if_the_versions_of_templates_cannot_be_read(
    aws: Aws, clock: FakeClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = Api(clock, templates=str(tmp_path), mail_senders=["us@example.com"], templates_bucket=TEMPLATES)

    def refuse(*_: Any) -> None:
        raise ClientError({"Error": {"Code": "SlowDown", "Message": ""}}, "GetObject")

    monkeypatch.setattr("mailroom.content.versions.CurrentVersions.of", refuse)
    assert api.post(mail_of_template()).status == 202  # the message is accepted without the variable


def test_a_message_with_an_unused_attribute_is_refused_if_the_stage_refuses_unused_attributes(
    clock: FakeClock, aws: Aws
) -> None:
    api = Api(clock, unknown="refuse")
    push = {"id": "p", "event_type": "push", "to": "t", "platform": "ios", "title": "Hi", "shoe": 7}
    assert "shoe: is not used, and `items.unknown` refuses unused attributes" in api.post(push).text
