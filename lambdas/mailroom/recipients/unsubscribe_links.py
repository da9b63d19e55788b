"""Links by which a recipient opts out of a topic. The signature over recipient and topic replaces a log-in.

A link never expires: links in old mails have to work as well, and a link only permits the choice about one
address and one topic.
"""

import hashlib
from functools import lru_cache
from typing import Annotated, Any

import msgspec
from itsdangerous import BadData, BadSignature, Signer, URLSafeSerializer
from itsdangerous.encoding import base64_decode, base64_encode, want_bytes
from msgspec import Meta, Struct

from mailroom.aws.secret import CachedSecret
from mailroom.errors import InvalidSecret, Malformed

MAX_TOKEN = 800
"""Characters of a token. An address of 254 and a topic of 64 take at most 736, in any language."""
MAX_LINK = 993
"""Characters of a link: SES accepts header values of 995, and the link is in angle brackets there."""
RENEW_SECONDS = 5
"""Shortest time between two reads of the secret for wrong signatures, so that forged ones cost no calls."""

ONE_CLICK = "List-Unsubscribe=One-Click"
"""Value of the header `List-Unsubscribe-Post`, and body of a mail program's request (RFC 8058)."""

_SALT = b"mailroom.unsubscribe"
"""Salt of the signatures, not a module to rename: links in old mails are signed with this text."""
_SIGNING: dict[str, Any] = {"key_derivation": "hmac", "digest_method": hashlib.sha256}
_SHAPE = '{"key": "<random>", "previous": ["<an older key>"]}, where "previous" may be left out'

_Key = Annotated[str, Meta(min_length=16)]


class Choice(Struct, frozen=True):
    """Content of a link."""

    recipient: str
    """Recipient in the canonical form: see `Message.addressees`."""
    topic: str
    """Topic to opt out of."""


class _Keys(Struct, frozen=True):
    key: _Key
    previous: list[_Key] = []


class Tokens(Struct, frozen=True):
    """Tokens signed with the secret's `key`. Tokens signed with a key in `previous` are valid too, so that
    links in old mails survive a new key. After a wrong signature the secret is read again."""

    secret: CachedSecret

    def sign(self, choice: Choice, signed_at: float | None = None) -> str:
        """Return the choice as signed text for a URL's path. With `signed_at` (epoch seconds), use the key of
        that time, if the secret has changed at most once since. Raises InvalidSecret and botocore's
        errors."""
        version = self.secret.current()
        if signed_at is not None and version.created > signed_at:
            version = self.secret.previous() or version
        return _serializer_of(version.text).dumps([choice.recipient, choice.topic])

    def read(self, token: str) -> Choice:
        """Return the choice in a signed token.

        Raises Malformed for any other text, without details; InvalidSecret and botocore's errors if the
        token cannot be checked.
        """
        if len(token) > MAX_TOKEN or not token.isascii():
            raise Malformed("no token of ours")
        try:
            return _choice(self._content(token))
        except BadData:
            raise Malformed("no token of ours") from None

    def _content(self, token: str) -> Any:
        try:
            return _serializer_of(self.secret.current().text).loads(token)
        except BadSignature:  # perhaps signed with a new key that this process has not read yet
            return _serializer_of(self.secret.current(RENEW_SECONDS).text).loads(token)


class Links:
    """Links below `base_url`, the address of the page for opting out."""

    def __init__(self, secret: CachedSecret, base_url: str) -> None:
        """Raises ValueError for a `base_url` whose links would be too long for a header."""
        self._base = base_url.rstrip("/")
        self._tokens = Tokens(secret)
        if len(self._base) + 1 + MAX_TOKEN > MAX_LINK:
            raise ValueError(f"the URL for opting out has {len(self._base)} characters; use a shorter one")

    def url(self, recipient: str, topic: str, signed_at: float | None = None) -> str:
        """Return the link of one recipient and topic; see `Tokens.sign` for `signed_at`. Raises
        InvalidSecret and botocore's errors."""
        return f"{self._base}/{self._tokens.sign(Choice(recipient, topic), signed_at)}"


def _choice(content: Any) -> Choice:
    match content:
        case [str(recipient), str(topic)] if recipient and topic:
            return Choice(recipient, topic)
    raise Malformed("signed, but no choice")


@lru_cache(maxsize=4)  # by the secret's text, which changes with the key
def _serializer_of(text: str) -> URLSafeSerializer:
    try:
        keys = msgspec.json.decode(text, type=_Keys)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        keys = None  # raised below, outside this block: msgspec's error may quote the secret
    if keys is None:
        raise InvalidSecret(f"the secret of the links for opting out is not {_SHAPE}; put a long key there")
    return URLSafeSerializer(
        [*keys.previous, keys.key], salt=_SALT, signer=_OneSpelling, signer_kwargs=_SIGNING
    )


class _OneSpelling(Signer):
    """Signer that accepts only one spelling of a signature. Base64 has four last characters for the same 32
    bytes, and Python's decoder skips unknown characters, so a changed link would open like the right one."""

    def verify_signature(self, value: str | bytes, sig: str | bytes) -> bool:
        return super().verify_signature(value, sig) and base64_encode(base64_decode(sig)) == want_bytes(sig)
