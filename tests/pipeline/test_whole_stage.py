"""Properties of the whole stage after all other tests. This file runs last."""

import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lab.harness.acceptances import acceptances
from lab.harness.judge import delivered_twice, strangers
from mailroom.aws.secret import CachedSecret
from mailroom.message.window import DAYS
from mailroom.search.rows import Rows
from mailroom_local.aws import STAGE
from tests.support.pipeline.items import correlation, mail_item
from tests.support.pipeline.recorded import FORCED, UNUSED, Rights
from tests.support.pipeline.shared import ENDED_SECONDS, LEASE_SECONDS, Pipeline, until

HERE = Path(__file__).parent
QUIET_SECONDS = LEASE_SECONDS + 15
LOST_ANSWERS = {"lost-answer-once"}
"""The only message that may be sent twice, because its outcome was unknown."""


@pytest.fixture(scope="module")
def at_rest(pipeline: Pipeline) -> Pipeline:
    """Return the stage after its last message, with empty queues."""
    pipeline.put(mail_item("last"))
    pipeline.one_mail("last")
    names = ("Mail", "MailBulk", "Fax", "FaxRetry", "Webhook")
    urls = [pipeline.output(f"{queue}QueueUrl") for queue in names]
    until(
        lambda: all(map(pipeline.queue_is_empty, urls)),
        QUIET_SECONDS,
        lambda: f"not empty: {[url for url in urls if not pipeline.queue_is_empty(url)]}",
    )
    return pipeline


def test_each_accepted_mail_belongs_to_a_message_and_was_sent_once_unless_its_response_was_lost(
    at_rest: Pipeline,
) -> None:
    accepted = Counter(each["content"]["headers"]["X-Correlation-ID"] for each in at_rest.inbox())
    twice = {mark for mark, count in accepted.items() if count > 1}
    assert twice <= {correlation(id_) for id_ in LOST_ANSWERS}
    assert not strangers(acceptances(at_rest.inbox(), [], []), (id_ for id_, _ in at_rest.ledger_items()))


def test_a_line_never_had_two_faxes_at_once_and_each_fax_was_delivered_at_most_once(
    at_rest: Pipeline,
) -> None:
    calls = [call for of_fax in acceptances([], at_rest.calls(), []).values() for call in of_fax]
    assert calls
    assert not any(call.overlaps for call in calls)
    assert not delivered_twice(calls)


def test_every_message_that_is_sent_or_delivered_has_an_id_that_a_provider_gave(at_rest: Pipeline) -> None:
    accepted = {each["provider_id"] for each in at_rest.accepted()} | {each["id"] for each in at_rest.calls()}
    sent = [
        row
        for row in at_rest.ledger_items().values()
        if row["status"] in ("sent", "delivered")
        and row["event_type"] != "webhook"
        and "erased_at" not in row  # the fax cannot be assigned to one of the provider's any more
    ]
    assert sent
    assert not [row for row in sent if row["provider_id"] not in accepted]


def test_every_message_of_the_mailbox_has_a_ledger_item(at_rest: Pipeline) -> None:
    pages = at_rest.dynamodb.get_paginator("scan").paginate(TableName=at_rest.output("MailboxTableName"))
    put = {(item["id"]["S"], item["event_type"]["S"]) for page in pages for item in page["Items"]}
    known = set(at_rest.ledger_items())
    assert not put - known


@pytest.fixture
def stage_with_waiting(at_rest: Pipeline) -> Iterator[Pipeline]:
    """Stage with a message that was delivered, one that has failed, and three that wait: for their time, for
    their window, and for the next day."""
    ahead = datetime.now(UTC) + timedelta(days=2)
    window = {"from": "09:00", "to": "10:00", "days": DAYS[ahead.weekday()], "zone": "Europe/Berlin"}
    with at_rest.release_stopped(), at_rest.day_closed(3_600):
        # An older process may have room left that it was granted before.
        at_rest.restart(at_rest.output("SendMailBulkFunctionName"))
        at_rest.put(
            mail_item("search-failed", email="nobody"),
            mail_item("search-time", send_at=ahead.isoformat()),
            mail_item("search-window", window=window),
            mail_item("search-day", lane="bulk"),
        )
        at_rest.until_waits("send_at", "search-time")
        at_rest.until_waits("outside_window", "search-window")
        at_rest.until_waits("day_used_up", "search-day")
        at_rest.until_ended("search-failed")
        at_rest.until_status("delivered", "last")
        yield at_rest


def test_the_search_table_has_the_rows_of_each_message_of_the_ledger(stage_with_waiting: Pipeline) -> None:
    secret = CachedSecret(stage_with_waiting.secrets, f"mailroom-{STAGE}-search-key", time.time)
    items = stage_with_waiting.ledger_items().values()
    assert {"delivered", "failed", "scheduled"} <= {item["status"] for item in items}
    keys = {(row.found_by, row.put): row.key for item in items for row in Rows(secret).of(item)}

    def missing() -> list[str]:
        images = stage_with_waiting.scan(stage_with_waiting.output("SearchTableName"), ConsistentRead=True)
        places = {(image["found_by"]["S"], image["put"]["S"]) for image in images}
        return [f"{keys[place]} by {place}" for place in keys.keys() - places]

    until(lambda: not missing(), ENDED_SECONDS, lambda: f"search does not have {missing()}")


def test_the_processes_of_the_stage_are_still_running_after_the_other_tests(at_rest: Pipeline) -> None:
    assert all(process.alive() for process in at_rest.running.processes.values())


@pytest.fixture(scope="module")
def rights(at_rest: Pipeline) -> Rights:
    """Return the calls of the stage's functions, and the permissions of their roles."""
    return Rights(at_rest)


def test_every_call_of_a_function_is_allowed_by_its_role(rights: Rights) -> None:
    assert rights.requests
    denied = sorted(str(each) for each in rights.denied if not any(row.covers(each) for row in FORCED))
    assert not denied, "\n".join(["Grant these in stacks/, or call something else:", *denied])


def test_every_permission_of_the_functions_was_used_or_has_a_reason(
    rights: Rights, request: pytest.FixtureRequest
) -> None:
    if not _whole(request):
        pytest.skip("only all tests of tests/pipeline together use all rights")
    unused = sorted(str(each) for each in rights.unused if not any(row.covers(each) for row in UNUSED))
    assert not unused, "\n".join(["Take these from stacks/, or test what needs them:", *unused])
    idle = [row for row in UNUSED if not any(map(row.covers, rights.unused))]
    idle += [row for row in FORCED if not any(map(row.covers, rights.denied))]
    assert not idle, f"Take these rows from recorded.py: {idle}"


def _whole(request: pytest.FixtureRequest) -> bool:
    """Whether this run has all of the pipeline's tests."""
    options = request.config.option
    narrowed = options.keyword or options.markexpr or any("::" in each for each in request.config.args)
    return not narrowed and {*HERE.glob("test_*.py")} <= {each.path for each in request.session.items}
