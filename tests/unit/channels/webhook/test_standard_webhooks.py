"""The webhook adapter: its requests, and the outcomes of their responses."""

import socket
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from standardwebhooks import Webhook as Signature

from mailroom.channels.webhook.contract import Post
from mailroom.errors import ConnectError, RequestFailed
from mailroom.http.https import Answer, HttpClient
from mailroom.http.url_policy import UrlPolicy
from mailroom.message.outcome import Misconfigured, NotFound, Outcome, Rejected, Retry, Sent
from mailroom.providers.webhooks.sender import StandardWebhooks
from tests.support.unit.loopback import serving, status
from tests.support.unit.shared import FakeClock
from tests.support.unit.webhooks import (
    DENIED,
    DOWN,
    THROTTLED,
    Secrets,
    Wire,
    key_of,
    signer,
    standard_webhooks,
    webhook,
)

ID = "msg_8a09f7e2ca1c4a36ed0ed4e0b0a5fe24"


def outcome_at_receiver(clock: FakeClock, answer: int | Answer | RequestFailed) -> Outcome:
    webhooks = standard_webhooks(Wire(answer), clock)
    return webhooks.submit(webhooks.prepare(webhook()))


def test_a_payload_is_sent_as_compact_json_with_a_signature_and_the_webhook_id(clock: FakeClock) -> None:
    wire = Wire(200)
    webhooks = standard_webhooks(wire, clock)
    payload = {"order": 7, "price": Decimal("1.10"), "name": "Zoë", "none": None}
    outcome = webhooks.submit(webhooks.prepare(webhook(payload=payload)))
    ((target, headers, body),) = wire.posts
    assert body.decode() == '{"order":7,"price":1.10,"name":"Zoë","none":null}'
    assert (target.host, target.path_and_query) == ("hooks.example", "/orders?token=t")
    assert target.addresses == ("8.8.8.8",)
    assert headers == {
        "Content-Type": "application/json",
        "User-Agent": "mailroom-webhook",
        "Accept": "*/*",
        **signer(Secrets(), clock).headers("hooks.example", headers["webhook-id"], body.decode()),
    }
    assert outcome == Sent(headers["webhook-id"])


def test_the_same_payload_gets_a_different_signature_for_each_host(clock: FakeClock) -> None:
    wire = Wire(200)
    webhooks = standard_webhooks(wire, clock)
    for host in ("one.example", "two.example"):
        webhooks.submit(Post(f"https://{host}/", ID, "{}"))
    first, second = ({*headers["webhook-signature"].split(" ")} for _, headers, _ in wire.posts)
    assert not first & second


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://HOOKS.Example/", "hooks.example"),
        ("https://hooks.example:8443/other?path=1", "hooks.example"),
        ("https://xn--bcher-kva.example/", "xn--bcher-kva.example"),
        ("https://8.8.8.8/", "8.8.8.8"),
        ("https://[2001:4860:4860:0::8888]/", "2001:4860:4860::8888"),
    ],
)
def test_all_spellings_and_ports_of_a_host_share_a_signing_key(clock: FakeClock, url: str, host: str) -> None:
    wire = Wire(200)
    policy = UrlPolicy(ports=(443, 8443), resolve=lambda _host, _seconds: ["8.8.8.8"])
    assert isinstance(standard_webhooks(wire, clock, policy=policy).submit(Post(url, ID, "{}")), Sent)
    ((_, headers, _),) = wire.posts
    signed = Signature(key_of(host)).sign(ID, datetime.fromtimestamp(int(clock.now), UTC), "{}")
    assert headers["webhook-signature"] == signed


def test_all_tries_of_a_message_have_one_webhook_id_and_other_messages_have_different_ids(
    clock: FakeClock,
) -> None:
    webhooks = standard_webhooks(Wire(200), clock)
    changes: list[dict[str, Any]] = [{}, {"payload": 1}, {"id": "w-2"}]
    ids = [webhooks.prepare(webhook(**attributes)).webhook_id for attributes in changes]
    assert ids[0] == ids[1] != ids[2]
    assert all(len(id_) == 36 and id_.startswith("msg_") for id_ in ids)


@pytest.mark.parametrize("code", [200, 201, 202, 204, 299])
def test_a_response_with_status_2xx_is_a_success(clock: FakeClock, code: int) -> None:
    assert isinstance(outcome_at_receiver(clock, code), Sent)


def test_a_response_with_status_410_ends_the_message_without_retry(clock: FakeClock) -> None:
    assert outcome_at_receiver(clock, 410) == Rejected("hooks.example answered 410 Gone")


@pytest.mark.parametrize("code", [103, 301, 302, 307, 400, 401, 404, 408, 409, 413, 429, 500, 503, 599])
def test_a_webhook_is_retried_after_a_response_with_a_status_other_than_2xx_or_410(
    clock: FakeClock, code: int
) -> None:
    assert outcome_at_receiver(clock, code) == Retry(f"hooks.example answered {code}")


@pytest.mark.parametrize(
    ("retry_after", "wait"), [(0, 0), (90, 90), (3600, 3600), (3601, 3600), (999_999_999, 3600)]
)
def test_the_retry_after_header_delays_the_next_try_by_an_hour_at_most(
    clock: FakeClock, retry_after: int, wait: float
) -> None:
    answer = Answer(503, {"retry-after": str(retry_after)})
    assert outcome_at_receiver(clock, answer) == Retry("hooks.example answered 503", wait)


def test_a_webhook_without_a_response_is_retried(clock: FakeClock) -> None:
    assert outcome_at_receiver(clock, RequestFailed("did not answer in time")) == Retry(
        "hooks.example did not answer in time"
    )


def test_a_webhook_to_a_host_that_does_not_resolve_is_retried(clock: FakeClock) -> None:
    def resolve(host: str, seconds: float) -> list[str]:
        raise ConnectError(f"cannot be reached: the name {host} does not resolve")

    webhooks = standard_webhooks(Wire(200), clock, policy=UrlPolicy(resolve=resolve))
    outcome = webhooks.submit(webhooks.prepare(webhook()))
    assert outcome == Retry("hooks.example cannot be reached: the name hooks.example does not resolve")


def test_a_look_up_of_a_webhook_always_returns_not_found(clock: FakeClock) -> None:
    assert standard_webhooks(Wire(200), clock).look_up(webhook(), 0, ()) == NotFound()


@pytest.mark.parametrize(
    ("trouble", "kind"),
    [(DENIED, Misconfigured), (THROTTLED, Retry), (DOWN, Retry), (None, Misconfigured)],
    ids=["denied", "throttled", "down", "no key"],
)
def test_a_webhook_is_not_sent_if_the_signing_key_cannot_be_read(
    clock: FakeClock, trouble: Exception | None, kind: type[Any]
) -> None:
    wire, secrets = Wire(200), Secrets("changeme")
    secrets.trouble = trouble
    webhooks = standard_webhooks(wire, clock, secrets)
    outcome = webhooks.submit(webhooks.prepare(webhook()))
    assert isinstance(outcome, kind)
    assert "changeme" not in str(outcome)
    assert wire.posts == []


def unused(*arguments: Any) -> Any:
    raise AssertionError(f"a use of the network: {arguments}")


def under(clock: FakeClock, policy: UrlPolicy) -> StandardWebhooks:
    """Return an adapter whose connections fail the test."""
    return standard_webhooks(HttpClient(connect=unused), clock, policy=policy)


@pytest.mark.parametrize(
    "url",
    [
        "http://hooks.example/",
        "https://user:password@hooks.example/",
        "https://hooks.example:22/",
        "https://127.0.0.1/",
        "https://[::ffff:169.254.169.254]/",
        "",
    ],
)
def test_a_webhook_to_a_forbidden_url_is_rejected_without_network_access(clock: FakeClock, url: str) -> None:
    outcome = under(clock, UrlPolicy(resolve=unused)).submit(Post(url, ID, "{}"))
    assert isinstance(outcome, Rejected)
    assert outcome.reason.startswith("url: ")


@pytest.mark.parametrize("addresses", [["127.0.0.1"], ["169.254.169.254"], ["8.8.8.8", "192.168.0.1"]])
def test_a_host_that_resolves_to_a_private_address_is_rejected_without_a_connection(
    clock: FakeClock, addresses: list[str]
) -> None:
    policy = UrlPolicy(resolve=lambda _host, _seconds: addresses)
    assert isinstance(under(clock, policy).submit(Post("https://a.example/", ID, "{}")), Rejected)


def test_the_request_goes_to_the_checked_ip_address_even_if_the_host_resolves_differently_later(
    clock: FakeClock,
) -> None:
    addresses = [["8.8.8.8"], ["127.0.0.1"]]
    connected: list[tuple[str, int]] = []

    def connect(address: tuple[str, int], _seconds: float) -> socket.socket:
        connected.append(address)
        raise ConnectionRefusedError(111, "Connection refused")

    policy = UrlPolicy(resolve=lambda _host, _seconds: addresses.pop(0))
    outcome = standard_webhooks(HttpClient(connect=connect), clock, policy=policy).submit(
        Post("https://a.example/", ID, "{}")
    )
    assert outcome == Retry("a.example cannot be reached: Connection refused")
    assert (connected, addresses) == ([("8.8.8.8", 443)], [["127.0.0.1"]])


def test_a_redirect_response_to_a_webhook_is_not_followed(clock: FakeClock) -> None:
    policy = UrlPolicy(schemes=["http"], ports=[], networks=["127.0.0.0/8"])
    with (
        serving(status(200)) as inner,
        serving(status(302, f"Location: http://127.0.0.1:{inner.port}/")) as server,
    ):
        webhooks = standard_webhooks(HttpClient(), clock, policy=policy)
        outcome = webhooks.exchange(Post(f"http://127.0.0.1:{server.port}/a", ID, "{}"))
    assert (outcome.outcome, outcome.status) == (Retry("127.0.0.1 answered 302"), 302)
    assert inner.requests == []
