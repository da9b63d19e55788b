"""Links by which a recipient opts out of a topic: who and what stands in them, signed; nobody has to log in.

They never expire: the link in a mail of years ago has to work as well, and all that one can do with it is to
choose for one address and one topic.
"""

import hashlib
from functools import lru_cache
from typing import Annotated, Any

import msgspec
from itsdangerous import BadData, BadSignature, Signer, URLSafeSerializer
from itsdangerous.encoding import base64_decode, base64_encode, want_bytes
from msgspec import Meta, Struct

from mailroom.aws.secret import CachedSecret
from mailroom.errors import Malformed

MAX_TOKEN = 800
"""Characters. An address of 254 and a topic of 64 take at most 736, in whatever language."""
MAX_LINK = 993
"""Characters: SES takes 995 of a header's value, and the link stands there in angle brackets."""
RENEW_SECONDS = 5
"""A wrong signature has the secret read anew no oftener than that, so that forged ones cost nothing."""

ONE_CLICK = "List-Unsubscribe=One-Click"
"""What a mail promises that a mail program may post (RFC 8058)."""

_SALT = b"mailroom.unsubscribe"
"""No module's name, though it looks like one: links in mails of years ago are signed with it."""
_SIGNING: dict[str, Any] = {"key_derivation": "hmac", "digest_method": hashlib.sha256}
_SHAPE = '{"key": "<random>", "previous": ["<an older key>"]}, where "previous" may be left out'

_Key = Annotated[str, Meta(min_length=16)]


class InvalidSigningKey(RuntimeError):
    """The secret is there, but not in the form that signing needs."""


class Choice(Struct, frozen=True):
    """What a link is about: a recipient in the one form that the tables know, and a topic."""

    recipient: str
    topic: str


class _Keys(Struct, frozen=True):
    key: _Key
    previous: list[_Key] = []


class Tokens:
    """Signs with the secret's `key`, and takes what was signed with any of `previous` too: a new key does not
    make the links of old mails worthless. For a signature that is wrong the secret is read anew."""

    def __init__(self, secret: CachedSecret) -> None:
        self._secret = secret

    def sign(self, choice: Choice, at: float | None = None) -> str:
        """The choice as text for a URL's path: as it was signed at `at` (epoch seconds; None: now), if the
        secret has changed once since then. Raises InvalidSigningKey and botocore's errors."""
        version = self._secret.current()
        if at is not None and version.created > at:
            version = self._secret.previous() or version
        return _serializer_of(version.text).dumps([choice.recipient, choice.topic])

    def read(self, token: str) -> Choice:
        """The choice that somebody with the key has signed.

        Raises Malformed for anything else, which tells nothing; InvalidSigningKey and botocore's errors where
        the token cannot be checked.
        """
        if len(token) > MAX_TOKEN or not token.isascii():
            raise Malformed("no token of ours")
        try:
            return _choice(self._said(token))
        except BadData:
            raise Malformed("no token of ours") from None

    def _said(self, token: str) -> Any:
        try:
            return _serializer_of(self._secret.current().text).loads(token)
        except BadSignature:  # or one by a key that was put there a moment ago
            return _serializer_of(self._secret.current(RENEW_SECONDS).text).loads(token)


class Links:
    """Links below `base_url`, which says where the page is."""

    def __init__(self, secret: CachedSecret, base_url: str) -> None:
        """Raises ValueError where the links would be longer than a header may be."""
        self._base = base_url.rstrip("/")
        self._tokens = Tokens(secret)
        if len(self._base) + 1 + MAX_TOKEN > MAX_LINK:
            raise ValueError(f"the URL for opting out has {len(self._base)} characters; use a shorter one")

    def url(self, recipient: str, topic: str, at: float | None = None) -> str:
        """The link of one recipient and topic; `at`: see `Tokens.sign`. Raises InvalidSigningKey and
        botocore's errors."""
        return f"{self._base}/{self._tokens.sign(Choice(recipient, topic), at)}"


def _choice(said: Any) -> Choice:
    match said:
        case [str(recipient), str(topic)] if recipient and topic:
            return Choice(recipient, topic)
    raise Malformed("signed, but no choice")


@lru_cache(maxsize=4)  # a secret's text changes when its key does
def _serializer_of(text: str) -> URLSafeSerializer:
    try:
        keys = msgspec.json.decode(text, type=_Keys)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        keys = None  # its words may quote the secret
    if keys is None:
        raise InvalidSigningKey(
            f"the secret of the links for opting out is not {_SHAPE}; put a long key there"
        )
    return URLSafeSerializer(
        [*keys.previous, keys.key], salt=_SALT, signer=_OneSpelling, signer_kwargs=_SIGNING
    )


class _OneSpelling(Signer):
    """Takes a signature in one spelling alone. Base64 has four last characters for the same 32 bytes, and its
    reader passes over what it does not know: a link that was changed would open the same as the right one."""

    def verify_signature(self, value: str | bytes, sig: str | bytes) -> bool:
        return super().verify_signature(value, sig) and base64_encode(base64_decode(sig)) == want_bytes(sig)
