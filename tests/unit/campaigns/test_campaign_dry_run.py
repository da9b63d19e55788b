"""A dry run makes no request and no write."""

from typing import Any

import pytest

from mailroom.campaigns.audience import Fault, Found, Page, Recipient, Recipients
from mailroom.campaigns.collector import Collector
from mailroom.campaigns.composer import Composer
from mailroom.campaigns.definition import Definition, Module
from mailroom.campaigns.drafts import Drafter
from mailroom.channels.contracts import CONTRACTS
from mailroom.errors import Invalid, Malformed
from mailroom.recipients.choices import Preferences
from tests.support.unit.fakes import Meddler
from tests.support.unit.shared import LEDGER, MAILBOX, PREFERENCES, Aws, FakeClock

AT = "2026-11-18T13:00:00Z"
WEEKLY = Definition("weekly", "mail", Module(), topic="news", page_size=3)
ASKED = {"campaign": "weekly", "run": "r", "scheduled_at": AT}


class People:
    """Seven, one of whom stands wrong."""

    def page(self, page: Page) -> Found:
        assert (page.run, page.scheduled_at) == ("r", AT)
        start = page.cursor or 0
        keys = range(start, min(7, start + page.size))
        people = [Recipient(f"p{at}", {"email": f"p{at}@example.com"}) for at in keys if at != 1]
        faults = [Fault("line 3", "email", "is empty")] if 1 in keys else []
        return Found(people, start + page.size if start + page.size < 7 else None, faults)


class Silent:
    """A module that leaves out p2 and fails for p4."""

    def compose(self, _definition: Definition, recipients: Recipients) -> dict[str, dict[str, Any]]:
        if "p4" in recipients.keys:
            raise KeyError("p4")
        return {key: {"n": 1} for key in recipients.keys if key != "p2"}


def count_dry(**changes: Any) -> dict[str, Any]:
    unused: Any = None
    collector = Collector(
        {"weekly": WEEKLY}, lambda _: People(), unused, sqs=unused, queue_url="", audience_queue_url=""
    )
    return collector.dry_run({**ASKED, **changes})


def test_a_dry_run_counts_the_recipients_of_each_page_and_returns_samples_and_faults() -> None:
    first = count_dry(samples=2)
    assert first == {
        "recipients": 2,
        "cursor": 3,
        "refused": 1,
        "faults": ["line 3, column email: is empty"],
        "samples": [
            {"key": "p0", "attributes": {"email": "p0@example.com"}},
            {"key": "p2", "attributes": {"email": "p2@example.com"}},
        ],
    }
    assert count_dry(cursor=3)["samples"] == []
    assert (count_dry(cursor=6)["recipients"], count_dry(cursor=6)["cursor"]) == (1, None)


def test_a_dry_run_composes_samples_as_a_run_does_and_does_not_write_an_item(
    aws: Aws, clock: FakeClock
) -> None:
    Preferences(aws.dynamodb, PREFERENCES, clock).opt_out("p3@example.com", "news", "page")
    client: Any = Meddler(aws.dynamodb)
    drafter = Drafter(
        Silent(),  # type: ignore[arg-type]
        Preferences(client, PREFERENCES, clock),
        CONTRACTS,
    )
    people = [{"key": f"p{at}", "attributes": {"email": f"p{at}@example.com"}} for at in (0, 2, 3, 4)]
    unused: Any = None
    composer = Composer(
        {"weekly": WEEKLY},
        drafter,
        mailbox=unused,
        ledger=unused,
        runs=unused,
        sqs=unused,
        queue_url="",
        queues={},
    )
    answer = composer.dry_run({**ASKED, "recipients": people}, lambda: 60_000)
    assert [each["id"] for each in answer["items"]] == ["weekly#r#p0"]
    assert answer["items"][0]["n"] == 1
    assert (answer["opted_out"], answer["left_out"], answer["failed"]) == (["p3"], ["p2"], ["p4"])
    assert client.names() == ["batch_get_item"]
    assert all(aws.dynamodb.scan(TableName=each)["Items"] == [] for each in (MAILBOX, LEDGER))


def test_an_undeployed_campaign_is_refused_with_the_names_of_the_deployed_campaigns() -> None:
    with pytest.raises(Invalid, match="'other' is not deployed; use one of: weekly"):
        count_dry(campaign="other")


def test_a_dry_run_with_an_invalid_name_of_its_run_is_refused() -> None:
    with pytest.raises(Malformed):
        count_dry(run="a#b")
