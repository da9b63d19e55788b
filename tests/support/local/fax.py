"""The simulated fax providers behind a real server, with a clock that a test moves."""

import json
import urllib.request
from collections.abc import Container, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from mailroom.channels.fax.adapter import FaxProvider
from mailroom.channels.fax.contract import FaxRequest
from mailroom.message.outcome import Evidence
from mailroom.providers.signalwire.sender import SignalWire
from mailroom.providers.telnyx.sender import Telnyx
from mailroom_local.providers.fax import FaxLine
from mailroom_local.providers.http import SimulatorServer
from mailroom_local.providers.inbox import InboxStore
from mailroom_local.providers.signalwire import SignalWireSimulator
from mailroom_local.providers.telnyx import TelnyxSimulator
from tests.support.local.served import served
from tests.support.unit.fax import fax_sender_at

PROJECT = "b3877c40-da60-4998-90ad-b792e98472ac"
SENDER = "+12025550190"
PDF = "https://example.com/letter.pdf"
NOW = 1_795_251_600.25
"""2026-11-21T09:00:00.25Z"""


@dataclass
class Clock:
    """A clock that stops until a test moves it."""

    now: float = NOW

    def __call__(self) -> float:
        return self.now


@dataclass
class Bench:
    """The simulated line, its server and both adapters."""

    url: str
    line: FaxLine
    inbox: InboxStore
    clock: Clock = field(repr=False)

    @property
    def signalwire(self) -> SignalWire:
        base = f"{self.url}/signalwire"
        return SignalWire(PROJECT, "token", fax_sender_at(base))

    @property
    def telnyx(self) -> Telnyx:
        base = f"{self.url}/telnyx"
        return Telnyx("key", fax_sender_at(base, fax_connection_id="c-1"))

    def wait(self, seconds: float) -> None:
        self.clock.now += seconds

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(self.url + path) as answer:
            return json.load(answer)

    def statuses(self) -> list[str]:
        return [fax["status"] for fax in self.line.log()]


def number(ending: str) -> str:
    """Return a number of the table in `fax.py`."""
    return f"+120255501{ending}"


def fax_request(ending: str = "01", url: str = PDF, reference: str = "ref") -> FaxRequest:
    return FaxRequest(number(ending), SENDER, url, reference)


def evidence_of(
    provider: FaxProvider, fax: FaxRequest, since: float, other_ids: Container[str] = ()
) -> Evidence:
    """Return the result of the provider's look-up of a fax."""
    return provider.find(fax.to, fax.reference, since, other_ids)


@contextmanager
def running_fax_bench() -> Iterator[Bench]:
    """Yield the bench while its server runs."""
    clock, inbox = Clock(), InboxStore()
    line = FaxLine(inbox, clock, delivered_seconds=10, busy_seconds=2, slow_seconds=100)
    with served(SimulatorServer(0, SignalWireSimulator(line), TelnyxSimulator(line), line.pages())) as url:
        yield Bench(url, line, inbox, clock)
