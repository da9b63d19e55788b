"""Options that several commands share."""

from typing import Annotated

import typer

Stage = Annotated[
    str,
    typer.Option(envvar="MAILROOM_STAGE", help="The stage, in the account of the credentials."),
]
WrittenStage = Annotated[str, typer.Option(envvar="MAILROOM_STAGE", help="The stage, as named in cdk.json.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Yes = Annotated[bool, typer.Option("--yes", help="Answer yes to the question.")]
