"""Faults of campaigns: a fault of one person, page or chunk touches no other."""

from collections.abc import Callable
from email.message import Message
from types import SimpleNamespace
from typing import Any
from urllib.error import HTTPError

import pytest
from botocore.exceptions import EndpointConnectionError
from msgspec import structs

from mailroom.campaigns import collector
from mailroom.campaigns.audience import Found, Page, Recipient
from mailroom.campaigns.definition import Module, Modules
from mailroom.campaigns.sources import audience_of
from mailroom.clock import epoch
from mailroom.errors import ConnectError, Invalid
from tests.support.faults.base import LEASE
from tests.support.faults.campaign_world import (
    AUDIENCE,
    COLLECT,
    RUN,
    WEEKLY,
    CampaignWorld,
    People,
    address,
)
from tests.support.faults.outside import ses_error

NewWorld = Callable[..., CampaignWorld]


def test_a_chunk_with_a_person_for_whom_compose_fails_is_a_dead_letter_and_others_get_messages(
    new_campaign_world: NewWorld,
) -> None:
    world = new_campaign_world()
    world.asking.fails = {"p1"}
    world.start()
    world.settle()
    assert world.mailbox().keys() == {f"p{at}" for at in range(10)} - {"p1"}
    (letter,) = world.queues.dead[AUDIENCE]
    assert '"p1"' in letter.body
    assert '"p9"' not in letter.body


def test_compose_calls_a_campaign_whose_database_is_down_once_per_chunk_and_not_once_per_person(
    new_campaign_world: NewWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = new_campaign_world()
    asked: list[int] = []

    def down(_definition: Any, recipients: Any) -> Any:
        asked.append(len(recipients))
        raise ConnectionRefusedError

    monkeypatch.setattr(world.asking, "compose", down)
    world.start()
    world.deliver(COLLECT, 1)
    world.deliver(AUDIENCE, 1)
    assert asked == [3]
    monkeypatch.undo()
    world.settle()
    assert len(world.mailbox()) == 10


def test_all_chunks_of_a_run_become_dead_letters_and_nobody_gets_a_message_if_compose_always_fails(
    new_campaign_world: NewWorld,
) -> None:
    world = new_campaign_world()
    world.asking.fails = {f"p{at}" for at in range(10)}
    world.start()
    world.settle()
    assert world.mailbox() == {}
    assert len(world.queues.dead[AUDIENCE]) == 5  # pages of 4, 4 and 2 in chunks of 3


def test_a_run_that_is_stopped_while_a_page_is_collected_ends_within_a_second_without_an_error(
    new_campaign_world: NewWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = new_campaign_world()
    page, counted = world.people.page, []

    def stopped_meanwhile(*arguments: Any) -> Found:
        world.runs.stop("weekly", RUN)
        return page(*arguments)

    world.start()
    world.deliver(COLLECT, 1)
    monkeypatch.setattr(world.people, "page", stopped_meanwhile)
    monkeypatch.setattr(collector, "count", lambda name, *_: counted.append(name))
    started = world.clock.now
    while (visible := world.queues.next_visible()) is not None:
        world.clock.now = max(world.clock.now, visible)
        world.deliver(COLLECT, 1)
        world.deliver(AUDIENCE)
    assert world.clock.now - started <= 1
    assert "CollectErrors" not in counted
    assert (world.run().state, world.dead()) == ("stopped", 0)
    assert world.mailbox() == {}


def test_a_stopped_run_collects_and_composes_nothing_more_until_it_is_started_again(
    new_campaign_world: NewWorld,
) -> None:
    world = new_campaign_world()
    world.start()
    world.deliver(COLLECT, 1)
    assert world.runs.stop("weekly", RUN)
    assert not world.runs.stop("weekly", RUN)
    world.settle()
    assert world.mailbox() == {}
    assert (world.run().state, world.run().pages) == ("stopped", 1)
    world.start()  # a copy of the schedule's message does not start the run again
    world.settle()
    assert world.mailbox() == {}
    world.start(start="by hand")
    world.settle()
    assert len(world.mailbox()) == 10
    assert world.dead() == 0


def test_a_second_start_while_a_run_is_collected_replaces_the_first_start(
    new_campaign_world: NewWorld,
) -> None:
    world = new_campaign_world()
    world.start()
    world.deliver(COLLECT, 1)
    world.start(start="anew")
    world.settle()
    assert len(world.mailbox()) == 10
    run = world.run()
    assert (run.start, set(run.starts)) == ("anew", {"2026-11-18T13:00:00Z", "anew"})
    assert (run.pages, run.recipients) == (3, 10)
    assert world.calls()["page"] == 5  # the old chain's second page was in the queue before


def test_the_first_start_decides_the_scheduled_time_of_a_run(new_campaign_world: NewWorld) -> None:
    world = new_campaign_world()
    world.start()
    world.settle()
    world.start(run=RUN, start="later", scheduled_at="2026-11-19T08:00:00Z")
    world.settle()
    assert world.run().scheduled_at == "2026-11-18T13:00:00Z"


def test_a_second_run_of_a_campaign_puts_another_message_for_each_person(
    new_campaign_world: NewWorld,
) -> None:
    world = new_campaign_world()
    world.start()
    world.start(run="second")
    world.settle()
    ids = world.mailbox()
    assert len(ids) == 20
    assert "weekly#second#p3" in ids


def test_a_run_with_more_pages_than_max_pages_leaves_a_dead_letter_and_records_the_reason(
    new_campaign_world: NewWorld,
) -> None:
    world = new_campaign_world(People(10), structs.replace(WEEKLY, max_pages=2))
    world.start()
    world.settle()
    assert len(world.mailbox()) == 8
    assert len(world.queues.dead[COLLECT]) == 1
    assert world.run().trouble == "max_pages: 2 pages were collected; raise it to go on"


@pytest.mark.parametrize(
    "body",
    [
        "no JSON",
        "[]",
        '{"campaign": "weekly"}',
        '{"campaign": "weekly", "scheduled_at": "yesterday"}',
        '{"campaign": "weekly", "scheduled_at": "2026-11-18T13:00:00Z", "run": "a#b"}',
        '{"campaign": "unknown", "scheduled_at": "2026-11-18T13:00:00Z"}',
        '{"campaign": "weekly", "run": "r", "start": "s", "page": 4}',
        '{"campaign": "weekly", "run": "r", "start": "s", "page": "two"}',
    ],
)
def test_a_queue_message_that_is_not_a_page_of_a_campaign_becomes_a_dead_letter_soon(
    new_campaign_world: NewWorld, body: str
) -> None:
    world = new_campaign_world()
    world.queues.put(COLLECT, body)
    began = world.clock()
    world.settle()
    assert [each.body for each in world.queues.dead[COLLECT]] == [body]
    assert world.clock() - began < 60
    assert world.mailbox() == {}


@pytest.mark.parametrize(
    "body",
    [
        "no JSON",
        '{"campaign": "unknown", "run": "r", "scheduled_at": "2026-11-18T13:00:00Z", "recipients": []}',
        '{"campaign": "weekly", "run": "r", "scheduled_at": "2026-11-18T13:00:00Z", "recipients": [1]}',
    ],
)
def test_an_invalid_chunk_becomes_a_dead_letter_and_valid_chunks_are_composed(
    new_campaign_world: NewWorld, body: str
) -> None:
    world = new_campaign_world()
    world.queues.put(AUDIENCE, body)
    world.start()
    world.settle()
    assert [each.body for each in world.queues.dead[AUDIENCE]] == [body]
    assert len(world.mailbox()) == 10


def test_a_run_records_that_its_audience_cannot_be_read_and_reads_it_again_later(
    new_campaign_world: NewWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = new_campaign_world()

    def down(_page: Page) -> Found:
        raise EndpointConnectionError(endpoint_url="https://s3.example.com/secret-name")

    monkeypatch.setattr(world.people, "page", down)
    world.start()
    world.deliver(COLLECT, 1)
    assert world.run().trouble == "page 1: EndpointConnectionError; see the log of collect"
    assert world.run().startedAt is None
    monkeypatch.undo()
    world.settle()
    assert len(world.mailbox()) == 10
    assert (world.run().trouble, world.dead()) == ("", 0)


def test_an_invalid_audience_leads_to_a_dead_letter_and_the_run_records_the_reason(
    new_campaign_world: NewWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = new_campaign_world()

    def wrong(_page: Page) -> Found:
        raise Invalid("audience.columns", "has no column email; add it to the file")

    monkeypatch.setattr(world.people, "page", wrong)
    world.start()
    world.settle()
    assert len(world.queues.dead[COLLECT]) == 1
    assert world.run().trouble == "audience.columns: has no column email; add it to the file"
    assert world.run().state == "collecting"


def test_collect_retries_a_page_that_another_worker_has_claimed_when_the_workers_lease_ends(
    new_campaign_world: NewWorld,
) -> None:
    world = new_campaign_world()
    world.start()
    world.runs.begin("weekly", RUN, "2026-11-18T13:00:00Z", "2026-11-18T13:00:00Z")
    world.runs.claim("weekly", RUN, "2026-11-18T13:00:00Z", 1)
    world.clock.now += 20
    world.deliver(COLLECT, 1)
    due = world.queues.next_visible()
    assert due is not None
    assert LEASE - 20 <= due - world.clock() <= LEASE - 18
    assert world.calls()["page"] == 0
    world.settle()
    assert len(world.mailbox()) == 10


@pytest.mark.parametrize("odd", [{"odd": object()}, {"odd": b"bytes"}, {"odd": "x" * 500_000}, None, "text"])
def test_a_person_with_invalid_composed_attributes_gets_a_message_after_the_campaign_is_fixed(
    new_campaign_world: NewWorld, monkeypatch: pytest.MonkeyPatch, odd: Any
) -> None:
    world = new_campaign_world()

    def says(_definition: Any, recipients: Any) -> Any:
        return {each.key: odd if each.key == "p2" else {} for each in recipients}

    monkeypatch.setattr(world.asking, "compose", says)
    world.start()
    world.settle()
    assert world.mailbox().keys() == {f"p{at}" for at in range(10)} - {"p2"}
    assert len(world.queues.dead[AUDIENCE]) == 1
    assert world.in_ledger() == {}  # the message is unfinished
    monkeypatch.undo()
    world.start(start="fixed")
    world.settle()
    assert "p2" in world.mailbox()


def test_a_404_response_to_compose_for_one_person_does_not_stop_messages_to_other_people(
    new_campaign_world: NewWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = new_campaign_world()

    def not_found(_definition: Any, recipients: Any) -> Any:
        if "p1" in recipients.keys:
            raise HTTPError("https://example.com", 404, "not found", Message(), None)
        return {key: {} for key in recipients.keys}

    monkeypatch.setattr(world.asking, "compose", not_found)
    world.start()
    world.settle()
    assert world.mailbox().keys() == {f"p{at}" for at in range(10)} - {"p1"}


def test_compose_puts_its_finished_messages_and_retries_the_other_people_if_it_runs_out_of_time(
    new_campaign_world: NewWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = new_campaign_world(People(3))

    def slow(_definition: Any, recipients: Any) -> Any:
        if len(recipients) > 1:
            raise KeyError("one of them")
        world.milliseconds -= 30_000
        return {key: {} for key in recipients.keys}

    monkeypatch.setattr(world.asking, "compose", slow)
    world.start()
    world.deliver(COLLECT, 1)
    world.deliver(AUDIENCE, 1)
    assert len(world.mailbox()) == 2
    monkeypatch.undo()
    world.milliseconds = 60_000
    world.settle()
    assert len(world.mailbox()) == 3
    assert world.dead() == 0


def test_compose_leaves_a_chunk_of_people_to_a_later_invocation_if_too_little_time_is_left(
    new_campaign_world: NewWorld,
) -> None:
    world = new_campaign_world()
    world.start()
    world.deliver(COLLECT, 1)
    world.milliseconds = 9_000
    world.deliver(AUDIENCE)
    assert (world.mailbox(), world.calls()["compose"]) == ({}, 0)
    world.milliseconds = 60_000
    world.settle()
    assert len(world.mailbox()) == 10


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            LookupError("the secret of database 'app' is not a login"),
            "the secret of database 'app' is not a login",
        ),
        (ConnectError("database 'app' gave no connection within 12 s"), "database 'app' gave no connection"),
        (
            ses_error("SlowDown", 503),
            "AWS refused SendEmail (SlowDown): allow collect to call it, or correct",
        ),
        (ValueError("ada@example.com"), "ValueError"),
        (KeyError("ada@example.com"), "KeyError"),
    ],
)
def test_a_run_records_without_personal_data_why_a_page_was_not_collected(
    new_campaign_world: NewWorld, monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    world = new_campaign_world()

    def failing(_page: Page) -> Found:
        raise error

    monkeypatch.setattr(world.people, "page", failing)
    world.start()
    world.deliver(COLLECT, 1)
    trouble = world.run().trouble
    assert trouble.startswith(f"page 1: {said}")
    assert trouble.endswith("; see the log of collect")
    assert "example.com" not in trouble


@pytest.mark.parametrize("last", [False, True])
def test_a_run_that_is_stopped_while_a_page_is_read_stays_stopped(
    new_campaign_world: NewWorld, monkeypatch: pytest.MonkeyPatch, *, last: bool
) -> None:
    world = new_campaign_world(People(3 if last else 10))
    real = world.people.page

    def stopping(page: Page) -> Found:
        assert world.runs.stop("weekly", RUN)
        return real(page)

    monkeypatch.setattr(world.people, "page", stopping)
    world.start()
    world.settle()
    assert (world.run().state, world.mailbox(), world.dead()) == ("stopped", {}, 0)
    assert world.calls()["page"] == 1


def test_a_run_whose_messages_have_expired_ends_as_expired_and_records_the_reason(
    new_campaign_world: NewWorld,
) -> None:
    world = new_campaign_world(People(10), structs.replace(WEEKLY, expires_after_hours=24))
    world.clock.now = epoch("2026-11-19T12:00:00Z")
    world.start()
    world.deliver(COLLECT, 1)
    world.deliver(AUDIENCE, 1)
    put = len(world.mailbox())
    assert put == 3
    world.clock.now = epoch("2026-11-19T13:00:01Z")
    world.settle()
    run = world.run()
    assert (len(world.mailbox()), run.state, world.dead()) == (put, "expired", 0)
    assert run.expired == 1  # the rest of the page, whose chunk lay in the queue
    assert run.trouble == "its messages are not sent any more: they expired at 2026-11-19T13:00:00.000Z"


def test_invalid_and_repeated_people_of_a_campaigns_module_are_refused_and_others_get_messages(
    new_campaign_world: NewWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    definition = structs.replace(
        WEEKLY, audience=Module(columns=("email",)), module="campaign.py", page_size=9
    )
    world = new_campaign_world(People(1), definition)
    people: list[Any] = [
        Recipient(7, {"email": "a@example.com"}),  # type: ignore[arg-type]
        Recipient("", {"email": "b@example.com"}),
        Recipient("x" * 101, {"email": "c@example.com"}),
        Recipient("two\nlines", {"email": "d@example.com"}),
        Recipient("8", {"email": ""}),
        Recipient("7", {"email": "e@example.com"}),
        Recipient("9", {"email": "f@example.com", "key": "kept"}),
        Recipient("g@example.com", {"email": "g@example.com"}),
    ]
    own = Modules()
    own.loaded["campaign.py"] = SimpleNamespace(recipients=lambda _page: Found(people))  # type: ignore[assignment]
    monkeypatch.setattr(world.people, "page", lambda page: audience_of(own, definition).page(page))
    world.start()
    world.settle()
    assert world.mailbox().keys() == {"7", "9"}
    assert world.mailbox()["9"]["key"] == "kept"
    run = world.run()
    assert (run.recipients, run.refused, world.dead()) == (2, 6, 0)
    assert run.faults[0].startswith("person 2 of a page, column (key): is empty")


def test_a_message_to_a_person_who_opts_out_before_the_runs_second_start_ends_as_opted_out(
    new_campaign_world: NewWorld,
) -> None:
    world = new_campaign_world()
    world.start()
    world.settle()
    world.preferences.opt_out(address("p3"), "news", "one-click")
    world.start(start="again")
    world.settle()
    # The message is in the mailbox; its sender asks again before it sends it, and so the ledger has it now.
    assert "p3" in world.mailbox()
    assert world.in_ledger()["p3"]["error"]["code"] == "opted_out"
