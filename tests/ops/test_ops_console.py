"""The console's pages: what each shows, and what each action does."""

import html
import json
import re
import threading
import time
from decimal import Decimal
from typing import Any
from urllib.parse import unquote_plus

import pytest

from mailroom.aws.dynamo_values import image_of
from mailroom.clock import iso
from mailroom.providers.meaning import KINDS
from mailroom.recipients.choices import Suppression, Suppressions
from mailroom_ops.console.pages.redrive import RedriveJob
from mailroom_ops.repair.redrive import DeadLetterMover
from mailroom_ops.repair.requeuer import Requeuer
from tests.support.campaign_start import start_in
from tests.support.ops.campaign import RUN, CampaignStage
from tests.support.ops.console import Browser, Reply
from tests.support.ops.message import PAYLOADS, Stage, deployed, many
from tests.support.ops.repair import RepairStage, repair_stage
from tests.support.ops.search import index
from tests.support.ops.shared import failure
from tests.support.pipeline.items import mail_item
from tests.support.unit.fakes import client_error

STAGE = repair_stage
DAY_MS = 86_400_000
TTL = 9_999_999_999
HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>"
HTML = f'<p>Hello</p><script>alert(1)</script><img src="https://evil.example/p.png"><form action="https://evil.example">{"x"}</form>'


def message_page(browser: Browser, id_: str, channel: str = "mail", **more: str) -> Reply:
    reply = browser.get("/message", id=id_, channel=channel, **more)
    assert reply.status == 200
    return reply


# a message


def test_the_page_of_a_message_shows_its_timeline_with_the_time_between_steps(
    stage: RepairStage, browser: Browser
) -> None:
    stage.know(
        "m",
        status="delivered",
        provider="ses",
        provider_id="ses-1",
        attempts=1,
        startedAt=1_795_269_600_000,
        completedAt=1_795_269_602_000,
        deliveredAt=1_795_269_605_000,
        history=[
            {"at": 1_795_269_602_000, "status": "sent"},
            {"at": 1_795_269_606_000, "status": "delivered", "code": "Delivery"},
        ],
        callbacks={"sent.1": {"status": "delivered", "at": 1_795_269_607_000, "code": 200, "tries": 2}},
    )
    words = message_page(browser, "m").words
    steps = (
        "came in",
        "sending began 2026-11-21 14:00:00 UTC",
        "sent accepted by SES ses-1 2026-11-21 14:00:02 UTC after 2.0 s",
        "delivered reported by SES 2026-11-21 14:00:05 UTC after 3.0 s",
        "callback of sent: accepted, 2 tries; the endpoint answered 200",
        "2026-11-21 14:00:07 UTC after 2.0 s",
    )
    places = [words.index(each) for each in steps]
    assert places == sorted(places)
    assert "SES says that it was delivered." in words
    assert "Its content no longer exists" in words


def test_the_page_of_a_waiting_message_shows_why_it_waits_and_a_button_to_cancel(
    stage: RepairStage, browser: Browser
) -> None:
    wait = {"version": "v", "reason": "outside_window"}
    due = "2099-11-21T09:00:00Z"
    stage.know("m", status="scheduled", scheduledFor=due, wait=wait, to="ada@example.com")
    page = message_page(browser, "m")
    assert "It has to wait, and is not sent yet." in page.words
    assert "It waits until its window opens, 2099-11-21 09:00:00 UTC." in page.words
    assert ("Cancel …" in page.words, "Record its outcome …" in page.words) == (True, False)
    stage.know("n", status="scheduled", scheduledFor="2026-11-21T09:00:00Z")
    page = message_page(browser, "n")
    assert ("Cancel …" in page.words, "Record its outcome …" in page.words) == (False, True)


def test_a_follow_up_and_the_message_in_its_condition_link_to_each_other(
    stage: RepairStage, browser: Browser
) -> None:
    unless = {"id": "code", "event_type": "sms", "status": ["sent", "delivered"]}
    times: dict[str, Any] = {"putAt": 1_795_269_600_000, "ttl": 9_999_999_999}
    stage.know("code", "sms", status="delivered", **times)
    error = {"code": "unless", "message": "unless: sms code is delivered"}
    stage.know(
        "m",
        status="cancelled",
        unless=[unless],
        error=error,
        unless_fulfilled={**unless, "status": "delivered"},
        **times,
    )
    index(stage.dynamodb)
    page = message_page(browser, "m")
    assert "Not sent if sms code is sent or delivered" in page.words
    assert (
        "It was not sent, because a condition of its unless was fulfilled. unless: sms code is delivered"
        in page.words
    )
    assert 'href="/message?id=code&amp;channel=sms"' in page.text
    assert "Send again" not in page.words
    other = message_page(browser, "code", "sms")
    assert "Follow-up mail m cancelled" in other.words
    assert 'href="/message?id=m&amp;channel=mail"' in other.text


def test_a_message_cancelled_by_the_stop_of_its_run_has_no_button_to_send_it_again(
    stage: RepairStage, browser: Browser
) -> None:
    ended: dict[str, Any] = {"status": "cancelled", "completedAt": 1_795_269_600_000}
    stage.know("m", **ended, error={"code": "cancelled", "message": "it was taken back"})
    assert "Send again" in message_page(browser, "m").words
    stage.know("m", **ended, error={"code": "stopped", "message": "its run was stopped"})
    page = message_page(browser, "m")
    assert "A start of its run sends it, if its person is still in the audience." in page.words
    assert "Send again" not in page.words


def test_a_message_whose_follow_ups_cannot_be_read_is_shown_without_them(
    stage: RepairStage, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> Any:
        raise client_error("AccessDenied")

    monkeypatch.setattr("mailroom.search.finder.Finder.naming", refuse)
    stage.know("m", status="delivered")
    assert "delivered" in message_page(browser, "m").words


def test_an_empty_list_of_messages_in_the_console_shows_the_number_of_messages_in_queues(
    stage: RepairStage, browser: Browser
) -> None:
    for url in ("mail", "mail-bulk"):
        stage.sqs.send_message(QueueUrl=stage.urls[url], MessageBody="{}")
    said = " so far; 2 messages are in queues and not listed yet."
    assert f"No message{said}" in browser.get("/messages").words
    nobody = browser.get("/messages", q="ada@example.com").words
    assert f"No message has that id, and nothing was sent to ada@example.com{said}" in nobody


def test_a_failed_message_shows_its_reason_and_its_remedy(stage: RepairStage, browser: Browser) -> None:
    stage.failed("m")
    stage.put(mail_item("m"))
    words = message_page(browser, "m").words
    assert "It was not sent. 550 no (rejected)" in words
    assert "Fix what the error says, then: send it again" in words
    assert "Send again …" in words
    assert "mailroom " not in words  # the page has a button in place of the command
    assert "Dear Ada Lovelace" in words
    assert '"first_name": "Ada"' in words


def test_the_page_of_a_message_lists_failed_recipients_first_with_links_to_their_pages(
    stage: RepairStage, browser: Browser
) -> None:
    stage.know("m", status="bounced", to=["a@example.com"], recipients=many(), completedAt=1)
    page = message_page(browser, "m")
    assert "46 delivered, 1 bounced, 1 complained, 1 without a report" in page.words
    wrong, others = page.text.split("The other 47")
    for who in ("bob", "eve"):
        assert f'href="/people?recipient={who}%40example.com">{who}@example.com</a>' in wrong
    assert ("p7@example.com" in wrong, "p7@example.com" in others) == (False, True)
    assert "What keeps a@example.com" not in page.words


def test_a_mail_is_shown_in_a_sandboxed_frame(stage: RepairStage, browser: Browser) -> None:
    stage.put(mail_item("m", subject="Hi", html=HTML))
    page = message_page(browser, "m")
    assert '<iframe sandbox="allow-same-origin" src="/message/mail?id=m&amp;channel=mail"' in page.text
    assert "<script>alert" not in page.text
    frame = browser.get("/message/mail", id="m", channel="mail")
    assert frame.text == HTML
    assert frame.headers["content-security-policy"] == (
        "sandbox allow-same-origin; default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
        "frame-ancestors 'self'"
    )


def test_the_console_disables_elements_of_a_shown_mail_that_make_a_browser_connect(
    stage: RepairStage, browser: Browser
) -> None:
    own = '<style>p > b { color: red }</style><p title="&lt;link&gt;">1 &lt; 2 &amp; 3<br /></p>'
    stage.put(
        mail_item(
            "m",
            subject="Hi",
            html='<!DOCTYPE html><LINK rel="preconnect" href="https://evil.example"><Base/href=x>'
            f"<iframe srcdoc='&lt;link>'></iframe><svg><style><link\n></svg><Frame\f>{own}<![ x <meta"
            "<A\nhref=x style='color: red'>Go</a ><abbr>etc.</abbr><area>",
        )
    )
    frame = browser.get("/message/mail", id="m", channel="mail")
    assert frame.text == (
        '<!DOCTYPE html><bgsound LINK rel="preconnect" href="https://evil.example"><bgsound Base/href=x>'
        "<bgsound iframe srcdoc='&lt;link>'></iframe><svg><style><bgsound link\n></svg><bgsound Frame\f>"
        f"{own}<![ x <bgsound meta"
        "<span\nhref=x style='color: red'>Go</span ><abbr>etc.</abbr><bgsound area>"
    )


def test_text_of_a_message_or_a_query_is_escaped_on_the_pages_that_show_it(
    stage: RepairStage, browser: Browser
) -> None:
    stage.put(mail_item(HOSTILE, subject=HOSTILE, text=HOSTILE, headers={"X-Own": HOSTILE}, topic=HOSTILE))
    stage.failed(
        HOSTILE,
        to=HOSTILE,
        provider=HOSTILE,
        provider_id=HOSTILE,
        error={"code": HOSTILE, "message": HOSTILE},
        history=[{"at": 1, "status": "failed", "code": HOSTILE}],
        callbacks={HOSTILE: {"status": HOSTILE, "at": 1, "code": 1, "tries": 1}},
        recipients={HOSTILE: {"status": HOSTILE, "error": HOSTILE}},
        bounce_type=HOSTILE,
    )
    pages = [
        message_page(browser, HOSTILE),
        browser.get("/message", id=HOSTILE + "x"),
        browser.get("/message/resend", id=HOSTILE, channel="mail"),
        browser.get("/message/settle", id=HOSTILE, channel="mail"),
        browser.get("/message/cancel", id=HOSTILE, channel="mail"),
        browser.get("/failures", since=HOSTILE),
        browser.get("/dead-letters", queue=HOSTILE),
        browser.get("/campaigns", campaign=HOSTILE),
    ]
    for page in pages:
        assert "alert(1)" in page.text
        assert "<script>a" not in page.text
        assert "<img" not in page.text


def test_a_character_that_overrides_the_text_direction_is_shown_as_a_replacement_character(
    stage: RepairStage, browser: Browser
) -> None:
    stage.put(mail_item("m", subject="invoice\u202efdp.exe", text="x"))
    assert "invoice\ufffdfdp.exe" in message_page(browser, "m").words
    stage.put(mail_item("m", subject="\u200f\u05e9\u05dc\u05d5\u05dd", text="x"))
    assert ">\u200f\u05e9\u05dc\u05d5\u05dd</dd>" in message_page(browser, "m").text


@pytest.mark.parametrize(
    ("id_", "other"), [("m ", "m"), ("m\u202e", "m\ufffd")], ids=["spaces", "a character shown as a mark"]
)
def test_the_cancellation_of_a_message_does_not_change_a_message_with_a_similar_id(
    stage: RepairStage, browser: Browser, id_: str, other: str
) -> None:
    stage.put(*(mail_item(each, send_at="2099-01-01T00:00:00Z") for each in (id_, other)))
    plan = browser.get("/message/cancel", id=id_, channel="mail")
    assert browser.post("/message/cancel", plan.hidden()).status == 303
    assert stage.ledger(other) == {}
    assert stage.ledger(id_)["status"] == "cancelled"


def test_spaces_around_a_typed_id_are_removed(stage: RepairStage, browser: Browser) -> None:
    stage.failed("m")
    found = browser.get("/message", id=" m ", channel="mail ")
    assert (found.status, found.headers["location"]) == (303, "/message?id=m&channel=mail")
    assert browser.get("/message", id=" nobody ").headers["location"] == "/message?id=nobody"


def test_the_page_of_a_message_with_an_unknown_id_is_answered_with_404(browser: Browser) -> None:
    reply = browser.get("/message", id="nobody")
    assert (reply.status, "There is no message nobody in dev." in reply.words) == (404, True)


@pytest.mark.parametrize(
    "send_at",
    ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"],
)
def test_a_message_is_shown_whatever_the_year_of_its_send_at(
    stage: RepairStage, browser: Browser, send_at: str
) -> None:
    stage.put(mail_item("m", send_at=send_at))
    stage.failed("m", "sms")
    assert browser.get("/message", id="m", channel="mail").status == 200
    assert "2 channels have a message" in browser.get("/message", id="m").words


def test_the_page_of_a_message_reports_an_unreadable_payload_and_still_shows_the_timeline(
    stage: RepairStage, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> bytes:
        raise client_error("AccessDenied")

    stage.put(mail_item("m", payload_ref="s3://mailroom-dev-payloads/x"))
    monkeypatch.setattr("mailroom.content.payloads.Payloads.read", refuse)
    words = message_page(browser, "m").words
    assert "It cannot be rendered: An error occurred (AccessDenied)" in words
    assert "Timeline" in words


def test_a_long_text_of_a_message_is_shortened_and_left_out_of_live_updates(
    stage: RepairStage, browser: Browser
) -> None:
    stage.put(mail_item("m", subject="Hi", html="'" * 300_000, text="x"))
    page = message_page(browser, "m")
    assert "These are the first 100,000 of 300,000 characters." in page.words
    assert len(page.text) < 1_500_000
    update = browser.get("/message", {"hx-request": "true"}, id="m", channel="mail")
    assert 'id="live"' in update.text
    assert len(update.text) < 20_000


def test_numbers_of_an_item_are_shown_as_json_numbers(stage: RepairStage, browser: Browser) -> None:
    stage.put(mail_item("m", price=Decimal("1.5")))
    assert '"price": 1.5' in message_page(browser, "m").words


def test_the_page_of_a_message_shows_its_subject_its_recipient_and_its_attachments(
    stage: RepairStage, browser: Browser
) -> None:
    s3 = stage.session.client("s3")
    s3.create_bucket(Bucket=PAYLOADS)
    for key in ("in/invoice.pdf", "x"):
        s3.put_object(Bucket=PAYLOADS, Key=key, Body=b"%PDF")
    attached = [
        {"ref": f"s3://{PAYLOADS}/in/invoice.pdf"},
        {"ref": f"s3://{PAYLOADS}/x", "filename": "terms.pdf"},
    ]
    shop = {"from": "Shop <shop@example.com>", "cc": "bob@example.com", "attachments": attached}
    stage.put(mail_item("spring#2026#ada", **shop))
    known: dict[str, Any] = {"to": "ada@example.com", "subject": "Your invoice", "template": "invoice"}
    stage.know("spring#2026#ada", status="bounced", completedAt=1, **known)
    assert "Campaign spring" not in browser.get("/message", id="spring#2026#ada", channel="mail").words
    known |= start_in("spring#2026#ada")
    stage.know("spring#2026#ada", status="bounced", completedAt=1, **known)
    page = browser.get("/message", id="spring#2026#ada", channel="mail")
    assert '<h1 dir="auto">Your invoice</h1>' in page.text
    for said in (
        *("bounced mail to ada@example.com", "From Shop <shop@example.com>", "Cc bob@example.com"),
        *("Attached invoice.pdf", "terms.pdf", "Template invoice", "Campaign spring"),
        "What keeps ada@example.com from getting it …",
    ):
        assert said in page.words
    assert 'href="/messages?q=ada%40example.com"' in page.text
    assert 'href="/people?recipient=ada%40example.com"' in page.text


AGAIN, EXAMPLE = "Rendered again now, with", "Its unsubscribe link is an example."
CHECKOUT = "the templates of your folder: it may differ from what was sent."
FOLLOWERS = {"template": "weekly-followers", "first_name": "Ada", "new_followers": 1, "followers": ["Bob"]}


@pytest.mark.parametrize(
    ("item", "remarks"),
    [
        (mail_item("m", subject="Hi", text="Hello", topic="news"), []),
        ({"id": "m", "event_type": "sms", "to": "+16175551234", "text": "Hello"}, []),
        (
            {"id": "m", "event_type": "fax", "to": "+16175551234", "pdf_url": "https://files.example/f.pdf"},
            [],
        ),
        (mail_item("m", template="default"), [f"{AGAIN} {CHECKOUT}"]),
        (mail_item("m", template="default", topic="news"), [f"{AGAIN} {CHECKOUT}"]),
        ({**mail_item("m"), **FOLLOWERS, "topic": "followers"}, [f"{AGAIN} {CHECKOUT} {EXAMPLE}"]),
    ],
)
def test_the_page_of_a_message_marks_content_rendered_again_and_an_example_of_an_unsubscribe_link(
    stage: RepairStage, browser: Browser, item: dict[str, Any], remarks: list[str]
) -> None:
    """Some mails with a topic have the link in their headers only, which the page does not show."""
    stage.put(item)
    template = {"template": item["template"]} if "template" in item else {}
    stage.know("m", item["event_type"], status="sent", completedAt=1, attempts=1, ttl=TTL, **template)
    page = message_page(browser, "m", item["event_type"])
    assert "cannot be rendered" not in page.words
    found = [
        each
        for each in re.findall('<p class="fine">([^<]*)</p>', page.text)
        if AGAIN in each or EXAMPLE in each
    ]
    assert [each.strip() for each in found] == remarks


FAXED: dict[str, Any] = {
    "to": "+16175551234",
    "sent_from": "+12025550123",
    "pdf_url": "https://files.example/letter.pdf?X-Amz-Signature=secret",
    "pages": 3,
    "attempts": 2,
    "provider": "telnyx",
    "provider_id": "fx-9",
    "putAt": 1_795_269_600_000,
    "startedAt": 1_795_269_660_000,
    "submittedAt": 1_795_269_661_000,
    "deliveredAt": 1_795_269_723_999,
    "completedAt": 1_795_269_725_100,
    "history": [{"at": 1_795_269_725_100, "status": "delivered"}],
}


def test_the_receipt_of_a_delivered_fax_has_its_facts_but_not_the_signature_of_its_url(
    stage: RepairStage, browser: Browser
) -> None:
    stage.know("f", "fax", status="delivered", **FAXED)
    assert (
        'href="/message/receipt?id=f&amp;channel=fax">Receipt</a>' in message_page(browser, "f", "fax").text
    )
    receipt = browser.get("/message/receipt", id="f", channel="fax")
    for fact in (
        *("Receipt of the fax f", "Status delivered, as telnyx reported", "To +16175551234", "Pages 3"),
        *("From +12025550123", "Document https://files.example/letter.pdf ", "Id at telnyx fx-9", "Tries 2"),
        *("Came in 2026-11-21 14:00:00 UTC", "Submitted 2026-11-21 14:01:01 UTC"),
        *("Delivered 2026-11-21 14:02:03 UTC", "Report read 2026-11-21 14:02:05 UTC"),
    ):
        assert fact in receipt.words
    assert "secret" not in receipt.text


@pytest.mark.parametrize(("channel", "status"), [("fax", "sent"), ("fax", "retrying"), ("mail", "delivered")])
def test_a_message_that_is_not_a_delivered_fax_has_no_receipt(
    stage: RepairStage, browser: Browser, channel: str, status: str
) -> None:
    stage.know("f", channel, status=status, **FAXED)
    assert "Receipt" not in message_page(browser, "f", channel).words
    assert browser.get("/message/receipt", id="f", channel=channel).status == 400


def test_the_text_for_a_ticket_has_the_recipient_the_subject_and_the_providers_id_but_no_content(
    stage: RepairStage, browser: Browser
) -> None:
    stage.put(mail_item("m", text="The secret is 42", code="42"))
    error = {"code": "rejected", "message": "550 no ada@example.com"}
    facts = {"to": "ada@example.com", "subject": "Hello", "provider": "ses", "provider_id": "0102-7"}
    stage.know("m", status="failed", completedAt=1_795_269_602_000, error=error, **facts)
    (ticket,) = re.findall('data-copy="([^"]*)"', browser.get("/message", id="m", channel="mail").text)
    first, status, *about, last, now = ticket.splitlines()
    assert (first, status.partition(" since")[0]) == ("dev: mail m", "failed (rejected)")
    assert about == ["To: ada@example.com", "Subject: Hello", "Provider: ses 0102-7"]
    assert last == "Last: completed at 2026-11-21 14:00:02 UTC"
    assert now.startswith("As of ")


def test_the_earlier_tries_of_a_fax_are_folded_and_its_last_one_is_shown(
    stage: RepairStage, browser: Browser
) -> None:
    history = [{"at": 1_000_000 * number, "status": "retrying", "code": "busy"} for number in range(1, 6)]
    for id_, tries in (("few", 2), ("many", 5)):
        stage.know(id_, "fax", status="retrying", to="+16175551234", history=history[:tries])
    assert "earlier tries" not in message_page(browser, "few", "fax").text
    page = message_page(browser, "many", "fax").text
    (fold,) = re.findall("<details><summary>4 earlier tries</summary>(.*?)</details>", page, re.DOTALL)
    assert re.findall("number [0-9]", fold) == [f"number {number}" for number in range(1, 5)]
    assert re.findall("number [0-9]", page.replace(fold, "")) == ["number 5"]


# actions


def test_a_resend_is_executed_after_its_plan_was_shown(stage: RepairStage, browser: Browser) -> None:
    stage.failed("m")
    stage.put(mail_item("m"))
    plan = browser.get("/message/resend", id="m", channel="mail")
    assert "Failed: rejected: 550 no. It is sent again with its present content, as try 2." in plan.words
    assert stage.bodies("mail") == []
    done = browser.post("/message/resend", plan.hidden())
    assert (done.status, done.headers["location"]) == (303, "/message?id=m&channel=mail&done=resend")
    assert stage.bodies("mail") == [mail_item("m") | {"attempt": 2}]
    assert "It is on its way again." in message_page(browser, "m", done="resend").words


def test_a_resend_is_refused_if_the_item_or_the_risk_has_changed_since_the_plan(
    stage: RepairStage, browser: Browser
) -> None:
    stage.failed("m")
    stage.put(mail_item("m"))
    plan = browser.get("/message/resend", id="m", channel="mail")
    stage.put(mail_item("m", to="somebody.else@example.com"))
    assert browser.post("/message/resend", plan.hidden()).status == 400
    plan = browser.get("/message/resend", id="m", channel="mail")
    stage.failed("m", error={"code": "outcome_unknown", "message": "?"})
    refused = browser.post("/message/resend", plan.hidden())
    assert (refused.status, "it has changed since it was shown" in refused.words) == (400, True)
    assert stage.bodies("mail") == []


def test_the_console_reports_a_message_as_reopened_if_sqs_refuses_to_queue_its_resend(
    stage: RepairStage, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.failed("m")
    stage.put(mail_item("m"))
    plan = browser.get("/message/resend", id="m", channel="mail")
    monkeypatch.setattr(Requeuer, "send", lambda _, queued: {str(at) for at, _ in enumerate(queued)})
    reply = browser.post("/message/resend", plan.hidden())
    assert (reply.status, "m: it is reopened, but SQS did not accept it" in reply.words) == (400, True)
    assert "was not done" not in reply.words
    assert stage.ledger("m")["status"] == "retrying"


def test_the_plan_to_resend_a_fax_states_that_its_content_in_the_ledger_is_sent_again(
    stage: RepairStage, browser: Browser
) -> None:
    stage.failed("f", "fax", to="+16175551234", pdf_url="https://files.example/f.pdf", attempts=1)
    plan = browser.get("/message/resend", id="f", channel="fax")
    assert "It is sent again with its old content, as try 2." in plan.words


def test_a_delivered_message_is_resent_only_with_force(stage: RepairStage, browser: Browser) -> None:
    stage.know("m", status="delivered", completedAt=1, attempts=1)
    stage.put(mail_item("m"))
    plan = browser.get("/message/resend", id="m", channel="mail")
    assert "it would arrive twice" in plan.words
    assert "<form method" not in plan.text
    forced = browser.get("/message/resend", id="m", channel="mail", force="1")
    assert "It may arrive twice." in forced.words
    without = {**forced.hidden(), "force": ""}
    assert browser.post("/message/resend", without).status == 400
    assert browser.post("/message/resend", forced.hidden()).status == 303
    assert [each["id"] for each in stage.bodies("mail")] == ["m"]


def test_the_resend_of_a_suppressed_message_requires_a_lifted_suppression_and_cannot_be_forced(
    stage: RepairStage, browser: Browser
) -> None:
    stage.know("m", status="suppressed", completedAt=1, attempts=1, to="ada@example.com")
    stage.put(mail_item("m"))
    suppressions = Suppressions(stage.dynamodb, "mailroom-dev-suppressions")
    suppressions.mark(Suppression("ada@example.com", "mail", "bounce", 1_795_251_600_000))
    plan = browser.get("/message/resend", id="m", channel="mail")
    assert "it would be suppressed again" in plan.words.casefold()
    assert 'id="lift-1" href="/people?recipient=ada%40example.com"' in plan.text
    assert "force" not in plan.text


def test_a_fax_without_an_outcome_is_settled_with_the_chosen_status(
    stage: RepairStage, browser: Browser
) -> None:
    old = round(time.time() * 1000) - 2 * DAY_MS
    stage.know("f", "fax", status="sending", provider="signalwire", provider_id="fx", submittedAt=old)
    plan = browser.get("/message/settle", id="f", channel="fax")
    assert "As failed: Callbacks are sent, and mailroom messages resend can send it again." in plan.words
    done = browser.post("/message/settle", {**plan.hidden(), "outcome": "failed"})
    assert done.status == 303
    assert stage.ledger("f", "fax")["status"] == "failed"


def test_an_outcome_can_be_recorded_only_if_it_is_unknown(stage: RepairStage, browser: Browser) -> None:
    old = round(time.time() * 1000) - 2 * DAY_MS
    stage.know("paused", status="sending", dead_lettered_at=old)
    stage.know("doubt", status="sending", dead_lettered_at=old, unsettled_tries={f"{old} a"})
    for id_ in ("paused", "doubt"):
        stage.put(mail_item(id_))
    paused = browser.get("/message/settle", id="paused", channel="mail")
    assert "Its outcome cannot be recorded: it was not sent: send it again." in paused.words
    assert "<form method" not in paused.text
    assert (
        browser.post("/message/settle", {"id": "paused", "channel": "mail", "outcome": "sent"}).status == 400
    )
    doubt = browser.get("/message/settle", id="doubt", channel="mail").text
    assert 'class="danger" name="outcome" value="sent"' in doubt


def test_an_outcome_is_not_recorded_if_the_message_has_changed_since_the_page_was_shown(
    stage: RepairStage, browser: Browser
) -> None:
    old = round(time.time() * 1000) - 2 * DAY_MS
    known: dict[str, Any] = {"status": "sending", "provider": "signalwire", "provider_id": "fx"}
    stage.know("f", "fax", **known, submittedAt=old)
    plan = browser.get("/message/settle", id="f", channel="fax")
    stage.know("f", "fax", **known, submittedAt=old - 1)
    refused = browser.post("/message/settle", {**plan.hidden(), "outcome": "sent"})
    assert (refused.status, "it has changed since it was shown" in refused.words) == (400, True)
    assert stage.ledger("f", "fax")["status"] == "sending"


def test_the_console_does_not_offer_to_record_an_outcome_for_a_message_that_has_one(
    stage: RepairStage, browser: Browser
) -> None:
    stage.failed("m")
    plan = browser.get("/message/settle", id="m", channel="mail")
    assert "Its outcome cannot be recorded: failed: it has its outcome" in plan.words
    assert "<form method" not in plan.text


def test_a_message_is_cancelled_only_if_it_waits(stage: RepairStage, browser: Browser) -> None:
    stage.put(mail_item("later", send_at="2099-01-01T00:00:00Z"), mail_item("now"))
    plan = browser.get("/message/cancel", id="later", channel="mail")
    assert "ends as cancelled" in plan.words
    assert browser.post("/message/cancel", plan.hidden()).status == 303
    assert stage.ledger("later")["status"] == "cancelled"
    refused = browser.post("/message/cancel", {"id": "now", "channel": "mail"})
    assert (refused.status, "does not wait" in refused.words) == (400, True)
    assert stage.ledger("now") == {}


def test_a_cancellation_is_refused_if_the_message_has_changed_since_the_plan(
    stage: RepairStage, browser: Browser
) -> None:
    stage.put(mail_item("m", send_at="2099-01-01T00:00:00Z"))
    assert "Cancel …" in message_page(browser, "m").words
    plan = browser.get("/message/cancel", id="m", channel="mail")
    stage.put(mail_item("m", send_at="2098-01-01T00:00:00Z"))
    refused = browser.post("/message/cancel", plan.hidden())
    assert (refused.status, "it has changed since it was shown" in refused.words) == (400, True)
    assert stage.ledger("m") == {}


def test_live_updates_of_a_page_can_be_switched_off(browser: Browser) -> None:
    still = browser.get("/", live="off")
    assert "hx-trigger" not in still.text
    assert "Update by itself" in still.words


# failures, dead letters, campaigns


def test_the_page_of_failures_shows_a_list_and_bars_by_status_channel_or_template_that_filter_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with deployed(monkeypatch) as stage:
        put_failed(stage, "a", "invalid", error={"code": "invalid", "message": "no", "field": "to"})
        bounced = {"status": "bounced", "bounce_type": "Permanent", "template": "welcome"}
        put_failed(stage, "spring#1#b", "x", **bounced, **start_in("spring#1#b"))
        put_failed(stage, "c", "rejected", "sms", to="+16175551234")
        browser = Browser(stage.session).enter()
        page = browser.get("/failures")
        for said in (
            "Status failed 2 bounced 1",
            "Channel mail 2 sms 1",
            "Attribute to 1",
            "Template welcome 1",
            "Campaign spring 1",
            "+16175551234 no",
        ):
            assert said in page.words
        assert "Day (UTC)" not in page.words, "a bar for all failures neither compares nor filters"
        for name, value in (
            *(("status", "bounced"), ("reason", "Permanent"), ("template", "welcome")),
            ("campaign", "spring"),
        ):
            alone = browser.get("/failures", **{name: value})
            assert "1 message ." in alone.words.replace("message.", "message .")
            assert "id=spring%231%23b" in alone.text
            assert f": {KINDS.get(value, value)} " in alone.words
        assert "Nothing went wrong" in browser.get("/failures", event_type="fax").words
        monkeypatch.setattr("mailroom_ops.console.pages.failures.QUICK", 2)
        assert "2 messages among the newest 2 that went wrong. Count more" in browser.get("/failures").words
        assert "3 messages" in browser.get("/failures", more="1").words


def test_the_page_of_failures_groups_sentences_that_differ_only_in_values_with_a_list_and_csv_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with deployed(monkeypatch) as stage:
        for number in range(3):
            missing = {"code": "invalid", "message": f"line.price of {number}", "field": "variable"}
            put_failed(stage, f"m{number}", "invalid", template="order", error=missing)
        total = {"code": "invalid", "message": "no total"}
        put_failed(stage, "other", "invalid", template="order", error=total)
        browser = Browser(stage.session).enter()
        page = browser.get("/failures")
        assert "mail 3 messages line.price of" in page.words
        assert "mail 1 message no total order CSV failed" in page.words
        (alone,) = re.findall('id="group-1" href="([^"]*)"', page.text)
        group = browser.get(html.unescape(alone))
        assert "3 messages." in group.words
        assert "Reason: line.price of …" in group.words
        assert "other" not in group.text
        csv = re.findall('href="([^"]*)" download>CSV</a></span>', page.text)[0]
        assert len(browser.get(html.unescape(csv)).text.splitlines()) == 1 + 3


@pytest.mark.parametrize(
    ("status", "kind"), [("bounced", "Permanent"), ("undelivered", "Transient"), ("complained", "abuse")]
)
def test_types_of_bounces_and_complaints_are_shown_as_words(
    monkeypatch: pytest.MonkeyPatch, status: str, kind: str
) -> None:
    with deployed(monkeypatch) as stage:
        name = "complaint_type" if status == "complained" else "bounce_type"
        put_failed(stage, "m", "x", status=status, **{name: kind})
        put_failed(stage, "n", "y")
        browser = Browser(stage.session).enter()
        for page in (browser.get("/failures"), browser.get("/message", id="m", channel="mail")):
            assert KINDS[kind] in page.words
            assert kind not in page.words


def test_the_list_of_a_recipients_messages_names_two_of_a_day_with_the_same_template_and_subject(
    stage: RepairStage, browser: Browser
) -> None:
    day = 1_795_251_600_000
    for at, (id_, subject) in enumerate((("a", "Prices"), ("b", "Prices"), ("c", "Other"), ("d", "Prices"))):
        put_at = day + 1_000 * at + (DAY_MS if id_ == "d" else 0)
        stage.know(id_, status="sent", to="ada@example.com", subject=subject, putAt=put_at, ttl=TTL)
    for id_ in "ef":
        stage.know(id_, "sms", status="sent", to="+16175551234", putAt=day, ttl=TTL)
    index(stage.dynamodb)
    words = browser.get("/messages", q="ada@example.com").words
    assert (
        "2 messages of one day have the same template and subject: "
        "b , 2026-11-21 09:00:01 UTC; a , 2026-11-21 09:00:00 UTC."
    ) in words
    assert words.count("the same template and subject") == 1
    assert "the same template" not in browser.get("/messages", q="+16175551234").words
    assert "the same template" not in browser.get("/messages").words


def put_failed(stage: Stage, id_: str, code: str, channel: str = "mail", **more: Any) -> str:
    """A message that failed a moment ago, as the ledger has it; the day of that."""
    at = time.time() - 1
    day = time.strftime("%Y-%m-%d", time.gmtime(at))
    stage.dynamodb.put_item(
        TableName="mailroom-dev-ledger",
        Item=image_of(
            {
                "id": id_,
                "event_type": channel,
                "status": "failed",
                "completedAt": int(at * 1000),
                "updatedAt": iso(at),
                **failure(id_, channel, more.get("status", "failed"), int(at * 1000)),
                "error": {"code": code, "message": "no"},
                **more,
            }
        ),
    )
    return day


def test_a_dead_letter_shows_its_cause_and_can_be_redriven(stage: RepairStage, browser: Browser) -> None:
    stage.know("m", status="sending", trouble={"code": "misconfigured", "message": "no such sender"})
    stage.sqs.send_message(QueueUrl=stage.urls["mail-dlq"], MessageBody='{"id": "m", "event_type": "mail"}')
    listed = browser.get("/dead-letters")
    assert "mail 1 0 See why" in listed.words
    looked = browser.get("/dead-letters", queue="mail").words
    assert "received 1 time, including this one" in looked
    assert "dead-letter m mail" in looked
    assert "1 message, queued" in looked
    assert "no such sender (misconfigured)" in looked
    plan = browser.get("/dead-letters/redrive", queue="mail")
    assert "about 1 dead letter of mail goes back into that queue." in plan.words
    assert stage.bodies("mail") == []
    started = browser.post("/dead-letters/redrive", plan.hidden())
    assert started.headers["location"] == "/dead-letters/redrive?queue=mail&run=1"
    browser.site.jobs[RedriveJob, "mail"].wait()
    assert "Done 1 moved, 0 left." in browser.get(started.headers["location"]).words
    assert stage.bodies("mail") == [{"id": "m", "event_type": "mail"}]
    assert "There are no dead letters in dev." in browser.get("/dead-letters").words


def test_dead_letters_of_one_cause_are_grouped_and_redriven_together(
    stage: RepairStage, browser: Browser
) -> None:
    stage.know("c", status="sending", startedAt=1)
    for id_ in ("a", "b", "c"):
        body = json.dumps({"id": id_, "event_type": "mail"})
        stage.sqs.send_message(QueueUrl=stage.urls["mail-dlq"], MessageBody=body)
    page = browser.get("/dead-letters", queue="mail")
    assert sorted(re.findall(r"\d messages?, queued", page.words)) == [
        "1 message, queued",
        "2 messages, queued",
    ]
    (ids,) = re.findall('only=([^"]*)">Put these 2 back', page.text)
    plan = browser.get("/dead-letters/redrive", queue="mail", only=unquote_plus(ids))
    assert "2 chosen of the 3 dead letters of mail go back into that queue." in plan.words
    browser.post("/dead-letters/redrive", plan.hidden())
    browser.site.jobs[RedriveJob, "mail"].wait()
    assert {each["id"] for each in stage.bodies("mail")} == {"a", "b"}


def test_a_message_whose_dead_letter_is_missing_is_put_back_from_its_page(
    stage: RepairStage, browser: Browser
) -> None:
    stage.know("m", status="sending", dead_lettered_at=1)
    stage.put(mail_item("m"))
    page = message_page(browser, "m").words
    assert ("dead-letter mail" in page, "Send again …" in page) == (True, True)
    plan = browser.get("/message/resend", id="m", channel="mail")
    assert "unchanged for too long: if it is put back, it is sent once." in plan.words
    assert browser.post("/message/resend", plan.hidden()).status == 303
    assert [each["id"] for each in stage.bodies("mail")] == ["m"]


def test_a_queue_has_at_most_one_redrive_which_shows_its_progress_and_can_be_stopped(
    stage: RepairStage, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    for at in range(30):
        stage.sqs.send_message(QueueUrl=stage.urls["mail-dlq"], MessageBody=f'{{"id": "{at}"}}')
    second, gate, send = threading.Event(), threading.Event(), DeadLetterMover._send
    calls = []

    def held(mover: DeadLetterMover, batch: list[Any]) -> int:
        calls.append(len(batch))
        if len(calls) == 2:
            second.set()
            assert gate.wait(30)
        return send(mover, batch)

    monkeypatch.setattr(DeadLetterMover, "_send", held)
    browser.post("/dead-letters/redrive", {"queue": "mail-dlq"})
    assert second.wait(30)
    shown = browser.get("/dead-letters/redrive", queue="mail", run="1")
    assert "10 of about 30 moved" in shown.words
    assert '<progress id="bar" max="30" value="10">' in shown.text
    again = browser.post("/dead-letters/redrive", {"queue": "mail"})
    assert (again.status, "being moved already" in again.words) == (400, True)
    browser.post("/dead-letters/redrive", shown.hidden())
    gate.set()
    browser.site.jobs[RedriveJob, "mail"].wait()
    ended = browser.get("/dead-letters/redrive", queue="mail", run="1").words
    assert "It was stopped. 20 dead letters were moved back before that." in ended
    assert len(stage.bodies("mail-dlq")) == 10


def test_the_page_of_campaigns_shows_the_progress_of_a_run_and_stops_it(world: CampaignStage) -> None:
    browser = Browser(world.session).enter()
    world.collected(recipients=40, composed=30, existed=2)
    assert "weekly mail file" in browser.get("/campaigns").words
    runs = browser.get("/campaigns", campaign="weekly")
    assert "40 recipients found. 32 have their message, or get none 8 without a message yet" in runs.words
    assert "This stage has no search, so the outcomes of the messages are not counted." in runs.words
    assert '<svg class="share" viewBox="0 0 40 1"' in runs.text
    assert '<rect class="accounted" x="0" width="32"' in runs.text
    plan = browser.get("/campaigns/change", campaign="weekly", run=RUN, do="stop")
    assert "after some seconds sends no further message. 40 recipients were collected." in plan.words
    assert "Of 30 messages, those that are not sent yet are cancelled." in plan.words
    assert browser.post("/campaigns/change", plan.hidden()).status == 400, "a stop needs a reason"
    assert browser.post("/campaigns/change", {**plan.hidden(), "why": "a wrong list"}).status == 303
    again = browser.get("/campaigns/change", campaign="weekly", run=RUN, do="stop")
    assert ("cannot be stopped" in again.words, "<button class" in again.text) == (True, False)
    found = world.runs.read("weekly", RUN)
    assert found is not None
    assert found.state == "stopped"
    assert "Stop …" not in browser.get("/campaigns", campaign="weekly").words


def test_a_page_shows_the_same_error_as_the_command_line_if_aws_refuses_a_call(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise client_error("AccessDeniedException")

    monkeypatch.setattr("mailroom_ops.console.pages.failures.failed", refuse)
    reply = browser.get("/failures")
    assert (reply.status, "That did not work" in reply.words) == (502, True)
    assert "AccessDeniedException" in reply.words
    assert "Check the credentials, the region, and --stage dev." in reply.words
