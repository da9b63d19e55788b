"""`settle`: an operator says how a message ended that no worker can end."""

from collections.abc import Mapping
from secrets import token_hex
from typing import Annotated, Any, Literal

import typer
from msgspec import Struct

from mailroom.clock import iso
from mailroom.ledger.reader import of_ledger
from mailroom.message.message import Key
from ops.messages.status import show
from ops.options import AsJson, Stage, Yes
from ops.requeue.selection import MessageRef
from ops.requeue.stage import DeployedStage
from ops.screen import NotDeployed, Refused, aws_faults, confirm, plain, print_json, print_line
from ops.stage import aws_session, function_variables
from ops.times import short

Item = Mapping[str, Any]
Word = Literal["sent", "failed"]

LONGEST_LEASE_SECONDS = 1_500
"""A function runs for 15 minutes at most, and its claim outlives it by 10 at most."""
LONGEST_FAX_SECONDS = 86_400
"""The longest fax of any stage, where its own number cannot be asked for any more."""
FOLLOWS: dict[Word, str] = {
    "sent": "It is never sent again without mailroom resend --force.",
    "failed": "Callbacks follow, and mailroom resend may send it again.",
}


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


class Settling(Struct, frozen=True):
    """A message that is to be settled, by the ledger's `item`: nobody holds what was begun `before` (epoch
    seconds). `why` it cannot be settled; "": it can."""

    item: Item
    before: float
    why: str


def settle(
    id_: Annotated[str, typer.Argument(metavar="ID", help="The message's id.")],
    word: Annotated[Word, typer.Option("--as", help="How the message ended, by its provider or recipient.")],
    stage: Stage = "dev",
    *,
    channel: Annotated[
        str | None, typer.Option(help="The channel, if several channels have that id.")
    ] = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """End a message, as sent or as failed, when its provider cannot be asked any more.

    Use this for a message that stays `sending` or `retrying`: a fax whose provider was changed or lost the
    fax, or a message whose worker was cut off and whose queue message is gone. First try mailroom
    dead-letters redrive or mailroom reconcile: they let a worker find out how the message ended. Then ask the
    provider or the recipient, and say --as sent or --as failed.

    The command shows the message and asks. It settles the message only if the message has not changed since,
    and if no worker can be busy with it: a claim lasts 25 minutes at most, a fax fax.longest_fax_seconds
    longer. Callbacks follow. The ledger drops queue messages that are left, and a worker that still follows
    the message changes nothing. A later proof of the provider still corrects the outcome.

    Exit code 1: the message was not settled, and the answer says why. 2: the command could not do its work,
    or the ledger does not know the message.

    Example: mailroom settle fax-17 --as failed --channel fax --stage prod
    """
    with aws_faults(stage):
        deployed = DeployedStage.of(aws_session(), stage)
        found = look(deployed, MessageRef(id_, channel))
        if not as_json:
            show(of_ledger(found.item), stage, deployed.clock())
        if not found.why:
            named = f"{found.item['event_type']} {id_} of {stage}"
            confirm(f"{plain(f'Settle {named} as {word}? {FOLLOWS[word]}')}", yes=yes)
        answer = carry_out(deployed, found, word)
    if as_json:
        print_json(answer)
    elif answer.why:
        print_line(f"Not settled: {answer.why}.")
    else:
        print_line(f"{answer.id} ({answer.event_type}) is settled as {word}.")
    raise typer.Exit(0 if answer.result == "settled" else 1)


def look(stage: DeployedStage, ref: MessageRef) -> Settling:
    """Whether a message can be settled. Changes nothing. Raises Refused where there is not exactly one."""
    items = stage.items("ledger", ref)
    if not items:
        raise Refused(
            f"The ledger of {stage.stage} does not know {ref.id}. Check the id, --channel and --stage, or "
            "run mailroom status."
        )
    if len(items) > 1:
        names = " and ".join(each["event_type"] for each in items)
        raise Refused(f"{names} have messages with the id {ref.id}: choose one with --channel.")
    (item,) = items
    before = _free_since(stage, item["event_type"])
    return Settling(item, before, _refusal(item, before, stage.clock()))


def carry_out(stage: DeployedStage, found: Settling, word: Word) -> Settled:
    """Settle a message if it can be settled and is still as it was found."""
    item, why = found.item, found.why
    if not why:
        key, token = Key(item["id"], item["event_type"]), token_hex(16)
        settled = stage.ledger(lambda: token).settle(key, item, word, found.before)
        if not settled and stage.written(key, token) is None:
            why = "it has changed since it was shown; run this again"
    result: Literal["settled", "refused"] = "refused" if why else "settled"
    status = str(item.get("status", ""))
    return Settled(stage.stage, item["id"], item["event_type"], status, word, result, why)


def _free_since(stage: DeployedStage, event_type: str) -> float:
    """What was begun before this time (epoch seconds) no worker holds any more, and no line is busy with."""
    busy: float = LONGEST_LEASE_SECONDS
    if event_type == "fax":
        try:
            sender = function_variables(stage.functions, stage.name("send-fax"))
        except NotDeployed:  # faxes of a gateway that was taken out are among what has to be settled
            sender = {}
        busy += float(sender.get("LONGEST_FAX_SECONDS", LONGEST_FAX_SECONDS))
    return stage.clock() - busy


def _refusal(item: Item, before: float, now: float) -> str:
    """Why a message cannot be settled; "": it can. `before` is `_free_since`, `now` the time of asking, both
    in epoch seconds."""
    status = str(item.get("status", ""))
    if "completedAt" in item:
        return f"{status}: it has its outcome; to send it again, use mailroom resend"
    if status == "scheduled":
        return "scheduled: it waits for its send_at; to cancel it, delete its item or use the API"
    begun = item.get("submittedAt" if "provider_id" in item else "startedAt", 0) / 1000
    if begun > before:
        until = short(iso(now + begun - before))
        return f"{status}: a worker may hold it, or its line be busy, until {until}; run this again then"
    return ""
