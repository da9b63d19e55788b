"""Options of the commands that filter messages."""

from typing import Annotated

import typer

Channel = Annotated[str, typer.Option(help="Only messages of this channel.")]
Status = Annotated[str, typer.Option(help="Only messages with this status, such as bounced.")]
Template = Annotated[str, typer.Option(help="Only messages of this template.")]
Campaign = Annotated[str, typer.Option(help="Only messages of this campaign, or of one run: NAME#RUN.")]
Reason = Annotated[str, typer.Option(help="Only messages with this error code, such as invalid.")]
Domain = Annotated[str, typer.Option(help="Only mails to recipients of this domain.")]
Since = Annotated[
    str, typer.Option(help="The earliest time: 24h, 2d, 2026-11-20 or 2026-11-20T12:00, in UTC.")
]
Until = Annotated[str, typer.Option(help="The latest day, or another time like that of --since.")]
Limit = Annotated[int | None, typer.Option(min=1, help="Print at most this many; default: 50.")]
AsCsv = Annotated[bool, typer.Option("--csv", help="Print all messages as CSV.")]
