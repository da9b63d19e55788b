"""The command `webhook-key`: the key with which the receivers of one host verify webhooks."""

from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import Struct

from mailroom.errors import InvalidRequest, InvalidSecret
from mailroom.http.url_policy import UrlPolicy
from mailroom.providers.webhooks.signing import host_key
from mailroom_ops.shared.deployed_stage import aws_session, name
from mailroom_ops.shared.options import AsJson, Stage
from mailroom_ops.shared.screen import NotDeployed, Refused, aws_faults, print_answer

if TYPE_CHECKING:
    import boto3


class WebhookKey(Struct, frozen=True):
    """Output of the command `webhook-key`."""

    stage: str
    host: str
    """Host, in the spelling from which Mailroom derives the key."""
    key: str
    """Key in the form of the Standard Webhooks convention."""


def webhook_key(
    host: Annotated[
        str, typer.Argument(help="The host of an endpoint, such as hooks.example.com, or the endpoint's URL.")
    ],
    stage: Stage = "dev",
    *,
    as_json: AsJson = False,
) -> None:
    """Print the key that verifies webhooks to one host.

    With the key, the receivers of the host verify webhooks and callbacks. Give the key only to the people who
    run that host. Requests to other hosts are signed with other keys; all endpoints of one host have the same
    key, whatever their port and path. Hosts are compared as in DNS: hooks.example.com and api.example.com
    differ; HOOKS.example.com is the same as hooks.example.com. Write an internationalized name in its xn--
    form.

    The command derives the key from the secret mailroom-STAGE-webhook-keys, and needs the permission
    secretsmanager:GetSecretValue to read it. If you put a new value into the secret, every host gets a new
    key.

    Exit code 2: HOST is not a host, or the secret cannot be read.

    Example: mailroom webhook-key hooks.example.com --stage prod
    """
    with aws_faults(stage):
        spelling = spelt_host(host)
        answer = WebhookKey(stage, spelling, key_of(aws_session(), stage, spelling))
    print_answer(answer, lambda webhook: typer.echo(webhook.key), as_json=as_json)


def spelt_host(text: str) -> str:
    """Return the host of a URL or a host's name, in the spelling from which the sender derives the key.
    Raises Refused."""
    url = text if "://" in text else f"https://{text}"
    try:
        return UrlPolicy(schemes=("https", "http"), ports=()).read(url).host
    except InvalidRequest as fault:
        raise Refused(f"HOST: {text!r:.200} {fault}.") from None


def key_of(session: "boto3.Session", stage: str, host: str) -> str:
    """Return the key of a host in the spelling of `spelt_host`. Raises Refused, and botocore's errors."""
    client, secret = session.client("secretsmanager"), name(stage, "webhook-keys")
    try:
        text = client.get_secret_value(SecretId=secret).get("SecretString", "")
        return host_key(text, host)
    except client.exceptions.ResourceNotFoundException:
        raise NotDeployed(f"secret {secret}") from None
    except InvalidSecret as fault:
        raise Refused(f"{secret}: {fault}.") from None
