"""The fax provider's credentials: read once, read again after a refusal, and never quoted."""

from typing import Any

import pytest

from mailroom.channels.fax.contract import Delivered
from mailroom.delivery.delivery import Delivery
from mailroom.delivery.worker import Worker
from mailroom.environment import FaxSender
from mailroom.message.outcome import Misconfigured, Sent
from tests.support.unit.events import sqs_event
from tests.support.unit.fakes import why_not
from tests.support.unit.fax import FAX_LEASE, FAX_SETTINGS, FakeLine, entry, fax, fax_body
from tests.support.unit.fax_credentials import SIGNALWIRE, Secret, StandIn, adapter_of
from tests.support.unit.fax_post import FaxMake
from tests.support.unit.shared import Aws

SIGNALWIRE_SHAPE = (
    'the fax provider\'s secret is not {"project": "…", "token": "…"}; store the credentials in it'
)
TELNYX_SHAPE = 'the fax provider\'s secret is not {"api_key": "…"}; store the credentials in it'


def fax_settings(secret: Secret, **changes: Any) -> FaxSender:
    return FaxSender(
        **{**FAX_SETTINGS, "fax_secret_arn": secret.arn, "queue_url": "https://sqs/fax", **changes}
    )


def test_fax_credentials_are_read_once_per_process_at_the_first_fax(aws: Aws, stand_in: StandIn) -> None:
    adapter = adapter_of(fax_settings(Secret(SIGNALWIRE)))
    assert stand_in.lines == []  # before the first fax
    for _ in range(3):
        assert isinstance(adapter.open().submit(adapter.prepare(fax())), Sent)
        adapter.open().ask(lambda api: api.fetch("p-1"))
    assert stand_in.lines == [("project-1", "token-1")]
    assert stand_in.settings.fax_base_url == "https://mailroom.signalwire.example"


def test_the_telnyx_client_gets_the_credentials_and_settings_of_telnyx(aws: Aws, stand_in: StandIn) -> None:
    secret = Secret('{"api_key": "KEY-1"}')
    adapter = adapter_of(fax_settings(secret, fax_provider="telnyx", fax_connection_id="c-1"))
    adapter.open().submit(adapter.prepare(fax()))
    assert stand_in.lines == [("KEY-1",)]
    assert stand_in.settings.fax_connection_id == "c-1"
    assert adapter.provider == "telnyx"


def test_after_the_provider_refuses_the_credentials_the_next_fax_reads_them_again(
    aws: Aws, stand_in: StandIn
) -> None:
    secret = Secret(SIGNALWIRE)
    stand_in.line = FakeLine(submits=[Misconfigured("401"), Sent("p-1"), Sent("p-2")])
    adapter = adapter_of(fax_settings(secret))
    request = adapter.prepare(fax())
    assert adapter.open().submit(request) == Misconfigured("401")
    secret.put(SIGNALWIRE.replace("token-1", "token-2"))
    assert [adapter.open().submit(request) for _ in range(2)] == [Sent("p-1"), Sent("p-2")]
    assert stand_in.lines == [("project-1", "token-1"), ("project-1", "token-2")]


@pytest.mark.parametrize(
    "text",
    [
        "xJ3kPlaceholder",
        "[]",
        "null",
        '"project"',
        "{}",
        '{"project": "p"}',
        '{"project": "p", "token": ""}',
        '{"project": "p", "token": 7}',
        '{"api_key": "k"}',
        pytest.param('{"project": ' + "[" * 50_000, id="nested too deeply"),
    ],
)
def test_a_secret_of_the_wrong_shape_is_a_configuration_error_until_the_secret_is_replaced(
    aws: Aws, stand_in: StandIn, text: str
) -> None:
    secret = Secret(text)
    adapter = adapter_of(fax_settings(secret))
    assert why_not(adapter) == Misconfigured(SIGNALWIRE_SHAPE)
    assert stand_in.lines == []
    secret.put(SIGNALWIRE)
    assert adapter.open().account
    assert isinstance(adapter.open().submit(adapter.prepare(fax())), Sent)


@pytest.mark.parametrize("text", ["placeholder", SIGNALWIRE, '{"api_key": null}'])
def test_a_secret_without_telnyx_fields_is_a_misconfiguration(aws: Aws, stand_in: StandIn, text: str) -> None:
    adapter = adapter_of(fax_settings(Secret(text), fax_provider="telnyx"))
    assert why_not(adapter) == Misconfigured(TELNYX_SHAPE)


def test_the_error_about_an_invalid_secret_does_not_quote_the_secret(aws: Aws, stand_in: StandIn) -> None:
    adapter = adapter_of(fax_settings(Secret('{"project": "very-private", "tokn": "most-private"}')))
    assert "private" not in str(why_not(adapter))


@pytest.mark.parametrize("broken", ["missing", "binary"])
def test_a_fax_remains_without_a_claim_if_the_credentials_cannot_be_read(
    aws: Aws, stand_in: StandIn, broken: str
) -> None:
    secret = Secret(None)
    if broken == "missing":
        secret.arn = secret.arn.replace("mailroom-test-fax", "mailroom-test-missing")
    fax_sender = fax_settings(secret, queue_url=aws.urls["fax.fifo"])
    worker = Worker.of(fax_sender, adapter_of(fax_sender), Delivery)
    worker.handle(sqs_event(fax_body(id="f-1", event_type="fax")), lambda: int(FAX_LEASE * 1000))
    assert entry(aws)["status"] == "sending"
    assert "startedAt" not in entry(aws)  # a claim would lock the line for a whole lease


def test_after_a_failed_poll_the_credentials_are_read_again_before_the_next_poll(
    fax_post: FaxMake, aws: Aws, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a fax whose provider's key is replaced would lock its line for the rest of the invocation."""
    worker = fax_post(FakeLine(PermissionError("401"), Delivered()))
    opened: list[FakeLine] = []

    def open_() -> FakeLine:
        opened.append(worker.line)
        return worker.line

    monkeypatch.setattr(worker.adapter, "_open", open_)
    assert worker.handle(fax_body()) is None
    assert (len(opened), entry(aws)["status"]) == (2, "delivered")
