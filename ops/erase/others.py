"""Tables of the stage that nobody has taught this command about: looked through, and never changed."""

import boto3

from ops.erase.answer import Place
from ops.erase.find import Read
from ops.erase.images import mentioned
from ops.erase.person import Person
from ops.erase.stage_facts import StageFacts
from ops.erase.tables import scan

KNOWN = ("mailbox", "ledger", "suppressions", "preferences", "dead-letters", "campaign-runs")


def other_tables(session: boto3.Session, facts: StageFacts, person: Person, read: Read) -> list[Place]:
    """How many items of each mention the person; a table that is new to the stage cannot be forgotten."""
    client = session.client("dynamodb")
    prefix = facts.table("")
    names = (name for page in client.get_paginator("list_tables").paginate() for name in page["TableNames"])
    others = [name.removeprefix(prefix) for name in names if name.startswith(prefix)]
    return [
        Place(each, sum(mentioned(image, person) for image in scan(client, facts.table(each), read)))
        for each in others
        if each not in KNOWN
    ]
