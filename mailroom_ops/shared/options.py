"""Options that several commands have."""

from typing import Annotated

import typer

Stage = Annotated[
    str,
    typer.Option(envvar="MAILROOM_STAGE", help="The stage, in the account that the credentials belong to."),
]
WrittenStage = Annotated[str, typer.Option(envvar="MAILROOM_STAGE", help="The stage, as named in cdk.json.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Yes = Annotated[bool, typer.Option("--yes", help="Answer yes to the question.")]
