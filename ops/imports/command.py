"""`import`: a file of messages into the mailbox."""

import signal
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated, Literal

import boto3
import typer

from ops.clients import config_for_puts
from ops.imports import answer as view
from ops.imports.answer import Imported
from ops.imports.importing import Import
from ops.imports.job import Job
from ops.imports.options import options_of
from ops.imports.source import Source
from ops.messages.items import rules_of
from ops.screen import AsJson, Stage, aws_faults, errors, tell

EXIT = {"done": 0, "interrupted": 1, "stopped": 2}

File = Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="A CSV or JSON Lines file, UTF-8.")]
Channel = Annotated[str | None, typer.Option(help="The channel; without it each line's own event_type.")]
Prefix = Annotated[str | None, typer.Option(help="What each id begins with; alone: then the line's number.")]
Column = Annotated[str | None, typer.Option(help="The column that has the ids; without it, id.")]
Sets = Annotated[list[str] | None, typer.Option("--set", help="attribute=value of every message.")]
Maps = Annotated[list[str] | None, typer.Option("--map", help="column=attribute: what a column is.")]
Kind = Annotated[Literal["csv", "jsonl"] | None, typer.Option("--format", help="Without it, by its ending.")]
Delimiter = Annotated[str | None, typer.Option(help="Between the cells of a CSV file.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Check all lines, show three; put nothing.")]
Workers = Annotated[int, typer.Option(min=1, max=128, help="Puts under way at a time.")]
Restart = Annotated[bool, typer.Option("--restart", help="Forget how far it was, and what was refused.")]


def import_(
    file: File,
    stage: Stage = "dev",
    *,
    channel: Channel = None,
    id_prefix: Prefix = None,
    id_column: Column = None,
    set_: Sets = None,
    map_: Maps = None,
    format_: Kind = None,
    delimiter: Delimiter = None,
    dry_run: DryRun = False,
    workers: Workers = 16,
    restart: Restart = False,
    as_json: AsJson = False,
) -> None:
    """Put a file of messages into the mailbox: CSV with a header, or a JSON object a line; of any size.

    Columns are attributes of the message, or variables of its template; in a CSV file, those that are lists,
    maps or numbers are written as JSON. Each line needs an id that stays the same: of a column, or made of
    --id-prefix and the line's number. Where the channel has a lane for bulk it is used; --set lane=normal
    takes the other.

    An import that was cut off goes on where it was, by FILE.mailroom-progress. Nothing is put twice, with or
    without that file: what is there already is counted as existed. Lines that are not as they must be go
    into FILE.mailroom-rejected.csv (or .jsonl), to be mended there and imported alone; the others go on.

    Exit code 1: lines were refused, or met another message of their id, or it was interrupted. 2: AWS does
    not take them, or the options or the file cannot be meant.

    Example: mailroom import people.csv --channel mail --id-prefix news-2026-11 --set template=news --dry-run
    """
    with aws_faults(stage):
        options = options_of(
            file,
            channel=channel,
            format_=format_,
            delimiter=delimiter,
            id_prefix=id_prefix,
            id_column=id_column,
            sets=set_ or (),
            maps=map_ or (),
        )
        session = boto3.Session()
        with closing(Source(file)) as source:
            job = Job(source, stage, options, rules_of(session, stage), session.client("s3"))
            answer = job.dry_run(quiet=as_json) if dry_run else _run(job, session, workers, restart, as_json)
    if as_json:
        tell(answer)
    else:
        view.show(answer)
    bad = answer.refused + answer.conflict > 0 or any(each.problem for each in answer.samples)
    raise typer.Exit(max(EXIT[answer.state], 1 if bad else 0))


def _run(job: Job, session: boto3.Session, workers: int, restart: bool, quiet: bool) -> Imported:
    running = job.prepared(
        session.client("dynamodb", config=config_for_puts(workers)), workers, restart=restart, quiet=quiet
    )
    with _interrupts(running.importing):
        return job.run(running)


@contextmanager
def _interrupts(importing: Import) -> Iterator[None]:
    """Ctrl-C lets what is under way end; once more, and it is cut off, which loses nothing either."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(_number: int, _frame: object) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        errors.print("Ending; what is under way is finished first.")
        importing.stop()

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
