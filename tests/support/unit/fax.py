"""Faxes, and a provider that says of them what it is told."""

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

from mailroom.channels.fax.contract import Delivered, Fax, FaxRequest, FaxState, Pending, Undelivered
from mailroom.message.message import Key, parse
from mailroom.message.outcome import Outcome, Sent
from tests.support.unit.post import SETTINGS
from tests.support.unit.shared import Aws, FakeClock, Item

LINE = "+16175551234"
OTHER_LINE = "+493012345678"
SENDERS = ["+12025550100", "+12025550101"]
PDF = "https://files.example/f-1.pdf"
TOLD = "https://app.example/faxes"
FAX_KEY = Key("f-1", "fax")
FAX_LEASE = 960.0
FAX_SETTINGS: dict[str, Any] = {
    **SETTINGS,
    "channel": "fax",
    "lease_seconds": FAX_LEASE,
    "on_unknown": "hold",
    "submit_seconds": 20,
    "record_seconds": 10,
    "fax_provider": "signalwire",
    "fax_secret_arn": "arn:aws:secretsmanager:eu-central-1:123456789012:secret:mailroom-test-fax",
    "fax_base_url": "https://mailroom.signalwire.example",
    "fax_senders": SENDERS,
    "fax_connection_id": "",
    "fax_ttl_minutes": 5,
    "fax_quality": "fine",
    "media_seconds": 3600,
    "poll_seconds": 5,
    "longest_fax_seconds": 7200,
    "max_attempts": 20,
    "last_submit_receive": 10,
    "clock_skew_seconds": 5,
    "callback_schemes": ["https"],
    "callback_ports": [443],
}
Said = FaxState | Exception
OURS = "fake/ours"
"""The account that faxes are submitted to, as the ledger names it."""
SENDING = Pending("sending")
BUSY = Undelivered("busy", again=True)


def fax_item(**changes: Any) -> Item:
    """A fax as a mailbox item; a change to `...` takes the attribute away."""
    base = {"id": "f-1", "event_type": "fax", "to": LINE, "pdf_url": PDF}
    return {name: value for name, value in {**base, **changes}.items() if value is not ...}


def fax_body(**changes: Any) -> Item:
    """A fax as an upstream application writes it."""
    base = {"fax_id": "f-1", "to": LINE, "pdf_url": PDF, "callback_url": TOLD}
    return {name: value for name, value in {**base, **changes}.items() if value is not ...}


def fax(**changes: Any) -> Fax:
    """A fax that has passed its checks."""
    return parse(fax_item(**changes), {"fax": Fax})


def found(aws: Aws) -> Item:
    """What the ledger says of the fax that all tests begin with."""
    return aws.item("f-1", "fax")


def ends_after(clock: FakeClock, seconds: float, state: FaxState) -> Iterator[FaxState]:
    """A provider's answers about a fax that ends that much later."""
    end = clock() + seconds
    while True:
        yield state if clock() >= end else SENDING


class FakeLine:
    """A provider. It says of submits and of states what it is told, in turn (the last state for ever), and
    keeps what it was asked, in order."""

    provider = "fake"
    account = "ours"

    def __init__(
        self,
        *states: Said,
        submits: Iterable[Outcome | Exception] = (),
        found: list[str] | Exception | None = None,
        cancels: Exception | None = None,
        script: Iterable[Said] | None = None,
    ) -> None:
        last = states[-1] if states else Delivered()
        self._states = iter(script or itertools.chain(states, itertools.repeat(last)))
        self._submits = iter([*submits] or (Sent(f"p-{at}") for at in itertools.count(1)))
        self._found = found
        self._cancels = cancels
        self.calls: list[str] = []
        self.requests: list[FaxRequest] = []
        self.searches: list[tuple[str, str, float]] = []

    def submit(self, request: FaxRequest) -> Outcome:
        self.calls.append("submit")
        self.requests.append(request)
        outcome = next(self._submits)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def fetch(self, provider_id: str) -> FaxState:
        self.calls.append(f"fetch {provider_id}")
        state = next(self._states)
        if isinstance(state, Exception):
            raise state
        return state

    def find(self, to: str, reference: str, since: float) -> list[str]:
        self.calls.append("find")
        self.searches.append((to, reference, since))
        if isinstance(self._found, Exception):
            raise self._found
        return self._found or []

    def cancel(self, provider_id: str) -> None:
        self.calls.append(f"cancel {provider_id}")
        if self._cancels is not None:
            raise self._cancels

    @property
    def submits(self) -> int:
        return self.calls.count("submit")
