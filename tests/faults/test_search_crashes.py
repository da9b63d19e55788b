"""index-messages, stopped at every call; the ledger's stream delivers the batch again."""

from contextlib import suppress
from typing import Any

from mailroom.environment import IndexSettings
from mailroom.ledger.ledger import Ledger
from mailroom.ledger.observer import observe
from mailroom.message.message import CampaignStart, Key
from mailroom.search.campaign_tallies import Tallies
from mailroom.search.indexer import Indexer
from tests.support.dynamodb import in_memory_client
from tests.support.faults.outside import Clock, Outside, Stopped
from tests.support.faults.stops import entries, stops
from tests.support.faults.world import create_table
from tests.support.told import told
from tests.support.unit.searching import in_run, record, rows_with
from tests.support.unit.shared import LEDGER, SEARCH, claimed, mail

RUN = "2026-11-21T09:00Z"
BEGUN = 1_795_251_600
KEYS = [Key(in_run("spring", RUN, BEGUN).id_of(f"p{at}"), "mail") for at in range(3)]
BATCH = [record(key.id) for key in KEYS]
SETTINGS = IndexSettings(
    ledger_table=LEDGER, search_table=SEARCH, search_key_name="key", campaigns=("spring",)
)


class SearchWorld:
    """World with three sent messages of a run that cannot be found yet."""

    def __init__(self) -> None:
        self.outside, self.dynamodb = Outside(), in_memory_client()
        create_table(self.dynamodb, LEDGER)
        create_table(self.dynamodb, SEARCH, "found_by", "put")
        self.ledger = Ledger(self.dynamodb, LEDGER, lease=60, ttl=86_400, clock=Clock())
        for key in KEYS:
            message = mail(key.id, campaign_start=CampaignStart("spring", RUN, 1))
            self.ledger.complete(claimed(self.ledger, message), "ses", "0101")

    def index(self) -> None:
        """Give the batch to a new process."""
        calls = ("batch_get_item", "batch_write_item", "transact_write_items")
        Indexer(SETTINGS, self.outside.watch(self.dynamodb, *calls), rows_with()).handle(BATCH)

    def run(self) -> None:
        """Index the batch as far as the process lives."""
        with suppress(Stopped):
            self.index()

    def bounce(self) -> None:
        """Let SES report the bounce of the first message."""
        observe(self.ledger, [told(KEYS[0], "bounced")])

    def found(self) -> tuple[list[Any], dict[str, int]]:
        """Return the places and keys of all rows, and the run's tally."""
        rows = [each for each in self.dynamodb.scan(TableName=SEARCH)["Items"] if "id" in each]
        places = sorted((each["found_by"]["S"], each["put"]["S"], each["id"]["S"]) for each in rows)
        return places, dict(Tallies(self.dynamodb, SEARCH).of_run("spring", RUN, BEGUN))


def test_each_message_is_indexed_and_counted_once_wherever_the_indexer_stops() -> None:
    whole = SearchWorld()
    whole.index()
    rows, tally = whole.found()
    assert (len(rows), tally) == (9, {"sent": 3})  # by recipient, among the newest, and of the run
    for world, where in stops(SearchWorld, SearchWorld.run):
        world.index()
        assert world.found() == (rows, tally), where


def test_a_status_that_changes_during_indexing_is_counted_as_the_new_status() -> None:
    for world, where in entries(SearchWorld, SearchWorld.index, SearchWorld.bounce):
        world.index()  # the change has a record of its own
        assert world.found()[1] == {"sent": 2, "bounced": 1}, where
