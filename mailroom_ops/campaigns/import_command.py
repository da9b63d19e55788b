"""The command `import`: puts a file of messages into the mailbox."""

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from mailroom.channels.contracts import CONTRACTS
from mailroom_ops.campaigns import import_report as view
from mailroom_ops.campaigns.import_source import Source
from mailroom_ops.campaigns.imported_items import Format, Options
from mailroom_ops.campaigns.importing import Import
from mailroom_ops.messages.items import rules_of
from mailroom_ops.shared.deployed_stage import aws_session
from mailroom_ops.shared.options import AsJson, Stage
from mailroom_ops.shared.screen import Refused, aws_faults, print_answer

EXIT = {"done": 0, "interrupted": 1, "stopped": 2}
ENDINGS: dict[str, Format] = {".csv": "csv", ".tsv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
MAX_PREFIX_BYTES = 100


def import_(
    file: Annotated[
        Path, typer.Argument(exists=True, dir_okay=False, help="A CSV or JSON Lines file in UTF-8.")
    ],
    stage: Stage = "dev",
    *,
    channel: Annotated[
        str | None, typer.Option(help="The channel of all messages; default: each line's event_type.")
    ] = None,
    id_prefix: Annotated[
        str | None,
        typer.Option(help="The prefix of each id. Without a column `id`, the line number follows it."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check all lines and show three messages; put nothing.")
    ] = False,
    workers: Annotated[int, typer.Option(min=1, max=128, help="The number of parallel puts.")] = 16,
    as_json: AsJson = False,
) -> None:
    """Put a file of messages into the mailbox.

    The file is CSV with a header, or has one JSON object per line; it may have any size. A column is an
    attribute of the message, or a variable of its template; the column `template` names the template. In a
    CSV file, write lists, maps and numbers as JSON. Each line needs an id that does not change: from a column
    `id`, or made of --id-prefix and the line number. Messages use the lane bulk if the channel has one,
    unless a column `lane` names another. The command cannot rename columns or leave out lines: change the
    file first.

    After an interruption, run the same command again. No message is put twice: a message that is in the
    mailbox already is counted as existed. The command prints the lines that were refused: correct them in the
    file, and run the command again. If ids are made of line numbers, each line has to keep its number.

    Exit code 1: lines were refused, an id belongs to another message, or the import was interrupted. 2: AWS
    refused the messages, the options or the file are wrong, or an id made of a line number belongs to another
    message.

    Example: mailroom messages import people.csv --channel mail --id-prefix news-2026-11 --dry-run
    """
    with aws_faults(stage):
        options = options_of(file, channel=channel, id_prefix=id_prefix)
        session = aws_session()
        with closing(Source(file)) as source:
            importing = Import(source, session, stage, options, rules_of(session, stage), quiet=as_json)
            answer = importing.dry_run() if dry_run else importing.run(workers)
    print_answer(answer, view.show, as_json=as_json)
    bad = answer.refused + answer.conflict > 0 or any(sample.problem for sample in answer.samples)
    raise typer.Exit(max(EXIT[answer.state], 1 if bad else 0))


def options_of(file: Path, *, channel: str | None, id_prefix: str | None) -> Options:
    """Return the options of a command. Raises Refused for an invalid option or an unknown file format."""
    if channel is not None and channel not in CONTRACTS:
        raise Refused(f"--channel {channel!r:.60} is unknown; use one of: {', '.join(CONTRACTS)}.")
    if id_prefix is not None and not _is_prefix(id_prefix):
        raise Refused("--id-prefix is not valid; use 1 to 100 bytes of printable characters without @.")
    file_format = ENDINGS.get(file.suffix.lower())
    if file_format is None:
        raise Refused(f"{file.name} does not end in .csv or .jsonl; rename it to the ending of its format.")
    return Options(format=file_format, channel=channel or "", id_prefix=id_prefix or "")


def _is_prefix(text: str) -> bool:
    return text.isprintable() and 0 < len(text.encode()) <= MAX_PREFIX_BYTES and "@" not in text
