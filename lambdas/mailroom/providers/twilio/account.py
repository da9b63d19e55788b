"""Credentials of the stage's account at Twilio, which are read from a secret."""

import time
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from mailroom.aws.secret import CachedSecret, read_secret
from mailroom.errors import InvalidSecret

if TYPE_CHECKING:
    from types_boto3_secretsmanager import SecretsManagerClient

_SHAPE = '{"account_sid": "AC…", "auth_token": "…"}, with "api_key" and "api_key_secret" if you have them'


class TwilioAccount(Struct, frozen=True):
    """An account at Twilio with its credentials, which must never be logged."""

    account_sid: Annotated[str, Meta(min_length=1)]
    auth_token: Annotated[str, Meta(min_length=1)]
    api_key: str = ""
    api_key_secret: str = ""

    @property
    def login(self) -> tuple[str, str]:
        """User and password for the REST API. An API key is preferred to the auth token, because the key can
        be revoked while the token stays valid."""
        return (self.api_key, self.api_key_secret) if self.api_key else (self.account_sid, self.auth_token)

    def __repr__(self) -> str:
        return "TwilioAccount(…)"


def account_at(client: "SecretsManagerClient", arn: str) -> TwilioAccount:
    """Read the account in the secret's current version. Raises InvalidSecret, or botocore's errors."""
    return account_of(CachedSecret(client, arn, time.time).current().text)


def account_of(text: str) -> TwilioAccount:
    """Read the account in a secret's text. Raises InvalidSecret, whose message describes the valid format."""
    account = read_secret(text, TwilioAccount, f"Twilio's secret is not {_SHAPE}; store credentials in it")
    if bool(account.api_key) != bool(account.api_key_secret):
        raise InvalidSecret("Twilio's secret has only one of api_key and api_key_secret; store both in it")
    return account
