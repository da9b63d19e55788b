"""AWS on one machine. `up` leaves it running, `down` stops it, `demo` shows everything in one go."""

import os
import signal
import sys
from typing import Any

import typer
from rich.table import Table

from mailroom_local.aws import fetch
from mailroom_local.processes import StartError
from mailroom_local.stage import lifecycle
from mailroom_local.stage.deploy import DeployError
from mailroom_local.stage.workspace import UP, load_state
from mailroom_ops.terminal import Terminal

app = typer.Typer(help=__doc__, no_args_is_help=True, add_completion=False, rich_markup_mode=None)
console = Terminal(highlight=False)

PEOPLE = 5_000
"""How many people the example campaign finds in the database of `make up`."""
NEWEST, BEGINNING = 20, 60
"""How many of the newest messages `inbox` shows, and how many characters of each."""
NEXT_STEPS = """
Next, in this shell:
  . .local/env
  aws dynamodb put-item --table-name $MAILROOM_MAILBOX --item \\
    '{"id": {"S": "welcome-17"}, "event_type": {"S": "mail"}, "to": {"S": "ada@example.com"},
      "subject": {"S": "Welcome"}, "text": {"S": "Hello Ada."}}'
  .venv/bin/mailroom status welcome-17 --stage local
  aws dynamodb put-item --table-name $MAILROOM_MAILBOX --item \\
    '{"id": {"S": "sms-1"}, "event_type": {"S": "sms"}, "to": {"S": "(617) 555-1234"},
      "text": {"S": "Your code is 123456"}}'
  aws dynamodb put-item --table-name $MAILROOM_MAILBOX --item \\
    '{"id": {"S": "fax-1"}, "event_type": {"S": "fax"}, "to": {"S": "+12025550112"},
      "pdf_url": {"S": "https://example.com/letter.pdf"},
      "callback_url": {"S": "'$MAILROOM_PROVIDERS'/receiver/ok"}}'
  ask="curl -s --aws-sigv4 aws:amz:us-east-1:execute-api --user $AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY"
  $ask $MAILROOM_API/messages -H 'Content-Type: application/json' -d \\
    '{"id": "welcome-18", "event_type": "mail", "to": "ada@example.com",
      "subject": "Welcome", "text": "Hello Ada."}'
  $ask $MAILROOM_API/messages/welcome-18       its status; $MAILROOM_API/swagger is for a browser
  .venv/bin/mailroom campaign start weekly-followers --stage local --dry-run
  make inbox     what was sent
  make down      stop"""


@app.command()
def up() -> None:
    """Start the emulator, deploy the stacks, and leave it running."""
    known = load_state(UP)
    if known and known.running:
        console.print(f"Already running at {known.endpoints.aws}. To start anew: make down, then make up.")
        console.print(f"Console: {lifecycle.console_url(UP)}", soft_wrap=True)
        return
    if known:
        console.print("Cleaning up after a stage that did not end well.")
        lifecycle.stop(UP)
    running = lifecycle.start(UP, lambda line: console.print(f"- {line}"), PEOPLE, console=True)
    console.print(f"\nAWS:      {running.endpoints.aws}\nInbox:    {running.endpoints.inbox}")
    console.print(f"API:      {running.variables()['MAILROOM_API']}")
    console.print(f"Console:  {lifecycle.console_url(UP)}", soft_wrap=True)
    console.print(NEXT_STEPS, soft_wrap=True)


@app.command()
def down() -> None:
    """Stop what `up` started, also after a crash."""
    console.print("Stopped." if lifecycle.stop(UP) else "Nothing was running.")


@app.command()
def inbox() -> None:
    """Show what the providers' simulators accepted, newest last. $MAILROOM_INBOX has all of it as JSON."""
    known = load_state(UP)
    if not known or not known.running:
        raise StartError("Nothing is running. Start it with `make up`.")
    if accepted := fetch(known.endpoints.inbox):
        console.print(_inbox_table(accepted))
    else:
        console.print("Nothing was sent yet.")
    if received := fetch(known.endpoints.received):
        console.print(f"{len(received)} webhooks received: {known.endpoints.received}")


@app.command()
def demo() -> None:
    """Send messages on all channels, on a stage of its own, and check every outcome.

    A campaign is killed half-way and started again. Exits 0 only if everything is right."""
    from mailroom_local.demo.run import run

    code = run(console)
    console.print("\nTo send some yourself, and see them in a browser: make up")
    raise typer.Exit(code)


def _inbox_table(accepted: list[dict[str, Any]]) -> Table:
    newest = accepted[-NEWEST:]
    table = Table(title=f"{len(accepted)} accepted; the last {len(newest)}", title_justify="left")
    for heading in ("received", "channel"):
        table.add_column(heading, no_wrap=True)
    for heading in ("to", "content"):
        table.add_column(heading, overflow="fold")
    for each in newest:
        moment = each["received_at"].replace("T", " ").partition(".")[0]
        content = each["content"]
        text = next((content[name] for name in ("subject", "text", "body") if content.get(name)), "")
        shown = text if len(text) <= BEGINNING else f"{text[: BEGINNING - 1]}…"
        table.add_row(moment, each["channel"], each["to"], shown)
    return table


def main() -> None:
    """Run a command; a failure to start is a message, not a traceback."""
    for name in ("AWS_PROFILE", "AWS_DEFAULT_PROFILE"):  # a profile of the user's must not be needed here
        os.environ.pop(name, None)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that `finally` runs, as on Ctrl-C
    try:
        app()
    except (StartError, DeployError) as trouble:
        Terminal(stderr=True, highlight=False).print(str(trouble), style="red", soft_wrap=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
