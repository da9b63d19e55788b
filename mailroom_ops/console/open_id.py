"""Sign-in by OpenID Connect: the authorization code flow with PKCE, and the rights of a person.

PyJWT checks the tokens. Sources: OpenID Connect Core 1.0 (3.1), RFC 7636 and RFC 9700.
"""

import base64
import hashlib
import hmac
import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

import msgspec
from msgspec import Struct

from mailroom.aws.secret import CachedSecret, read_secret
from mailroom.errors import InvalidSecret, RequestFailed
from mailroom_ops.shared.refusals import Refused

if TYPE_CHECKING:
    from mailroom.http.https import Answer
    from mailroom.http.provider_api import ProviderApi

GOOGLE = "https://accounts.google.com"
ALGORITHMS = ("RS256", "PS256", "ES256", "EdDSA")
"""Algorithms of signatures with a public key. `none`, and those with the client's secret, are not allowed."""
LEEWAY_SECONDS = 60
FAULTS = (RequestFailed, InvalidSecret, Refused)
"""Exceptions of a sign-in, besides botocore's errors."""
_SECONDS = 10.0
_AGAIN = "Sign in again. If that does not help, the provider of the sign-in may not work at present."


class Configuration(Struct, frozen=True):
    """Fields of the provider's configuration that the sign-in needs."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str


class ClientSecret(Struct, frozen=True):
    """Content of the stage's secret."""

    client_secret: str = ""


class Person(Struct, frozen=True):
    """Person whose token was checked."""

    who: str
    """Issuer and subject of the token, which identify the person; an address can change its owner."""
    name: str
    contents: bool


class Roles(Struct, frozen=True):
    """People with the rights: groups, addresses, or domains such as @example.com."""

    claim: str
    """Claim of the token with the person's groups."""
    read: Sequence[str]
    contents: Sequence[str]

    def right(self, claims: Mapping[str, Any]) -> str:
        """Return the right of the person of a token: contents, read, or none."""
        names = names_in(claims, self.claim)
        return next((right for right in ("contents", "read") if names & {*getattr(self, right)}), "none")


class SignIn(Struct, frozen=True):
    """Secret of one sign-in, which only the person's browser has."""

    secret: str

    def part(self, name: str) -> str:
        """Return a part of the sign-in: `state`, `nonce` or `verifier`. None can be computed from another."""
        return _base64(hmac.digest(self.secret.encode(), name.encode(), "sha256"))


class OpenId:
    """Client of an OpenID provider. `secret` returns the client's secret, or an empty text if the client has
    none."""

    def __init__(
        self,
        issuer: str,
        client_id: str,
        redirect_uri: str,
        secret: Callable[[], str],
        scope: str = "openid email profile",
        api: "ProviderApi | None" = None,
    ) -> None:
        self._issuer, self._client_id, self._redirect_uri = issuer, client_id, redirect_uri
        self._secret, self._scope, self._given_api = secret, scope, api

    def url(self, sign_in: SignIn) -> str:
        """Return the URL at which the person signs in. Raises Refused."""
        query = {
            "response_type": "code",
            "response_mode": "query",
            "client_id": self._client_id,
            "redirect_uri": self._redirect_uri,
            "scope": self._scope,
            "state": sign_in.part("state"),
            "nonce": sign_in.part("nonce"),
            "code_challenge": _base64(hashlib.sha256(sign_in.part("verifier").encode()).digest()),
            "code_challenge_method": "S256",
        }
        return f"{self._configuration().authorization_endpoint}?{urlencode(query)}"

    def claims(self, sign_in: SignIn, code: str) -> dict[str, Any]:
        """Return the claims of the token for a code. Raises Refused unless the token is valid."""
        import jwt  # imported here, because only a sign-in needs it and its cryptography

        configuration = self._configuration()
        token = self._token(configuration.token_endpoint, sign_in, code)
        jwks = self._read(self._api.get(configuration.jwks_uri), "keys")
        try:
            key_id = jwt.get_unverified_header(token).get("kid")
            keys = [key for key in jwt.PyJWKSet.from_dict(jwks).keys if key_id in (None, key.key_id)]
            claims: dict[str, Any] = jwt.decode(
                token,
                keys[0],
                algorithms=[*ALGORITHMS],
                audience=self._client_id,
                issuer=self._issuer,
                leeway=LEEWAY_SECONDS,
                options={"require": ["exp", "iat", "iss", "sub", "aud", "nonce"]},
            )
        except (jwt.PyJWTError, IndexError) as fault:
            raise Refused(
                f"The token of the provider is not valid ({type(fault).__name__}). {_AGAIN}"
            ) from None
        if not hmac.compare_digest(f"{claims['nonce']}".encode(), sign_in.part("nonce").encode()):
            raise Refused(f"The token of the provider is for another sign-in. {_AGAIN}")
        if claims.get("azp", self._client_id) != self._client_id:
            raise Refused(f"The token of the provider is for another client. {_AGAIN}")
        return claims

    @property
    def _api(self) -> "ProviderApi":
        # Imported here, because only a sign-in makes requests.
        from mailroom.http.provider_api import ProviderApi

        return self._given_api or ProviderApi(_SECONDS)

    def _configuration(self) -> Configuration:
        url = f"{self._issuer.rstrip('/')}/.well-known/openid-configuration"
        fields = self._read(self._api.get(url), "configuration")
        try:
            configuration = msgspec.convert(fields, Configuration)
        except msgspec.ValidationError as fault:
            raise Refused(f"The configuration at {url} is incomplete: {fault}.") from None
        if configuration.issuer != self._issuer:
            raise Refused(f"{url} is of the issuer {configuration.issuer}. Correct console.issuer.")
        return configuration

    def _token(self, url: str, sign_in: SignIn, code: str) -> str:
        fields = {"grant_type": "authorization_code", "code": code, "redirect_uri": self._redirect_uri}
        fields["code_verifier"] = sign_in.part("verifier")
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        if secret := self._secret():
            # RFC 6749, 2.3.1: both parts are form-encoded first.
            pair = f"{quote(self._client_id, safe='')}:{quote(secret, safe='')}"
            headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        else:
            fields["client_id"] = self._client_id
        answer = self._api.request("POST", url, headers=headers, body=urlencode(fields).encode())
        token = self._read(answer, "token").get("id_token")
        if not isinstance(token, str):
            raise Refused(f"The provider sent no id_token. {_AGAIN}")
        return token

    def _read(self, answer: "Answer", content: str) -> dict[str, Any]:
        """Return the JSON object in a response. The text of a refusal is not shown, because it may repeat the
        request."""
        try:
            fields = json.loads(answer.text) if answer.status == 200 else None
        except (ValueError, RecursionError):
            fields = None
        if not isinstance(fields, dict):
            raise Refused(f"The provider of the sign-in sent no {content} (status {answer.status}). {_AGAIN}")
        return fields


def names_in(claims: Mapping[str, Any], claim: str) -> set[str]:
    """Return the names by which roles may list the person of a token: groups, address and domain. An address
    counts only if the provider has verified it. A domain at Google counts only for an account of that
    domain: anybody can register an account with an address elsewhere."""
    groups = claims.get(claim)
    groups = groups if isinstance(groups, list) else [groups]
    names = {group for group in groups if isinstance(group, str) and "@" not in group}
    address = claims.get("email")
    if claims.get("email_verified") is True and isinstance(address, str):
        address = address.casefold()
        domain = address.rpartition("@")[2]
        names.add(address)
        if claims["iss"] != GOOGLE or f"{claims.get('hd')}".casefold() == domain:
            names.add(f"@{domain}")
    return names


def person_of(claims: Mapping[str, Any], roles: Roles) -> Person:
    """Return the person of a token. Raises Refused for a person without a right."""
    right, name = roles.right(claims), f"{claims.get('name') or claims.get('email') or claims['sub']}"
    if right == "none":
        raise Refused(
            f"{name} may not see this console. Ask for a role that the setting console.roles lists."
        )
    return Person(f"{claims['iss']} {claims['sub']}", name[:100], right == "contents")


def _base64(octets: bytes) -> str:
    return base64.urlsafe_b64encode(octets).rstrip(b"=").decode()


def client_secret(secret: CachedSecret) -> str:
    """Return the client's secret from the stage's secret; empty before an operator has put one, and for a
    client without a secret. Raises InvalidSecret, and botocore's errors."""
    problem = 'the secret of the console is not JSON such as {"client_secret": "..."}'
    return read_secret(secret.current().text, ClientSecret, problem).client_secret
