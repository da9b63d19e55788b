"""The console behind a team's sign-in, in process: its OpenID provider, and a browser that asks it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

from mailroom.http.https import Answer
from mailroom_ops.console.open_id import OpenId, Roles
from mailroom_ops.console.sessions import Sessions
from mailroom_ops.console.site import Site
from mailroom_ops.console.team import CALLBACK, Team
from tests.support.ops.console import Browser, Reply

TEAM_HOST = "console.example.com"
OWN = f"https://{TEAM_HOST}"
ISSUER, CLIENT = "https://sign-in.example.com", "mailroom-console"
PAST, FUTURE = 1_700_000_000, 4_000_000_000
NAVIGATION = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}


@cache
def key(name: str = "own") -> rsa.RSAPrivateKey:
    """A key of the provider, or of somebody else. Its name is not used otherwise."""
    return rsa.generate_private_key(65537, 2048)


@dataclass
class FakeProvider:
    """An OpenID provider: gives a token for each code once, if the request proves who began the sign-in."""

    issuer: str = ISSUER
    secret: str = ""
    claims: dict[str, Any] = field(default_factory=dict)
    signed_with: Any = None
    algorithm: str = "RS256"
    nonce: str = ""
    challenge: str = ""
    status: int = 200
    codes: set[str] = field(default_factory=set)
    asked: list[dict[str, str]] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)

    def get(self, url: str) -> Answer:
        if url.endswith("/.well-known/openid-configuration"):
            names = ("authorization", "token")
            ends = {f"{name}_endpoint": f"{self.issuer}/{name}" for name in names}
            return _json_answer({"issuer": self.issuer, **ends, "jwks_uri": f"{self.issuer}/keys", "more": 1})
        public = json.loads(RSAAlgorithm.to_jwk(key().public_key()))
        # The keys of Entra lack `alg`.
        other = json.loads(RSAAlgorithm.to_jwk(key("older").public_key()))
        return _json_answer(
            {"keys": [{**other, "kid": "older", "use": "sig"}, {**public, "kid": "1", "use": "sig"}]}
        )

    def request(self, method: str, url: str, *, headers: Mapping[str, str], body: bytes) -> Answer:
        fields = dict(parse_qsl(body.decode()))
        self.asked.append(fields)
        self.headers.append(headers)
        if fields["code"] not in self.codes or self.status != 200:
            return _json_answer({"error": "invalid_grant"}, max(self.status, 400))
        self.codes.remove(fields["code"])
        return _json_answer({"id_token": self.token(), "access_token": "a", "token_type": "Bearer"})

    def token(self) -> str:
        """A token of the provider."""
        standard = {"iss": self.issuer, "aud": CLIENT, "sub": "00u1", "iat": PAST, "exp": FUTURE}
        claims = {**standard, "nonce": self.nonce, **self.claims}
        claims = {name: claim for name, claim in claims.items() if claim is not None}
        secret: Any = None if self.algorithm == "none" else self.signed_with or key()
        return jwt.encode(claims, secret, self.algorithm, headers={"kid": "1"})

    def visit(self, url: str) -> str:
        """Let a person sign in at the URL of a sign-in. Return the path to which the browser is sent."""
        query = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        assert url.startswith(f"{self.issuer}/authorization?")
        assert (query["response_type"], query["response_mode"]) == ("code", "query")
        assert (query["redirect_uri"], query["client_id"]) == (OWN + CALLBACK, CLIENT)
        self.nonce, self.challenge = query["nonce"], query["code_challenge"]
        self.codes.add("code-1")
        return f"{CALLBACK}?{urlencode({'code': 'code-1', 'state': query['state']})}"


def _json_answer(fields: Mapping[str, Any], status: int = 200) -> Answer:
    return Answer(status, {}, json.dumps(fields).encode())


@dataclass
class TeamBrowser(Browser):
    """A browser that asks the console of a team. It keeps cookies by name."""

    provider: FakeProvider = field(default_factory=FakeProvider)
    roles: Roles = field(default_factory=lambda: Roles("groups", ("desk",), ("leads",)))
    rules: str = "rules"
    cookies: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.site = Site(self.session, self.stage, self.clock)
        self.restart()

    def restart(self) -> None:
        """Let the next requests be answered by a new process, perhaps with other settings."""
        provider: Any = self.provider
        secret = lambda: self.provider.secret  # noqa: E731
        open_id = OpenId(provider.issuer, CLIENT, OWN + CALLBACK, secret, api=provider)
        table = f"mailroom-{self.stage}-deeds"
        sessions = Sessions(self.session.client("dynamodb"), table, self.rules, self.clock)
        self._app = Team(self.site, OWN, open_id, self.roles, sessions)  # type: ignore[assignment]

    def ask(self, method: str, path: str, headers: Mapping[str, str], body: bytes = b"") -> Reply:
        cookie = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        reply = self.ask_anywhere(method, path, {"host": TEAM_HOST, "cookie": cookie, **headers}, body)
        for line in reply.set_cookies:
            assert line.endswith(
                tuple(f"; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age={n}" for n in AGES)
            )
            name, _, value = line.partition(";")[0].partition("=")
            self.cookies.pop(name, None)
            self.cookies |= {name: value} if value else {}
        return reply

    def post(self, path: str, form: Mapping[str, str], headers: Mapping[str, str] | None = None) -> Reply:
        own = {"origin": OWN, "sec-fetch-site": "same-origin"} if headers is None else headers
        return self.ask("POST", path, own, urlencode(form).encode())

    def begin(self, to: str = "/") -> str:
        """Begin a sign-in. Return the path to which the provider sends the browser."""
        page = self.post(f"/sign-in?{urlencode({'to': to})}", {})
        return self.provider.visit(page.words_of_link())

    def sign_in(self, to: str = "/", **claims: Any) -> Reply:
        """Sign in with a token that has these claims."""
        self.provider.claims = claims
        return self.get(self.begin(to), NAVIGATION)


AGES = (0, 600, 8 * 3600)
