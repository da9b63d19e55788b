"""The console's pages under two clicks at once, faults, and more than was shown."""

import threading
import time
from typing import Any

import pytest

from mailroom_ops.console.pages import redrive
from mailroom_ops.repair.redrive import DeadLetterMover
from mailroom_ops.shared import deployed_stage as stages
from tests.support.ops.campaign import RUN, CampaignStage
from tests.support.ops.console import Browser
from tests.support.ops.message import LEDGER, deployed
from tests.support.ops.repair import RepairStage, repair_stage
from tests.support.ops.shared import failure
from tests.support.unit.fakes import client_error

STAGE = repair_stage
REDRIVE = "/dead-letters/redrive"


def die(stage: RepairStage, count: int) -> None:
    """So many dead letters of mail."""
    for at in range(count):
        stage.sqs.send_message(QueueUrl=stage.urls["mail-dlq"], MessageBody=f'{{"id": "{at}"}}')


def test_two_simultaneous_clicks_start_one_redrive(
    stage: RepairStage, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    die(stage, 3)
    both, gate, depth, job = threading.Barrier(2), threading.Event(), stages.depth, redrive.RedriveJob
    send, made, replies = DeadLetterMover._send, [], []

    def together(sqs: Any, url: str) -> Any:
        found = depth(sqs, url)
        both.wait(30)
        return found

    def held(mover: DeadLetterMover, batch: list[Any]) -> int:
        assert gate.wait(30)
        return send(mover, batch)

    def noted(*arguments: Any) -> Any:
        made.append(job(*arguments))
        return made[-1]

    def click() -> None:
        replies.append(browser.post(REDRIVE, {"queue": "mail"}).status)

    monkeypatch.setattr("mailroom_ops.repair.redrive.depth", together)
    monkeypatch.setattr(DeadLetterMover, "_send", held)
    monkeypatch.setattr(redrive, "RedriveJob", noted)
    clicks = [threading.Thread(target=click) for _ in range(2)]
    for thread in clicks:
        thread.start()
    for thread in clicks:
        thread.join()
    gate.set()
    for each in made:
        each.wait()
    assert (sorted(replies), len(made)) == ([303, 400], 1)


def test_a_search_for_one_dead_letter_can_be_stopped(
    stage: RepairStage, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    die(stage, 40)
    first, gate, receive = threading.Event(), threading.Event(), DeadLetterMover.receive
    calls = []

    def held(mover: DeadLetterMover, seconds: float) -> Any:
        calls.append(seconds)
        first.set()
        assert gate.wait(30)
        return receive(mover, seconds)

    monkeypatch.setattr(DeadLetterMover, "receive", held)
    started = browser.post(REDRIVE, {"queue": "mail", "only": "not-there"})
    assert first.wait(30)
    browser.post(REDRIVE, {"queue": "mail", "stop": "1"})
    gate.set()
    browser.site.jobs[redrive.RedriveJob, "mail"].wait()
    assert len(calls) == 1
    assert "It was stopped. 0 dead letters were moved" in browser.get(started.headers["location"]).words


def test_a_failed_redrive_reports_the_number_of_moved_letters(
    stage: RepairStage, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    die(stage, 30)
    send, calls = DeadLetterMover._send, []

    def flaky(mover: DeadLetterMover, batch: list[Any]) -> int:
        calls.append(len(batch))
        if len(calls) == 2:
            raise client_error("ServiceUnavailable")
        return send(mover, batch)

    monkeypatch.setattr(DeadLetterMover, "_send", flaky)
    started = browser.post(REDRIVE, {"queue": "mail"})
    browser.site.jobs[redrive.RedriveJob, "mail"].wait()
    words = browser.get(started.headers["location"]).words
    assert "ServiceUnavailable" in words
    assert "10 dead letters were moved back before that." in words


def test_a_redrive_of_many_more_letters_than_were_shown_is_refused_and_shows_the_new_number(
    stage: RepairStage, browser: Browser
) -> None:
    die(stage, 1)
    plan = browser.get(REDRIVE, queue="mail")
    die(stage, 12)
    refused = browser.post(REDRIVE, plan.hidden())
    assert refused.status == 400
    assert "About 13 dead letters are there now, but 1 was shown." in refused.words
    assert (stage.bodies("mail"), browser.site.jobs) == ([], {})
    assert browser.post(REDRIVE, refused.hidden()).status == 303
    browser.site.jobs[redrive.RedriveJob, "mail"].wait()
    assert "Done 13 moved" in browser.get(REDRIVE, queue="mail", run="1").words


@pytest.mark.parametrize("shown", ["9" * 5000, "-1", "many"])
def test_a_redrive_is_refused_if_its_form_has_a_count_that_a_page_cannot_have_shown(
    stage: RepairStage, browser: Browser, shown: str
) -> None:
    die(stage, 11)
    assert browser.post(REDRIVE, {"queue": "mail", "shown": shown}).status == 400
    assert browser.site.jobs == {}


def test_the_page_of_a_run_that_was_started_again_shows_counts_by_start_and_a_stop_button(
    world: CampaignStage,
) -> None:
    browser = Browser(world.session).enter()
    world.collected(recipients=100, composed=60)
    world.runs.stop("weekly", RUN)
    world.collected(start="s-2", recipients=100, existed=60)
    page = browser.get("/campaigns", campaign="weekly")
    assert "100 recipients found by the latest of its 2 starts, 100 by those before." in page.words
    assert "60 put into the mailbox by all its starts, 60 were there already" in page.words
    assert "have an outcome" not in page.words
    assert 'class="accounted"' not in page.text
    assert "Stop …" in page.words


def test_the_page_of_a_run_does_not_show_a_sum_above_its_number_of_recipients(world: CampaignStage) -> None:
    browser = Browser(world.session).enter()
    world.collected(recipients=100, composed=60, existed=60)
    page = browser.get("/campaigns", campaign="weekly")
    assert "120" not in page.words
    assert "100 recipients found." in page.words
    assert "have their message" not in page.words


def test_the_page_of_a_run_shows_how_many_messages_conflict_with_the_ids_of_others(
    world: CampaignStage,
) -> None:
    browser = Browser(world.session).enter()
    world.collected(recipients=40, composed=38, conflicts=2)
    page = browser.get("/campaigns", campaign="weekly")
    assert "2 were not put, because another message has their id." in page.words
    assert "40 recipients found. 40 have their message, or get none" in page.words


def test_a_run_can_be_stopped_unless_it_is_stopped_already(world: CampaignStage) -> None:
    browser = Browser(world.session).enter()
    world.collected(recipients=40, composed=40)  # a page may count twice, so the sum is unreliable
    assert "Stop …" in browser.get("/campaigns", campaign="weekly").words
    world.runs.stop("weekly", RUN)
    assert "Stop …" not in browser.get("/campaigns", campaign="weekly").words


def test_the_page_of_failures_searches_for_a_rare_reason_with_a_limited_number_of_calls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with deployed(monkeypatch) as stage:
        now = int(time.time() * 1000)
        for at in range(61):
            stage.put(
                LEDGER,
                id=f"m{at}",
                event_type="mail",
                status="failed",
                completedAt=now - at,
                **failure(f"m{at}", "mail", "failed", now - at),
                error={"code": "rejected" if at == 60 else "invalid", "message": "no"},
            )
        browser = Browser(stage.session).enter()
        client = browser.site.client("dynamodb")
        calls, query = [], client.query

        def counted(**asked: Any) -> Any:
            calls.append(asked)
            return query(**asked)

        monkeypatch.setattr(client, "query", counted)
        monkeypatch.setattr("mailroom_ops.console.pages.failures.QUICK", 10)
        none = browser.get("/failures", reason="rejected")
        assert "None of the newest 10 matches. Look at more" in none.words
        assert len(calls) == 16  # a round of the partitions
        found = browser.get("/failures", reason="rejected", more="1")
        assert "1 message" in found.words
        assert "hx-trigger" not in found.text
        assert "Nothing went wrong" in browser.get("/failures", reason="rare", more="1").words


def test_an_error_page_has_the_error_in_its_title_and_a_link_back(browser: Browser) -> None:
    refused = browser.get("/failures", since="never")
    assert (refused.status, "<title>That did not work" in refused.text) == (400, True)
    assert '<a href="/failures">Failures</a>' in refused.text
    gone = browser.post("/message/settle", {"id": "nobody", "channel": "mail", "outcome": "sent"})
    assert '<a href="/message?id=nobody&amp;channel=mail">To the message</a>' in gone.text


def test_an_unknown_path_gets_the_common_error_page_and_an_unexpected_error_is_raised(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = browser.get("/nowhere")
    assert (nowhere.status, "That did not work" in nowhere.words) == (404, True)

    def fail(*_: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("mailroom_ops.console.pages.failures.failed", fail)
    with pytest.raises(ZeroDivisionError):  # the error is printed at the terminal, after the response
        browser.get("/failures")


def test_an_empty_dead_letter_queue_has_no_redrive_button(browser: Browser) -> None:
    plan = browser.get(REDRIVE, queue="mail")
    assert (plan.status, "<button class" in plan.text) == (200, False)
    assert "All dead letters" in plan.words
