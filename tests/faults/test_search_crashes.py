"""index-messages, stopped at every call; the ledger's stream delivers the batch again."""

from contextlib import suppress
from typing import Any

import pytest

from mailroom.campaigns import bad_runs
from mailroom.campaigns.bad_runs import BadRuns
from mailroom.campaigns.runs import Run, Runs
from mailroom.environment import IndexSettings
from mailroom.ledger.ledger import Ledger
from mailroom.ledger.observer import observe
from mailroom.message.message import CampaignStart, Key
from mailroom.search.campaign_tallies import Tallies
from mailroom.search.indexer import Indexer
from tests.support.dynamodb import in_memory_client
from tests.support.faults.outside import Clock, Outside, Stopped
from tests.support.faults.stops import each_entry, stops
from tests.support.faults.world import create_table
from tests.support.told import ses_event
from tests.support.unit.searching import in_run, ledger_record, rows_with
from tests.support.unit.shared import LEDGER, RUNS, SEARCH, claimed, mail

NAME = "2026-11-21T09:00Z"
BEGUN = 1_795_251_600
KEYS = [Key(in_run("spring", NAME, BEGUN).id_of(f"p{at}"), "mail") for at in range(3)]
BATCH = [ledger_record(key.id) for key in KEYS]
SETTINGS = IndexSettings(
    ledger_table=LEDGER, search_table=SEARCH, search_key_name="key", campaigns={"spring": 5}, runs_table=RUNS
)


class SearchWorld:
    """World with three sent messages of a run that cannot be found yet."""

    def __init__(self) -> None:
        self.outside, self.dynamodb = Outside(), in_memory_client()
        create_table(self.dynamodb, LEDGER)
        create_table(self.dynamodb, SEARCH, "found_by", "put")
        self.ledger = Ledger(self.dynamodb, LEDGER, lease=60, ttl=86_400, clock=Clock())
        for key in KEYS:
            message = mail(key.id, campaign_start=CampaignStart("spring", NAME, 1))
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
        observe(self.ledger, [ses_event(KEYS[0], "bounced")])

    def found(self) -> tuple[list[Any], dict[str, int]]:
        """Return the places and keys of all rows, and the run's tally."""
        rows = [each for each in self.dynamodb.scan(TableName=SEARCH)["Items"] if "id" in each]
        places = sorted((each["found_by"]["S"], each["put"]["S"], each["id"]["S"]) for each in rows)
        return places, dict(Tallies(self.dynamodb, SEARCH).of_run("spring", NAME, BEGUN))


def test_the_indexer_of_search_indexes_and_counts_each_message_once_wherever_it_stops() -> None:
    whole = SearchWorld()
    whole.index()
    rows, tally = whole.found()
    assert (len(rows), tally) == (9, {"sent": 3})  # by recipient, among the newest, and of the run
    for world, where in stops(SearchWorld, SearchWorld.run):
        world.index()
        assert world.found() == (rows, tally), where


def test_the_indexer_counts_a_message_by_its_new_status_if_the_status_changes_during_indexing() -> None:
    for world, where in each_entry(SearchWorld, SearchWorld.index, SearchWorld.bounce):
        world.index()  # the change has a record of its own
        assert world.found()[1] == {"sent": 2, "bounced": 1}, where


RESUMED = "since noon by ada: a known list"


class BadRunWorld:
    """World with a run of 30 sent messages. The bounces of 25 of them are in one batch of the stream."""

    def __init__(self) -> None:
        self.outside, self.dynamodb = Outside(), in_memory_client()
        create_table(self.dynamodb, LEDGER)
        create_table(self.dynamodb, SEARCH, "found_by", "put")
        create_table(self.dynamodb, RUNS, "campaign", "run")
        self.runs = Runs(self.dynamodb, RUNS, clock=Clock())
        self.runs.begin("spring", NAME, "s-1", NAME)
        ledger = Ledger(self.dynamodb, LEDGER, lease=60, ttl=86_400, clock=Clock())
        keys = [Key(self.run.id_of(f"p{at}"), "mail") for at in range(30)]
        for key in keys:
            message = mail(key.id, campaign_start=CampaignStart("spring", NAME, self.run.valid_from))
            ledger.complete(claimed(ledger, message), "ses", "0101")
        for key in keys[:25]:
            observe(ledger, [ses_event(key, "bounced")])
        self.batch = [ledger_record(key.id) for key in keys]

    @property
    def run(self) -> Run:
        run = self.runs.read("spring", NAME)
        assert run is not None
        return run

    def index(self) -> None:
        """Give the batch to a new process."""
        calls = (
            *("batch_get_item", "batch_write_item", "transact_write_items", "query", "get_item"),
            "update_item",
        )
        watched = self.outside.watch(self.dynamodb, *calls)
        items = Indexer(SETTINGS, watched, rows_with()).handle(self.batch)
        runs = Runs(watched, RUNS, clock=Clock())
        BadRuns(Tallies(watched, SEARCH), runs, SETTINGS.campaigns, Clock()).pause(items)

    def index_and_stop(self) -> None:
        """Index the batch until the process stops."""
        with suppress(Stopped):
            self.index()


def test_a_run_with_too_many_bounces_is_paused_wherever_the_indexer_stops(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pauses: list[str] = []
    monkeypatch.setattr(bad_runs, "count", pauses.append)
    for world, where in stops(BadRunWorld, BadRunWorld.index_and_stop):
        pauses.clear()
        world.index()
        assert world.run.paused.endswith("of 30 accepted messages, 83.33% bounced"), where
        assert pauses == ["RunsPaused"], where


def test_the_indexer_pauses_a_run_after_a_crash_unless_a_person_resumed_it_after_its_earlier_pause() -> None:
    for world, where in stops(BadRunWorld, BadRunWorld.index_and_stop):
        was_paused = world.run.paused_by_itself
        world.runs.resume("spring", NAME, RESUMED)
        world.index()
        assert world.run.paused_by_itself != was_paused, where


def test_the_indexer_does_not_override_a_persons_pause_stop_or_resume_of_a_run_during_indexing() -> None:
    def resume(world: BadRunWorld) -> None:
        world.runs.pause("spring", NAME, "since noon by ada: a wrong link")
        world.runs.resume("spring", NAME, RESUMED)

    def stop(world: BadRunWorld) -> None:
        world.runs.stop("spring", NAME)

    def pause(world: BadRunWorld) -> None:
        world.runs.pause("spring", NAME, "since noon by ada: a wrong link")

    for world, where in each_entry(BadRunWorld, BadRunWorld.index, pause):
        assert world.run.paused == "since noon by ada: a wrong link", where
    for world, where in each_entry(BadRunWorld, BadRunWorld.index, stop):
        assert (world.run.state, world.run.paused) == ("stopped", ""), where
    for world, where in each_entry(BadRunWorld, BadRunWorld.index, resume):
        assert world.run.resumed == RESUMED, where
        world.index()
        assert world.run.paused_by_itself, where
