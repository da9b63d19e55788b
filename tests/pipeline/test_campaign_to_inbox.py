"""A campaign on the deployed stage, from its database to the inbox."""

import json
from typing import Any

import pytest

from lab.demo.killed_campaign import has_link, link_of
from tests.support.pipeline.campaign import (
    CAMPAIGN,
    FORM,
    ONE_CLICK,
    RUN_SECONDS,
    TOPIC,
    Campaign,
    http_reply,
    operator,
)
from tests.support.pipeline.items import mail_item
from tests.support.pipeline.shared import ACCEPTED, Pipeline, until

STARTS = 3
JSON = ("--stage", "local", "--json")


@pytest.fixture(scope="module")
def repeated_campaign(pipeline: Pipeline) -> Campaign:
    """Return a run that was started three times: twice at once, and again after all its messages were
    sent."""
    campaign = Campaign(pipeline, "repeated")
    campaign.start()
    campaign.start()
    campaign.until_ended()
    campaign.start()
    until(lambda: len(campaign.state().starts) == STARTS, RUN_SECONDS, lambda: f"{campaign.state()}")
    until(lambda: campaign.state().state == "collected", RUN_SECONDS, lambda: f"{campaign.state()}")
    campaign.until_ended()
    return campaign


def test_each_person_with_news_has_one_mail_despite_repeated_starts(repeated_campaign: Campaign) -> None:
    assert len(repeated_campaign.expected) >= 40
    mails = repeated_campaign.mails()
    assert {id_: [each["to"] for each in sent] for id_, sent in mails.items()} == {
        id_: [address] for id_, address in repeated_campaign.expected.items()
    }


def test_people_outside_of_the_audience_do_not_get_a_message(
    pipeline: Pipeline, repeated_campaign: Campaign
) -> None:
    rows = [row for row in pipeline.ledger_items().values() if row["id"].startswith(f"{CAMPAIGN}#repeated#")]
    assert {row["id"] for row in rows} == set(repeated_campaign.expected)
    assert {row["status"] for row in rows} <= set(ACCEPTED)


def test_a_mail_of_a_campaign_has_a_subject_and_its_opt_out_link_in_a_header_and_in_the_text(
    repeated_campaign: Campaign,
) -> None:
    (sent,) = next(iter(repeated_campaign.mails().values()))
    assert has_link(sent)
    link = sent["content"]["headers"]["List-Unsubscribe"][1:-1]
    assert link in sent["content"]["text"]
    assert sent["content"]["subject"]


def test_a_repeated_run_counts_the_messages_that_it_composed_and_those_that_existed(
    repeated_campaign: Campaign,
) -> None:
    run, people = repeated_campaign.state(), len(repeated_campaign.expected)
    assert (run.state, run.recipients, run.composed) == ("collected", people, people)
    assert run.existed == people
    assert (run.refused, run.left_out, run.failed, run.opted_out) == (0, 0, 0, 0)


def test_a_dry_run_of_a_campaign_counts_the_same_people_as_its_run_and_does_not_send_a_mail(
    pipeline: Pipeline, repeated_campaign: Campaign
) -> None:
    sent = len(pipeline.inbox())
    words = ("campaign", "start", CAMPAIGN, "--stage", "local", "--run", "dry", "--dry-run", "--json")
    answer = operator(pipeline, *words)
    assert answer.exit_code == 0, answer.stderr
    found = json.loads(answer.stdout)
    assert (found["recipients"], found["refused"]) == (len(repeated_campaign.expected), 0)
    assert [each["problem"] for each in found["samples"]] == ["", "", ""]
    assert all(each["id"].startswith(f"{CAMPAIGN}#dry#") and each["subject"] for each in found["samples"])
    assert len(pipeline.inbox()) == sent
    assert (
        operator(pipeline, "campaign", "status", CAMPAIGN, "--run", "dry", "--stage", "local").exit_code == 2
    )


@pytest.fixture(scope="module")
def by_hand(pipeline: Pipeline) -> Campaign:
    """A run that an operator starts after the first of its people has opted out."""
    campaign = Campaign(pipeline, "by-hand")
    address = campaign.people[min(campaign.people)]
    pipeline.put(mail_item("opt-out-link", email=address, topic=TOPIC))
    link = link_of(pipeline.one_mail("opt-out-link"))
    assert http_reply("POST", link, ONE_CLICK, Content_Type=FORM).status == 200
    try:
        start = operator(pipeline, "campaign", "start", CAMPAIGN, "--run", "by-hand", "--new", "--yes", *JSON)
        assert start.exit_code == 0, start.stderr
        campaign.until_ended()
    finally:
        opt_in = ("people", "allow", address, "--topic", TOPIC, "--stage", "local", "--yes")
        assert operator(pipeline, *opt_in).exit_code == 0
    return campaign


def test_an_opted_out_recipient_is_left_out_of_a_campaigns_run(pipeline: Pipeline, by_hand: Campaign) -> None:
    left_out = by_hand.state().id_of(min(by_hand.people))
    row = pipeline.ledger(left_out)
    assert (row["status"], row["error"]["code"]) == ("suppressed", "opted_out")
    assert by_hand.mails().keys() == by_hand.expected.keys() - {left_out}
    assert by_hand.state().opted_out == 1


def test_an_operator_reads_the_results_of_a_run(pipeline: Pipeline, by_hand: Campaign) -> None:
    def status() -> dict[str, Any]:
        response = operator(pipeline, "campaign", "status", CAMPAIGN, "--run", "by-hand", *JSON)
        (run,) = json.loads(response.stdout)["runs"]
        return dict(run)

    def ended() -> int:
        results = status()["results"]
        return sum(results[each] for each in ("sent", "delivered", "bounced", "complained", "failed"))

    run, recipients = status(), len(by_hand.expected)
    assert (run["state"], run["composed"], run["opted_out"]) == ("collected", recipients - 1, 1)
    until(lambda: ended() == recipients - 1, RUN_SECONDS, lambda: f"{ended()} have ended")
    campaigns = operator(pipeline, "campaign", "list", *JSON)
    (row,) = [each for each in json.loads(campaigns.stdout)["campaigns"] if each["campaign"] == CAMPAIGN]
    assert row["standing"] == "enabled"


def test_each_recipient_of_a_stopped_run_has_at_most_one_mail_or_a_cancelled_message(
    pipeline: Pipeline,
) -> None:
    """tests/faults/test_campaign_stops.py shows that it goes on when it is started again: here that takes a
    minute."""
    campaign = Campaign(pipeline, "stopped")
    campaign.start()
    until(lambda: campaign.state_or_none() is not None, RUN_SECONDS, lambda: "it was not begun", 0.02)
    campaign.stop()
    assert campaign.state().state == "stopped"
    campaign.until_drained()
    mails = campaign.mails()
    assert {*map(len, mails.values())} <= {1}
    rows = {row["id"]: row["status"] for row in pipeline.ledger_items().values()}
    assert {rows[id_] for id_ in (campaign.expected.keys() & rows.keys()) - mails.keys()} <= {"cancelled"}
