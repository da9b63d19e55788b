"""What can be set for a stage, in `cdk.json` under context `mailroom`, then the stage's name."""

import re
from email.utils import parseaddr
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

LaneName = Literal["normal", "bulk"]
EventType = Annotated[str, Field(pattern=r"^[a-z][a-z0-9]{0,15}$")]


_ADDRESS = re.compile(r"[\w!#$%&'*+/=?^`{|}~.-]+@([A-Za-z0-9-]+\.)+[A-Za-z0-9-]+", re.ASCII)


def _address(sender: str) -> str:
    """A sender is `a@b.c` or `Name <a@b.c>`."""
    # What the function that sends refuses would dead-letter every mail.
    if not _ADDRESS.fullmatch(parseaddr(sender)[1]):
        raise ValueError("is no mail address; write 'name@example.com' or 'Name <name@example.com>'")
    return sender


class Section(BaseModel):
    """Frozen and strict: a misspelt key or a number in quotes stops synth instead of being guessed at."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True)


class Function(Section):
    """What an invocation may use."""

    timeout_seconds: int = Field(default=60, ge=1, le=900)
    memory_mb: int = Field(default=256, ge=128, le=10_240)


class Polling(Section):
    """How Lambda reads a queue."""

    batch_size: int = Field(default=10, ge=1, le=10)
    batch_window_seconds: int = Field(default=0, ge=0, le=300)
    maximum_concurrency: int = Field(default=2, ge=2, le=1000)


class Redelivery(Section):
    """How often a queue delivers again before the dead-letter queue; `maxReceiveCount` is derived from it."""

    longest_throttling_seconds: int = Field(default=14_400, ge=0, le=172_800)
    """The longest time a provider may refuse without a message being dead-lettered for it."""
    crash_allowance: int = Field(default=5, ge=1, le=100)
    """Receives beside those, for functions that die and workers that meet another's lease."""


class Lane(Polling):
    """One of a channel's queues, with its part of the channel's rate."""

    share: float = Field(ge=0.01, le=1)
    """The part of `messages_per_second` that this lane gets."""


class Channel(Function, Redelivery):
    """A row: everything that makes a queue, dead-letter queue and sender for each lane of an event type."""

    handler: str = Field(pattern=r"^[a-z][a-z0-9_]{0,31}$")
    """The file in lambdas/, without its ending, whose `handler` runs."""
    lanes: dict[LaneName, Lane] = Field(min_length=1)
    """normal, and bulk where a campaign must not delay the rest."""
    messages_per_second: float = Field(default=1, ge=0.1, le=100_000)
    """What the provider allows, over all lanes."""
    submit_seconds: int = Field(default=10, ge=1, le=300)
    """The longest that one submit may take, HTTP time-outs included."""
    record_seconds: int = Field(default=5, ge=1, le=60)
    """What is kept back after a submit, so that its outcome can still be recorded."""
    on_unknown: Literal["resend", "hold"] = "resend"
    """After a crash without evidence: send again (at least once) or fail as unknown (at most once)."""
    backoff_seconds: int = Field(default=5, ge=1, le=900)
    """The wait after the first throttled receive; it doubles from there."""
    backoff_cap_seconds: int = Field(default=900, ge=1, le=43_200)
    """The longest wait between two receives."""
    misconfigured_seconds: int = Field(default=10, ge=0, le=900)
    """The wait after a fault of ours: short, so that the dead-letter queue's alarm comes soon."""


class Scheduled(Function, Polling, Redelivery):
    """The queue on which EventBridge schedules bring back messages whose `send_at` has come."""

    longest_throttling_seconds: int = Field(default=3_600, ge=0, le=172_800)


class Dispatch(Function):
    """How the mailbox stream is read."""

    enabled: bool = True
    """Whether Lambda reads the stream; the local stage's pump does it there."""
    batch_size: int = Field(default=100, ge=1, le=1000)
    batch_window_seconds: int = Field(default=0, ge=0, le=300)
    retries: int = Field(default=10, ge=0, le=1000)
    maximum_record_age_seconds: int = Field(default=21_600, ge=60, le=86_400)
    """A stream keeps its records for a day."""
    parallelization: int = Field(default=2, ge=1, le=10)


class Mail(Section):
    """What the mail channel needs beside its row."""

    senders: tuple[Annotated[str, AfterValidator(_address)], ...] = Field(min_length=1)
    """The addresses that a message's `from` may name; the first is the default."""
    configuration_set: str | None = Field(default=None, pattern=r"^[A-Za-z0-9_-]{1,64}$")
    """The name of the SES configuration set; mailroom-{stage} by default."""
    max_attachment_bytes: int = Field(default=7_000_000, ge=1, le=28_000_000)
    """All attachments of a mail; SES takes 40 MB with base64's third on top, and throttles above 10 MB."""


class Retention(Section):
    """How long things are kept."""

    queue_days: int = Field(default=4, ge=1, le=13)
    dead_letter_days: int = Field(default=14, ge=2, le=14)
    margin_days: int = Field(default=1, ge=1, le=7)
    """Added to what is derived: the time that a message may wait behind others before its first receive."""
    ledger_days: int = Field(default=90, ge=1, le=3650)
    mailbox_days: int | None = Field(default=None, ge=1, le=3650)
    """What producers should set as `ttl`, published as an output; null keeps items for ever."""
    payload_days: int = Field(default=90, ge=1, le=3650)
    unprocessed_days: int = Field(default=60, ge=1, le=3650)
    """What the stream gave up on, waiting to be replayed."""
    log_days: Literal[1, 7, 14, 30, 90, 180, 365] = 30


class Deployment(Section):
    """Where the stage lives and what protects it."""

    account: str | None = Field(default=None, pattern=r"^\d{12}$")
    """12 digits; null takes the account of whoever deploys."""
    region: str | None = Field(default=None, pattern=r"^[a-z]{2}(-[a-z]+)+-\d$")
    """Such as eu-central-1; null takes the region of whoever deploys."""
    bundle_platform: Literal["aarch64-manylinux2014", "x86_64-manylinux2014", "host"] = (
        "aarch64-manylinux2014"
    )
    """Whose wheels the functions get; host, for the emulator, is this machine and its Python."""
    removal: Literal["retain", "destroy"] = "retain"
    """What becomes of tables and buckets when a stack is deleted."""
    deletion_protection: bool = True
    termination_protection: bool = False
    point_in_time_recovery: bool = True
    tags: dict[str, str] = Field(default_factory=dict)


class Settings(Section):
    """One stage."""

    stage: str = Field(pattern=r"^[a-z][a-z0-9]{0,11}$")
    """A lower-case letter, then up to 11 letters or digits: bucket names have room for no more."""
    channels: dict[EventType, Channel] = Field(min_length=1)
    mail: Mail
    dispatch: Dispatch = Dispatch()
    scheduled: Scheduled = Scheduled()
    retention: Retention = Retention()
    deployment: Deployment = Deployment()
    lease_margin_seconds: int = Field(default=60, ge=1, le=600)
    """How long a claim outlives its function's time-out, for clocks that disagree."""
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"

    def name(self, short: str = "") -> str:
        """The physical name of `short` in this stage, such as mailroom-dev-mail-dlq."""
        return f"mailroom-{self.stage}-{short}" if short else f"mailroom-{self.stage}"

    @property
    def configuration_set(self) -> str:
        """The SES configuration set's name."""
        return self.mail.configuration_set or self.name()
