"""A thousand mails at once, each a second time in the queue: none lost, none twice."""

import json
from collections import Counter

from tests.support.pipeline.items import mail
from tests.support.pipeline.shared import Pipeline, until

COUNT = 1000
SECONDS = 60.0


def test_of_a_thousand_mails_that_are_queued_twice_none_is_lost_and_none_sent_twice(
    pipeline: Pipeline,
) -> None:
    items = [mail(f"burst-{number:04}", email=f"burst{number}@example.com") for number in range(COUNT)]
    for at in range(0, COUNT, 100):
        part = items[at : at + 100]
        pipeline.put_batch(part)
        pipeline.send(pipeline.output("MailQueueUrl"), map(json.dumps, part))
    pipeline.until_ended(*(item["id"] for item in items), seconds=SECONDS)
    sent = Counter(each["to"] for each in pipeline.inbox() if each["to"].startswith("burst"))
    assert sent == Counter(item["email"] for item in items)
    until(
        lambda: outcomes(pipeline) == {"delivered": COUNT},
        SECONDS,
        lambda: f"in spite of all events: {outcomes(pipeline)}",
        poll=1,  # a scan takes the emulator's time from the work
    )


def outcomes(pipeline: Pipeline) -> Counter[str]:
    return Counter(
        row["status"] for row in pipeline.ledger_items().values() if row["id"].startswith("burst-")
    )
