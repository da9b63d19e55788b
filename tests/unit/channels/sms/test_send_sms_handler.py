"""send_sms, as Lambda runs it: an environment, an event, and what must come back."""

import sys
from collections.abc import Iterator
from typing import Any

import boto3
import msgspec
import pytest

from mailroom.ledger.claims import Try
from tests.support import ROOT
from tests.support.unit.events import failures, lambda_context, sqs_event, stream_event
from tests.support.unit.functions import Load
from tests.support.unit.scripted_server import Answer, ScriptedServer, Step, scripted
from tests.support.unit.shared import LEDGER, SUPPRESSIONS, Aws, image
from tests.support.unit.sms import FROM, TO, sms_item

TEMPLATES = str(ROOT / "templates" / "sms")
ACCOUNT = '{"account_sid": "AC1", "auth_token": "t-1"}'
CREATED: Step = Answer(201, {"sid": "SM1", "status": "queued"})


@pytest.fixture
def secret(aws: Aws) -> Iterator[str]:
    client = boto3.client("secretsmanager")
    arn = client.create_secret(Name="mailroom-test-twilio", SecretString=ACCOUNT)["ARN"]
    yield arn
    client.delete_secret(SecretId=arn, ForceDeleteWithoutRecovery=True)


@pytest.fixture
def twilio() -> Iterator[ScriptedServer]:
    """Twilio, taking every message until a test says otherwise."""
    with scripted(CREATED) as server:
        yield server


@pytest.fixture
def load_sms(
    load: Load, secret: str, twilio: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Load]:
    """A handler with the environment of a stage that has text messages."""
    own = {
        "CHANNEL": "sms",
        "SMS_PROVIDER": "twilio",
        "TWILIO_SECRET_ARN": secret,
        "SMS_BASE_URL": twilio.url,
        "SMS_SENDER": FROM,
        "DEFAULT_REGION": "US",
        "CALLBACK_URL": "https://api.example/callbacks/twilio",
        "MAX_SEGMENTS": "3",
        "MEDIA_SECONDS": "1800",
        "CLOCK_SKEW_SECONDS": "60",
        "TEMPLATES": TEMPLATES,
    }
    for name, value in own.items():
        monkeypatch.setenv(name, value)
    yield load
    sys.modules.pop("send_sms", None)


def test_a_text_message_goes_to_twilio_once(load_sms: Load, aws: Aws, twilio: ScriptedServer) -> None:
    handler = load_sms("send_sms")
    assert twilio.requests == []  # a cold start asks nobody for anything
    event = sqs_event(sms_item(to="(555) 555-0100"))
    for _ in range(2):
        assert handler(event, lambda_context()) == {"batchItemFailures": []}
    (asked,) = twilio.requests
    assert (asked.form["To"], asked.form["From"], asked.form["Body"]) == (TO, FROM, "Your table is ready")
    assert asked.form["StatusCallback"] == "https://api.example/callbacks/twilio/cy0x#rc=3&rp=ct,rt,5xx"
    found = aws.item("s-1", "sms")
    assert (found["status"], found["provider"], found["provider_id"]) == ("sent", "twilio", "SM1")
    assert (found["to"], found["segments"], found["encoding"]) == (TO, 1, "GSM-7")
    (tried,) = found["unsettled_tries"]
    assert tried.endswith(" twilio/AC1")


def test_a_template_is_rendered_from_the_item(load_sms: Load, twilio: ScriptedServer) -> None:
    item = sms_item(text=..., template="default", first_name="Ada", last_name="Lovelace")
    assert failures(load_sms("send_sms")(sqs_event(item), lambda_context())) == []
    assert twilio.requests[0].form["Body"] == "Dear Ada Lovelace, there is a message for you."


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"to": "12"}, "to: is not a number as dialled in US, or in international form"),
        ({"text": "a" * 460}, "text: takes 4 segments in GSM-7; use at most 3"),
        ({"text": ..., "template": "nosuch"}, "template: 'nosuch' is unknown; use one of: default"),
    ],
)
def test_a_bad_item_fails_alone_with_its_reason(
    load_sms: Load, aws: Aws, twilio: ScriptedServer, changes: dict[str, Any], sentence: str
) -> None:
    event = sqs_event(sms_item(id="bad", **changes), sms_item(id="good"))
    assert failures(load_sms("send_sms")(event, lambda_context())) == []
    assert aws.item("bad", "sms")["error"]["message"].startswith(sentence)
    assert aws.item("good", "sms")["status"] == "sent"
    assert len(twilio.requests) == 1


def test_a_number_on_the_suppression_list_gets_nothing(
    load_sms: Load, aws: Aws, twilio: ScriptedServer
) -> None:
    marked = {"recipient": TO, "channel": "sms", "reason": "bounce", "at": 1, "message_id": "s-0"}
    aws.dynamodb.put_item(TableName=SUPPRESSIONS, Item=image(**marked))
    event = sqs_event(sms_item(to="(555) 555-0100"))
    assert failures(load_sms("send_sms")(event, lambda_context())) == []
    assert aws.item("s-1", "sms")["status"] == "suppressed"
    assert twilio.requests == []


def test_a_message_of_an_earlier_worker_is_looked_up_before_it_is_sent_again(
    load_sms: Load, aws: Aws, twilio: ScriptedServer
) -> None:
    began = 1_795_251_600_000
    crashed = image(id="s-1", event_type="sms", status="sending", startedAt=began, claim_token="another")
    crashed["unsettled_tries"] = {"SS": [Try(began, "twilio/AC1").text]}
    aws.dynamodb.put_item(TableName=LEDGER, Item=crashed)
    there = {
        "sid": "SM7",
        "body": "Your table is ready",
        "date_created": "Sat, 21 Nov 2026 09:00:01 +0000",
    }
    twilio.script[0] = Answer(200, {"messages": [there], "next_page_uri": None})
    assert failures(load_sms("send_sms")(sqs_event(sms_item()), lambda_context())) == []
    assert [asked.method for asked in twilio.requests] == ["GET"]
    found = aws.item("s-1", "sms")
    assert (found["status"], found["provider_id"], found["segments"]) == ("sent", "SM7", 1)


def test_a_refused_account_fails_no_message(load_sms: Load, aws: Aws, twilio: ScriptedServer) -> None:
    twilio.script[0] = Answer(401, {"code": 20003, "message": "Authenticate"})
    assert failures(load_sms("send_sms")(sqs_event(sms_item()), lambda_context())) == ["r-0"]
    assert "completedAt" not in aws.item("s-1", "sms")


@pytest.mark.parametrize("variable", ["SMS_PROVIDER", "MAX_SEGMENTS", "SUPPRESSIONS_TABLE"])
def test_without_a_setting_it_does_not_start_and_names_it(
    load_sms: Load, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.delenv(variable)
    with pytest.raises(msgspec.ValidationError, match=variable):
        load_sms("send_sms")


def test_neither_number_nor_text_is_logged(
    load_sms: Load, twilio: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    twilio.script[0] = Answer(400, {"code": 21211, "message": f"The 'To' number {TO} is not valid"})
    load_sms("send_sms")(sqs_event(sms_item()), lambda_context())
    written = "".join(capsys.readouterr())
    assert TO[2:] not in written
    assert "table" not in written.replace("suppressions_table", "")


def test_dispatch_lets_a_text_message_through(load: Load, aws: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    url = aws.urls["mail"]
    monkeypatch.setenv("ROUTES", f'{{"sms": {{"normal": "{url}"}}, "push": {{"normal": "{url}"}}}}')
    event = stream_event(image(**sms_item()), image(**sms_item(id="bad", to="nobody")))
    assert failures(load("dispatch")(event, lambda_context())) == []
    assert [body["id"] for body in aws.bodies("mail")] == ["s-1"]
    assert aws.item("bad", "sms")["status"] == "failed"
