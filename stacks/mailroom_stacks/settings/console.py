"""Settings of the console behind a team's sign-in."""

import re
from collections.abc import Iterable, Iterator
from typing import Annotated

from pydantic import Field

from mailroom_stacks.settings.sections import ORIGIN, Section

Name = Annotated[str, Field(min_length=1, max_length=200)]
_ENTRA = "https://login.microsoftonline.com/"
_TENANT = re.compile(rf"{re.escape(_ENTRA)}[0-9a-f]{{8}}(-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}/v2\.0")


class Roles(Section):
    """People with each right: groups or app roles, addresses that the provider has verified, or domains such
    as @example.com."""

    read: tuple[Name, ...] = ()
    """People who see messages with masked addresses, and without contents."""
    contents: tuple[Name, ...] = ()
    """People who also see addresses and contents."""


class Console(Section):
    """Sign-in by OpenID Connect, and the rights of people."""

    issuer: str = Field(pattern=rf"^{ORIGIN}(/[A-Za-z0-9._~-]+)*/?$")
    """https URL of the OpenID provider, whose configuration is at this URL followed by
    /.well-known/openid-configuration. For Entra, the URL of one tenant."""
    client_id: Name
    """Id of the client that is registered at the provider."""
    roles: Roles
    scope: Name = "openid email profile"
    """Scopes of the sign-in, separated by spaces. Okta needs `groups` too."""
    claim: Name = "groups"
    """Claim of the token with a person's groups: roles for Entra, cognito:groups for Cognito."""
    public_url: str | None = Field(default=None, pattern=rf"^{ORIGIN}$")
    """URL of the console if it has its own domain: https, without a path. null means API Gateway's domain."""


def console_faults(console: Console | None, *, local: bool) -> Iterator[str]:
    """Yield violations of the rules of the section `console`. `local` is whether the stage is local."""
    if console is None:
        return
    if local:
        yield "console: a local stage has none; remove it, and try the sign-in by mailroom up --sign-in."
    roles = (*console.roles.read, *console.roles.contents)
    if not roles:
        yield "console.roles: lists nobody; list groups, addresses or domains in read or contents."
    if "openid" not in console.scope.split():
        yield f"console.scope: {console.scope!r} lacks openid; add it."
    if console.issuer.startswith(_ENTRA):
        yield from _entra_faults(console.issuer, roles)


def _entra_faults(issuer: str, roles: Iterable[str]) -> Iterator[str]:
    if not _TENANT.fullmatch(issuer):
        yield f"console.issuer: is not of one tenant; use {_ENTRA}<tenant id>/v2.0."
    for name in roles:
        if "@" in name:
            yield (
                f"console.roles: {name!r} is an address, which people can change at Entra; use app roles and "
                "the claim roles."
            )
