"""Settings of the HTTP API, which producers, providers and recipients call."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, Field

from mailroom.content.payloads import OVERSIZE
from mailroom.providers import built_in
from mailroom_stacks.settings.sections import ORIGIN, PROVIDERS_AT_SYNTH, Section
from mailroom_stacks.settings.unsubscribe import Unsubscribe, unsubscribe_faults


def _prefix(text: str) -> str:
    """Validate the key prefix of a caller's objects in the payload bucket, and return it."""
    parts = text.split("/")
    if text and not (re.fullmatch(r"([A-Za-z0-9!_.*'()-]+/)+", text) and not {".", ".."} & {*parts}):
        raise ValueError("is not a key prefix; use one such as shop/, of letters, digits and !_.*'()-")
    if parts[0] == OVERSIZE:
        raise ValueError("is reserved for messages that are too large for an item; use another prefix")
    return text


Scope = Annotated[str, Field(pattern=r"^[!#-\[\]-~]{1,64}$")]


class Scopes(Section):
    """Scopes that a token needs in its claim `scope` or `scp`, one for each action."""

    send: Scope
    """Scope for POST /messages: 1 to 64 characters without a space."""
    read: Scope
    """Scope for GET /messages: 1 to 64 characters without a space."""
    cancel: Scope
    """Scope for POST /messages/cancel: 1 to 64 characters without a space."""
    people_read: Scope | None = None
    """Scope for GET /people, which returns what a person has opted out of; null means that the route does not
    exist."""
    people_write: Scope | None = None
    """Scope for PATCH /people, which changes what a person has opted out of; null means that the route does
    not exist."""


class Jwt(Section):
    """Issuer of JSON Web Tokens (JWT), by which callers authenticate instead of signing requests with AWS
    credentials."""

    issuer: str = Field(pattern=rf"^{ORIGIN}(/[A-Za-z0-9._~-]+)*/?$")
    """https URL of the issuer, whose configuration is at this URL followed by
    /.well-known/openid-configuration."""
    audience: tuple[Annotated[str, Field(min_length=1)], ...] = Field(min_length=1)
    """Accepted values of a token's `aud`."""
    scopes: Scopes | None = None
    """Scopes required for each action; null means that every token of the issuer may do everything."""
    caller_claim: str = Field(default="sub", min_length=1)
    """Claim of a token that identifies the caller, as listed in `payload_prefixes` and `callers`."""


class Caller(Section):
    """Limits of one caller."""

    per_day: int | None = Field(default=None, ge=1)
    """Recipients of the caller's messages in 24 hours, over all channels; null means no limit."""
    senders: tuple[str, ...] | None = None
    """Addresses of `mail.senders` that the caller's mails may come from; null means all of them."""


MESSAGES_MB = 512
"""Memory of the function that accepts messages and reports their status, in MiB."""
SHARES = {"public": 0.2, "callbacks": 0.3}
"""Shares of `requests_per_second` and `burst` for routes without an authorizer, by purpose: `callbacks` for
requests of providers that are not repeated after a 429, `public` for others and for unsubscribe links. The
routes for messages have the rest, so a flood of requests to these routes cannot use it up."""
UNSUBSCRIBE_METHODS = ("GET", "HEAD", "POST")
"""Methods of the routes of unsubscribe links. Programs that check links send HEAD requests. Only POST has an
effect."""


def share_of_route(purpose: str) -> float:
    """Return the share of one route. All routes of a purpose get equal parts of its share."""
    routes = Counter(part for row in built_in().values() for part in row.routes.values())
    routes["public"] += len(UNSUBSCRIBE_METHODS)
    return SHARES[purpose] / routes[purpose]


@dataclass(frozen=True)
class Throttle:
    """Throttling limits of a route of API Gateway: requests per second, and the size of a burst."""

    rate: int
    burst: int


class Api(Section):
    """Settings of the HTTP API and its functions."""

    public_url: str | None = Field(default=None, pattern=rf"^({ORIGIN}|{PROVIDERS_AT_SYNTH})$")
    """Base URL of the API if it has its own domain: https, without a path. null means API Gateway's domain;
    providers means the URL of the option -c providers=URL, followed by /api."""
    jwt: Jwt | None = None
    """Issuer of the callers' tokens; null means that callers sign requests with AWS credentials that have the
    permission execute-api:Invoke."""
    payload_prefixes: dict[Annotated[str, Field(min_length=1)], Annotated[str, AfterValidator(_prefix)]] = (
        Field(default_factory=dict)
    )
    """Key prefix, by caller, of the objects in the payload bucket that the caller's messages may refer to. An
    empty prefix allows the whole bucket. If any caller is listed, other callers may not refer to objects."""
    callers: dict[Annotated[str, Field(min_length=1)], Caller] = Field(default_factory=dict)
    """Limits by caller. If any caller is listed, other callers get 403 for every request. If none is listed,
    every caller may send everything."""
    people_per_day: int = Field(default=1_000, ge=1, le=1_000_000)
    """People whom each caller may look up by GET /people in 24 hours; further requests get 429."""
    requests_per_second: int = Field(default=1_000, ge=35, le=10_000)
    """Requests per second over all routes; further requests get 429."""
    unsubscribe: Unsubscribe = Unsubscribe()

    @property
    def burst(self) -> int:
        """Size of a burst of requests: `requests_per_second`, but at most 5,000, which is API Gateway's
        limit."""
        return min(self.requests_per_second, 5_000)

    @property
    def throttles(self) -> dict[str, Throttle]:
        """Throttling limits of one route, by the purpose of the route."""
        shares = {"messages": 1 - sum(SHARES.values())} | {part: share_of_route(part) for part in SHARES}
        return {
            name: Throttle(_whole(self.requests_per_second * share), _whole(self.burst * share))
            for name, share in shares.items()
        }


def _whole(number: float) -> int:
    """Return a limit rounded down to an integer, without the rounding error of a float."""
    return int(number + 1e-6)


_PRINCIPAL = re.compile(r"arn:aws[a-z-]*:iam::\d{12}:(role/[\w+=,.@-]+|user/[!-~]+)")


def api_faults(api: Api) -> Iterator[str]:
    """Yield violations of the rules of the section `api`."""
    yield from unsubscribe_faults(api.unsubscribe)
    for key, callers in (("payload_prefixes", api.payload_prefixes), ("callers", api.callers)):
        for caller in callers if api.jwt is None else ():
            if not _PRINCIPAL.fullmatch(caller):
                yield (
                    f"api.{key}: {caller!r} is not the ARN of a role or user; write a role as "
                    "arn:aws:iam::<account>:role/<name>, without its path."
                )
