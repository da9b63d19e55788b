"""The HTTP API: what producers, providers and recipients call."""

from typing import Annotated

from pydantic import Field

from stacks.settings.sections import Function, Section
from stacks.settings.urls import ORIGIN, PROVIDERS_AT_SYNTH

API_SECONDS = 29
"""API Gateway gives a function 30 s."""


class Jwt(Section):
    """Whose tokens are taken, instead of requests that are signed with AWS credentials."""

    issuer: str = Field(pattern=rf"^{ORIGIN}(/[A-Za-z0-9._~-]+)*/?$")
    """The https URL of who issues them; /.well-known/openid-configuration lies below it."""
    audience: tuple[Annotated[str, Field(min_length=1)], ...] = Field(min_length=1)
    """A token's `aud` has to be one of these."""


class Messages(Function):
    """The function that takes messages in and says what became of them."""

    timeout_seconds: int = Field(default=API_SECONDS, ge=1, le=API_SECONDS)
    """A thousand messages take a few seconds."""
    memory_mb: int = Field(default=512, ge=128, le=10_240)


class Unsubscribe(Function):
    """The function behind the links by which recipients opt out."""

    timeout_seconds: int = Field(default=10, ge=1, le=API_SECONDS)


class Api(Function):
    """The HTTP API, and the function that Twilio calls back."""

    public_url: str | None = Field(default=None, pattern=rf"^({ORIGIN}|{PROVIDERS_AT_SYNTH})$")
    """The API's own domain where it has one: https, without a path; null takes API Gateway's. Or providers,
    which the app is told by -c providers=URL."""
    jwt: Jwt | None = None
    """null: whoever calls signs with AWS credentials that may execute-api:Invoke."""
    public_docs: bool = False
    """Whether /openapi.json and /swagger are for everybody."""
    timeout_seconds: int = Field(default=10, ge=1, le=API_SECONDS)
    """Twilio waits 15 s for an answer."""
    requests_per_second: int = Field(default=500, ge=1, le=10_000)
    """What more comes in a second is answered 429, over all routes."""
    burst: int = Field(default=500, ge=1, le=5_000)
    """How many requests may come at once."""
    messages: Messages = Messages()
    unsubscribe: Unsubscribe = Unsubscribe()
