"""Signatures by the Standard Webhooks convention; https://www.standardwebhooks.com.

Each host has a key of its own, derived from the stage's secret: what one receiver knows signs nothing that
another receiver believes, and nobody can work back from a host's key to the secret.
"""

import base64
import binascii
import hmac
from contextlib import suppress
from datetime import UTC, datetime

from msgspec import Struct
from standardwebhooks import Webhook as Signature

from mailroom.aws.secret import Secret
from mailroom.clock import Clock

KEY_BYTES = range(24, 65)
_PREFIX = "whsec_"
_LABEL = b"mailroom webhook key\0"
"""Stands before the host. What is signed begins with a webhook-id, which has neither space nor NUL: so no
signature under the same secret is ever a host's key."""


class UnusableKey(ValueError):
    """The secret is no signing key; the sentence says what to put there, and nothing of what is there."""


class StageKey(Struct, frozen=True):
    """The one key that all receivers of a stage shared before each host had its own. It signs as well until
    `until` (epoch seconds), for receivers that have not changed over."""

    secret: Secret
    until: float


class Signer:
    """Signs with the key of the host that is sent to. For `overlap` seconds after a new secret was put, the
    key derived from the secret before signs too, so that receivers can change over in their own time."""

    def __init__(
        self, secret: Secret, overlap: float, clock: Clock, stage_key: StageKey | None = None
    ) -> None:
        self._secret = secret
        self._overlap = overlap
        self._clock = clock
        self._stage_key = stage_key

    def headers(self, host: str, webhook_id: str, body: str) -> dict[str, str]:
        """The three headers that let the receivers of `host` verify `body`. Raises UnusableKey, or what
        reading a secret raised."""
        now = self._clock()
        second = int(now)  # cut here once: what is signed is what the header says
        moment = datetime.fromtimestamp(second, UTC)
        signatures = [Signature(key).sign(webhook_id, moment, body) for key in self._keys(host, now)]
        return {
            "webhook-id": webhook_id,
            "webhook-timestamp": str(second),
            "webhook-signature": " ".join(signatures),
        }

    def _keys(self, host: str, now: float) -> list[bytes]:
        keys = [_derived(each, host) for each in self._in_use(self._secret, now)]
        if self._stage_key is not None and now < self._stage_key.until:
            keys += self._in_use(self._stage_key.secret, now)
        return keys

    def _in_use(self, secret: Secret, now: float) -> list[bytes]:
        current = secret.current()
        keys = [_key(current.text)]
        if now - current.created < self._overlap:
            previous = secret.previous()
            # One that is no key has never signed anything, so no receiver misses it.
            with suppress(UnusableKey):
                keys += [_key(previous.text)] if previous is not None else []
        return keys


def host_key(secret: str, host: str) -> str:
    """The key that the receivers of `host` verify with, as libraries of the convention take it. `host` is
    spelt as `UrlPolicy.read` spells it. Raises UnusableKey."""
    return _PREFIX + base64.b64encode(_derived(_key(secret), host)).decode()


def _derived(key: bytes, host: str) -> bytes:
    return hmac.digest(key, _LABEL + host.encode(), "sha256")


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
