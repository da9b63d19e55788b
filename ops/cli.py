"""The commands, and the order in which `--help` shows them."""

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer

from mailroom.telemetry import logger, quiet
from ops.campaigns import commands as campaign_commands
from ops.console.command import console
from ops.cost.command import cost
from ops.dead_letters import command as dead_letters
from ops.doctor.command import doctor
from ops.erase.command import erase
from ops.imports.command import import_
from ops.init.command import init
from ops.messages.failures import failures
from ops.messages.send import send
from ops.messages.status import status
from ops.messages.watch import watch
from ops.people import preferences, suppressions
from ops.plan.command import plan
from ops.reconcile.command import reconcile
from ops.replay import replay
from ops.resend.command import resend
from ops.schema import schema
from ops.settle import settle
from ops.terminal import LogStream
from ops.webhook_key import webhook_key

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",  # which fills paragraphs to the width of the terminal
)

PANELS: dict[str, list[Callable[..., None]]] = {
    "Setting up": [init, plan, cost],
    "Sending": [send, status],
    "Watching": [console, watch, failures, doctor],
    "Repairing": [resend, reconcile, replay, settle],
    "People": [erase],
    "Building": [schema, webhook_key],
}
for panel, commands in PANELS.items():
    for command in commands:
        app.command(rich_help_panel=panel)(command)
app.command("import", rich_help_panel="Sending")(import_)
app.add_typer(campaign_commands.app, name="campaign", rich_help_panel="Sending")
app.add_typer(dead_letters.app, name="dead-letters", rich_help_panel="Repairing")
app.add_typer(suppressions.app, name="suppressions", rich_help_panel="People")
app.add_typer(preferences.app, name="preferences", rich_help_panel="People")


@app.callback()
def main(context: typer.Context) -> None:
    """Operate a Mailroom stage. Set AWS credentials and region (AWS_REGION) in the environment, as for the
    AWS CLI."""
    # As for the CDK and the AWS CLI: a command looks where they have deployed. botocore reads the other only.
    if region := os.environ.get("AWS_REGION"):
        os.environ["AWS_DEFAULT_REGION"] = region
    context.with_resource(_log_on_stderr())
    context.with_resource(quiet())


@contextmanager
def _log_on_stderr() -> Iterator[None]:
    """What the library logs of calls that fail goes to stderr, and not into the answer."""
    handlers = [each for each in logger.handlers if isinstance(each, logging.StreamHandler)]
    streams = [each.stream for each in handlers]
    for handler in handlers:
        handler.setStream(LogStream())
    try:
        yield
    finally:
        for handler, stream in zip(handlers, streams, strict=True):
            handler.setStream(stream)
