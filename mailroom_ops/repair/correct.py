"""The command `messages correct`: puts corrected copies of messages."""

from typing import TYPE_CHECKING, Annotated

import typer

from mailroom_ops.messages.items import rules_of
from mailroom_ops.messages.sets import DryRun, Ids, IdsFile, Why, act_on
from mailroom_ops.repair.corrector import Corrector
from mailroom_ops.shared.deployed_stage import config_for_puts
from mailroom_ops.shared.options import AsJson, Stage, Yes
from mailroom_ops.shared.stage_queues import DeployedStage

if TYPE_CHECKING:
    from collections.abc import Sequence

    import boto3


def correct(
    name: Annotated[str, typer.Argument(help="The name of the correction, such as new-link.")],
    ids: Ids = None,
    stage: Stage = "dev",
    *,
    ids_file: IdsFile = None,
    channel: Annotated[str | None, typer.Option(help="Only messages of this channel (event_type).")] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="A changed attribute or variable, NAME=VALUE, as for mailroom send."),
    ] = None,
    reason: Why = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Send corrected copies of messages to the same recipients.

    A copy is the same item, with the attributes in --set, and with the present version of its template. A
    correction is a new message with the id ID~NAME. If the command is run again, even after a crash, each
    correction is sent once. A message without an outcome is refused, because it would be sent besides its
    correction, and so is a cancelled one. Without --set, publish a corrected template first.

    The command asks as mailroom messages resend does. Exit code 1: some messages were not corrected. 2: the
    command could not do its work.

    Example: mailroom messages correct new-link --ids forty.txt --set link=https://example.com --stage prod
    """

    def act_of(session: "boto3.Session", deployed: DeployedStage) -> Corrector:
        return corrector_of(session, deployed, name, set_ or ())

    selection, question = (ids, ids_file, channel), "Send corrections of {}"
    act_on(selection, stage, act_of, question, dry_run=dry_run, yes=yes, as_json=as_json, reason=reason)


def corrector_of(
    session: "boto3.Session", deployed: DeployedStage, name: str, changes: "Sequence[str]"
) -> Corrector:
    """Return the corrector of a stage. Raises Refused for an invalid name, or an invalid change."""
    rules, s3 = rules_of(session, deployed.stage), session.client("s3")
    validator, previews = rules.validator(s3), rules.previews(s3)
    writer = rules.writer(session.client("dynamodb", config=config_for_puts(1)), s3)
    return Corrector(deployed, writer, lambda item: previews.look(validator.validate(item)), name, changes)
