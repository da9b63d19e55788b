"""Faxes, and a provider whose responses a test sets."""

import itertools
from collections.abc import Container, Iterable, Iterator
from typing import Any

from mailroom.channels.fax.contract import Delivered, Fax, FaxRequest, FaxState, Pending, Undelivered
from mailroom.environment import FaxSender
from mailroom.ledger.claims import Claimed
from mailroom.ledger.ledger import Ledger
from mailroom.message.message import Key, parse
from mailroom.message.outcome import Evidence, Outcome, Sent
from mailroom.providers.look_up import single
from mailroom_stacks.settings.queues import RESEND_DELAYS
from tests.support.unit.post import SETTINGS
from tests.support.unit.shared import Aws, FakeClock, Item, claimed

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
    "resend_delays": RESEND_DELAYS,
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


def fax_sender_at(url: str, **changes: Any) -> FaxSender:
    """Return the settings of a sender of faxes by a provider at this URL."""
    return FaxSender(**{**FAX_SETTINGS, "queue_url": "", "fax_base_url": url, "submit_seconds": 5, **changes})


Fetched = FaxState | Exception
OURS = "fake/ours"
"""Account that faxes are submitted to, in the form of the ledger."""
SENDING = Pending("sending")
BUSY = Undelivered("busy", again=True)


def fax_item(**changes: Any) -> Item:
    """Return a fax as a mailbox item; a change to `...` removes the attribute."""
    base = {"id": "f-1", "event_type": "fax", "to": LINE, "pdf_url": PDF}
    return {name: value for name, value in {**base, **changes}.items() if value is not ...}


def fax_body(**changes: Any) -> Item:
    """Return a fax as the body that an upstream application writes; `...` removes an attribute."""
    base = {"fax_id": "f-1", "to": LINE, "pdf_url": PDF, "callback_url": TOLD}
    return {name: value for name, value in {**base, **changes}.items() if value is not ...}


def fax(**changes: Any) -> Fax:
    """Return a valid fax."""
    return parse(fax_item(**changes), {"fax": Fax})


def entry(aws: Aws) -> Item:
    """Return the ledger's item of the fax `f-1`."""
    return aws.item("f-1", "fax")


def on_line(ledger: Ledger, provider: str = "fake", provider_id: str = "p-0", **changes: Any) -> Claimed:
    """Claim a fax and record its submit, as another worker does."""
    claim = claimed(ledger, fax(**changes))
    ledger.checkpoint(claim, provider, provider_id, LINE)
    return claim


def ends_after(clock: FakeClock, seconds: float, state: FaxState) -> Iterator[FaxState]:
    """Yield the states of a fax that ends `seconds` from now."""
    end = clock() + seconds
    while True:
        yield state if clock() >= end else SENDING


class FakeLine:
    """A provider that responds with the states and outcomes of a test, in turn, and records its calls. The
    last state repeats."""

    provider = "fake"
    account = "ours"

    def __init__(
        self,
        *states: Fetched,
        submits: Iterable[Outcome | Exception] = (),
        finds: list[str] | Exception | None = None,
        cancels: Exception | None = None,
        script: Iterable[Fetched] | None = None,
    ) -> None:
        last = states[-1] if states else Delivered()
        self._states = iter(script or itertools.chain(states, itertools.repeat(last)))
        self._submits = iter([*submits] or (Sent(f"p-{number}") for number in itertools.count(1)))
        self._finds = finds
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

    def find(self, to: str, reference: str, since: float, other_ids: Container[str]) -> Evidence:
        self.calls.append("find")
        self.searches.append((to, reference, since))
        if isinstance(self._finds, Exception):
            raise self._finds
        return single([(id_, True) for id_ in self._finds or [] if id_ not in other_ids])

    def cancel(self, provider_id: str) -> None:
        self.calls.append(f"cancel {provider_id}")
        if self._cancels is not None:
            raise self._cancels

    @property
    def submits(self) -> int:
        return self.calls.count("submit")
