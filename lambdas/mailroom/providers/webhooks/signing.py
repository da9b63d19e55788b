"""Signatures of webhooks by the Standard Webhooks specification (https://www.standardwebhooks.com).

The signing key of each host is derived from the stage's secret. So a receiver cannot sign webhooks for other
receivers, and cannot compute the secret from the key.
"""

import base64
import binascii
import hmac
from contextlib import suppress
from datetime import UTC, datetime

from msgspec import Struct
from standardwebhooks import Webhook as Signature

from mailroom.aws.secret import CachedSecret
from mailroom.clock import Clock
from mailroom.errors import InvalidSecret

KEY_BYTES = range(24, 65)
_PREFIX = "whsec_"
_LABEL = b"mailroom webhook key\0"
"""Prefix of the text from which a host's key is derived. The text of a signed webhook begins with the
webhook-id, which contains neither a space nor NUL. So even a signature made with the stage's secret itself
can never equal the key of a host."""


class Signer(Struct, frozen=True):
    """Signs webhooks with the key of the receiving host."""

    secret: CachedSecret
    overlap: float
    """Seconds after a change of the secret in which webhooks are signed with the previous secret too, so that
    receivers have time to change their keys."""
    clock: Clock

    def headers(self, host: str, webhook_id: str, body: str) -> dict[str, str]:
        """Return the three headers with which receivers at `host` verify the webhook. Raises InvalidSecret,
        or botocore's errors if the secret cannot be read."""
        timestamp = self.clock()
        # The time is rounded down, because the header and the signed text must contain the same whole second.
        second = int(timestamp)
        moment = datetime.fromtimestamp(second, UTC)
        keys = [_derived(key, host) for key in self._in_use(timestamp)]
        signatures = [Signature(key).sign(webhook_id, moment, body) for key in keys]
        return {
            "webhook-id": webhook_id,
            "webhook-timestamp": str(second),
            "webhook-signature": " ".join(signatures),
        }

    def _in_use(self, timestamp: float) -> list[bytes]:
        current = self.secret.current()
        keys = [_key(current.text)]
        if timestamp - current.created < self.overlap and (previous := self.secret.previous()) is not None:
            # An invalid previous secret is left out: webhooks cannot have been signed with it, so receivers
            # do not expect its signature.
            with suppress(InvalidSecret):
                keys.append(_key(previous.text))
        return keys


def host_key(secret: str, host: str) -> str:
    """Return the key with which receivers at `host` verify webhooks, in the format of the specification
    (whsec_ and base64). `host` has the form that `UrlPolicy.read` returns. Raises InvalidSecret."""
    return _PREFIX + base64.b64encode(_derived(_key(secret), host)).decode()


def _derived(key: bytes, host: str) -> bytes:
    return hmac.digest(key, _LABEL + host.encode(), "sha256")


def _key(text: str) -> bytes:
    digits = text.strip().removeprefix(_PREFIX).rstrip("=")
    try:
        key = base64.b64decode(digits + "=" * (-len(digits) % 4), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) not in KEY_BYTES:
        raise InvalidSecret(
            "the signing secret is not a key; use base64 of 24 to 64 random bytes, with or without whsec_ "
            "(for example the output of `openssl rand -base64 32`)"
        )
    return key
