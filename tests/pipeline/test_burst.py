"""Many mails at once, each a second time in the queue: none lost, none twice."""

import json
from collections import Counter

from mailroom.channels.mail.contract import Mail
from mailroom.ledger.claims import Claimed
from mailroom.ledger.items import where
from mailroom.ledger.ledger import Ledger, NewClaim
from mailroom.message.message import parse
from mailroom_local.stage.workspace import LEDGER
from tests.support.pipeline.items import mail_item
from tests.support.pipeline.shared import Pipeline, until

COUNT = 50
SECONDS = 60.0


def test_each_of_many_mails_that_are_queued_twice_is_sent_once(pipeline: Pipeline) -> None:
    items = [mail_item(f"burst-{number:04}", email=f"burst{number}@example.com") for number in range(COUNT)]
    pipeline.put_batch(items)
    pipeline.send(pipeline.output("MailQueueUrl"), map(json.dumps, items))
    pipeline.until_ended(*(item["id"] for item in items), seconds=SECONDS)
    sent = Counter(each["to"] for each in pipeline.inbox() if each["to"].startswith("burst"))
    assert sent == Counter(item["email"] for item in items)
    assert not pipeline.logged(pipeline.output("SendMailFunctionName"), "claimed in one call")
    until(
        lambda: burst_statuses(pipeline) == {"delivered": COUNT},
        SECONDS,
        lambda: f"in spite of all events: {burst_statuses(pipeline)}",
        poll=1,  # a scan takes the emulator's time from the work
    )


def test_the_dynamodb_emulator_writes_the_same_ledger_item_for_a_batch_claim_as_for_a_single_claim(
    pipeline: Pipeline,
) -> None:
    ledger = Ledger(pipeline.dynamodb, LEDGER, lease=60, ttl=1e6, clock=lambda: 1_795_251_600.0)
    one, two, three = (parse(mail_item(f"claimed-{each}"), {"mail": Mail}) for each in "123")
    try:
        ledger.claim(one, "ses/1", token="t")
        made = ledger.claim_new([NewClaim(each, "ses/1", None, "t") for each in (one, two, three)])
        assert [isinstance(each, Claimed) or each for each in made] == ["DuplicateItem", True, True]
        alone, *together = ({**pipeline.ledger(each.id), "id": "", "to": ""} for each in (one, two, three))
        assert together == [alone, alone]
        assert alone["claim_token"] == "t"
    finally:
        for each in (one, two, three):
            pipeline.dynamodb.delete_item(TableName=LEDGER, Key=where(each.key))


def burst_statuses(pipeline: Pipeline) -> Counter[str]:
    return Counter(
        row["status"] for row in pipeline.ledger_items().values() if row["id"].startswith("burst-")
    )
