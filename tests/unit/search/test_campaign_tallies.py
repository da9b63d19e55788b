"""A campaign's results: each message of a run counted once, as what it is."""

import random
from typing import Any

import pytest
from botocore.exceptions import ClientError
from pydantic import ValidationError

from mailroom.aws.dynamo_values import plain
from mailroom.channels.mail.contract import Mail
from mailroom.environment import IndexSettings
from mailroom.errors import Contention
from mailroom.ledger.erasure import Erasure
from mailroom.ledger.ledger import Ledger
from mailroom.ledger.observer import observe
from mailroom.mailbox import DAY
from mailroom.message.message import CampaignStart, Key
from mailroom.search.campaign_tallies import KEPT_SECONDS, SLOTS, Tallies
from mailroom.search.finder import Filter
from mailroom.search.indexer import Indexer
from mailroom_stacks.settings.queues import Retention
from tests.support.campaign_start import start_in
from tests.support.told import ses_event
from tests.support.unit.fakes import Meddler
from tests.support.unit.searching import Search, in_run, ledger_record, rows_with
from tests.support.unit.shared import LEDGER, SEARCH, TTL, Aws, FakeClock, claimed, mail
from tests.support.unjudged import others

RUN = "2026-11-21T09:00Z"
BEGUN = 1_795_251_600
"""When the run began, in epoch seconds."""


class Counting(Search):
    """A stage that counts the messages of the campaign `spring`."""

    def __init__(self, aws: Aws, client: Any = None) -> None:
        super().__init__(aws)
        known = {"ledger_table": LEDGER, "search_table": SEARCH, "search_key_name": "key"}
        settings = IndexSettings(**known, campaigns={"spring": None})
        self.indexer = Indexer(settings, client or aws.dynamodb, rows_with())

    def results(self, begun: int = BEGUN) -> dict[str, int]:
        return dict(Tallies(self.aws.dynamodb, SEARCH).of_run("spring", RUN, begun))

    def tally(self) -> list[dict[str, Any]]:
        """The items that hold counts."""
        return [plain(each) for each in self.rows() if each["found_by"]["S"].startswith("tally#")]


@pytest.fixture
def counting(aws: Aws) -> Counting:
    return Counting(aws)


def id_in_run(who: str, campaign: str = "spring", begun: int = BEGUN) -> str:
    """The id that a run gives to a message."""
    return in_run(campaign, RUN, begun).id_of(who)


def send_to_person(ledger: Ledger, who: str, campaign: str = "spring", begun: int = BEGUN) -> Key:
    message = composed_mail(who, campaign, begun)
    ledger.complete(claimed(ledger, message), "ses", "0101")
    return message.key


def composed_mail(who: str, campaign: str = "spring", begun: int = BEGUN) -> Mail:
    """A message that a run has composed."""
    start = CampaignStart(campaign, RUN, begun * 1000)
    return mail(id_in_run(who, campaign, begun), to=f"{who}@example.com", campaign_start=start)


def test_each_message_of_a_run_is_counted_by_its_current_status(counting: Counting, ledger: Ledger) -> None:
    keys = [send_to_person(ledger, f"p{at}") for at in range(10)]
    claimed(ledger, composed_mail("waits"))
    counting.index()
    assert counting.results() == {"sent": 10}
    observe(ledger, [ses_event(keys[0], "delivered")])
    observe(ledger, [ses_event(keys[1], "bounced")])
    observe(ledger, [ses_event(keys[2], "complained")])
    counting.index()
    assert counting.results() == {"sent": 7, "delivered": 1, "bounced": 1, "complained": 1}


def test_late_repeated_and_reordered_stream_records_count_each_message_once(
    counting: Counting, ledger: Ledger
) -> None:
    order = random.Random(28)
    keys = [send_to_person(ledger, f"p{at}") for at in range(40)]
    for key in keys:
        counting.index(order.choices([ledger_record(each.id) for each in keys], k=30))
        observe(ledger, [ses_event(key, order.choice(["delivered", "bounced"]))])
    for _ in range(20):
        counting.index(order.choices([ledger_record(each.id) for each in keys], k=30))
    counting.index()
    found = [counting.aws.item(key.id)["status"] for key in keys]
    assert counting.results() == {each: found.count(each) for each in set(found)}


def test_a_resent_message_is_counted_by_its_new_status(counting: Counting, ledger: Ledger) -> None:
    key = send_to_person(ledger, "ada")
    observe(ledger, [ses_event(key, "bounced")])
    counting.index()
    assert counting.results() == {"bounced": 1}
    ledger.reopen(key, counting.aws.item(key.id))
    counting.index()
    assert counting.results() == {}
    ledger.complete(claimed(ledger, mail(key.id, to="ada@example.com", attempt=2)), "ses", "0102")
    counting.index()
    assert counting.results() == {"sent": 1}


def test_more_messages_than_fit_into_one_transaction_are_all_counted(
    counting: Counting, ledger: Ledger
) -> None:
    for at in range(230):
        send_to_person(ledger, f"p{at}")
    counting.index()
    assert counting.results() == {"sent": 230}


def test_a_producers_message_with_an_id_like_those_of_a_run_is_not_counted_or_listed_in_the_run(
    counting: Counting, ledger: Ledger
) -> None:
    send_to_person(ledger, "ada", "winter")
    for other in (id_in_run("ada"), f"spring#{RUN}#ada", "spring#alone", "spring##"):
        ledger.complete(claimed(ledger, mail(other)), "ses", "0101")
    counting.index()
    assert {each["found_by"]["S"].partition("#")[0] for each in counting.rows()} == {"newest", "to"}
    assert (counting.results(), counting.tally()) == ({}, [])
    for campaign in ("spring", f"spring#{RUN}"):
        assert counting.newest(filter_=Filter(campaign=campaign)) == []


def test_left_out_people_of_a_run_are_counted_as_suppressed_and_refused_messages_as_failed(
    counting: Counting, ledger: Ledger
) -> None:
    ada, bob = composed_mail("ada"), composed_mail("bob")
    assert ada.campaign_start is not None
    assert ledger.leave_out(ada.key, "ada@example.com", "news", "opted_out", "no", ada.campaign_start)
    item = {"id": bob.id, "event_type": "mail", **start_in(bob.id)}
    assert ledger.refuse(item, "invalid", "to: is missing", "to")
    for invalid in ({"campaign": "spring", "run": "another", "start": 1}, {"campaign": "spring"}, "spring"):
        id_ = f"{bob.id}-{invalid}"
        assert ledger.refuse({**item, "id": id_, "campaign_start": invalid}, "invalid", "is reserved")
    counting.index()
    assert counting.results() == {"suppressed": 1, "failed": 1}


def test_the_messages_of_a_run_can_be_listed_by_run_and_by_status(
    counting: Counting, ledger: Ledger, clock: FakeClock
) -> None:
    send_to_person(ledger, "ada")
    clock.advance(1)
    observe(ledger, [ses_event(send_to_person(ledger, "bob"), "bounced")])
    send_to_person(ledger, "eve", "winter")
    counting.index()
    of_run = f"spring#{RUN}"
    assert counting.newest(filter_=Filter(campaign=of_run)) == [id_in_run("bob"), id_in_run("ada")]
    assert counting.newest(filter_=Filter(campaign=of_run, status="bounced")) == [id_in_run("bob")]


def test_all_counts_of_a_run_expire_at_the_same_time_whichever_worker_counts_and_whenever(
    aws: Aws, ledger: Ledger, clock: FakeClock
) -> None:
    clock.now = BEGUN
    workers = [Counting(aws) for _ in range(SLOTS)]
    for slot, worker in enumerate(workers):
        worker.indexer._tallies._slot = str(slot)
    keys = [send_to_person(ledger, f"p{at}") for at in range(4 * SLOTS)]
    for at, worker in enumerate(workers):
        worker.index([ledger_record(each.id) for each in keys[4 * at : 4 * at + 4]])
        clock.advance(10 * DAY)
        observe(ledger, [ses_event(keys[4 * at], "delivered")])
        worker.index([ledger_record(keys[4 * at].id)])
    assert len(workers[0].tally()) == SLOTS
    assert {each["ttl"] for each in workers[0].tally()} == {BEGUN + KEPT_SECONDS}
    # The run, by which alone its counts are read, is kept for as long as the ledger remembers a message.
    with pytest.raises(ValidationError, match="ledger_days"):
        Retention(ledger_days=KEPT_SECONDS // DAY // 2 + 1)


def test_a_later_run_of_the_same_name_is_counted_separately(counting: Counting, ledger: Ledger) -> None:
    year = 365 * DAY
    observe(ledger, [ses_event(send_to_person(ledger, "ada"), "delivered")])
    send_to_person(ledger, "ada", begun=BEGUN + year)
    send_to_person(ledger, "bob", begun=BEGUN + year)
    counting.index()
    assert (counting.results(), counting.results(BEGUN + year)) == ({"delivered": 1}, {"sent": 2})


def test_an_erased_message_stays_counted_in_its_run_and_is_no_longer_listed(
    counting: Counting, ledger: Ledger, clock: FakeClock
) -> None:
    key = send_to_person(ledger, "ada")
    counting.index()
    Erasure(counting.aws.dynamodb, LEDGER, TTL, clock).empty(key, counting.aws.item(key.id))
    counting.index()
    assert counting.results() == {"sent": 1}
    assert counting.newest(filter_=Filter(campaign=f"spring#{RUN}")) == []


def test_a_message_is_counted_once_if_two_workers_count_it_at_the_same_time(
    counting: Counting, ledger: Ledger, aws: Aws
) -> None:
    key = send_to_person(ledger, "ada")
    met: list[int] = []

    def overtaken(real: Any, **request: Any) -> Any:
        # Between reads and write of this indexer the message is delivered, and the other indexer counts that.
        if not met:
            met.append(1)
            with others():
                observe(ledger, [ses_event(key, "delivered")])
                counting.index()
        return real(**request)

    Counting(aws, Meddler(aws.dynamodb, transact_write_items=overtaken)).index()
    assert counting.results() == {"delivered": 1}


def test_the_count_of_a_batch_fails_if_its_transaction_always_conflicts_and_a_retry_counts_it(
    counting: Counting, ledger: Ledger, aws: Aws
) -> None:
    send_to_person(ledger, "ada")

    def conflict(real: Any, **_: Any) -> Any:
        reasons = [{"Code": "TransactionConflict"}, {"Code": "None"}]
        raise real.__self__.exceptions.TransactionCanceledException(
            {"Error": {"Code": "TransactionCanceledException"}, "CancellationReasons": reasons}, "Transact"
        )

    with pytest.raises(Contention, match="was not counted"):
        Counting(aws, Meddler(aws.dynamodb, transact_write_items=conflict)).index()
    counting.index()
    assert counting.results() == {"sent": 1}


def test_an_invalid_transaction_raises_the_error_of_dynamodb(
    counting: Counting, ledger: Ledger, aws: Aws
) -> None:
    send_to_person(ledger, "ada")

    def wrong(real: Any, **_: Any) -> Any:
        raise real.__self__.exceptions.TransactionCanceledException(
            {
                "Error": {"Code": "TransactionCanceledException"},
                "CancellationReasons": [{"Code": "ValidationError"}],
            },
            "Transact",
        )

    with pytest.raises(ClientError):
        Counting(aws, Meddler(aws.dynamodb, transact_write_items=wrong)).index()
