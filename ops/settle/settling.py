"""Whether a message may be settled by an operator's word, and that word in the ledger."""

from collections.abc import Mapping
from secrets import token_hex
from typing import Any, Literal

from mailroom.clock import iso
from mailroom.message.message import Key
from ops.resend.contents import items_of
from ops.resend.deployed import Deployed
from ops.resend.ids import Asked
from ops.screen import NotDeployed, Refused
from ops.stage import function_variables
from ops.times import short

Item = Mapping[str, Any]
Word = Literal["sent", "failed"]

LONGEST_LEASE_SECONDS = 1_500
"""A function runs for 15 minutes at most, and its claim outlives it by 10 at most."""
LONGEST_FAX_SECONDS = 86_400
"""Of any stage, where its own number cannot be asked for any more."""


def found(deployed: Deployed, asked: Asked) -> Item:
    """The ledger's item of a message. Raises Refused where there is not exactly one."""
    items = items_of(deployed, deployed.dispatch.ledger_table, asked)
    if not items:
        raise Refused(
            f"The ledger of {deployed.stage} does not know {asked.id}, so there is nothing to settle: see "
            "mailroom status."
        )
    if len(items) > 1:
        names = " and ".join(each["event_type"] for each in items)
        raise Refused(f"There are messages of {names} with the id {asked.id}: say which by --channel.")
    return items[0]


def free_since(deployed: Deployed, event_type: str) -> float:
    """What was begun before it (epoch seconds) no worker holds any more, and no line is busy with."""
    busy: float = LONGEST_LEASE_SECONDS
    if event_type == "fax":
        try:
            sender = function_variables(deployed.functions, deployed.name("send-fax"))
        except NotDeployed:  # faxes of a gateway that was taken out are among what has to be settled
            sender = {}
        busy += float(sender.get("LONGEST_FAX_SECONDS", LONGEST_FAX_SECONDS))
    return deployed.clock() - busy


def refusal(item: Item, before: float, now: float) -> str:
    """Why a message cannot be settled; "": it can. `before` is `free_since`, `now` the time of asking, both
    in epoch seconds."""
    status = str(item.get("status", ""))
    if "completedAt" in item:
        return f"{status}: it has its outcome; mailroom resend is for sending it again"
    if status == "scheduled":
        return "scheduled: it waits for its send_at; to take it back, delete its item or cancel it by the API"
    begun = item.get("submittedAt" if "provider_id" in item else "startedAt", 0) / 1000
    if begun > before:
        until = short(iso(now + begun - before))
        return f"{status}: a worker may hold it, or its line be busy, until {until}; run this again then"
    return ""


def settle(deployed: Deployed, item: Item, word: Word, before: float) -> bool:
    """Write the word. False: the message is not as `item` any more, which was shown."""
    key, token = Key(item["id"], item["event_type"]), token_hex(16)
    if deployed.ledger(lambda: token).settle(key, item, word, before):
        return True
    # The SDK repeats a call whose answer was lost, and then meets what the first one wrote.
    items = items_of(deployed, deployed.dispatch.ledger_table, Asked(key.id, key.event_type))
    return any(each.get("claim_token") == token for each in items)
