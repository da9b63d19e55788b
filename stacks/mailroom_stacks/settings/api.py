"""The HTTP API: what producers, providers and recipients call."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, Field

from mailroom.content.payloads import OVERSIZE
from mailroom_stacks.settings.sections import ORIGIN, PROVIDERS_AT_SYNTH, Section
from mailroom_stacks.settings.unsubscribe import Unsubscribe, unsubscribe_faults


def _prefix(text: str) -> str:
    """What the keys of a caller's objects begin with."""
    parts = text.split("/")
    if text and not (re.fullmatch(r"([A-Za-z0-9!_.*'()-]+/)+", text) and not {".", ".."} & {*parts}):
        raise ValueError("is not a prefix of keys; write it like shop/, of letters, digits and !_.*'()-")
    if parts[0] == OVERSIZE:
        raise ValueError("is where the API puts what is too large for an item; use another one")
    return text


Scope = Annotated[str, Field(pattern=r"^[!#-\[\]-~]{1,64}$")]


class Scopes(Section):
    """The scope that a token needs, in its claim `scope` or `scp`, for each thing that a caller can do."""

    send: Scope
    """For POST /messages: 1 to 64 characters without a space."""
    read: Scope
    """For GET /messages: 1 to 64 characters without a space."""
    cancel: Scope
    """For POST /messages/cancel: 1 to 64 characters without a space."""


class Jwt(Section):
    """The issuer whose tokens are taken, instead of requests that are signed with AWS credentials."""

    issuer: str = Field(pattern=rf"^{ORIGIN}(/[A-Za-z0-9._~-]+)*/?$")
    """The https URL of who issues them; /.well-known/openid-configuration lies below it."""
    audience: tuple[Annotated[str, Field(min_length=1)], ...] = Field(min_length=1)
    """A token's `aud` has to be one of these."""
    scopes: Scopes | None = None
    """null: every token of the issuer may do everything."""
    caller_claim: str = Field(default="sub", min_length=1)
    """The claim of a token that names its caller, for `payload_prefixes`."""


class Caller(Section):
    """What one caller may send."""

    per_day: int | None = Field(default=None, ge=1)
    """Recipients of the messages that it may put in 24 hours, over all channels; null is no limit."""
    senders: tuple[str, ...] | None = None
    """The addresses of `mail.senders` that its mails may come from; null is all of them."""


MESSAGES_MB = 512
"""Memory of the function that takes messages in and reports their status, in MiB."""
PUBLIC_SHARE = 0.2
"""The part of `requests_per_second` and `burst` for what people do: links for opting out, the texts that they
send, and for Resend's events, which Resend repeats. Each route has an equal part. Messages have the rest: a
flood of the routes that are open to everybody does not take it from them."""
CALLBACKS_SHARE = 0.3
"""The part for Twilio's status callbacks."""
PUBLIC_ROUTES = 5
"""GET, HEAD and POST of a link for opting out, the texts that people send, and Resend's events."""


@dataclass(frozen=True)
class Throttle:
    """What API Gateway lets through on a route: requests a second, and how many at once."""

    rate: int
    burst: int


class Api(Section):
    """The HTTP API, and the function that Twilio calls back."""

    public_url: str | None = Field(default=None, pattern=rf"^({ORIGIN}|{PROVIDERS_AT_SYNTH})$")
    """The API's own domain: https, without a path; null takes API Gateway's. Or providers (-c
    providers=URL)."""
    jwt: Jwt | None = None
    """null: whoever calls signs with AWS credentials that may execute-api:Invoke."""
    payload_prefixes: dict[Annotated[str, Field(min_length=1)], Annotated[str, AfterValidator(_prefix)]] = (
        Field(default_factory=dict)
    )
    """The beginning of the keys in the payload bucket that each caller's messages may name; "" is the whole
    bucket. If anybody is here, other callers may name no object."""
    callers: dict[Annotated[str, Field(min_length=1)], Caller] = Field(default_factory=dict)
    """What each caller may send. A caller that is not here gets 403 for every request; if nobody is,
    everybody may send everything."""
    requests_per_second: int = Field(default=1_000, ge=35, le=10_000)
    """Requests a second over all routes; more are answered 429."""
    unsubscribe: Unsubscribe = Unsubscribe()

    @property
    def burst(self) -> int:
        """How many requests may come at once: a second's; API Gateway takes 5,000 at most."""
        return min(self.requests_per_second, 5_000)

    @property
    def throttles(self) -> dict[str, Throttle]:
        """The throttle of one route, by what the route is for."""
        shares = {
            "messages": 1 - PUBLIC_SHARE - CALLBACKS_SHARE,
            "public": PUBLIC_SHARE / PUBLIC_ROUTES,
            "callbacks": CALLBACKS_SHARE,
        }
        return {
            name: Throttle(_whole(self.requests_per_second * share), _whole(self.burst * share))
            for name, share in shares.items()
        }


def _whole(number: float) -> int:
    """Rounded down, and no less for the rounding of a share."""
    return int(number + 1e-6)


_PRINCIPAL = re.compile(r"arn:aws[a-z-]*:iam::\d{12}:(role/[\w+=,.@-]+|user/[!-~]+)")


def api_faults(api: Api) -> Iterator[str]:
    """Rules of the section `api`."""
    yield from unsubscribe_faults(api.unsubscribe)
    for key, named in (("payload_prefixes", api.payload_prefixes), ("callers", api.callers)):
        for caller in named if api.jwt is None else ():
            if not _PRINCIPAL.fullmatch(caller):
                yield (
                    f"api.{key}: {caller!r} is not a caller that signs by IAM; write a role as "
                    "arn:aws:iam::<account>:role/<name>, without its path, or a user's ARN."
                )
