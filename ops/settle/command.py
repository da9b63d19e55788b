"""`settle`: its options, what it shows first, and what it asks."""

from typing import Annotated, Literal

import boto3
import typer
from msgspec import Struct, structs

from mailroom.ledger.reader import of_ledger
from ops.messages.standing import standing
from ops.messages.status_command import show
from ops.resend.deployed import Deployed
from ops.resend.ids import Asked
from ops.screen import AsJson, Stage, Yes, aws_faults, plain, print_json, screen
from ops.settle.settling import Word, found, free_since, refusal, settle

_FOLLOWS: dict[Word, str] = {
    "sent": "It is never sent again without mailroom resend --force.",
    "failed": "Whoever asked for callbacks is told, and mailroom resend may send it again.",
}
_CHANGED = "it has changed since it was shown: look again, and run this again"


class Settled(Struct, frozen=True):
    """What became of one message. `status`: the one before; `word`: how it was to be settled; `why`: why it
    was refused, "" where it was not."""

    stage: str
    id: str
    event_type: str
    status: str
    word: Word
    result: Literal["settled", "refused"]
    why: str = ""


def settle_(
    id_: Annotated[str, typer.Argument(metavar="ID", help="The message's id.")],
    word: Annotated[Word, typer.Option("--as", help="How it ended, as its provider or recipient says.")],
    stage: Stage = "dev",
    *,
    channel: Annotated[str | None, typer.Option(help="Where several channels have that id.")] = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Say how a message ended whose provider cannot be asked any more, so that it is over.

    For a message that stays `sending` or `retrying` whatever is done: a fax whose provider was changed or
    has lost it, or one whose worker was cut off and whose queue message is gone. Ask the provider or the
    recipient first, and say --as sent or --as failed. First try mailroom dead-letters redrive, or mailroom
    reconcile: they let a worker find it out.

    Shows the message and asks. It is settled only as it was shown, and only if nobody can be busy with it:
    a claim lasts 25 minutes at most, a fax as long as fax.longest_fax_seconds on top. Queue messages that
    are left of it are dropped by the ledger, a worker that still follows it changes nothing any more, and
    callbacks tell what was said. What the provider proves later still corrects it.

    Exit code 1: it was not settled, and the answer says why. 2: it could not be done, or there is no such
    message in the ledger.

    Example: mailroom settle fax-17 --as failed --channel fax --stage prod
    """
    with aws_faults(stage):
        deployed = Deployed.of(boto3.Session(), stage)
        item = found(deployed, Asked(id_, channel))
        before, now = free_since(deployed, item["event_type"]), deployed.clock()
        why = refusal(item, before, now)
        answer = Settled(stage, id_, item["event_type"], str(item.get("status", "")), word, "refused", why)
        if not as_json:
            show(standing(of_ledger(item), stage, now))
        if not why:
            if not yes:
                typer.confirm(_question(answer), abort=True, err=True)
            done = settle(deployed, item, word, before)
            answer = structs.replace(
                answer, result="settled" if done else "refused", why="" if done else _CHANGED
            )
    if as_json:
        print_json(answer)
    elif answer.why:
        screen.print(plain(f"Not settled: {answer.why}."), soft_wrap=True)
    else:
        screen.print(plain(f"{answer.id} ({answer.event_type}) is settled as {word}."), soft_wrap=True)
    raise typer.Exit(0 if answer.result == "settled" else 1)


def _question(answer: Settled) -> str:
    named = f"{answer.event_type} {answer.id} of {answer.stage}"
    return str(plain(f"Settle {named} as {answer.word}? {_FOLLOWS[answer.word]}"))
