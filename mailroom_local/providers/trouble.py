"""Temporary faults of providers, independent of content and recipient: POST /trouble.

The body names a provider and the share of its submits that has each fault, chosen at random:
`{"provider": "ses", "shares": {"throttled": 0.2, "timeout": 0.05}}`. Without `shares`, the provider has no
faults again. GET /trouble returns the shares, and how often each fault has occurred.

| fault     | what the provider does with a submit                           |
|-----------|----------------------------------------------------------------|
| throttled | responds with 429 and does not accept it                       |
| error     | responds with 500 and does not accept it                       |
| timeout   | accepts it, and breaks the connection after TIMEOUT_SECONDS    |
| slow      | accepts it, and responds after SLOW_SECONDS                    |

Providers are ses, resend, sns, twilio, signalwire and webhook, the receiver of webhooks. Other requests, such
as look-ups and requests for the status of a fax, have no faults.
"""

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from mailroom_local.providers import resend_mail as resend
from mailroom_local.providers import ses, ses_feedback, signalwire, sns, twilio
from mailroom_local.providers.http import NoAnswer, Pages, Reply, Request, Simulator

Kind = Literal["throttled", "error", "timeout", "slow"]
KINDS: tuple[Kind, ...] = get_args(Kind)
TIMEOUT_SECONDS = 10.0
"""Seconds after which the connection of a submit with a time-out breaks, longer than any sender of the local
stage waits for a response."""
SLOW_SECONDS = 2.0
SEED = 5


@dataclass(frozen=True)
class Submits:
    """Submits of a provider: a function that distinguishes them from other requests, and the provider's error
    responses by fault."""

    known: Callable[[Request], bool]
    refused: Mapping[Kind, Reply]


def _posted(*ends: str) -> Callable[[Request], bool]:
    return lambda request: request.method == "POST" and request.route.endswith(ends)


def _refused(error: Callable[..., Reply], refusals: Mapping[str, tuple[Any, ...]]) -> dict[Kind, Reply]:
    """Return a provider's error responses, by fault."""
    return {"throttled": error(*refusals["throttled"]), "error": error(*refusals["error"])}


PROVIDERS: dict[str, Submits] = {
    "ses": Submits(_posted("/outbound-emails"), _refused(ses_feedback.ses_error, ses.REFUSALS)),
    "resend": Submits(_posted("/emails"), _refused(resend.error, resend.REFUSALS)),
    "sns": Submits(
        lambda request: request.form.get("Action") == "Publish", _refused(sns.error, sns.REFUSALS)
    ),
    "twilio": Submits(_posted("/Messages.json"), _refused(twilio.error, twilio.REFUSALS)),
    "signalwire": Submits(_posted("/Faxes", "/Faxes.json"), _refused(signalwire.error, signalwire.REFUSALS)),
    "webhook": Submits(
        lambda request: request.method == "POST",
        {"throttled": Reply(429, b"", {"Retry-After": "1"}), "error": Reply(500, b"")},
    ),
}


class Trouble:
    """Faults of the submits of each provider. Thread-safe."""

    def __init__(self, seed: int = SEED, sleep: Callable[[float], None] = time.sleep) -> None:
        self._random = random.Random(seed)  # noqa: S311 - not for secrets
        self.sleep = sleep
        self._shares: dict[str, dict[Kind, float]] = {}
        self._had: Counter[tuple[str, Kind]] = Counter()
        self._lock = threading.Lock()

    def around(self, provider: str, simulator: Simulator) -> Simulator:
        """Return a simulator that has the current faults of its provider."""
        return _Troubled(self, provider, simulator)

    def pages(self) -> Pages:
        return Pages("/trouble", {"GET /trouble": lambda _: self._shown(), "POST /trouble": self._set})

    def _set(self, request: Request) -> dict[str, Any]:
        body = json.loads(request.body)
        provider, shares = body.get("provider"), body.get("shares", {})
        if provider not in PROVIDERS:
            raise ValueError(f"provider: use one of {', '.join(PROVIDERS)}.")
        if not shares.keys() <= set(KINDS) or not 0 <= sum(shares.values()) <= 1:
            raise ValueError(f"shares: use shares of {', '.join(KINDS)} with a sum of at most 1.")
        with self._lock:
            self._shares[provider] = shares
        return self._shown()

    def _shown(self) -> dict[str, Any]:
        with self._lock:
            shares = {provider: dict(parts) for provider, parts in self._shares.items() if parts}
            had: dict[str, dict[str, int]] = {}
            for (provider, kind), count in self._had.items():
                had.setdefault(provider, {})[kind] = count
        return {"shares": shares, "had": had}

    def drawn(self, provider: str) -> Kind | None:
        """Return the fault of the next submit, or None if it has none."""
        with self._lock:
            shares = self._shares.get(provider)
            if not shares:
                return None
            chance = self._random.random()
            for kind, share in shares.items():
                chance -= share
                if chance < 0:
                    self._had[provider, kind] += 1
                    return kind
        return None


class _Troubled:
    """A simulator whose submits have faults."""

    def __init__(self, trouble: Trouble, provider: str, simulator: Simulator) -> None:
        self.prefix = simulator.prefix
        self._trouble, self._provider, self._simulator = trouble, provider, simulator

    def handle(self, request: Request) -> Reply:
        submits = PROVIDERS[self._provider]
        kind = self._trouble.drawn(self._provider) if submits.known(request) else None
        if kind in ("throttled", "error"):
            return submits.refused[kind]
        reply = self._simulator.handle(request)
        if kind == "timeout":
            self._trouble.sleep(TIMEOUT_SECONDS)
            raise NoAnswer
        if kind == "slow":
            self._trouble.sleep(SLOW_SECONDS)
        return reply
