"""Each row of the providers' tables: the simulators emit it, the adapters classify it, and the worker or
feedback treats the message as its fault requires."""

import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlencode

import pytest
from botocore.exceptions import ClientError

from mailroom.aws.queues import AT_ONCE
from mailroom.channels.fax.contract import FaxRequest, Undelivered
from mailroom.channels.sms.contract import Sms
from mailroom.environment import FeedbackSettings
from mailroom.feedback.consumer import Feedback
from mailroom.ledger.ledger import Ledger
from mailroom.message.outcome import Outcome, Row, Sent
from mailroom.providers.aws_sms import refusals as aws_refusals
from mailroom.providers.aws_sms import sender as aws
from mailroom.providers.resend import sender as resend_mail
from mailroom.providers.ses import sender as ses
from mailroom.providers.signalwire import sender as signalwire
from mailroom.providers.sns import sender as sns
from mailroom.providers.telnyx import sender as telnyx
from mailroom.providers.twilio import refusals as twilio_refusals
from mailroom.providers.twilio import sender as twilio
from mailroom.recipients.choices import Suppressions
from mailroom_local.providers.http import Reply, Request, SimulatorServer
from mailroom_local.providers.inbox import InboxStore
from mailroom_local.providers.resend_mail import SECRET, ResendSimulator
from mailroom_local.providers.rows import slug
from mailroom_local.providers.ses import SesSimulator
from mailroom_local.providers.sms import SmsNetwork, SmsOrder
from mailroom_local.providers.sns import SnsSimulator
from mailroom_local.providers.twilio import ACCOUNT_SID, AUTH_TOKEN, TwilioSimulator
from mailroom_local.providers.twilio_callbacks import fields
from tests.support import refusals_page
from tests.support.bodies import twilio_callback
from tests.support.local.fax import PDF, SENDER, running_fax_bench
from tests.support.local.fax import Bench as Faxes
from tests.support.local.served import served
from tests.support.unit.events import failures, plenty, sqs_event
from tests.support.unit.fakes import client_error
from tests.support.unit.fax import FakeLine, entry, fax_body
from tests.support.unit.fax_post import FaxMake
from tests.support.unit.feedback_words import sms_event
from tests.support.unit.post import Counted, Make
from tests.support.unit.shared import LEDGER, SUPPRESSIONS, TTL, Aws, FakeClock, claimed, item

ENDPOINT = "arn:aws:sns:us-east-1:000000000000:endpoint/GCM/a/11111111-1111-1111-1111-111111111111"


def simulated_reply(simulator: Any, path: str, body: bytes, **headers: str) -> Reply:
    """Return a simulator's response to a POST."""
    reply = simulator.handle(Request("POST", path, headers, body))
    assert isinstance(reply, Reply)
    return reply


def by_ses(row: Row) -> Outcome:
    to = f"{slug(row.code)}@simulator.amazonses.com"
    simulator = SesSimulator(InboxStore(), None, None, None)  # type: ignore[arg-type] # a refusal needs none
    body = {"FromEmailAddress": "a@example.com", "Destination": {"ToAddresses": [to]}}
    reply = simulated_reply(simulator, "/v2/email/outbound-emails", json.dumps(body).encode())
    error = client_error(reply.headers["x-amzn-ErrorType"], json.loads(reply.body)["message"], reply.status)
    return ses.refusal_of(error, "a@example.com", [to])


def by_aws(row: Row) -> Outcome:
    if not row.code.isupper():
        return aws.refusal_of(client_error(f"{row.code}Exception"))
    error: ClientError = client_error("ValidationException")
    response: Any = error.response
    response |= {"Reason": row.code, "Fields": [{"Name": "MessageBody"}]}
    return aws.refusal_of(error)


def by_twilio(row: Row) -> Outcome:
    login = b64encode(f"{ACCOUNT_SID}:{AUTH_TOKEN}".encode()).decode()
    form = {"To": f"+155500{row.code}", "From": "+12025550123", "Body": "Hello"}
    simulator = TwilioSimulator(SmsNetwork(InboxStore()), lambda _: None)
    path = f"/twilio/2010-04-01/Accounts/{ACCOUNT_SID}/Messages.json"
    reply = simulated_reply(simulator, path, urlencode(form).encode(), authorization=f"Basic {login}")
    return twilio.outcome_of(reply.status, {}, reply.body.decode())


def by_sns(row: Row) -> Outcome:
    def pass_on(_request: Request) -> Reply:
        entry = f"<key>Token</key><value>row-{slug(row.code)}</value>"
        return Reply(200, entry.encode())

    simulator = SnsSimulator(InboxStore(), SimpleNamespace(pass_on=pass_on))  # type: ignore[arg-type]
    body = urlencode({"Action": "Publish", "TargetArn": ENDPOINT, "Message": "Hi"}).encode()
    reply = simulated_reply(simulator, "/sns", body)
    code, words = re.findall("<(?:Code|Message)>([^<]*)<", reply.body.decode())
    return sns.refusal_to_publish(client_error(code, words, reply.status), to_endpoint=False)


def outcome_at_resend(row: Row) -> Outcome:
    mail = {"from": "a@example.com", "to": [f"{slug(row.code)}@resend.dev"], "subject": "s", "text": "t"}
    with served(SimulatorServer(0, ResendSimulator(InboxStore()))) as url:
        client = resend_mail.Resend(SECRET["api_key"], f"{url}/resend", 5)
        return client.submit(resend_mail.Request("key", json.dumps(mail).encode(), "s"))


def by_fax_provider(name: str) -> Callable[[Row], Outcome]:
    def submitted(row: Row) -> Outcome:
        with running_fax_bench() as bench:
            provider = getattr(bench, name)
            outcome: Outcome = provider.submit(FaxRequest(f"+155500{row.code.zfill(5)}", SENDER, PDF, "ref"))
            return outcome

    return submitted


PROVIDERS: dict[str, tuple[Callable[[Row], Outcome], Mapping[str, Row]]] = {
    "Amazon SES": (by_ses, ses.REFUSALS | ses.TEXTS),
    "AWS End User Messaging": (by_aws, aws_refusals.REFUSALS),
    "Twilio": (by_twilio, twilio_refusals.REFUSALS),
    "Resend": (outcome_at_resend, resend_mail.REFUSALS),
    "Amazon SNS": (by_sns, sns.REFUSALS | sns.TEXTS),
    "SignalWire": (by_fax_provider("signalwire"), signalwire.REFUSALS),
    "Telnyx": (by_fax_provider("telnyx"), telnyx.REFUSALS),
}
ROWS = [
    pytest.param(submit, row, id=f"{name} {row.code}")
    for name, (submit, rows) in PROVIDERS.items()
    for row in rows.values()
]


def test_these_tests_simulate_every_refusal_that_the_documentation_lists() -> None:
    tables = {name: tables["refusals"] for name, tables in refusals_page.TABLES.items()}
    assert tables == {name: rows for name, (_, rows) in PROVIDERS.items()}


@pytest.mark.parametrize(("submit", "row"), ROWS)
def test_the_fault_column_of_the_refusal_table_decides_whether_a_message_fails_waits_or_is_retried(
    make_post: Make, aws: Aws, counted: Counted, submit: Callable[[Row], Outcome], row: Row
) -> None:
    outcome = submit(row)
    assert not isinstance(outcome, Sent)
    assert row.words.rstrip(".")[:40] in outcome.reason or row.code in outcome.reason
    worker = make_post(outcome, Sent("p-2"), outcome, Sent("p-3"), outcome)
    waits = worker.handle(item())
    match row.fault:
        case "message" | "destination":
            assert waits == {}
            status = "suppressed" if row.effect == "opted_out" else "failed"
            assert (aws.item()["status"], aws.item()["error"]["message"]) == (status, outcome.reason)
        case "day":
            assert waits == {}
            assert (aws.item()["status"], aws.item()["trouble"]["code"]) == ("scheduled", "day_used_up")
        case "account":
            assert waits == {"r-0": 20}
            assert counted() == {"Misconfigured": 1}
            assert "completedAt" not in aws.item()
        case "throttled":
            assert counted() == {"Retried": 1}
            assert aws.item()["status"] == "sending"
        case "undecided":
            assert counted() == {"Retried": 1}
            worker.handle(item(id="m-2"))
            assert worker.handle(item(), receives=2) != {}
            worker.handle(item(id="m-3"))
            assert worker.handle(item(), receives=3) == {}
            assert (aws.item()["status"], aws.item()["error"]["message"]) == ("failed", outcome.reason)


@pytest.fixture
def feedback(aws: Aws, clock: FakeClock, ledger: Ledger) -> Callable[[str], Mapping[str, Any]]:
    """A function that handles an event about the text s-1, and returns the text's ledger item."""
    claim = claimed(ledger, Sms(id="s-1", event_type="sms", to="+16175551234", text="Hi"))
    ledger.complete(claim, "twilio", "SM1")
    settings = FeedbackSettings(
        ledger_table=LEDGER,
        ledger_ttl_seconds=TTL,
        payload_bucket="unused",
        queue_url="https://sqs.example/feedback",
        suppressions_table=SUPPRESSIONS,
        feedback_topics=[],
        default_region="US",
    )
    consumer = Feedback(settings, ledger, Suppressions(aws.dynamodb, SUPPRESSIONS, clock), aws.sqs)

    def handle(body: str) -> Mapping[str, Any]:
        assert failures(consumer.handle(sqs_event(body), plenty)) == []
        return aws.item("s-1", event_type="sms")

    return handle


@pytest.mark.parametrize("row", twilio_refusals.EVENTS.values(), ids=lambda row: row.code)
def test_a_text_undelivered_by_twilio_has_the_reason_of_its_code_and_alarms_if_others_will_fail_too(
    feedback: Callable[[str], Mapping[str, Any]], counted: Counted, row: Row
) -> None:
    simulated = SmsNetwork(InboxStore()).submit(SmsOrder(f"+155500{row.code}", "+12025550123", body="Hi"))
    form = fields(simulated, "undelivered")
    text = feedback(twilio_callback("undelivered", "s-1", ErrorCode=form["ErrorCode"]))
    assert text["status"] == "undelivered"
    assert text["error"]["message"] == f"undelivered: error {row.code}, {row.words}"
    assert counted().get("Misconfigured", 0) == row.rings


@pytest.mark.parametrize("row", aws_refusals.EVENTS.values(), ids=lambda row: row.code)
def test_a_text_undelivered_by_aws_has_the_reason_of_its_event_and_alarms_if_others_will_fail_too(
    feedback: Callable[[str], Mapping[str, Any]], counted: Counted, row: Row
) -> None:
    text = feedback(json.dumps(sms_event(f"TEXT_{row.code}", messageStatusDescription=...)))
    assert text["status"] == "undelivered"
    assert text["error"]["message"] == f"TEXT_{row.code}: {row.words}"
    assert counted().get("Misconfigured", 0) == row.rings


@pytest.fixture(scope="module")
def faxes() -> Iterator[Faxes]:
    with running_fax_bench() as bench:
        yield bench


@pytest.mark.parametrize("row", telnyx.EVENTS.values(), ids=lambda row: row.code)
def test_telnyxs_reason_decides_whether_a_fax_fails_is_attempted_again_or_becomes_a_dead_letter(
    fax_post: FaxMake, aws: Aws, counted: Counted, faxes: Faxes, row: Row
) -> None:
    number = f"+1555009{[*telnyx.EVENTS].index(row.code):04}"
    submitted = faxes.telnyx.submit(FaxRequest(number, SENDER, PDF, row.code))
    assert isinstance(submitted, Sent)
    faxes.wait(10)
    state = faxes.telnyx.fetch(submitted.provider_id)
    assert isinstance(state, Undelivered)
    assert state.detail == row.code
    wait = fax_post(FakeLine(state), max_attempts=1 if row.fault == "day" else 2).handle(fax_body())
    if row.fault == "account":
        assert (wait, counted()["Misconfigured"]) == (AT_ONCE, 1)
    elif row.fault == "message" or (row.fault == "destination" and row.effect != "again"):
        assert (wait, entry(aws)["status"]) == (None, "failed")
        assert row.code in entry(aws)["error"]["message"]
    else:
        assert (wait, entry(aws)["status"]) == (None, "retrying")
