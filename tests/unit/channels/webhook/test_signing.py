"""Signatures of webhooks, verified like a receiver does."""

import base64
import time

import pytest
from standardwebhooks import Webhook as Receiver
from standardwebhooks import WebhookVerificationError

from mailroom.errors import InvalidSecret
from mailroom.providers.webhooks.signing import host_key
from tests.support.unit.shared import NOW, FakeClock
from tests.support.unit.webhooks import HOST, KEY, KEY_2, OVERLAP, Secrets, key_of, signer

BODY = '{"order":7,"name":"Zoë"}'


def accepts(key: str, headers: dict[str, str], body: str = BODY) -> bool:
    """Tell whether a receiver with `key` accepts the request. The key may begin with whsec_."""
    try:
        Receiver(key).verify(body.encode(), headers)
    except WebhookVerificationError:
        return False
    return True


def test_a_receiver_accepts_only_a_signature_made_with_the_key_of_the_receivers_host() -> None:
    real_time = FakeClock(time.time())  # the receiver's library compares with the real clock
    headers = signer(Secrets(), real_time).headers(HOST, "msg_1", BODY)
    own_key = key_of(HOST)
    assert accepts(own_key, headers)
    assert not accepts(own_key, headers, BODY.replace("7", "8"))
    assert not accepts(own_key, {**headers, "webhook-id": "msg_2"})
    assert not accepts(own_key, {**headers, "webhook-timestamp": str(int(real_time.now) + 1)})
    assert not accepts(key_of("other.example"), headers)
    assert not accepts(key_of(HOST, KEY_2), headers)
    assert not accepts(KEY, headers)  # no receiver has the secret itself


def test_the_signing_key_of_a_host_is_hmac_sha256_of_the_host_with_the_secret() -> None:
    """Compare with `openssl dgst -sha256 -mac HMAC`. Receivers keep their keys: the rule may never change."""
    assert host_key(KEY, HOST) == "whsec_4SgmNopsU6lAeaRnS9tKTsrFLuhMMexEaDfleRZJUEo=" == key_of(HOST)
    assert host_key(f" whsec_{KEY}\n", HOST) == key_of(HOST)


def test_the_signature_headers_follow_the_standard_webhooks_specification(clock: FakeClock) -> None:
    clock.now = NOW + 0.9999997  # rounded up, the signed time would differ from the header
    headers = signer(Secrets(), clock).headers(HOST, "msg_1", "{}")
    assert headers == {
        "webhook-id": "msg_1",
        "webhook-timestamp": str(int(NOW)),
        "webhook-signature": headers["webhook-signature"],
    }
    version, _, signature = headers["webhook-signature"].partition(",")
    assert (version, len(base64.b64decode(signature))) == ("v1", 32)


def test_during_the_overlap_of_two_keys_the_new_key_signs_first_and_the_old_key_second() -> None:
    real_time = FakeClock(time.time())
    secrets = Secrets(created=real_time.now - 9 * OVERLAP)
    secrets.rotate(f"whsec_{KEY_2}", real_time.now - OVERLAP + 60)
    headers = signer(secrets, real_time).headers(HOST, "msg_1", BODY)
    old, new = key_of(HOST), key_of(HOST, KEY_2)
    assert accepts(old, headers)
    assert accepts(new, headers)
    first, second = headers["webhook-signature"].split(" ")
    assert accepts(new, {**headers, "webhook-signature": first})
    assert accepts(old, {**headers, "webhook-signature": second})


def test_after_the_overlap_of_two_keys_only_the_new_key_signs_and_the_old_key_is_not_read() -> None:
    real_time = FakeClock(time.time())
    secrets = Secrets(created=0)
    secrets.rotate(KEY_2, real_time.now - OVERLAP - 1)
    headers = signer(secrets, real_time).headers(HOST, "msg_1", BODY)
    assert (accepts(key_of(HOST, KEY_2), headers), accepts(key_of(HOST), headers)) == (True, False)
    assert secrets.asked == ["AWSCURRENT"]


def test_a_warm_function_signs_with_a_new_key_within_a_minute_of_the_change(clock: FakeClock) -> None:
    secrets = Secrets()
    signs = signer(secrets, clock)
    before = signs.headers(HOST, "msg_1", BODY)["webhook-signature"]
    secrets.rotate(KEY_2, clock.now)
    assert signs.headers(HOST, "msg_1", BODY)["webhook-signature"] == before
    clock.advance(60)
    assert len(signs.headers(HOST, "msg_1", BODY)["webhook-signature"].split(" ")) == 2


def test_a_webhook_has_one_signature_if_the_signing_key_was_never_replaced(clock: FakeClock) -> None:
    headers = signer(Secrets(created=clock.now), clock).headers(HOST, "msg_1", BODY)
    assert len(headers["webhook-signature"].split(" ")) == 1


def encoded(length: int) -> str:
    return base64.b64encode(bytes(range(length))).decode()


@pytest.mark.parametrize(
    "value", [KEY, f"whsec_{KEY}", f" {KEY}\n", encoded(24), encoded(64), encoded(32).rstrip("=")]
)
def test_a_signing_key_is_base64_of_24_to_64_bytes(clock: FakeClock, value: str) -> None:
    assert signer(Secrets(value), clock).headers(HOST, "msg_1", BODY)


@pytest.mark.parametrize(
    "value",
    [
        *("", "whsec_", "not base64!", '{"key": "x"}', "é" * 44, "A" * 33),
        *(encoded(23), encoded(65), KEY.replace("M", "-")),
    ],
)
def test_the_reason_of_an_invalid_signing_key_does_not_quote_the_key(clock: FakeClock, value: str) -> None:
    with pytest.raises(InvalidSecret) as caught:
        signer(Secrets(value), clock).headers(HOST, "msg_1", BODY)
    assert str(caught.value) == (
        "the signing secret is not a key; use base64 of 24 to 64 random bytes, with or without whsec_ "
        "(for example the output of `openssl rand -base64 32`)"
    )


def test_only_the_new_key_signs_if_the_old_value_is_not_a_valid_key(clock: FakeClock) -> None:
    secrets = Secrets("a placeholder")
    secrets.rotate(KEY, clock.now)
    headers = signer(secrets, clock).headers(HOST, "msg_1", BODY)
    assert len(headers["webhook-signature"].split(" ")) == 1
    assert headers == signer(Secrets(KEY), clock).headers(HOST, "msg_1", BODY)
