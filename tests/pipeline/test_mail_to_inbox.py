"""From an item in the mailbox to an inbox: what each attribute of a mail does."""

import json
from decimal import Decimal

import pytest

from tests.support.pipeline.items import correlation, mail_item
from tests.support.pipeline.shared import Pipeline

SENDER = "Mailroom <mailroom@example.com>"


@pytest.fixture
def bucket(pipeline: Pipeline) -> str:
    return pipeline.output("PayloadBucketName")


def test_a_message_with_only_an_address_and_a_name_becomes_a_mail_of_the_default_template(
    pipeline: Pipeline,
) -> None:
    pipeline.put(
        {
            "id": "order-7/é",
            "event_type": "mail",
            "email": "ada@example.com",
            "first_name": "Ada",
            "last_name": "Lovelace",
        }
    )
    sent = pipeline.one_mail("order-7/é")
    content = sent["content"]
    assert (sent["channel"], sent["to"], content["from"]) == ("mail", "ada@example.com", SENDER)
    assert content["headers"] == {"X-Correlation-ID": correlation("order-7/é")}
    tags = {"correlation": correlation("order-7/é"), "attempt": "1", "event_type": "mail"}
    assert content["tags"] == tags
    assert content["configuration_set"] == "mailroom-local"
    assert content["subject"] == "Ada, there is a message for you"
    assert "Dear Ada Lovelace," in content["text"]
    assert "Dear Ada Lovelace," in content["html"]


def test_the_ledger_item_of_a_sent_mail_has_its_provider_its_recipient_and_its_number_of_attempts(
    pipeline: Pipeline,
) -> None:
    url = pipeline.receiver("ok/callbacks/ledger-1")
    pipeline.put(mail_item("ledger-1", callback_url=url))
    sent = pipeline.one_mail("ledger-1")
    row = pipeline.ledger("ledger-1")
    assert row["attempts"] == Decimal(1)
    assert (row["provider"], row["provider_id"]) == ("ses", sent["provider_id"])
    assert (row["to"], row["callback_url"]) == ("ada@example.com", url)
    assert row["startedAt"] <= row["completedAt"]
    assert "error" not in row
    assert "failed_as" not in row


def test_one_mail_is_sent_to_fifty_recipients_including_cc_and_bcc(pipeline: Pipeline) -> None:
    to = [f"reader{number}@example.com" for number in range(46)]
    cc, bcc = ["Cc One <cc1@example.com>", "cc2@example.com"], ["bcc1@example.com", "bcc2@example.com"]
    pipeline.put(mail_item("list-of-50", email=None, to=to, cc=cc, bcc=bcc))
    content = pipeline.one_mail("list-of-50")["content"]
    assert (content["to"], content["cc"], content["bcc"]) == (to, cc, bcc)
    assert pipeline.ledger("list-of-50")["to"] == to


def test_a_message_of_the_lane_bulk_is_handled_by_the_bulk_function_instead_of_the_normal_one(
    pipeline: Pipeline,
) -> None:
    normal, bulk = pipeline.output("SendMailFunctionName"), pipeline.output("SendMailBulkFunctionName")
    pipeline.put(
        mail_item("campaign", lane="bulk"), mail_item("bad-campaign", lane="bulk", template="nowhere")
    )
    pipeline.one_mail("campaign")
    pipeline.failure("bad-campaign")
    pipeline.until_logged(bulk, "rejected", "bad-campaign")
    assert not pipeline.logged(normal, "campaign")


def test_a_stage_with_an_allow_list_redirects_the_mail_of_another_recipient_to_the_testers(
    pipeline: Pipeline,
) -> None:
    reader, testers, stranger = "reader@example.com", "testers@example.org", "stranger@example.com"
    bulk = pipeline.output("SendMailBulkFunctionName")
    with pipeline.configured(bulk, RECIPIENTS_ONLY=json.dumps([reader]), REDIRECT_TO=testers):
        pipeline.put(
            mail_item("allowed", email=reader, lane="bulk"),
            mail_item("elsewhere", email=stranger, lane="bulk"),
        )
        allowed, redirected = pipeline.one_mail("allowed"), pipeline.one_mail("elsewhere")
    assert (allowed["to"], allowed["content"]["headers"].get("X-Original-To")) == (reader, None)
    assert (redirected["to"], redirected["content"]["headers"]["X-Original-To"]) == (testers, stranger)
    row = pipeline.ledger("elsewhere")
    assert (row["to"], row["redirected_to"]) == (stranger, testers)
    assert "redirected_to" not in pipeline.ledger("allowed")


def test_a_mail_is_sent_with_the_attachments_that_it_names_in_the_payload_bucket(
    pipeline: Pipeline, bucket: str
) -> None:
    pipeline.s3.put_object(Bucket=bucket, Key="bills/7.pdf", Body=b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
    pipeline.s3.put_object(Bucket=bucket, Key="bills/terms.txt", Body=b"terms")
    parts = [
        {"ref": f"s3://{bucket}/bills/7.pdf"},
        {"ref": f"s3://{bucket}/bills/terms.txt", "filename": "Terms of März.txt"},
    ]
    pipeline.put(mail_item("attachments", attachments=parts))
    received = pipeline.one_mail("attachments")["content"]["attachments"]
    assert [(each["name"], each["url"]) for each in received] == [
        ("7.pdf", "data:application/pdf;base64,JVBERi0xLjcKJeLjz9MK"),
        ("Terms of März.txt", "data:text/plain;base64,dGVybXM="),
    ]


def test_a_mail_with_a_body_of_300_kb_in_its_mailbox_item_is_sent_whole(pipeline: Pipeline) -> None:
    text = "A long line.\n" * 23_000
    pipeline.put(mail_item("big-body", subject="Report", text=text))
    assert pipeline.one_mail("big-body")["content"]["text"] == text
