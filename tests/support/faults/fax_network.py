"""A simulated telephone network with fax providers, which records the calls of each line."""

from collections import Counter, defaultdict
from collections.abc import Callable, Container
from dataclasses import dataclass

from mailroom.channels.fax.contract import Delivered, FaxRequest, FaxState, Pending, Undelivered
from mailroom.message.outcome import Evidence, Outcome, Rejected, Retry, Sent
from mailroom.providers.look_up import single

GOOD_SECONDS, BUSY_SECONDS, SLOW_SECONDS, ENDLESS_SECONDS = 25.0, 5.0, 150.0, 1e6


@dataclass
class FaxCall:
    """A fax that the provider accepted."""

    provider_id: str
    account: str
    request: FaxRequest
    began: float
    ends: float
    end: FaxState

    @property
    def name(self) -> str:
        """Return the name of the PDF, which is unique for each fax of a test."""
        return self.request.media_url.rsplit("/", 1)[-1].removesuffix(".pdf")


class FaxNetwork:
    """The network.

    The PDF's name chooses a fax's fate: busy (always), busy-once, slow, endless, lost-answer (accepted, but
    the response is lost), refused, throttled-once. While `down` is set, every request fails.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._tries: Counter[str] = Counter()
        self.calls: list[FaxCall] = []
        self.down = False

    def provider(self, name: str, account: str) -> "Provider":
        """Return a provider on this network, for one account."""
        return Provider(self, name, account)

    def submit(self, account: str, request: FaxRequest) -> Outcome:
        name = request.media_url.rsplit("/", 1)[-1].removesuffix(".pdf")
        self._tries[name] += 1
        if name.startswith("refused"):
            return Rejected("21211: that is no fax number")
        if name.startswith("throttled-once") and self._tries[name] == 1:
            return Retry("429: too many requests")
        seconds, end = self._fate(name)
        now = self._clock()
        call = FaxCall(f"fx-{len(self.calls) + 1}", account, request, now, now + seconds, end)
        self.calls.append(call)
        if name.startswith("lost-answer") and self._tries[name] == 1:
            raise TimeoutError("the provider did not answer")
        return Sent(call.provider_id)

    def state(self, call: FaxCall) -> FaxState:
        """Return the present state of a fax."""
        return call.end if self._clock() >= call.ends else Pending("sending")

    def most_at_once(self) -> Counter[str]:
        """Return the most simultaneous faxes of each line."""
        most: Counter[str] = Counter()
        for line, calls in self.by_line().items():
            edges = sorted([(c.began, 1) for c in calls] + [(c.ends, -1) for c in calls])
            live = 0
            for _, step in edges:
                live += step
                most[line] = max(most[line], live)
        return most

    def by_line(self) -> dict[str, list[FaxCall]]:
        lines: dict[str, list[FaxCall]] = defaultdict(list)
        for call in self.calls:
            lines[call.request.to].append(call)
        return lines

    def delivered(self) -> Counter[str]:
        """Return the number of deliveries of each PDF."""
        return Counter(call.name for call in self.calls if isinstance(call.end, Delivered))

    def _fate(self, name: str) -> tuple[float, FaxState]:
        if name.startswith("busy-once") and self._tries[name] > 1:
            return GOOD_SECONDS, Delivered()
        if name.startswith("busy"):
            return BUSY_SECONDS, Undelivered("busy", again=True)
        if name.startswith("endless"):
            return ENDLESS_SECONDS, Delivered()
        return (SLOW_SECONDS if name.startswith("slow") else GOOD_SECONDS), Delivered()


class Provider:
    """A provider that only returns the faxes of its own account."""

    def __init__(self, network: FaxNetwork, name: str, account: str) -> None:
        self.provider = name
        self.account = account
        self._network = network

    def submit(self, request: FaxRequest) -> Outcome:
        self._reached()
        return self._network.submit(self._name, request)

    def fetch(self, provider_id: str) -> FaxState:
        (call,) = (each for each in self._own() if each.provider_id == provider_id)
        return self._network.state(call)

    def find(self, to: str, reference: str, since: float, other_ids: Container[str]) -> Evidence:
        calls = [each for each in self._own() if each.request.to == to and each.began >= since]
        return single([(call.provider_id, True) for call in calls if call.provider_id not in other_ids])

    def cancel(self, provider_id: str) -> None:
        self._reached()

    def _own(self) -> list[FaxCall]:
        self._reached()
        return [each for each in self._network.calls if each.account == self._name]

    @property
    def _name(self) -> str:
        return f"{self.provider}/{self.account}"

    def _reached(self) -> None:
        if self._network.down:
            raise ConnectionError("the provider is out of reach")
