"""Settings of the HTTP API, which producers, providers and recipients call."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, Field

from mailroom.content.payloads import OVERSIZE
from mailroom_stacks.settings.sections import ORIGIN, PROVIDERS_AT_SYNTH, Section
from mailroom_stacks.settings.unsubscribe import Unsubscribe, unsubscribe_faults


def _prefix(text: str) -> str:
    """Validate the beginning of the keys of a caller's objects."""
    parts = text.split("/")
    if text and not (re.fullmatch(r"([A-Za-z0-9!_.*'()-]+/)+", text) and not {".", ".."} & {*parts}):
        raise ValueError("is not a prefix of keys; write it like shop/, of letters, digits and !_.*'()-")
    if parts[0] == OVERSIZE:
        raise ValueError("is where the API puts what is too large for an item; use another one")
    return text


Scope = Annotated[str, Field(pattern=r"^[!#-\[\]-~]{1,64}$")]


class Scopes(Section):
    """Scope that a token needs for each action, in its claim `scope` or `scp`."""

    send: Scope
    """For POST /messages: 1 to 64 characters without a space."""
    read: Scope
    """For GET /messages: 1 to 64 characters without a space."""
    cancel: Scope
    """For POST /messages/cancel: 1 to 64 characters without a space."""


class Jwt(Section):
    """Issuer of tokens, which replace requests signed with AWS credentials."""

    issuer: str = Field(pattern=rf"^{ORIGIN}(/[A-Za-z0-9._~-]+)*/?$")
    """https URL of the issuer; /.well-known/openid-configuration lies below it."""
    audience: tuple[Annotated[str, Field(min_length=1)], ...] = Field(min_length=1)
    """Accepted values of a token's `aud`."""
    scopes: Scopes | None = None
    """null: every token of the issuer may do everything."""
    caller_claim: str = Field(default="sub", min_length=1)
    """Claim of a token that names its caller, for `payload_prefixes` and `callers`."""


class Caller(Section):
    """Limits of one caller."""

    per_day: int | None = Field(default=None, ge=1)
    """Recipients of the caller's messages in 24 hours, over all channels; null means no limit."""
    senders: tuple[str, ...] | None = None
    """Addresses of `mail.senders` that the caller's mails may come from; null means all of them."""


MESSAGES_MB = 512
"""Memory of the function that accepts messages and reports their status, in MiB."""
PUBLIC_SHARE = 0.2
"""Share of `requests_per_second` and `burst` for links for opting out, texts of people, and Resend's events,
which Resend repeats. Each route has an equal part. Messages have the rest, so a flood of the routes that are
open to everybody takes nothing from them."""
CALLBACKS_SHARE = 0.3
"""Share for Twilio's status callbacks."""
PUBLIC_ROUTES = 5
"""Routes of that share: GET, HEAD and POST of a link for opting out, texts of people, and Resend's events."""


@dataclass(frozen=True)
class Throttle:
    """API Gateway's limits of a route: requests a second, and requests at once."""

    rate: int
    burst: int


class Api(Section):
    """The HTTP API, and the function that Twilio calls back."""

    public_url: str | None = Field(default=None, pattern=rf"^({ORIGIN}|{PROVIDERS_AT_SYNTH})$")
    """Domain of the API: https, without a path; null means API Gateway's domain. Or providers (-c
    providers=URL)."""
    jwt: Jwt | None = None
    """null: callers sign with AWS credentials that have the right execute-api:Invoke."""
    payload_prefixes: dict[Annotated[str, Field(min_length=1)], Annotated[str, AfterValidator(_prefix)]] = (
        Field(default_factory=dict)
    )
    """Prefix of the keys in the payload bucket that each caller's messages may name; an empty prefix means
    the whole bucket. If any caller is listed, callers that are not may name no object."""
    callers: dict[Annotated[str, Field(min_length=1)], Caller] = Field(default_factory=dict)
    """Limits of each caller. If any caller is listed, callers that are not get 403 for every request. If none
    is, every caller may send everything."""
    requests_per_second: int = Field(default=1_000, ge=35, le=10_000)
    """Requests a second over all routes; further requests get 429."""
    unsubscribe: Unsubscribe = Unsubscribe()

    @property
    def burst(self) -> int:
        """Requests that may come at once: those of a second, and 5,000 at most, API Gateway's limit."""
        return min(self.requests_per_second, 5_000)

    @property
    def throttles(self) -> dict[str, Throttle]:
        """Throttle of one route, by the purpose of the route."""
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
    """Round down, but undo the rounding error of a share."""
    return int(number + 1e-6)


_PRINCIPAL = re.compile(r"arn:aws[a-z-]*:iam::\d{12}:(role/[\w+=,.@-]+|user/[!-~]+)")


def api_faults(api: Api) -> Iterator[str]:
    """Yield violations of the rules of the section `api`."""
    yield from unsubscribe_faults(api.unsubscribe)
    for key, callers in (("payload_prefixes", api.payload_prefixes), ("callers", api.callers)):
        for caller in callers if api.jwt is None else ():
            if not _PRINCIPAL.fullmatch(caller):
                yield (
                    f"api.{key}: {caller!r} is not a caller that signs by IAM; write a role as "
                    "arn:aws:iam::<account>:role/<name>, without its path, or a user's ARN."
                )
