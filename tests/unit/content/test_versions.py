"""Which versions of templates count, and how messages are bound to them."""

from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from mailroom.channels.contracts import CONTRACTS
from mailroom.channels.mail.contract import Mail
from mailroom.channels.mail.rendering import MailRenderer
from mailroom.content.payloads import Payloads
from mailroom.content.templates import Templates
from mailroom.content.versions import FRESH_SECONDS, CurrentVersions, unbound
from mailroom.ledger.items import about_of
from mailroom.message.message import parse
from tests.support.unit.dispatching import dispatcher_of, numbered
from tests.support.unit.publishing import choose, publish
from tests.support.unit.shared import BUCKET, TEMPLATES, Aws, FakeClock
from tests.support.unit.shelf import Shelf


def bare_item(**more: Any) -> dict[str, Any]:
    return {"id": "m-1", "event_type": "mail", "to": "ada@example.com", **more}


@pytest.fixture
def versions(aws: Aws, clock: FakeClock) -> CurrentVersions:
    return CurrentVersions(aws.s3, TEMPLATES, clock)


def test_every_message_has_the_deployed_template_if_no_version_was_published(
    versions: CurrentVersions,
) -> None:
    assert versions.of("mail") == {}
    given = bare_item(template="welcome")
    assert versions.bound(parse(given, CONTRACTS), given) == {**given, "template_version": 0}


def test_a_new_template_version_becomes_current_when_the_cached_version_expires(
    aws: Aws, clock: FakeClock, versions: CurrentVersions
) -> None:
    choose(aws, welcome=7)
    assert versions.of("mail") == {"welcome": 7}
    choose(aws, welcome=8)
    clock.advance(FRESH_SECONDS - 1)
    assert versions.of("mail") == {"welcome": 7}
    clock.advance(1)
    assert versions.of("mail") == {"welcome": 8}
    assert versions.of("sms") == {}


class Unreachable:
    """S3 that stops responding at some moment."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.exceptions = client.exceptions
        self.gone = False

    def get_object(self, **request: Any) -> Any:
        if self.gone:
            raise ClientError({"Error": {"Code": "SlowDown", "Message": ""}}, "GetObject")
        return self._client.get_object(**request)


def test_the_last_known_template_versions_remain_current_during_an_outage_of_s3(
    aws: Aws, clock: FakeClock
) -> None:
    choose(aws, welcome=7)
    s3: Any = Unreachable(aws.s3)
    versions = CurrentVersions(s3, TEMPLATES, clock)
    assert versions.of("mail") == {"welcome": 7}
    s3.gone = True
    clock.advance(FRESH_SECONDS)
    assert versions.of("mail") == {"welcome": 7}
    with pytest.raises(ClientError, match="SlowDown"):
        CurrentVersions(s3, TEMPLATES, clock).of("mail")


@pytest.mark.parametrize(
    "given",
    [
        bare_item(subject="Hi", text="Hi"),
        bare_item(payload_ref="s3://b/k"),
        bare_item(template="welcome", template_version=3),
        {"id": "m", "event_type": "push", "to": "token", "platform": "android", "title": "Hi"},
    ],
)
def test_a_message_without_a_template_or_with_a_version_is_not_bound_to_the_current_version(
    given: dict[str, Any],
) -> None:
    assert unbound(parse(given, CONTRACTS)) is None


def test_a_mail_without_a_template_and_content_is_bound_to_the_default_template() -> None:
    assert unbound(parse(bare_item(), CONTRACTS)) == "default"


def test_dispatch_queues_a_message_with_the_current_version_of_its_template(
    aws: Aws, clock: FakeClock
) -> None:
    choose(aws, welcome=7)
    dispatcher = dispatcher_of(aws, clock, versions=CurrentVersions(aws.s3, TEMPLATES, clock))
    assert not dispatcher.dispatch(numbered(bare_item(template="welcome")))
    (body,) = aws.bodies()
    assert body["template_version"] == 7
    message = parse(body, CONTRACTS)
    assert message.headline == {"template": "welcome", "template_version": 7}


def test_a_waiting_message_gets_the_template_version_that_is_current_at_its_send_at(
    aws: Aws, clock: FakeClock
) -> None:
    choose(aws, welcome=7)
    dispatcher = dispatcher_of(aws, clock, versions=CurrentVersions(aws.s3, TEMPLATES, clock))
    waiting = bare_item(template="welcome", send_at="2026-11-21T12:00:00Z")
    dispatcher.dispatch(numbered(waiting))
    assert aws.bodies() == []
    choose(aws, welcome=8)
    clock.advance(3 * 3600)
    dispatcher.dispatch(numbered(waiting))
    assert [each["template_version"] for each in aws.bodies()] == [8]


def test_a_message_is_not_dispatched_if_the_version_of_its_template_cannot_be_read(
    aws: Aws, clock: FakeClock
) -> None:
    s3: Any = Unreachable(aws.s3)
    s3.gone = True
    dispatcher = dispatcher_of(aws, clock, versions=CurrentVersions(s3, TEMPLATES, clock))
    plain = bare_item(id="m-2", subject="Hi", text="Hi")
    assert dispatcher.dispatch(numbered(bare_item(template="welcome"), plain)) == {"100"}
    assert [each["id"] for each in aws.bodies()] == ["m-2"]


def test_the_ledger_contains_the_version_of_published_templates_only() -> None:

    assert about_of(parse(bare_item(template="a", template_version=7), CONTRACTS))["template_version"] == {
        "N": "7"
    }
    assert "template_version" not in about_of(parse(bare_item(template="a", template_version=0), CONTRACTS))


def test_every_try_of_a_queued_message_has_the_same_text_despite_later_publications(
    aws: Aws, clock: FakeClock, tmp_path: Path
) -> None:
    Shelf(tmp_path / "mail").put("a", subject="Deployed", text="deployed")
    for number, text in ((1, "one"), (2, "two")):
        publish(aws, number, text)
    choose(aws, a=1)
    dispatcher = dispatcher_of(aws, clock, versions=CurrentVersions(aws.s3, TEMPLATES, clock))
    dispatcher.dispatch(numbered(bare_item(template="a")))
    (body,) = aws.bodies()
    message = parse(body, CONTRACTS)
    assert isinstance(message, Mail)
    for counts in (1, 2, 0):  # states: deployed, published, and rolled back to the deployed template
        choose(aws, a=counts)
        clock.advance(FRESH_SECONDS)
        renderer = MailRenderer(
            Templates(tmp_path / "mail", Payloads(aws.s3, TEMPLATES)),
            Payloads(aws.s3, BUCKET),
            senders=["us@example.com"],
            max_attachment_bytes=0,
        )
        assert renderer.render(message).content.text == "one"
