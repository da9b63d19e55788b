"""Options that several commands have."""

from typing import Annotated

import typer

Stage = Annotated[
    str,
    typer.Option(envvar="MAILROOM_STAGE", help="The stage, in the account of the credentials."),
]
WrittenStage = Annotated[str, typer.Option(envvar="MAILROOM_STAGE", help="The stage, as cdk.json has it.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
