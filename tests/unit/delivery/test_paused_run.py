"""Messages of a campaign's run that is paused, at their sender and in the rounds of `release`."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from mailroom.campaigns.runs import Runs
from mailroom.channels.mail.contract import Mail
from mailroom.ledger.items import PAUSED
from mailroom.ledger.status_reader import of_ledger
from mailroom.ledger.waits import OUTSIDE_WINDOW
from mailroom.message.window import Window
from tests.support.unit.post import Counted, Make
from tests.support.unit.releasing import Waiting
from tests.support.unit.run_messages import mail_of, start_run
from tests.support.unit.shared import BUDGETS, NOW, RUNS, Aws, item

PeopleOf = Callable[[str], list[Mail]]
CLOSED = Window(from_="23:00", to="23:30", zone="UTC")


@pytest.fixture
def paused_people(runs: Runs) -> PeopleOf:
    """Three messages of a run by its name, which is paused."""

    def begin(name: str) -> list[Mail]:
        run = start_run(runs, name)
        runs.pause("weekly", name, "a wrong link")
        return [mail_of(run, key) for key in ("ada", "bob", "eve")]

    return begin


def release_ids(waiting: Waiting) -> list[str]:
    """Return the ids of the messages that rounds of the line have queued, in their order."""
    waiting.release_line()
    return [json.loads(entry["MessageBody"])["id"] for entry in waiting.sent]


def test_a_message_of_a_paused_run_waits_without_using_the_daily_limit_and_others_are_sent(
    make_post: Make, aws: Aws, counted: Counted, paused_people: PeopleOf
) -> None:
    ada = paused_people("r")[0]
    day: dict[str, Any] = {"budgets_table": BUDGETS, "per_day": [("0001-01-01", 1)], "budgets": aws.dynamodb}
    worker = make_post(bulk=True, runs_table=RUNS, **day)
    assert worker.handle(ada.variables, item(id="m-2", lane="bulk")) == {}
    assert worker.submitted == ["m-2"]
    assert (aws.item(ada.id)["status"], of_ledger(aws.item(ada.id)).waits_for) == ("scheduled", PAUSED)
    assert counted() == {"WaitsForRun": 1, "Sent": 1}


def test_messages_of_a_paused_run_leave_the_waiting_line_and_are_released_in_order_after_it_resumes(
    waiting: Waiting, runs: Runs, paused_people: PeopleOf
) -> None:
    messages = paused_people("r")
    ids = [message.id for message in messages]
    waiting.limit(4)
    waiting.line_up(*messages, "m-2")
    assert release_ids(waiting) == ["m-2"]
    assert {of_ledger(waiting.aws.item(id_)).waits_for for id_ in ids} == {PAUSED}
    runs.resume("weekly", "r", "since noon by ada: it is right")
    assert release_ids(waiting) == ["m-2", *ids]
    assert (waiting.marked, waiting.held) == ([], [])


def test_a_run_that_stays_paused_does_not_delay_another_run_that_is_resumed(
    waiting: Waiting, runs: Runs, paused_people: PeopleOf
) -> None:
    messages = {name: paused_people(name) for name in ("r", "s", "t")}
    waiting.line_up(*(message for run in messages.values() for message in run))
    assert release_ids(waiting) == []
    for name in ("s", "r", "t"):
        queued = len(waiting.sent)
        runs.resume("weekly", name, "since noon by ada: it is right")
        assert release_ids(waiting)[queued:] == [message.id for message in messages[name]]


def test_the_content_of_a_message_cancelled_during_a_pause_is_deleted_after_the_pause(
    waiting: Waiting, runs: Runs, paused_people: PeopleOf
) -> None:
    messages = paused_people("r")
    waiting.line_up(*messages)
    waiting.release_line()
    assert waiting.ledger.cancel(messages[0].key)
    runs.resume("weekly", "r", "since noon by ada: it is right")
    assert release_ids(waiting) == [message.id for message in messages[1:]]
    assert (waiting.marked, waiting.held) == ([], [])


def test_after_a_pause_a_message_whose_window_is_closed_waits_for_its_window(
    waiting: Waiting, runs: Runs, paused_people: PeopleOf
) -> None:
    ada = paused_people("r")[0]
    waiting.hold(ada, PAUSED, NOW, window=CLOSED, lines_up=True)
    runs.resume("weekly", "r", "since noon by ada: it is right")
    assert release_ids(waiting) == []
    assert of_ledger(waiting.aws.item(ada.id)).waits_for == OUTSIDE_WINDOW
