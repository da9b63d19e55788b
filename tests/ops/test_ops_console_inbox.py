"""The console's inbox: what the simulators of the local stage accepted, by HTTP."""

import urllib.request
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from mailroom.aws.secret import CachedSecret
from mailroom.providers.webhooks.signing import Signer
from mailroom_local.aws import open_url
from mailroom_local.providers.http import SimulatorServer
from mailroom_local.providers.inbox import Accepted, InboxStore
from mailroom_local.providers.webhook_receiver import WebhookReceiver
from mailroom_ops.console.pages import inbox
from mailroom_ops.console.site import Request, Site
from mailroom_ops.shared.screen import Refused
from tests.support.local.served import served
from tests.support.ops.console import values_of
from tests.support.ops.shared import REGION
from tests.support.unit.webhooks import KEY

SECRET = "mailroom-local-webhook-keys"
LONG_AGO = 1_790_000_000.0


@pytest.fixture
def store() -> InboxStore:
    return InboxStore()


@pytest.fixture
def providers(store: InboxStore, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The simulators that the inbox reads."""
    with served(SimulatorServer(0, store.pages(), WebhookReceiver())) as url:
        monkeypatch.setenv("MAILROOM_PROVIDERS", url)
        yield url


@pytest.fixture
def site() -> Iterator[Site]:
    with mock_aws():
        session = boto3.Session(region_name=REGION)
        session.client("secretsmanager").create_secret(Name=SECRET, SecretString=KEY)
        yield Site(session, "local")


def inbox_values(site: Site, **query: str) -> dict[str, Any]:
    """The values of the page."""
    return values_of(inbox.show(site, Request(query)))


@pytest.mark.usefixtures("providers")
def test_a_channels_newest_messages_come_first_and_each_tab_shows_its_count(
    site: Site, store: InboxStore
) -> None:
    for at in range(inbox.LISTED + 3):
        store.add(Accepted("mail", "ada@example.com", f"m-{at}", {"subject": f"Mail {at}"}))
    store.add(Accepted("sms", "+16175551234", "s-1", {"text": "Hello"}))
    values = inbox_values(site)
    assert [each["provider_id"] for each in values["found"]] == [f"m-{at}" for at in range(52, 2, -1)]
    assert values["counts"] == {"mail": 53, "sms": 1, "webhook": 0}


@pytest.mark.usefixtures("providers")
def test_the_inbox_groups_texts_by_number_in_the_order_of_their_arrival(
    site: Site, store: InboxStore
) -> None:
    for number, text in (("+1", "one"), ("+2", "two"), ("+1", "three")):
        store.add(Accepted("sms", number, text, {"text": text}))
    groups = inbox_values(site, channel="sms")["found"]
    assert [(each.to, [text["provider_id"] for text in each.items]) for each in groups] == [
        ("+1", ["one", "three"]),
        ("+2", ["two"]),
    ]


def test_the_inbox_verifies_a_webhook_with_an_old_signature_but_not_with_that_of_another_body(
    site: Site, providers: str
) -> None:
    secret = CachedSecret(site.session.client("secretsmanager"), SECRET, lambda: LONG_AGO)
    signer = Signer(secret, 0, lambda: LONG_AGO)
    for webhook_id, body in (("msg_1", '{"order":42}'), ("msg_2", '{"order":43}')):
        headers = signer.headers("127.0.0.1", webhook_id, '{"order":42}')
        posted = urllib.request.Request(f"{providers}/receiver/ok", body.encode(), headers)
        open_url(posted, 5).close()
    found = {each.webhook_id: each.verified for each in inbox_values(site, channel="webhook")["found"]}
    assert found == {"msg_1": True, "msg_2": False}


def test_the_inbox_shows_the_tries_of_one_webhook_as_one_entry(site: Site, providers: str) -> None:
    for webhook_id in ("msg_1", "msg_2", "msg_1"):
        posted = urllib.request.Request(f"{providers}/receiver/ok", b"{}", {"webhook-id": webhook_id})
        open_url(posted, 5).close()
    found = inbox_values(site, channel="webhook")["found"]
    assert [(each.webhook_id, each.tries) for each in found] == [("msg_1", 2), ("msg_2", 1)]


WRONG_SIGNATURE = {"webhook-id": "m", "webhook-timestamp": "1790000000", "webhook-signature": "é v1, v2,x"}


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b"", {}),
        (b"\xff", {"webhook-id": "é", "webhook-timestamp": "9" * 30, "webhook-signature": "v1,x"}),
        *((body, WRONG_SIGNATURE) for body in (b"[" * 100_000, b'{"a": "\\ud800"}')),
        (b'{"fax_id": 1, "status": 2, "message": 3, "timestamp": null}', WRONG_SIGNATURE),
        (b'{"fax_id": "\\ud800", "status": 2, "message": 3, "timestamp": null}', WRONG_SIGNATURE),
    ],
)
def test_a_post_of_a_stranger_to_the_receiver_is_shown_as_not_verified(
    site: Site, providers: str, body: bytes, headers: dict[str, str]
) -> None:
    open_url(urllib.request.Request(f"{providers}/receiver/ok", body, headers, method="POST"), 5).close()
    (found,) = inbox_values(site, channel="webhook")["found"]
    assert not found.verified
    f"{found.url}{found.body}".encode()  # assets of the page


@pytest.mark.usefixtures("providers")
@pytest.mark.parametrize(
    ("payloads", "title"),
    [
        ({"APNS": {"aps": {"alert": {"title": "Hello"}}}}, "Hello"),
        ({"GCM": {"fcmV1Message": {"message": {"notification": {"title": "Hello"}}}}}, "Hello"),
        ({"GCM": {"fcmV1Message": {"message": {}}}, "default": "text"}, None),
        ({"APNS": {"aps": 5}}, None),
    ],
)
def test_a_push_is_shown_with_the_title_in_the_payload_of_its_platform(
    site: Site, store: InboxStore, payloads: dict[str, Any], title: str | None
) -> None:
    store.add(Accepted("push", "arn", "p-1", {"subject": "text", "payloads": payloads}))
    (found,) = inbox_values(site, channel="push")["found"]
    assert found["shown"].get("title") == title


def test_the_inbox_names_the_command_that_starts_the_local_stage_if_it_does_not_run(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MAILROOM_PROVIDERS", raising=False)
    with pytest.raises(Refused, match="mailroom up"):
        inbox_values(site)
