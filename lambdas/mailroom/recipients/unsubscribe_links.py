"""Opt-out links: signed links by which a recipient opts out of a topic. The signature covers the recipient
and the topic, so that the recipient need not log in. The link to the page with all topics has an encrypted
token instead, which does not show the recipient.

A link never expires, because links in old mails have to work. A stranger who gets an opt-out link can only
opt one recipient out of one topic, or in again.
"""

import hashlib
import hmac
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any

from itsdangerous import BadData, BadSignature, Signer, URLSafeSerializer
from itsdangerous.encoding import base64_decode, base64_encode, want_bytes
from msgspec import Meta, Struct

from mailroom.aws.secret import CachedSecret, read_secret
from mailroom.errors import Malformed

if TYPE_CHECKING:
    from nacl.secret import SecretBox

MAX_TOKEN = 800
"""Maximum number of characters of a token. A mail address of 254 characters and a topic of 64 characters, in
any language, take at most 736."""
MAX_LINK = 978
"""Maximum number of characters of a link. SES accepts headers of 996 characters, including the name
`List-Unsubscribe` and the angle brackets around the link."""
RENEW_SECONDS = 5
"""Minimum number of seconds between two reads of the secret because of wrong signatures. So forged links do
not cause many calls of Secrets Manager."""

ONE_CLICK = "List-Unsubscribe=One-Click"
"""Value of the header `List-Unsubscribe-Post`, and body of the request by which a mail program opts out (RFC
8058)."""

_SALT = b"mailroom.unsubscribe"
"""Salt of the signatures. It looks like a module's name, but must never change: the links in old mails are
signed with this text."""
_PAGE_SALT = b"mailroom.preferences"
"""Salt of the keys that encrypt the tokens of pages, which must never change either."""
_SEALED = re.compile(r"[A-Za-z0-9_-]{55,800}")
_SIGNING: dict[str, Any] = {"key_derivation": "hmac", "digest_method": hashlib.sha256}
_SHAPE = '{"key": "<random>", "previous": ["<an older key>"]}, where "previous" may be left out'

_Key = Annotated[str, Meta(min_length=16)]


class Choice(Struct, frozen=True):
    """Recipient and topic in an opt-out link."""

    recipient: str
    """Recipient in the canonical form: see `Message.addressees`."""
    topic: str
    """Topic that the recipient can opt out of."""


class _Keys(Struct, frozen=True):
    key: _Key
    previous: list[_Key] = []


class Tokens(Struct, frozen=True):
    """Signs and reads the tokens in opt-out links. The key is the secret's `key`. Tokens signed with a key in
    `previous` are valid too, so that links in old mails work after a change of the key. After a wrong
    signature the secret is read again."""

    secret: CachedSecret

    def sign(self, choice: Choice, signed_at: float | None = None) -> str:
        """Return the signed token for a choice, for use in a URL's path. With `signed_at` (epoch seconds),
        use the key that was valid at that time; this works if the secret has changed at most once since then.
        Raises InvalidSecret and botocore's errors."""
        return _serializer_of(self._text(signed_at)).dumps([choice.recipient, choice.topic])

    def seal(self, recipient: str, sealed_at: float | None = None) -> str:
        """Return the encrypted token for the recipient's page, with the same parameter and errors as `sign`.

        A nonce has to differ between messages (https://pynacl.readthedocs.io/en/latest/secret/). So it is a
        keyed hash of the message, and not random: a mail that is rendered again has the same link.
        """
        (box, nonce_key), *_ = _boxes_of(self._text(sealed_at))
        message = recipient.encode()
        nonce = hashlib.blake2b(message, key=nonce_key, digest_size=box.NONCE_SIZE).digest()
        return _base64(box.encrypt(message, nonce))

    def _text(self, moment: float | None) -> str:
        """Return the secret's text that was valid at `moment`, by default now."""
        version = self.secret.current()
        if moment is not None and version.created > moment:
            version = self.secret.previous() or version
        return version.text

    def read(self, token: str) -> Choice:
        """Return the choice in a signed token.

        Raises Malformed, whose message does not contain details, for a text that is not a validly signed
        token. Raises InvalidSecret and botocore's errors if the signature cannot be verified.
        """
        if len(token) > MAX_TOKEN or not token.isascii():
            raise Malformed("not a token of Mailroom")
        try:
            return _choice(self._content(token))
        except BadData:
            raise Malformed("not a token of Mailroom") from None

    def open(self, token: str) -> str:
        """Return the recipient in an encrypted token. Raises the errors of `read`."""
        if _SEALED.fullmatch(token) and len(token) % 4 != 1:
            sealed = urlsafe_b64decode(token + "=" * (-len(token) % 4))
            # The last character has several spellings that decode to the same bytes.
            if _base64(sealed) == token:
                for seconds in (None, RENEW_SECONDS):
                    if recipient := _opened(self.secret.current(seconds).text, sealed):
                        return recipient
        raise Malformed("not a token of Mailroom")

    def _content(self, token: str) -> Any:
        try:
            return _serializer_of(self.secret.current().text).loads(token)
        except BadSignature:
            # The token may be signed with a new key that this process has not read yet.
            return _serializer_of(self.secret.current(RENEW_SECONDS).text).loads(token)


class Links:
    """Creates opt-out links, whose URLs begin with `base_url`, the address of the opt-out page."""

    def __init__(self, secret: CachedSecret, base_url: str) -> None:
        """Create the object. Raises ValueError for a `base_url` whose links would be too long for a
        header."""
        self._base = base_url.rstrip("/")
        self._tokens = Tokens(secret)
        if len(self._base) + 1 + MAX_TOKEN > MAX_LINK:
            raise ValueError(f"the URL for opting out has {len(self._base)} characters; use a shorter one")

    def url(self, recipient: str, topic: str, signed_at: float | None = None) -> str:
        """Return the opt-out link for a recipient and a topic; see `Tokens.sign` for `signed_at`. Raises
        InvalidSecret and botocore's errors."""
        return f"{self._base}/{self._tokens.sign(Choice(recipient, topic), signed_at)}"

    def page_url(self, recipient: str, sealed_at: float | None = None) -> str:
        """Return the link to the recipient's page with all topics; see `Tokens.seal` for `sealed_at`. Raises
        InvalidSecret and botocore's errors."""
        return f"{self._base}/{self._tokens.seal(recipient, sealed_at)}"


def _choice(content: Any) -> Choice:
    match content:
        case [str(recipient), str(topic)] if recipient and topic:
            return Choice(recipient, topic)
    raise Malformed("the signed content is not a recipient and a topic")


@lru_cache(maxsize=4)  # the key is the secret's text, so a changed secret gets a new serializer
def _serializer_of(text: str) -> URLSafeSerializer:
    keys = _keys_of(text)
    return URLSafeSerializer(
        [*keys.previous, keys.key], salt=_SALT, signer=_OneSpelling, signer_kwargs=_SIGNING
    )


def _keys_of(text: str) -> _Keys:
    return read_secret(text, _Keys, f"the secret of the opt-out links is not {_SHAPE}; use a long key")


@lru_cache(maxsize=4)
def _boxes_of(text: str) -> "list[tuple[SecretBox, bytes]]":
    """Return a box that encrypts, and the key of its nonces, for each key of the secret: the present key
    first."""
    from nacl.secret import SecretBox  # an import of 18 ms, which only links to pages need

    keys = _keys_of(text)
    derived = (hmac.digest(key.encode(), _PAGE_SALT, "sha512") for key in (keys.key, *keys.previous))
    return [(SecretBox(key[:32]), key[32:]) for key in derived]


def _opened(text: str, sealed: bytes) -> str | None:
    """Return the content of an encrypted token, or None if no key of the secret has encrypted it."""
    from nacl.exceptions import CryptoError

    for box, _ in _boxes_of(text):
        with suppress(CryptoError):
            return box.decrypt(sealed).decode()
    return None


def _base64(content: bytes) -> str:
    return urlsafe_b64encode(content).decode().rstrip("=")


class _OneSpelling(Signer):
    """Signer that accepts only one Base64 spelling of a signature. Without this check a changed link would be
    valid too, because four different last characters decode to the same 32 bytes, and Python's decoder skips
    unknown characters."""

    def verify_signature(self, value: str | bytes, sig: str | bytes) -> bool:
        return super().verify_signature(value, sig) and base64_encode(base64_decode(sig)) == want_bytes(sig)
