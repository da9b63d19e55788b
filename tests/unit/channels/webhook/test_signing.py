"""Signatures, as a receiver verifies them."""

import base64
import time

import pytest
from standardwebhooks import Webhook as Receiver
from standardwebhooks import WebhookVerificationError

from mailroom.channels.webhook.standard_webhooks import host_key
from mailroom.errors import InvalidSecret
from tests.support.unit.shared import NOW, FakeClock
from tests.support.unit.webhooks import HOST, KEY, KEY_2, OVERLAP, Secrets, key_of, signer

BODY = '{"order":7,"name":"Zoë"}'


def accepts(key: str, headers: dict[str, str], body: str = BODY) -> bool:
    """Whether a receiver with `key` takes it; the library takes a key with whsec_ or without."""
    try:
        Receiver(key).verify(body.encode(), headers)
    except WebhookVerificationError:
        return False
    return True


def test_a_receiver_with_its_hosts_key_accepts_and_any_other_does_not() -> None:
    now = FakeClock(time.time())  # the package's own verification asks the real clock
    headers = signer(Secrets(), now).headers(HOST, "msg_1", BODY)
    mine = key_of(HOST)
    assert accepts(mine, headers)
    assert not accepts(mine, headers, BODY.replace("7", "8"))
    assert not accepts(mine, {**headers, "webhook-id": "msg_2"})
    assert not accepts(mine, {**headers, "webhook-timestamp": str(int(now.now) + 1)})
    assert not accepts(key_of("other.example"), headers)
    assert not accepts(key_of(HOST, KEY_2), headers)
    assert not accepts(KEY, headers)  # nobody is given it


def test_a_hosts_key_is_hmac_sha256_of_the_host_under_the_secret() -> None:
    """As `openssl dgst -sha256 -mac HMAC` has it. A receiver keeps its key, so the rule may never change."""
    assert host_key(KEY, HOST) == "whsec_4SgmNopsU6lAeaRnS9tKTsrFLuhMMexEaDfleRZJUEo=" == key_of(HOST)
    assert host_key(f" whsec_{KEY}\n", HOST) == key_of(HOST)


def test_the_headers_are_the_conventions(clock: FakeClock) -> None:
    clock.now = NOW + 0.9999997  # a second is cut, not rounded: what is signed is what is said
    headers = signer(Secrets(), clock).headers(HOST, "msg_1", "{}")
    assert headers == {
        "webhook-id": "msg_1",
        "webhook-timestamp": str(int(NOW)),
        "webhook-signature": headers["webhook-signature"],
    }
    version, _, signature = headers["webhook-signature"].partition(",")
    assert (version, len(base64.b64decode(signature))) == ("v1", 32)


def test_during_the_overlap_the_keys_of_both_secrets_sign_the_new_one_first() -> None:
    now = FakeClock(time.time())
    secrets = Secrets(created=now.now - 9 * OVERLAP)
    secrets.rotate(f"whsec_{KEY_2}", now.now - OVERLAP + 60)
    headers = signer(secrets, now).headers(HOST, "msg_1", BODY)
    old, new = key_of(HOST), key_of(HOST, KEY_2)
    assert accepts(old, headers)
    assert accepts(new, headers)
    first, second = headers["webhook-signature"].split(" ")
    assert accepts(new, {**headers, "webhook-signature": first})
    assert accepts(old, {**headers, "webhook-signature": second})


def test_after_the_overlap_the_old_key_signs_no_more_and_is_not_asked_for() -> None:
    now = FakeClock(time.time())
    secrets = Secrets(created=0)
    secrets.rotate(KEY_2, now.now - OVERLAP - 1)
    headers = signer(secrets, now).headers(HOST, "msg_1", BODY)
    assert (accepts(key_of(HOST, KEY_2), headers), accepts(key_of(HOST), headers)) == (True, False)
    assert secrets.asked == ["AWSCURRENT"]


def test_a_new_key_signs_within_a_minute_of_a_warm_function(clock: FakeClock) -> None:
    secrets = Secrets()
    signs = signer(secrets, clock)
    before = signs.headers(HOST, "msg_1", BODY)["webhook-signature"]
    secrets.rotate(KEY_2, clock.now)
    assert signs.headers(HOST, "msg_1", BODY)["webhook-signature"] == before
    clock.advance(60)
    assert len(signs.headers(HOST, "msg_1", BODY)["webhook-signature"].split(" ")) == 2


def test_a_first_key_signs_alone(clock: FakeClock) -> None:
    headers = signer(Secrets(created=clock.now), clock).headers(HOST, "msg_1", BODY)
    assert len(headers["webhook-signature"].split(" ")) == 1


def encoded(length: int) -> str:
    return base64.b64encode(bytes(range(length))).decode()


@pytest.mark.parametrize(
    "value", [KEY, f"whsec_{KEY}", f" {KEY}\n", encoded(24), encoded(64), encoded(32).rstrip("=")]
)
def test_a_key_is_base64_of_24_to_64_bytes(clock: FakeClock, value: str) -> None:
    assert signer(Secrets(value), clock).headers(HOST, "msg_1", BODY)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "whsec_",
        encoded(23),
        encoded(65),
        "not base64!",
        '{"key": "x"}',
        KEY.replace("M", "-"),
        "é" * 44,
        "A" * 33,
    ],
)
def test_what_is_no_key_is_refused_with_what_to_put_and_without_what_is_there(
    clock: FakeClock, value: str
) -> None:
    with pytest.raises(InvalidSecret) as refusal:
        signer(Secrets(value), clock).headers(HOST, "msg_1", BODY)
    assert str(refusal.value) == (
        "the signing secret is no key; put base64 of 24 to 64 random bytes there, with or without whsec_ "
        "(for example what `openssl rand -base64 32` prints)"
    )


def test_an_old_value_that_was_no_key_does_not_keep_the_new_one_from_signing(clock: FakeClock) -> None:
    secrets = Secrets("a placeholder")
    secrets.rotate(KEY, clock.now)
    headers = signer(secrets, clock).headers(HOST, "msg_1", BODY)
    assert len(headers["webhook-signature"].split(" ")) == 1
