"""The command `messages resend`: sends messages again."""

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from mailroom_ops.messages.items import rules_of
from mailroom_ops.messages.sets import DryRun, Ids, IdsFile, Why, act_on
from mailroom_ops.repair.again import SendAgain
from mailroom_ops.repair.judge import PATIENCE_SECONDS
from mailroom_ops.repair.put_back import put_back, redrives
from mailroom_ops.repair.repairs import Repairs
from mailroom_ops.repair.replay import replay
from mailroom_ops.repair.resender import Resender
from mailroom_ops.repair.stuck import send_stuck
from mailroom_ops.shared.options import AsJson, Stage, Yes
from mailroom_ops.shared.screen import Refused, aws_faults
from mailroom_ops.shared.stage_queues import DeployedStage
from mailroom_ops.shared.times import seconds_of

if TYPE_CHECKING:
    import boto3


def resend(
    ids: Ids = None,
    stage: Stage = "dev",
    *,
    ids_file: IdsFile = None,
    stuck: Annotated[bool, typer.Option("--stuck", help="Search for messages that are stuck.")] = False,
    dead_letters: Annotated[
        str | None,
        typer.Option(metavar="QUEUE", help="Put the dead letters of this queue back; all: of all queues."),
    ] = None,
    given_up: Annotated[
        bool, typer.Option("--given-up", help="Replay stream batches that Lambda gave up on.")
    ] = False,
    channel: Annotated[str | None, typer.Option(help="With ids: only messages of this channel.")] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Also send messages that arrived, were cancelled or suppressed.")
    ] = False,
    older_than: Annotated[
        str | None, typer.Option(help="Treat a message as stuck after this time: 90s, 15m, 2h, 1d.")
    ] = None,
    include_forgotten: Annotated[
        bool,
        typer.Option(
            "--include-forgotten",
            help="With --stuck: also send messages that the ledger may have forgotten.",
        ),
    ] = False,
    reason: Why = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Send messages again: failed, stuck or dead letters.

    The command prints which messages can be sent again, and why others cannot, asks, and does it. You can run
    it again at any time, also twice at the same time: two workers never submit the same attempt.

    IDS: a message that failed, bounced or was suppressed is sent with the present content of its mailbox
    item. A message that never started, or has not changed for 15 minutes, is put back into its queue, and so
    is a dead letter. Messages that are on their way are refused, and so are messages that arrived, unless you
    give --force. The command asks before it sends more than 10 messages, or a message that may arrive twice:
    one that the ledger may have forgotten, because its item has expired, counts as one. For over 100 it asks
    for their number. --yes answers these questions.

    --stuck: reads both tables, puts lost and overdue messages back, and counts the others by state. A message
    is lost if it is in the mailbox, and two reads of the ledger 15 minutes apart do not find it. It is
    overdue 15 minutes after its next step was due, or 12 hours later if a queue may hide it. --older-than
    replaces all these times.

    --dead-letters mail: puts the dead letters of a queue back into it. Fix their cause first. With ids (of
    messages or of SQS), only these.

    --given-up: invokes functions again with the stream batches that Lambda gave up on, the oldest first.

    Exit code 1: some messages were not sent again or, in a dry run, remain to be. 2: the command could not do
    its work, or the JSON on standard input is about another stage, or incomplete because of its --limit.

    Example: mailroom messages resend order-42 --stage prod

    Example: mailroom messages list --status failed --since 2h --limit 500 --stage prod --json > failed.json

    Example: mailroom messages resend - --yes --stage prod < failed.json
    """
    searches = [name for name, value in (("--stuck", stuck), ("--given-up", given_up)) if value]
    with aws_faults(stage):
        _check(searches, dead_letters, by_id=bool(ids or ids_file), force=force, reason=reason)
        if given_up:
            raise typer.Exit(replay(stage, dry_run=dry_run, yes=yes, as_json=as_json))
        if stuck:
            incomplete = send_stuck(
                stage,
                older_than=older_than,
                include_forgotten=include_forgotten,
                dry_run=dry_run,
                yes=yes,
                as_json=as_json,
            )
            raise typer.Exit(incomplete)
        if dead_letters:
            planned = redrives(stage, dead_letters, ids or [])
            raise typer.Exit(put_back(planned, stage, dry_run=dry_run, yes=yes, as_json=as_json))
        seconds = PATIENCE_SECONDS if older_than is None else float(seconds_of(older_than))

    def act_of(session: "boto3.Session", deployed: DeployedStage) -> SendAgain:
        previews = rules_of(session, stage).previews(session.client("s3"))
        # By naming a message, an operator confirms that it was never sent, if the ledger does not know it.
        repairs = partial(Repairs.of, deployed, older_than=seconds, confirmed=True)
        return SendAgain(deployed, Resender(deployed, previews.look, force=force), repairs)

    selection = (ids, ids_file, channel)
    question = "Send {} again"
    act_on(selection, stage, act_of, question, dry_run=dry_run, yes=yes, as_json=as_json, reason=reason)


def _check(searches: list[str], dead_letters: str | None, *, by_id: bool, force: bool, reason: str) -> None:
    """Raise Refused if the options select several ways."""
    ways = [*searches, *(["--dead-letters"] if dead_letters else [])]
    if len(ways) > 1 or (searches and by_id):
        raise Refused(
            "Name the messages by their ids, or use one of --stuck, --dead-letters QUEUE and --given-up. "
            "Only --dead-letters can be combined with ids."
        )
    if ways and (force or reason):
        option = "--force" if force else "--why"
        raise Refused(f"{option} needs ids of messages, and cannot be used with {ways[0]}.")
