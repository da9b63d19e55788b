"""The fax gateway: its provider, how patient it is with one fax, and when it tries again."""

from typing import Annotated, Literal

from pydantic import Field

from stacks.settings.sections import Backoff, Function, Patience, QueueWorker, Redelivery
from stacks.settings.urls import BASE_URL

_NUMBER = r"^\+[1-9][0-9]{6,14}$"


class RetryMover(QueueWorker):
    """The queue on which faxes wait for their time, and the function that puts them back on their line."""

    longest_throttling_seconds: int = Field(default=3_600, ge=0, le=172_800)


class Fax(Function, Redelivery, Patience, Backoff):
    """The fax queue, its sender, and the retries."""

    provider: Literal["signalwire", "telnyx"]
    """Whose API sends the faxes."""
    senders: tuple[Annotated[str, Field(pattern=_NUMBER)], ...] = Field(min_length=1)
    """Our own numbers in E.164, such as +12025550123; the first is the default."""
    space: str | None = Field(default=None, pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")
    """SignalWire's space: {space}.signalwire.com is called."""
    base_url: str | None = Field(default=None, pattern=BASE_URL)
    """Https, without a slash at its end; or providers, which the app is told by -c providers=URL."""
    connection_id: str | None = Field(default=None, pattern=r"^[A-Za-z0-9-]{1,64}$")
    """Telnyx's id of the fax application."""
    timeout_seconds: int = Field(default=900, ge=1, le=900)
    """As long as Lambda lets it: a function that waits is cheaper than one that is started anew."""
    concurrent_calls: int = Field(default=2, ge=2, le=1000)
    """How many faxes may be under way at once; the provider's limit for the account."""
    calls_per_second: float = Field(default=1, ge=0.1, le=1000)
    """How many submits a second the provider takes, of all workers together."""
    submit_seconds: int = Field(default=20, ge=1, le=300)
    """The longest that one request to the provider may take."""
    record_seconds: int = Field(default=10, ge=1, le=60)
    """What is kept back, so that what became of a fax can still be recorded, or its record handed back."""
    on_unknown: Literal["resend", "hold"] = "hold"
    """Where the provider has several faxes after a crash that nobody accounts for: any may be this one."""
    poll_seconds: float = Field(default=5, ge=0.1, le=300)
    """The time between two looks at a fax that is under way."""
    ttl_minutes: int = Field(default=5, ge=5, le=120)
    """How long the provider may try by itself: short, for the retries here govern."""
    longest_fax_seconds: int = Field(default=7_200, ge=60, le=86_400)
    """From submit to end, the provider's own tries included; a fax under way for longer is given up."""
    visibility_margin_seconds: int = Field(default=60, ge=1, le=3_600)
    """How long the queue's visibility outlives the lease: a crash holds a line for no longer than both."""
    max_attempts: int = Field(default=20, ge=1, le=100)
    """Attempts before a busy line or one that nobody answers is given up."""
    retry_delay_seconds: int = Field(default=600, ge=1, le=43_200)
    """The wait before the second attempt."""
    retry_growth: float = Field(default=1, ge=1, le=10)
    """Each further wait is this many times the one before."""
    retry_delay_cap_seconds: int = Field(default=3_600, ge=1, le=43_200)
    """The longest wait between two attempts."""
    media_seconds: int = Field(default=3_600, ge=60, le=7_200)
    """How long the provider may fetch a fax's PDF from the payload bucket. A URL ends with the credentials
    that signed it, and a function's are replaced every few hours: more could not be kept."""
    clock_skew_seconds: int = Field(default=60, ge=0, le=600)
    """How far the provider's clock may be behind ours when a lost submit is looked for. Generous: what the
    ledger knows of the line is left out anyway."""
    quality: Literal["standard", "fine", "superfine"] = "fine"
    """The resolution that faxes are sent in."""
    retry: RetryMover = RetryMover()

    @property
    def url(self) -> str:
        """Where the provider's API is, without a slash at its end."""
        if self.base_url:
            return self.base_url
        return f"https://{self.space}.signalwire.com" if self.space else "https://api.telnyx.com"

    @property
    def pace(self) -> float:
        """The gap before each submit: so many workers, each waiting this long, keep to the rate."""
        return self.concurrent_calls / self.calls_per_second

    @property
    def watched_seconds(self) -> float:
        """For how much of its time-out one invocation can see a fax through."""
        return self.timeout_seconds - self.submit_seconds - self.record_seconds - self.poll_seconds
