"""The commands, and the order in which `--help` shows them."""

import os
from collections.abc import Callable

import typer

from mailroom.telemetry import quiet
from ops.campaigns import commands as campaign_commands
from ops.cost.command import cost
from ops.dead_letters import commands as dead_letters
from ops.doctor.command import doctor
from ops.erase.command import erase
from ops.imports.command import import_
from ops.logs import complaints_on_stderr
from ops.messages.failures import failures
from ops.messages.send import send
from ops.messages.status import status
from ops.messages.watch import watch
from ops.people import preferences_commands, suppressions_commands
from ops.plan.command import plan
from ops.reconcile.command import reconcile
from ops.replay import replay
from ops.resend.command import resend
from ops.schema import schema
from ops.settle import settle
from ops.webhook_key import webhook_key

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)

command: Callable[..., None]

SENDING = "Sending"
for command in (send, status):
    app.command(rich_help_panel=SENDING)(command)
app.command("import", rich_help_panel=SENDING)(import_)
app.add_typer(campaign_commands.app, name="campaign", rich_help_panel=SENDING)

WATCHING = "Watching"
for command in (watch, failures, doctor, plan, cost):
    app.command(rich_help_panel=WATCHING)(command)

REPAIRING = "Repairing"
app.add_typer(dead_letters.app, name="dead-letters", rich_help_panel=REPAIRING)
for command in (resend, reconcile, replay, settle):
    app.command(rich_help_panel=REPAIRING)(command)

PEOPLE = "People"
app.add_typer(suppressions_commands.app, name="suppressions", rich_help_panel=PEOPLE)
app.add_typer(preferences_commands.app, name="preferences", rich_help_panel=PEOPLE)
app.command(rich_help_panel=PEOPLE)(erase)

BUILDING = "Building"
for command in (schema, webhook_key):
    app.command(rich_help_panel=BUILDING)(command)


@app.callback()
def main(context: typer.Context) -> None:
    """Operate a Mailroom stage. AWS credentials and region (AWS_REGION) are the environment's, as for the AWS
    CLI."""
    # As for the CDK and the AWS CLI: a command looks where they have deployed. botocore reads the other only.
    if region := os.environ.get("AWS_REGION"):
        os.environ["AWS_DEFAULT_REGION"] = region
    context.with_resource(complaints_on_stderr())
    context.with_resource(quiet())
