"""send_fax, retry_fax and outcomes, as Lambda runs them."""

import json
import sys
import time
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from mailroom.clock import iso
from tests.support.unit.events import failures, lambda_context, sqs_event
from tests.support.unit.fax import LINE, PDF, SENDERS, TOLD, fax_body
from tests.support.unit.fax_credentials import SIGNALWIRE, Opened, Secret
from tests.support.unit.functions import Load
from tests.support.unit.shared import LEDGER, Aws, Item, image

FAX_HANDLERS = {
    "send_fax": ("FAX_PROVIDER", "FAX_SECRET_ARN", "FAX_SENDERS", "LAST_SUBMIT_RECEIVE", "LEDGER_TABLE"),
    "retry_fax": ("QUEUE_URL", "FAX_QUEUE_URL"),
    "outcomes": ("WEBHOOK_QUEUE_URL", "RETRY_QUEUE_URL", "MAX_ATTEMPTS", "RETRY_DELAY_SECONDS"),
}


def environment(aws: Aws, secret: Secret) -> dict[str, str]:
    """What the stacks add for these functions."""
    return {
        "CHANNEL": "fax",
        "ON_UNKNOWN": "hold",
        "LEASE_SECONDS": "960",
        "SUBMIT_SECONDS": "20",
        "RECORD_SECONDS": "10",
        "FAX_PROVIDER": "signalwire",
        "FAX_SECRET_ARN": secret.arn,
        "FAX_BASE_URL": "https://mailroom.signalwire.example",
        "FAX_SENDERS": json.dumps(SENDERS),
        "FAX_CONNECTION_ID": "",
        "FAX_TTL_MINUTES": "5",
        "FAX_QUALITY": "fine",
        "MEDIA_SECONDS": "3600",
        "POLL_SECONDS": "0.3",
        "LONGEST_FAX_SECONDS": "7200",
        "LAST_SUBMIT_RECEIVE": "10",
        "CLOCK_SKEW_SECONDS": "5",
        "FAX_QUEUE_URL": aws.urls["fax.fifo"],
        "WEBHOOK_QUEUE_URL": aws.urls["webhook"],
        "RETRY_QUEUE_URL": aws.urls["fax-retry"],
        "MAX_ATTEMPTS": "20",
        "RETRY_DELAY_SECONDS": "600",
    }


@pytest.fixture
def load_fax(fax_queues: Aws, load: Load, opened: Opened, monkeypatch: pytest.MonkeyPatch) -> Iterator[Load]:
    """A handler with the environment of a stage that has faxes."""
    for name, value in environment(fax_queues, Secret(SIGNALWIRE)).items():
        monkeypatch.setenv(name, value)
    yield load
    for name in FAX_HANDLERS:
        sys.modules.pop(name, None)


def change(status: str, attempts: int, number: str = "100", ago: float = 0) -> dict[str, Any]:
    old = {
        "id": "f-1",
        "event_type": "fax",
        "status": "sending",
        "to": LINE,
        "pdf_url": PDF,
        "callback_url": TOLD,
    }
    error = {"code": "busy", "message": "Fax status: busy"}
    new = {**old, "status": status, "attempts": attempts, "error": error, "updatedAt": iso(time.time() - ago)}
    images = {"OldImage": image(**old), "NewImage": image(**new)}
    return {"eventName": "MODIFY", "dynamodb": {"SequenceNumber": number, **images}}


@pytest.mark.parametrize(
    ("name", "variable"), [(name, each) for name, variables in FAX_HANDLERS.items() for each in variables]
)
def test_a_handler_that_lacks_a_variable_does_not_start_and_names_it(
    load_fax: Load, monkeypatch: pytest.MonkeyPatch, name: str, variable: str
) -> None:
    monkeypatch.delenv(variable)
    with pytest.raises(msgspec.ValidationError, match=variable):
        load_fax(name)


def test_send_fax_sends_a_fax_once_with_the_credentials_of_the_secret(
    load_fax: Load, aws: Aws, opened: Opened
) -> None:
    handler = load_fax("send_fax")
    assert opened.lines == []  # a cold start asks nobody for anything
    for _ in range(2):
        assert handler(sqs_event(fax_body()), lambda_context(900_000)) == {"batchItemFailures": []}
    assert opened.credentials == [("project-1", "token-1")]
    assert opened.line.submits == 1
    assert (aws.item("f-1", "fax")["status"], aws.item("f-1", "fax")["provider"]) == ("sent", "signalwire")
    (tried,) = aws.item("f-1", "fax")["unsettled_tries"]
    assert tried.endswith(" signalwire/ours")


def test_send_fax_gives_back_what_it_has_no_time_for(load_fax: Load, aws: Aws, opened: Opened) -> None:
    handler = load_fax("send_fax")
    assert failures(handler(sqs_event(fax_body()), lambda_context(30_000))) == ["r-0"]
    assert (opened.line.calls, aws.item("f-1", "fax")) == ([], {})


@pytest.mark.parametrize("body", ["no", fax_body(fax_id=...)])
def test_send_fax_gives_back_what_is_no_fax(load_fax: Load, opened: Opened, body: str | Item) -> None:
    assert failures(load_fax("send_fax")(sqs_event(body), lambda_context(900_000))) == ["r-0"]
    assert opened.lines == []


def test_retry_fax_moves_what_is_due_and_gives_back_the_rest(load_fax: Load, aws: Aws) -> None:
    now = int(time.time())
    bodies: list[str | Item] = [
        fax_body(fax_id="due", not_before=now - 1, attempt=2),
        fax_body(fax_id="early", not_before=now + 3600, attempt=2),
        "no",
    ]
    reply = load_fax("retry_fax")(sqs_event(*bodies), lambda_context())
    assert failures(reply) == ["r-1", "r-2"]
    assert [(each["id"], each["attempt"]) for each in aws.bodies("fax.fifo")] == [("due", 2)]


def test_outcomes_tells_of_a_busy_fax_and_calls_for_its_next_attempt(load_fax: Load, aws: Aws) -> None:
    event = {"Records": [change("retrying", 7)]}
    assert load_fax("outcomes")(event, lambda_context()) == {"batchItemFailures": []}
    (callback,) = aws.bodies("webhook")
    assert callback["payload"]["message"] == "Failed to deliver fax (attempt 7 of 20). Fax status: busy"


def test_outcomes_names_what_must_be_handled_again_by_its_sequence_number_and_in_order(
    load_fax: Load, aws: Aws
) -> None:
    records = [change("sent", 1, str(number)) for number in (100, 101, 102, 103)]
    for at in (3, 1):
        records[at]["dynamodb"]["NewImage"]["updatedAt"] = {"S": "soon"}
    reply = load_fax("outcomes")({"Records": records}, lambda_context())
    assert failures(reply) == ["101", "103"]
    assert len(aws.bodies("webhook")) == 2


def test_a_busy_fax_goes_all_the_way_round_to_its_next_attempt(load_fax: Load, aws: Aws) -> None:
    aws.put(LEDGER, id="f-1", event_type="fax", attempts=1, status="retrying")
    load_fax("outcomes")({"Records": [change("retrying", 1, ago=602)]}, lambda_context())
    (waited,) = aws.receive("fax-retry")
    assert failures(load_fax("retry_fax")(sqs_event(waited["Body"]), lambda_context())) == []
    (moved,) = aws.receive("fax.fifo")
    event = sqs_event(moved["Body"])
    event["Records"][0]["attributes"]["MessageGroupId"] = moved["Attributes"]["MessageGroupId"]
    assert failures(load_fax("send_fax")(event, lambda_context(900_000))) == []
    assert (aws.item("f-1", "fax")["status"], aws.item("f-1", "fax")["attempts"]) == ("sent", 2)
