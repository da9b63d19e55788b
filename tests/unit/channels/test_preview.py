"""Previews of messages by the rules of a stage's senders, before the messages are put."""

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from botocore.exceptions import ClientError

from mailroom.channels.contracts import CONTRACTS
from mailroom.channels.preview import Preview, Previews
from mailroom.content.payloads import Payloads
from mailroom.content.versions import CurrentVersions
from mailroom.errors import Invalid
from mailroom.message.message import Message, parse
from tests.support.unit.publishing import choose, publish
from tests.support.unit.shared import BUCKET, TEMPLATES, Aws
from tests.support.unit.shelf import Shelf


def message_of(channel: str = "mail", **attributes: Any) -> Message:
    to = {"mail": "ada@example.com", "sms": "+16175551234", "fax": "+16175551234"}.get(channel, "token")
    return parse({"id": "m", "event_type": channel, "to": to, **attributes}, CONTRACTS)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    Shelf(tmp_path / "mail").put("a", subject="Hello {{ name }}", html="<p>{{ name }}</p>", text="Hi")
    (tmp_path / "sms" / "code").mkdir(parents=True)
    (tmp_path / "sms" / "code" / "body.txt").write_text("Your code: {{ code }}")
    return tmp_path


def previews(root: Path, **changes: Any) -> Previews:
    settings = {"mail_senders": ["Us <us@example.com>"], "fax_senders": ["+12025550123"], "bucket": BUCKET}
    return Previews(root, **{**settings, **changes})


def test_the_preview_of_a_mail_has_the_headers_and_parts_of_a_request_to_ses(root: Path) -> None:
    preview = previews(root).look(message_of(template="a", name="Ada", topic="news", shoe=7))
    assert preview == Preview(
        headers={
            "From": "Us <us@example.com>",
            "To": "ada@example.com",
            "Subject": "Hello Ada",
            "X-Correlation-ID": "bQ",
            "List-Unsubscribe": "<https://example.com/unsubscribe/made-up>",
            "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
        },
        subject="Hello Ada",
        html="<p>Ada</p>",
        text="Hi",
        unused=["shoe"],
    )


class Telegram(Message, frozen=True, kw_only=True):
    """A message of an own channel."""

    to: str
    text: str = ""

    @property
    def recipient(self) -> str:
        return self.to


def test_the_preview_of_a_message_of_a_custom_channel_shows_its_text(root: Path) -> None:
    telegram = Telegram(id="t", event_type="telegram", to="42", text="The build is green.")
    assert previews(root).look(telegram) == Preview(text="The build is green.")
    fax = message_of("fax", pdf_url="https://files.example/f.pdf")
    assert previews(root).look(fax).text is None


@pytest.mark.parametrize("status", [404, 403, 503])
def test_a_preview_refuses_a_message_only_if_s3_proves_that_its_object_is_missing(
    root: Path, aws: Aws, status: int
) -> None:
    error = ClientError({"ResponseMetadata": {"HTTPStatusCode": status}, "Error": {}}, "HeadObject")  # type: ignore[typeddict-item]
    s3 = SimpleNamespace(exceptions=aws.s3.exceptions, head_object=Mock(side_effect=error))
    mail = message_of(subject="Hi", text="Hi", attachments=[{"ref": f"s3://{BUCKET}/a.png"}])
    with pytest.raises(Invalid) if status == 404 else nullcontext():
        previews(root, s3=s3).look(mail)


def test_the_preview_lists_attachments_without_reading_their_objects(root: Path) -> None:
    attachment = {"ref": f"s3://{BUCKET}/a/logo.png", "content_id": "logo"}
    preview = previews(root).look(
        message_of(subject="Hi", html="<img src='cid:logo'>", attachments=[attachment])
    )
    assert preview.attachments == ["logo.png"]


def test_a_preview_shows_a_texts_segments_and_a_pushs_text_but_not_a_webhooks_payload(root: Path) -> None:
    text = previews(root).look(message_of("sms", template="code", code="4711"))
    assert (text.text, text.segments, text.encoding) == ("Your code: 4711", 1, "GSM-7")
    text = previews(root).look(message_of("sms", text="Hello,\r\nit\u2019s " + "a" * 70))
    assert text.text == "Hello,\nit\u2019s " + "a" * 70
    assert text.encoding_reason.startswith("'\u2019' (U+2019) makes this text UCS-2")
    push = previews(root).look(message_of("push", platform="ios", title="Hi", body="There", shoe=7))
    assert (push.subject, push.text, push.unused) == ("Hi", "There", ["shoe"])
    assert previews(root).look(message_of("webhook", url="https://a.example", payload=1)) == Preview(
        unused=["to"]
    )


INVALID = [
    ({"template": "b"}, "template: 'b' is unknown; use one of: a"),
    ({"template": "a", "from": "eve@example.com", "name": "x"}, "from: is not among this stage's senders"),
    (
        {"template": "a", "name": "x", "replyTo": "x"},
        "replyTo: is not used here; did you mean `reply_to`?",
    ),
    (
        {"template": "a", "name": "x", "attachments": [{"ref": "s3://other/a"}]},
        "attachments[0].ref: 's3://other/a'",
    ),
    ({"template": "a", "template_version": 3}, "template_version: is set, but this stage does not"),
]
INVALID_RENDERED = [
    ({"template": "a"}, "name: is missing; a/subject.txt:1 uses it"),
    ({"subject": "Hi", "html": "<img src=cid:logo>"}, "attachments: the HTML refers to cid:logo"),
]


@pytest.mark.parametrize(("attributes", "sentence"), INVALID)
def test_a_preview_and_a_check_reject_an_invalid_item_with_the_error_of_the_send_function(
    root: Path, attributes: dict[str, Any], sentence: str
) -> None:
    for preview in (previews(root).look, previews(root).check):
        with pytest.raises(Invalid) as caught:
            preview(message_of(**attributes))
        assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize(("attributes", "sentence"), INVALID_RENDERED)
def test_an_error_in_rendered_content_is_found_by_a_preview_but_not_by_a_check(
    root: Path, attributes: dict[str, Any], sentence: str
) -> None:
    previews(root).check(message_of(**attributes))
    with pytest.raises(Invalid) as caught:
        previews(root).look(message_of(**attributes))
    assert str(caught.value).startswith(sentence)


def test_the_check_of_a_fax_requires_a_sender_that_is_a_number_of_the_stage(root: Path) -> None:
    fax = message_of("fax", pdf_url="https://a.example/a.pdf", **{"from": "+12025550199"})
    with pytest.raises(Invalid, match="from: is not among this stage's fax numbers; use one of"):
        previews(root).check(fax)


def test_a_preview_does_not_check_the_sender_if_the_stages_senders_are_unknown(root: Path) -> None:
    preview = previews(root, mail_senders=(), fax_senders=()).look(
        message_of(template="a", name="Ada", **{"from": "eve@example.com"})
    )
    assert preview.headers["From"] == "eve@example.com"
    previews(root, fax_senders=()).check(message_of("fax", pdf_url="https://a.example/a.pdf"))


def test_the_preview_of_a_message_with_a_payload_reference_checks_only_the_reference(root: Path) -> None:
    assert previews(root).look(message_of(payload_ref=f"s3://{BUCKET}/x", sendAt="x")) == Preview()
    with pytest.raises(Invalid, match="payload_ref: 's3://elsewhere/x' is outside the payload bucket"):
        previews(root).look(message_of(payload_ref="s3://elsewhere/x"))


def test_a_preview_does_not_report_unused_attributes_of_a_message_with_a_payload_reference(
    root: Path,
) -> None:
    with_payload = message_of(payload_ref=f"s3://{BUCKET}/x", name="Ada", shoe=7)
    assert previews(root).unused(with_payload) == []


def test_the_check_of_a_strict_stage_refuses_an_item_with_unused_attributes(root: Path) -> None:
    with pytest.raises(Invalid, match=r"shoe: is not used, and `items.unknown` refuses unused attributes"):
        previews(root, strict=True).check(message_of(template="a", name="Ada", shoe=7))


def test_the_current_template_version_is_rendered_unless_the_item_names_another(aws: Aws, root: Path) -> None:
    for number, text in ((1, "one"), (2, "two")):
        publish(aws, number, text)
    choose(aws, a=2)
    bucket = Payloads(aws.s3, TEMPLATES)
    stage = previews(root, published=bucket, versions=CurrentVersions(aws.s3, TEMPLATES))
    assert stage.look(message_of(template="a")).text == "two"
    assert stage.look(message_of(template="a", template_version=1)).text == "one"
    assert stage.look(message_of(template="a", template_version=0, name="x")).text == "Hi"


def test_the_preview_of_a_text_with_media_neither_counts_nor_limits_its_segments(root: Path) -> None:
    media = ["https://a.example/a.png"]
    assert previews(root).look(message_of("sms", media_urls=media)).segments == 0
    previews(root).look(message_of("sms", text="ы" * 1500, media_urls=media))
    with pytest.raises(Invalid, match="text: takes 23 segments in UCS-2; use at most 10"):
        previews(root).look(message_of("sms", text="ы" * 1500))


def test_a_preview_accepts_any_bucket_in_a_reference_if_the_stages_bucket_is_unknown(root: Path) -> None:
    attachment = {"ref": "s3://anywhere/logo.png", "content_id": "logo"}
    mail = message_of(subject="Hi", html="<img src='cid:logo'>", attachments=[attachment])
    assert previews(root, bucket="").look(mail).attachments == ["logo.png"]
