"""One stage, of all its sections."""

from typing import Literal

from pydantic import Field

from stacks.settings.api import Api
from stacks.settings.campaigns import Campaigns
from stacks.settings.channels import Channel, Mail
from stacks.settings.databases import Database
from stacks.settings.deploy import Deploy, Deployment
from stacks.settings.fax import Fax
from stacks.settings.feedback import DeadLetters, Feedback
from stacks.settings.monitoring import Monitoring
from stacks.settings.push import Push
from stacks.settings.retention import Retention, Scheduled, Stream
from stacks.settings.sections import DatabaseName, EventType, Section
from stacks.settings.sms import Sms
from stacks.settings.webhook import Webhook


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
