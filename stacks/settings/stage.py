"""One stage, of all its sections."""

from typing import Annotated, Literal

from pydantic import Field

from stacks.settings.api import Api
from stacks.settings.campaigns import Campaigns
from stacks.settings.channels import Channel, Mail
from stacks.settings.databases import Database, DatabaseName
from stacks.settings.deploy import Deploy
from stacks.settings.fax import Fax
from stacks.settings.feedback import DeadLetters, Feedback
from stacks.settings.monitoring import Monitoring
from stacks.settings.push import Push
from stacks.settings.sections import Function, Polling, Redelivery, Section
from stacks.settings.sms import Sms
from stacks.settings.webhook import Webhook

EventType = Annotated[str, Field(pattern=r"^[a-z][a-z0-9]{0,15}$")]


class Scheduled(Function, Polling, Redelivery):
    """The queue on which EventBridge schedules bring back messages whose `send_at` has come."""

    longest_throttling_seconds: int = Field(default=3_600, ge=0, le=172_800)


class Stream(Function):
    """How a table's stream is read: the mailbox's by dispatch, the ledger's by outcomes."""

    enabled: bool = True
    """Whether Lambda reads the stream; the local stage's pump does it there."""
    batch_size: int = Field(default=100, ge=1, le=1000)
    batch_window_seconds: int = Field(default=0, ge=0, le=300)
    retries: int = Field(default=10, ge=0, le=1000)
    maximum_record_age_seconds: int = Field(default=21_600, ge=60, le=86_400)
    """A stream keeps its records for a day."""
    parallelization: int = Field(default=2, ge=1, le=10)


LEAST_LEDGER_DAYS = 90
"""So long every ledger remembers, whatever its stage is set to or was: an item lives by the setting that held
when it was written, so that nobody can tell from today's what is forgotten."""


class Retention(Section):
    """How long things are kept."""

    queue_days: int = Field(default=4, ge=1, le=13)
    dead_letter_days: int = Field(default=14, ge=2, le=14)
    margin_days: int = Field(default=1, ge=1, le=7)
    """Added to what is derived: the time that a message may wait behind others before its first receive."""
    ledger_days: int = Field(default=LEAST_LEDGER_DAYS, ge=LEAST_LEDGER_DAYS, le=3650)
    mailbox_days: int | None = Field(default=None, ge=1, le=3650)
    """What producers should set as `ttl`, published as an output; null keeps items for ever."""
    payload_days: int = Field(default=90, ge=1, le=3650)
    unprocessed_days: int = Field(default=60, ge=1, le=3650)
    """What a stream gave up on, waiting to be replayed."""
    log_days: Literal[1, 7, 14, 30, 90, 180, 365] = 30

    def days_of(self, *, fifo: bool) -> int:
        """How long a queue keeps a message. A FIFO queue's may wait behind others for long, and its age
        starts anew in its dead-letter queue: it keeps as long as that."""
        return self.dead_letter_days if fifo else self.queue_days


class Deployment(Section):
    """Where the stage lives and what protects it."""

    account: str | None = Field(default=None, pattern=r"^\d{12}$")
    """12 digits; null takes the account of whoever deploys."""
    region: str | None = Field(default=None, pattern=r"^[a-z]{2}(-[a-z]+)+-\d$")
    """Such as eu-central-1; null takes the region of whoever deploys."""
    bundle_platform: Literal["aarch64-manylinux_2_28", "x86_64-manylinux_2_28", "host"] = (
        "aarch64-manylinux_2_28"
    )
    """Whose wheels the functions get: Lambda's own glibc is 2.34. host, for the emulator, is this machine
    and its Python."""
    removal: Literal["retain", "destroy"] = "retain"
    """What becomes of tables, buckets and secrets when a stack is deleted."""
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
    sms: Sms | None = None
    """Together with its row in channels, or null with none."""
    push: Push | None = None
    """Together with its row in channels, or null with none."""
    fax: Fax | None = None
    """null deploys no fax gateway."""
    webhook: Webhook = Webhook()
    dispatch: Stream = Stream()
    outcomes: Stream = Stream()
    scheduled: Scheduled = Scheduled()
    feedback: Feedback = Feedback()
    api: Api = Api()
    campaigns: Campaigns = Campaigns()
    databases: dict[DatabaseName, Database] = Field(default_factory=dict)
    """The databases that campaigns may ask, by the names that these call them."""
    dead_letters: DeadLetters = DeadLetters()
    monitoring: Monitoring = Monitoring()
    retention: Retention = Retention()
    deployment: Deployment = Deployment()
    deploy: Deploy | None = None
    """null makes no role for a CI system."""
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

    @property
    def default_region(self) -> str:
        """The country of numbers without a country code; "": there is none."""
        return (self.sms and self.sms.default_region) or ""

    @property
    def twilio(self) -> Sms | None:
        """SMS, where Twilio sends them."""
        return self.sms if self.sms and self.sms.provider == "twilio" else None

    @property
    def sms_configuration_set(self) -> str | None:
        """The name of the configuration set that AWS sends SMS with, where it does."""
        if self.sms is None or self.sms.provider != "aws":
            return None
        return self.sms.configuration_set or self.name()
