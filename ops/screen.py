"""What the commands share: where they print, which stage they mean, and how they end where AWS refuses."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import msgspec
import typer
from botocore.exceptions import BotoCoreError, ClientError
from rich.console import Console
from rich.text import Text

screen = Console()
errors = Console(stderr=True)

Stage = Annotated[
    str,
    typer.Option(envvar="MAILROOM_STAGE", help="The stage, in the account of the credentials."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]

_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029]")


_UNSIGNED = frozenset(
    (
        *("SignatureDoesNotMatch", "InvalidSignatureException"),
        *("RequestTimeTooSkewed", "RequestExpired", "RequestInTheFuture"),
    )
)
"""Codes of services that do not take the signature, or the time that it says; each has its own."""
CLOCK = (
    "AWS does not take the request's signature: this machine's clock may be more than 5 minutes off. Let it "
    "keep its time by NTP, such as `timedatectl set-ntp true`; where it is right, the secret key is wrong."
)


class Refused(Exception):
    """What was asked for cannot be done; a sentence that says why, and what there is instead."""


def unsigned(error: Exception) -> bool:
    """Whether AWS did not take the signature of a request."""
    return isinstance(error, ClientError) and error.response.get("Error", {}).get("Code") in _UNSIGNED


@contextmanager
def aws_faults(stage: str) -> Iterator[None]:
    """Exit code 2, and what to check, where AWS is out of reach or refuses, or a command does."""
    try:
        yield
    except Refused as refused:
        errors.print(plain(f"{refused}"), style="red", soft_wrap=True)
        raise typer.Exit(2) from None
    except (ClientError, BotoCoreError) as error:
        errors.print(Text(f"{error}", style="red"))
        if unsigned(error):
            errors.print(plain(CLOCK), soft_wrap=True)
        errors.print(f"Check the credentials, the region, and --stage {stage}.")
        raise typer.Exit(2) from None


def tell(answer: object) -> None:
    """Print a command's answer as JSON, for programs."""
    typer.echo(msgspec.json.encode(answer).decode())


def plain(text: str) -> Text:
    """What others wrote, as it is and on one line: no markup, and no control character reaches the
    terminal."""
    return lines(text.replace("\n", "�"))


def lines(text: str) -> Text:
    """The same, of several lines."""
    return Text(_CONTROL.sub("�", text))
