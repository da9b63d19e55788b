"""The handler send_sms, with its environment, its events and its responses."""

import sys
from collections.abc import Iterator

import boto3
import pytest

from mailroom.environment import variables_of
from mailroom.ledger.claims import Try
from tests.support import ROOT
from tests.support.unit.events import failures, lambda_context, sqs_event
from tests.support.unit.functions import Load
from tests.support.unit.scripted_server import Answer, ScriptedServer, Step, scripted
from tests.support.unit.shared import LEDGER, NOW_MS, Aws, image
from tests.support.unit.sms import FROM, TO, sms_item, sms_settings

ACCOUNT = '{"account_sid": "AC1", "auth_token": "t-1"}'
CREATED: Step = Answer(201, {"sid": "SM1", "status": "queued"})


@pytest.fixture
def twilio_secret(aws: Aws) -> Iterator[str]:
    client = boto3.client("secretsmanager")
    arn = client.create_secret(Name="mailroom-test-twilio", SecretString=ACCOUNT)["ARN"]
    yield arn
    client.delete_secret(SecretId=arn, ForceDeleteWithoutRecovery=True)


@pytest.fixture
def twilio_server() -> Iterator[ScriptedServer]:
    """Run a Twilio that accepts every message, unless a test changes its script."""
    with scripted(CREATED) as server:
        yield server


@pytest.fixture
def load_sms(
    load: Load, twilio_secret: str, twilio_server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Load]:
    """Load a handler with the environment of a stage with text messages."""
    sms_sender = sms_settings(
        twilio_secret_arn=twilio_secret,
        sms_base_url=twilio_server.url,
        default_region="US",
        callback_url="https://api.example/callbacks/twilio",
        templates=str(ROOT / "templates" / "sms"),
    )
    for name, value in variables_of(sms_sender).items():
        monkeypatch.setenv(name, value)
    yield load
    sys.modules.pop("send_sms", None)


def test_a_text_message_is_submitted_to_twilio_once(
    load_sms: Load, aws: Aws, twilio_server: ScriptedServer
) -> None:
    handler = load_sms("send_sms")
    assert twilio_server.requests == []  # a cold start sends no request
    event = sqs_event(sms_item(to="(555) 555-0100"))
    for _ in range(2):
        assert handler(event, lambda_context()) == {"batchItemFailures": []}
    (request,) = twilio_server.requests
    form = request.form
    assert (form["To"], form["From"], form["Body"]) == (TO, FROM, "Your table is ready")
    assert form["StatusCallback"] == "https://api.example/callbacks/twilio/cy0x#rc=3&rp=ct,rt,5xx"
    entry = aws.item("s-1", "sms")
    assert (entry["status"], entry["provider"], entry["provider_id"]) == ("sent", "twilio", "SM1")
    assert (entry["to"], entry["segments"], entry["encoding"]) == (TO, 1, "GSM-7")
    (unsettled_try,) = entry["unsettled_tries"]
    assert unsettled_try.endswith(" twilio/AC1")


def test_a_text_submitted_by_a_crashed_worker_is_looked_up_and_not_sent_again(
    load_sms: Load, aws: Aws, twilio_server: ScriptedServer
) -> None:
    crashed = image(id="s-1", event_type="sms", status="sending", startedAt=NOW_MS, claim_token="another")
    crashed["unsettled_tries"] = {"SS": [Try(NOW_MS, "twilio/AC1").text]}
    aws.dynamodb.put_item(TableName=LEDGER, Item=crashed)
    accepted = {"sid": "SM7", "to": TO, "body": "Your table is ready", "date_created": "2026-11-21T09:00:01Z"}
    twilio_server.script[0] = Answer(200, {"messages": [accepted], "next_page_uri": None})
    assert failures(load_sms("send_sms")(sqs_event(sms_item()), lambda_context())) == []
    assert [request.method for request in twilio_server.requests] == ["GET"]
    entry = aws.item("s-1", "sms")
    assert (entry["status"], entry["provider_id"], entry["segments"]) == ("sent", "SM7", 1)


@pytest.mark.parametrize(
    ("on_unknown", "methods", "status"),
    [("hold", ["GET", "GET"], "failed"), ("resend", ["GET", "GET", "POST"], "sent")],
)
def test_if_twilio_redacts_numbers_the_setting_on_unknown_decides_whether_a_text_is_sent_again(
    load_sms: Load,
    aws: Aws,
    twilio_server: ScriptedServer,
    monkeypatch: pytest.MonkeyPatch,
    on_unknown: str,
    methods: list[str],
    status: str,
) -> None:
    monkeypatch.setenv("ON_UNKNOWN", on_unknown)
    crashed = image(id="s-1", event_type="sms", status="sending", startedAt=NOW_MS, claim_token="another")
    crashed["unsettled_tries"] = {"SS": [Try(NOW_MS, "twilio/AC1").text]}
    aws.dynamodb.put_item(TableName=LEDGER, Item=crashed)
    redacted = {"sid": "SM7", "to": f"{TO[:-4]}XXXX", "body": "", "date_created": "2026-11-21T09:00:01Z"}
    pages = [Answer(200, {"messages": page, "next_page_uri": None}) for page in ([], [redacted])]
    twilio_server.script[:0] = pages
    assert failures(load_sms("send_sms")(sqs_event(sms_item()), lambda_context())) == []
    assert [request.method for request in twilio_server.requests] == methods
    entry = aws.item("s-1", "sms")
    assert entry["status"] == status
    if on_unknown == "hold":
        assert entry["error"]["code"] == "outcome_unknown"
    else:
        assert len(entry["unsettled_tries"]) == 2  # `mailroom messages list --twice` lists the message


def test_send_sms_logs_neither_phone_numbers_nor_the_texts_of_messages(
    load_sms: Load, twilio_server: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    twilio_server.script[0] = Answer(400, {"code": 21211, "message": f"The 'To' number {TO} is not valid"})
    load_sms("send_sms")(sqs_event(sms_item()), lambda_context())
    written = "".join(capsys.readouterr())
    assert TO[2:] not in written
    assert "table" not in written.replace("suppressions_table", "")
