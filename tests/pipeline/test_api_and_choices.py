"""The HTTP API on the deployed stage, and people who opt out by the link in their mail."""

import json
import time
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

import pytest

from lab.demo.killed_campaign import has_link, link_of
from lab.harness.expected import Item
from mailroom.aws.secret import CachedSecret
from mailroom.recipients.unsubscribe_links import Links
from mailroom_local.aws import LocalSession, patient
from tests.support.pipeline.campaign import FORM, ONE_CLICK, Reply, http_reply, operator, signed_reply
from tests.support.pipeline.items import mail_item
from tests.support.pipeline.shared import ACCEPTED, ENDED_SECONDS, Pipeline, until


@pytest.fixture(scope="module")
def api_url(pipeline: Pipeline) -> str:
    return pipeline.output("ApiUrl")


def post_to_api(api: str, body: object, path: str = "/messages") -> tuple[Reply, Any]:
    reply = signed_reply("POST", api + path, json.dumps(body).encode())
    return reply, json.loads(reply.body)


def get(api: str, id_: str) -> tuple[int, Any]:
    reply = signed_reply("GET", f"{api}/messages/{quote(id_, safe='')}")
    return reply.status, json.loads(reply.body)


# messages


def test_a_posted_message_is_sent_and_its_status_can_be_read(pipeline: Pipeline, api_url: str) -> None:
    id_ = "posted #1 é"
    reply, body = post_to_api(api_url, mail_item(id_))
    assert (reply.status, body["id"], body["result"]) == (202, id_, "accepted")
    assert pipeline.one_mail(id_)["to"] == "ada@example.com"
    status, found = get(api_url, id_)
    assert (status, found["id"], found["event_type"], found["attempts"]) == (200, id_, "mail", 1)
    assert found["status"] in ACCEPTED
    assert "Dear" not in json.dumps(found)


def test_the_api_and_messages_list_find_a_persons_messages_by_another_spelling_of_the_address(
    pipeline: Pipeline, api_url: str
) -> None:
    for id_ in ("found-1", "found-2"):
        post_to_api(api_url, mail_item(id_, email="Finn@Example.com"))
        pipeline.one_mail(id_)

    def found() -> list[str]:
        reply = signed_reply("GET", f"{api_url}/messages?recipient={quote('finn@EXAMPLE.com')}")
        return [each["id"] for each in json.loads(reply.body)["messages"]]

    until(lambda: len(found()) == 2, ENDED_SECONDS, lambda: f"search has {found()}")
    assert set(found()) == {"found-1", "found-2"}
    told = json.loads(
        operator(pipeline, "messages", "list", "finn@example.com", "--stage", "local", "--json").stdout
    )
    assert {each["id"] for each in told["messages"]} == {"found-1", "found-2"}
    listed = json.loads(signed_reply("GET", f"{api_url}/messages").body)["messages"]
    assert {"found-1", "found-2"} <= {each["id"] for each in listed}


def test_the_api_accepts_the_valid_messages_of_a_list_and_names_each_refused_one(
    pipeline: Pipeline, api_url: str
) -> None:
    items = [mail_item("listed-0"), mail_item("listed-1", email="nobody"), mail_item("listed-2")]
    reply, body = post_to_api(api_url, {"messages": items})
    assert (reply.status, body["accepted"], body["refused"]) == (202, 2, 1)
    assert [each["result"] for each in body["messages"]] == ["accepted", "refused", "accepted"]
    assert body["messages"][1]["field"] == "email"
    pipeline.one_mail("listed-0")
    pipeline.one_mail("listed-2")
    assert get(api_url, "listed-1")[0] == 404


def test_a_waiting_message_can_be_cancelled_and_is_never_sent(pipeline: Pipeline, api_url: str) -> None:
    due = (datetime.now(UTC) + timedelta(hours=2)).isoformat(timespec="seconds")
    post_to_api(api_url, mail_item("to-be-cancelled", send_at=due))
    reply, body = post_to_api(api_url, {}, "/messages/to-be-cancelled/cancel")
    assert (reply.status, body["status"]) == (200, "cancelled")
    assert post_to_api(api_url, {}, "/messages/to-be-cancelled/cancel")[0].status == 200
    assert get(api_url, "to-be-cancelled")[1]["status"] == "cancelled"
    assert not pipeline.mails("to-be-cancelled")


def test_a_message_posted_to_the_api_that_is_too_large_for_an_item_is_sent_whole(
    pipeline: Pipeline, api_url: str
) -> None:
    text = "A long line.\n" * 40_000
    bucket = pipeline.output("PayloadBucketName")
    pipeline.s3.put_object(Bucket=bucket, Key="reports/7.txt", Body=b"report")
    attached = [{"ref": f"s3://{bucket}/reports/7.txt"}]
    reply, _ = post_to_api(
        api_url, mail_item("posted-report", subject="Report", text=text, attachments=attached)
    )
    assert reply.status == 202
    assert pipeline.one_mail("posted-report")["content"]["text"] == text
    attachments = pipeline.one_mail("posted-report")["content"]["attachments"]
    assert [each["name"] for each in attachments] == ["7.txt"]


def test_the_api_answers_403_to_a_request_without_a_signature(pipeline: Pipeline, api_url: str) -> None:
    body = json.dumps(mail_item("unsigned")).encode()
    assert http_reply("POST", f"{api_url}/messages", body, Content_Type="application/json").status == 403
    assert http_reply("GET", f"{api_url}/messages/unsigned").status == 403
    assert get(api_url, "unsigned")[0] == 404


# choices


@pytest.fixture(scope="module")
def gardening_mail(pipeline: Pipeline) -> Item:
    """A mail about a topic, in its reader's inbox."""
    about = {"email": "reader@example.org", "topic": "gardening", "lane": "bulk"}
    pipeline.put(mail_item("gardening-1", **about))
    return pipeline.one_mail("gardening-1")


def test_a_get_of_the_opt_out_link_in_a_mail_opens_a_page_and_does_not_opt_out(
    pipeline: Pipeline, gardening_mail: Item
) -> None:
    assert has_link(gardening_mail)
    for _ in range(3):
        page = http_reply("GET", link_of(gardening_mail))
        assert (page.status, page.headers["content-type"].partition(";")[0]) == (200, "text/html")
        assert "gardening" in page.body
    pipeline.put(mail_item("gardening-2", email="reader@example.org", topic="gardening"))
    pipeline.one_mail("gardening-2")


def test_one_click_opts_out_only_of_the_topic_of_the_mail_and_the_ledger_records_the_reason(
    pipeline: Pipeline, gardening_mail: Item
) -> None:
    assert http_reply("POST", link_of(gardening_mail), ONE_CLICK, Content_Type=FORM).status == 200
    about = {"email": "Reader@Example.org"}
    pipeline.put(
        mail_item("gardening-3", topic="gardening", **about),
        mail_item("cooking-1", topic="cooking", **about),
        mail_item("receipt-1", **about),
    )
    pipeline.until_ended("gardening-3", "cooking-1", "receipt-1")
    row = pipeline.ledger("gardening-3")
    assert (row["status"], row["error"]["code"]) == ("suppressed", "opted_out")
    assert not pipeline.mails("gardening-3")
    pipeline.one_mail("cooking-1")
    pipeline.one_mail("receipt-1")


def test_people_stop_for_a_topic_suppresses_a_mail_and_people_allow_lets_the_next_one_through(
    pipeline: Pipeline,
) -> None:
    who = ("reader-7@example.org", "--stage", "local")
    assert operator(pipeline, "people", "stop", *who, "--topic", "gardening").exit_code == 0
    pipeline.put(mail_item("gardening-7", email="reader-7@example.org", topic="gardening"))
    pipeline.until_ended("gardening-7")
    assert pipeline.ledger("gardening-7")["status"] == "suppressed"
    shown = operator(pipeline, "people", "show", *who)
    assert "reader-7@example.org has received no gardening since" in shown.stdout
    assert operator(pipeline, "people", "allow", *who, "--topic", "gardening", "--yes").exit_code == 0
    pipeline.put(mail_item("gardening-8", email="reader-7@example.org", topic="gardening"))
    pipeline.one_mail("gardening-8")


def test_a_forged_opt_out_link_is_refused_for_its_page_and_for_one_click(
    api_url: str, gardening_mail: Item
) -> None:
    link = link_of(gardening_mail)
    forged = link[:-1] + ("A" if link[-1] != "A" else "B")
    assert http_reply("GET", forged).status == 404
    assert http_reply("POST", forged, ONE_CLICK, Content_Type=FORM).status == 404


# people


READER = "reader-9@example.org"


def changed(url: str, **topics: Any) -> Reply:
    return signed_reply("PATCH", url, json.dumps({"topics": topics}).encode())


def test_a_signed_request_to_the_api_reads_and_changes_a_persons_preferences(
    pipeline: Pipeline, api_url: str
) -> None:
    url = f"{api_url}/people?recipient={quote(READER, safe='')}"
    assert changed(url, followers={"state": "out"}).status == 200
    person = json.loads(signed_reply("GET", url).body)
    (followers,) = person["topics"]
    assert (followers["state"], followers["by"], person["stopped"]) == ("out", "api", [])
    consent = {"state": "in", "at": followers["at"], "evidence": "asked in the test"}
    assert changed(url, followers=consent).status == 200
    assert changed(url, followers={**consent, "at": "2026-11-21T09:00:00Z"}).status == 409
    assert http_reply("GET", url).status == http_reply("PATCH", url, b"{}").status == 403


def test_the_page_of_preferences_opens_by_its_signed_link_and_stores_an_opt_out(
    pipeline: Pipeline, api_url: str
) -> None:
    client = LocalSession().client(
        "secretsmanager", endpoint_url=pipeline.running.endpoints.aws, config=patient()
    )
    secret = CachedSecret(client, "mailroom-local-unsubscribe", time.time)
    page = Links(secret, f"{api_url}/unsubscribe").page_url(READER)
    assert 'aria-checked="true"' in http_reply("GET", page).body
    saved = http_reply("POST", page, b"unsubscribe=followers", Content_Type=FORM)
    assert (saved.status, "Saved." in saved.body) == (200, True)
    pipeline.put(mail_item("followers-9", email=READER, topic="followers"))
    pipeline.until_ended("followers-9")
    assert pipeline.ledger("followers-9")["status"] == "suppressed"
    shown = operator(pipeline, "people", "show", READER, "--stage", "local")
    assert "opted out on their page of preferences" in shown.stdout
