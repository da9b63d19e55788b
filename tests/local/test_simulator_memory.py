"""Data of the simulators, which outlive a restart of their process."""

import ast
import base64
import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import RemoteDisconnected
from pathlib import Path
from threading import Event, Semaphore
from types import BuiltinMethodType, FunctionType, MethodType
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote

import pytest

from mailroom.channels import OWN_CHANNELS
from mailroom_local import providers
from mailroom_local.aws import answers, open_url
from mailroom_local.processes import free_ports, wait_until
from mailroom_local.providers import http, server
from mailroom_local.providers.delay_queue import DelayQueue, Disorder
from mailroom_local.providers.http import Reply, Request
from mailroom_local.providers.memory import DATA, attributes_of, restore, store
from mailroom_local.providers.resend_mail import SECRET
from mailroom_local.providers.server import simulators
from mailroom_local.providers.twilio import ACCOUNT_SID, AUTH_TOKEN
from mailroom_local.providers.upstream import Upstream
from tests.support.local.served import served
from tests.support.local.ses import Emulator
from tests.support.stacks.page_blocks import blocks

NOWHERE = Upstream("http://127.0.0.1:9")
NOT_DATA = {
    "_base": "the path of the API in the emulator, which is looked up again",
    "close_connection": "of a connection, which ends with the process",
}
"""Reasons why attributes that change after the construction of their object are not data."""


def data_of(listed: Mapping[str, object]) -> dict[str, Any]:
    """Return the data of simulators by path."""
    rows = attributes_of(dict(listed))
    return {path: owner[name] for owner, name, path in rows if isinstance(owner[name], DATA)}


def example_of(kind: type[Any], path: str) -> Any:
    """Return data of a type that are in no new simulator."""
    if issubclass(kind, Disorder):
        return Disorder(1.5, 0.5)
    if issubclass(kind, bool):
        return True
    return kind({path: 1}) if issubclass(kind, dict) else kind([path])


def test_all_data_of_every_simulator_are_stored_and_restored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DelayQueue, "start", lambda _: None)
    earlier, file = simulators(NOWHERE), tmp_path / "memory"
    for owner, name, path in attributes_of(dict(earlier)):
        if isinstance(owner[name], DATA):
            owner[name] = example_of(type(owner[name]), path)
    expected = data_of(earlier)
    assert {path.rpartition(".")[2] for path in expected} >= {"_accepted", "_messages", "_faxes", "_answered"}
    store(dict(earlier), file)
    assert file.stat().st_mode & 0o777 == 0o600
    assert data_of(simulators(NOWHERE, file)) == expected


def used_by(value: object) -> list[object]:
    """Return the objects that an object refers to, also from functions."""
    match value:
        case FunctionType():
            return [cell.cell_contents for cell in value.__closure__ or ()]
        case MethodType() | BuiltinMethodType():
            return [value.__self__]
        case dict():
            return [*value.values()]
        case list() | tuple():
            return [*value]
    return [*vars(value).values()] if type(value).__module__.startswith("mailroom_local.") else []


def test_every_object_with_data_that_a_simulator_uses_is_stored() -> None:
    listed = simulators(NOWHERE)
    pending, objects = list[object](listed.values()), dict[int, object]()
    while pending:
        if id(value := pending.pop()) not in objects:
            objects[id(value)] = value
            pending += used_by(value)
    owners = [
        vars(value) for value in objects.values() if type(value).__module__.startswith("mailroom_local.")
    ]
    with_data = {id(owner) for owner in owners if any(isinstance(value, DATA) for value in owner.values())}
    assert len(with_data) > 15
    rows = attributes_of(dict(listed))
    assert {id(owner) for owner, name, _ in rows if isinstance(owner[name], DATA)} == with_data


def test_an_attribute_that_a_simulator_changes_after_its_construction_is_stored_as_data() -> None:
    names = {path.rpartition(".")[2] for path in data_of(simulators(NOWHERE))}
    modules = [ast.parse(module.read_text()) for module in Path(providers.__file__).parent.glob("*.py")]
    nodes = [node for module in modules for node in ast.walk(module)]
    methods = [node for node in nodes if isinstance(node, ast.FunctionDef) and not node.name.startswith("__")]
    changed = {
        ast.unparse(node).removeprefix("self.")
        for method in methods
        for node in ast.walk(method)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    }
    assert {name for name in changed if name.isidentifier()} - names == NOT_DATA.keys()


def test_the_simulators_start_empty_if_the_file_with_their_data_is_missing(tmp_path: Path) -> None:
    listed = simulators(NOWHERE)
    before = data_of(listed)
    restore(dict(listed), tmp_path / "missing")
    assert data_of(listed) == before


class Simulators:
    """Process of the simulators, which is started with the data of the process before it."""

    def __init__(self, emulator: str, folder: Path) -> None:
        self.file = folder / "memory"
        self._port = free_ports(1)[0]
        self._url = f"http://127.0.0.1:{self._port}"
        options = ("--emulator", emulator, "--port", str(self._port), "--memory", str(self.file))
        self._command = [sys.executable, "-m", "mailroom_local.providers.server", *options]

    @contextmanager
    def running(self, **variables: str) -> Iterator[None]:
        process = subprocess.Popen(self._command, env=os.environ | variables)
        try:
            assert wait_until(lambda: answers(f"{self._url}/health"), 20)
            assert not self.file.exists()
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(5)
        assert self.file.stat().st_mode & 0o777 == 0o600

    def ask(self, path: str, body: bytes | None = None, **headers: str) -> tuple[int, Any]:
        """Return the status and the parsed body of the response. The body is in a POST."""
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(f"{self._url}{path}", body, fields)
        try:
            with open_url(request, 10) as response:
                return response.status, json.loads(response.read() or b"null")
        except HTTPError as error:
            with error:
                return error.code, json.loads(error.read() or b"null")

    def put(self, path: str, body: bytes) -> None:
        request = urllib.request.Request(f"{self._url}{path}", body, method="PUT")
        open_url(request, 10).close()

    def sms(self, number: str) -> tuple[int, Any]:
        form = f"To={quote(number)}&From={quote('+12025550123')}&Body=Hello".encode()
        return self.ask(MESSAGES, form, authorization=TWILIO)

    def pages(self) -> list[Any]:
        """Return the content of all pages."""
        return [
            self.ask(path)[1]
            for path in ("/inbox", "/inbox/channels", "/faxes", "/receiver/received", "/trouble", "/events")
        ]


MESSAGES = f"/twilio/2010-04-01/Accounts/{ACCOUNT_SID}/Messages.json"
TWILIO = "Basic " + base64.b64encode(f"{ACCOUNT_SID}:{AUTH_TOKEN}".encode()).decode()
SIGNALWIRE = "Basic " + base64.b64encode(b"local:local").decode()
SES_MAIL = {
    "FromEmailAddress": "mailroom@example.com",
    "Destination": {"ToAddresses": ["ada@example.com"]},
    "Content": {"Simple": {"Subject": {"Data": "Hello"}, "Body": {"Text": {"Data": "Text"}}}},
}
RESEND_MAIL = json.dumps({"from": "a@example.com", "to": ["b@example.com"], "subject": "Hello", "text": "Hi"})
STUCK_FAX = b"To=%2B12025550120&From=%2B12025550123&MediaUrl=https://example.com/a.pdf"
TELEGRAM = json.dumps({"chat_id": "7429", "text": "Hello"}).encode()


def test_the_restarted_simulators_have_the_messages_counts_and_settings_of_the_earlier_process(
    tmp_path: Path,
) -> None:
    """The second process has one more channel."""
    for path, text in blocks():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    own = {OWN_CHANNELS: '{"telegram": "channels.telegram"}', "PYTHONPATH": str(tmp_path)}
    with served(Emulator()) as emulator:
        simulated = Simulators(emulator, tmp_path)
        resend = {"authorization": f"Bearer {SECRET['api_key']}", "idempotency_key": "k"}
        with simulated.running():
            simulated.ask("/events/pause", b"")
            simulated.ask("/trouble", b'{"provider": "sns", "shares": {"throttled": 0.5}}')
            assert simulated.ask("/v2/email/outbound-emails", json.dumps(SES_MAIL).encode())[0] == 200
            simulated.put(
                "/v2/email/suppression/addresses", b'{"EmailAddress": "b@x.org", "Reason": "BOUNCE"}'
            )
            accepted = simulated.ask("/resend/emails", RESEND_MAIL.encode(), **resend)
            with pytest.raises(RemoteDisconnected):
                simulated.sms("+12025550154")
            simulated.ask("/texts", b"From=%2B12025550170&Body=STOP")
            simulated.ask(
                "/signalwire/api/laml/2010-04-01/Accounts/local/Faxes", STUCK_FAX, authorization=SIGNALWIRE
            )
            assert simulated.ask("/receiver/flaky/2", b"{}", webhook_id="w")[0] == 503
            pages, listed = simulated.pages(), simulated.ask(MESSAGES, authorization=TWILIO)[1]["messages"]
        with simulated.running(**own):
            assert simulated.pages() == pages
            assert len(pages[0]) == 4
            assert pages[-1] == {"paused": True, "waiting": {"ses": 0, "twilio": 0, "resend": 2}}
            again = simulated.ask(MESSAGES, authorization=TWILIO)[1]["messages"]
            assert [each["sid"] for each in again] == [each["sid"] for each in listed]
            assert simulated.ask("/resend/emails", RESEND_MAIL.encode(), **resend) == accepted
            assert simulated.ask("/v2/email/suppression/addresses/b%40x.org")[0] == 200
            assert simulated.sms("+12025550170")[1]["code"] == 21610
            assert [simulated.ask("/receiver/flaky/2", b"{}", webhook_id="w")[0] for _ in range(2)] == [
                503,
                200,
            ]
            assert simulated.sms("+12025550154")[0] == 201
            assert simulated.ask("/telegram/bot1:local/sendMessage", TELEGRAM)[0] == 429
        with simulated.running(**own):
            assert simulated.ask("/telegram/bot1:local/sendMessage", TELEGRAM)[0] == 200
            assert [each["channel"] for each in simulated.ask("/inbox")[1]][-2:] == ["sms", "telegram"]


@dataclass
class WaitingSimulator:
    """Simulator whose responses wait for an event."""

    began: Event = field(default_factory=Event)
    may_end: Event = field(default_factory=Event)
    ended: bool = False
    prefix: str = "/waiting"

    def handle(self, _: Request) -> Reply:
        self.began.set()
        assert self.may_end.wait(5)
        self.ended = True
        return Reply(200, b"")


def test_the_simulators_store_their_data_only_after_the_requests_in_progress_have_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting, stored, places = WaitingSimulator(), list[bool](), Semaphore(3)
    monkeypatch.setattr(http, "PLACES", places)
    monkeypatch.setattr(server, "PLACES", places)
    monkeypatch.setattr(server, "MAX_REQUESTS", 3)
    monkeypatch.setattr(server, "simulators", lambda *_: {"waiting": waiting})
    monkeypatch.setattr("mailroom_local.providers.memory.store", lambda *_: stored.append(waiting.ended))
    monkeypatch.setattr("signal.raise_signal", lambda _: None)
    simulated = server.ProviderServer(0, "http://127.0.0.1:9")
    with served(simulated) as url, ThreadPoolExecutor() as pool:
        response = pool.submit(answers, f"{url}/waiting")
        assert waiting.began.wait(5)
        end = pool.submit(simulated.leave, tmp_path / "memory")
        assert wait_until(lambda: not answers(f"{url}/health"), 5)
        waiting.may_end.set()
        end.result(5)
        assert response.result(5)
    assert stored == [True]
