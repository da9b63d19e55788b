"""The command `resend`: sends messages again."""

from typing import TYPE_CHECKING, Annotated

import typer

from mailroom_ops.messages.items import rules_of
from mailroom_ops.messages.sets import DryRun, Ids, IdsFile, act_on
from mailroom_ops.repair.resender import Resender
from mailroom_ops.shared.options import AsJson, Stage, Yes
from mailroom_ops.shared.stage_queues import DeployedStage

if TYPE_CHECKING:
    import boto3


def resend(
    ids: Ids = None,
    stage: Stage = "dev",
    *,
    ids_file: IdsFile = None,
    channel: Annotated[str | None, typer.Option(help="Only messages of this channel (event_type).")] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Also send messages that arrived, were cancelled or suppressed.")
    ] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Send messages again that failed, bounced or were suppressed, with the present content of their mailbox
    items.

    The command prints which messages can be sent again, and why others cannot. It asks before it sends more
    than 10 messages, or a message that may arrive twice; for over 100 it asks for their number. It refuses
    messages that are on their way, messages that arrived (unless you give --force), and messages that changed
    since they were printed. So a message is not sent twice if the command is run again, or twice at the same
    time.

    Exit code 1: some messages were not sent again. 2: the command could not do its work, or the JSON on
    standard input is about another stage, or incomplete because of its --limit.

    Example: mailroom failures --since 2h --stage prod --json | mailroom resend - --stage prod --yes
    """

    def act_of(session: "boto3.Session", deployed: DeployedStage) -> Resender:
        previews = rules_of(session, stage).previews(session.client("s3"))
        return Resender(deployed, previews.look, force=force)

    selection = (ids, ids_file, channel)
    act_on(selection, stage, act_of, "Send {} again", dry_run=dry_run, yes=yes, as_json=as_json)
