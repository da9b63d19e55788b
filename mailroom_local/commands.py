"""`mailroom up`, `down` and `inbox`: a local stage on an emulated AWS."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from rich.table import Table

from mailroom.errors import quantity
from mailroom_local.aws import STAGE, answers, fetch
from mailroom_local.processes import StartError
from mailroom_local.sign_in import RIGHTS
from mailroom_local.stage import lifecycle
from mailroom_local.stage.deploy import DeployError
from mailroom_local.stage.workspace import UP, State, load_state
from mailroom_ops.campaigns import files
from mailroom_ops.shared.screen import Refused, fold, table_of, whole
from mailroom_ops.shared.terminal import Terminal

console = Terminal(highlight=False)

PEOPLE = 5_000
"""Number of people in the database of `mailroom up` who get the example campaign's mail."""
NEWEST, BEGINNING = 20, 60
"""Number of the newest messages that `inbox` shows, and maximum number of characters of each text."""
NEXT_STEPS = """
Next, in this shell:
  . .local/env
  mailroom send mail --to ada@example.com --subject Welcome --text "Hello Ada." --id welcome-17 --stage local
  mailroom messages show welcome-17 --stage local
  mailroom send sms --to "(617) 555-1234" --text "Your code is 123456" --stage local
{campaign}  mailroom inbox     what was sent
  mailroom down      stop
`mailroom docs run-locally` has more: items in DynamoDB, the API, callbacks, and what can go wrong."""
CAMPAIGN = "  mailroom campaign start {name} --stage local --dry-run\n"


@contextmanager
def starting() -> Iterator[None]:
    """Handle errors of the commands that start, read or stop a local stage, as a context manager: print the
    message instead of a traceback, and exit with 1."""
    for name in ("AWS_PROFILE", "AWS_DEFAULT_PROFILE"):
        # The local stage must not depend on the user's AWS profile.
        os.environ.pop(name, None)
    # SIGTERM raises SystemExit, so that `finally` blocks run, as after Ctrl-C.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        yield
    except (StartError, DeployError, Refused) as trouble:
        Terminal(stderr=True, highlight=False).print(str(trouble), style="red", soft_wrap=True)
        sys.exit(1)


@starting()
def up(
    *,
    sign_in: Annotated[
        bool, typer.Option("--sign-in", help="Also start the console behind a sign-in, to try its rights.")
    ] = False,
) -> None:
    """Start the stage local on an emulated AWS.

    The stage is left running, with a console for the browser. If the stage is running, update it with the
    current settings and code. Its messages are preserved.

    Example: mailroom up
    """
    state = load_state(UP)
    if state and state.running:
        state.sign_in |= sign_in
        if lifecycle.update(UP, state, _announce):
            console.print("Updated to the current settings and code. The messages are preserved.")
        else:
            console.print(f"Already running at {state.endpoints.aws} with the current settings and code.")
        for template in lifecycle.published(state):
            name = template.rpartition("/")[2]
            console.print(
                f"{template} has a published version, which overrides the file in templates/. To use the "
                f"file: mailroom template rollback {name} --to 0 --stage {STAGE}",
                soft_wrap=True,
            )
        _print_consoles(state)
        return
    if state:
        console.print("Cleaning up after a stage that ended without `mailroom down`.")
        lifecycle.stop(UP)
    running = lifecycle.start(UP, _announce, PEOPLE, console=True, sign_in=sign_in)
    console.print(f"\nAWS:      {running.endpoints.aws}\nInbox:    {running.endpoints.inbox}")
    variables, secret = running.variables(), lifecycle.DATABASE_SECRET
    database = f"$MAILROOM_DATABASE, with the tables users and follows; secret {secret}"
    console.print(f"API:      {variables['MAILROOM_API']}\nDatabase: {database}", soft_wrap=True)
    console.print(f"Files:    s3://{variables['MAILROOM_PAYLOADS']}, for files of audiences", soft_wrap=True)
    campaigns = "".join(CAMPAIGN.format(name=each) for each in files.enabled(STAGE))
    console.print(NEXT_STEPS.replace("{campaign}", campaigns), soft_wrap=True)
    _print_consoles(running)


def _announce(step: str) -> None:
    console.print(f"- {step}")


def _print_consoles(running: State) -> None:
    """Print the consoles' URLs on separate lines at the end of the output, where people look for them."""
    if running.sign_in:
        people = " or ".join(f"{name} ({right or 'no right'})" for name, right in RIGHTS.items())
        url = lifecycle.printed_url(UP, "sign-in")
        console.print(f"\nThe console behind a sign-in, for {people}:\n{url}", soft_wrap=True)
    console.print(f"\nThe console:\n{lifecycle.printed_url(UP, 'console')}", soft_wrap=True)


@starting()
def down() -> None:
    """Stop the processes that mailroom up started.

    This also works after a crash.

    Example: mailroom down
    """
    console.print("Stopped." if lifecycle.stop(UP) else "Nothing was running.")


@starting()
def inbox() -> None:
    """Show the messages that the local providers accepted.

    The newest come last. $MAILROOM_INBOX is the URL of all messages as JSON.

    Example: mailroom inbox
    """
    state = load_state(UP)
    if not state or not answers(f"{state.endpoints.providers}/health"):
        raise StartError("Nothing is running. Start it with `mailroom up`.")
    if accepted := fetch(state.endpoints.inbox):
        console.print(_inbox_table(accepted))
    else:
        console.print("Nothing was sent yet.")
    if received := fetch(state.endpoints.received):
        console.print(f"{quantity(len(received), 'webhook')} received: {state.endpoints.received}")


def _inbox_table(accepted: list[dict[str, Any]]) -> Table:
    newest = accepted[-NEWEST:]
    columns = (whole("received"), whole("channel"), fold("to"), fold("content"))
    title = f"{quantity(len(accepted), 'message')} accepted; the newest {len(newest)}"
    table = table_of(*columns, title=title, title_justify="left")
    for entry in newest:
        moment = entry["received_at"].replace("T", " ").partition(".")[0]
        content = entry["content"]
        text = next((content[name] for name in ("subject", "text", "body") if content.get(name)), "")
        beginning = text if len(text) <= BEGINNING else f"{text[: BEGINNING - 1]}…"
        table.add_row(moment, entry["channel"], entry["to"], beginning)
    return table
