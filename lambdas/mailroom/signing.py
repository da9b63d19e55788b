"""Signatures by the Standard Webhooks convention; https://www.standardwebhooks.com."""

import base64
import binascii
from datetime import UTC, datetime

from standardwebhooks import Webhook as Signature

from mailroom.clock import Clock
from mailroom.secret import Secret

KEY_BYTES = range(24, 65)
_PREFIX = "whsec_"


class UnusableKey(ValueError):
    """The secret is no signing key; the sentence says what to put there, and nothing of what is there."""


class Signer:
    """Signs with the current key, and for `overlap` seconds after a new one was put with the one before too,
    so that receivers can change over in their own time."""

    def __init__(self, secret: Secret, overlap: float, clock: Clock) -> None:
        self._secret = secret
        self._overlap = overlap
        self._clock = clock

    def headers(self, webhook_id: str, body: str) -> dict[str, str]:
        """The three headers that let a receiver verify `body`. Raises UnusableKey, or what reading the
        secret raised."""
        now = self._clock()
        second = int(now)  # cut here once: what is signed is what the header says
        moment = datetime.fromtimestamp(second, UTC)
        signatures = [Signature(key).sign(webhook_id, moment, body) for key in self._keys(now)]
        return {
            "webhook-id": webhook_id,
            "webhook-timestamp": str(second),
            "webhook-signature": " ".join(signatures),
        }

    def _keys(self, now: float) -> list[bytes]:
        current = self._secret.current()
        keys = [_key(current.text)]
        if now - current.created < self._overlap:
            previous = self._secret.previous()
            # One that is no key has never signed anything, so no receiver misses it.
            if previous is not None and _is_key(previous.text):
                keys.append(_key(previous.text))
        return keys


def _is_key(text: str) -> bool:
    try:
        _key(text)
    except UnusableKey:
        return False
    return True


def _key(text: str) -> bytes:
    bare = text.strip().removeprefix(_PREFIX).rstrip("=")
    try:
        key = base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) not in KEY_BYTES:
        raise UnusableKey(
            "the signing secret is no key; put base64 of 24 to 64 random bytes there, with or without whsec_ "
            "(for example what `openssl rand -base64 32` prints)"
        )
    return key
