"""One stage, of all its sections, and the rules that span several."""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from mailroom_stacks.settings.api import Api, api_faults
from mailroom_stacks.settings.campaigns import Campaigns, campaign_section_faults
from mailroom_stacks.settings.channels import Channel, LaneRow, Mail, channels_faults, lane_rows
from mailroom_stacks.settings.content import Items, Templates
from mailroom_stacks.settings.databases import Database
from mailroom_stacks.settings.dead_letters import DeadLetters
from mailroom_stacks.settings.deploy import Deploy, Deployment
from mailroom_stacks.settings.fax import Fax, fax_faults
from mailroom_stacks.settings.feedback import Feedback, feedback_faults
from mailroom_stacks.settings.monitoring import Monitoring
from mailroom_stacks.settings.outcomes import Outcomes, outcomes_faults
from mailroom_stacks.settings.push import Push, push_faults
from mailroom_stacks.settings.queues import Release, Retention, Stream, retention_faults
from mailroom_stacks.settings.recipients import Recipients, recipients_faults
from mailroom_stacks.settings.sections import DatabaseName, EventType, Section, fixed
from mailroom_stacks.settings.sms import Sms, sms_faults
from mailroom_stacks.settings.webhook import Webhook, webhook_faults


class Settings(Section):
    """One stage."""

    profile: Literal["deployed", "local"] = "deployed"
    """local is for the stage on your machine: everything in it goes faster."""
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
    recipients: Recipients | None = None
    """null lets the stage reach everybody."""
    templates: Templates = Templates()
    items: Items = Items()
    dispatch: Stream = Stream()
    outcomes: Outcomes = Outcomes()
    search: bool = True
    """Whether messages are found by their recipients and by time; else by their ids alone."""
    release: Release = Release()
    feedback: Feedback = Feedback()
    api: Api = Api()
    campaigns: Campaigns = Campaigns()
    databases: dict[DatabaseName, Database] = Field(default_factory=dict)
    """The databases that campaigns may ask, by the names that these call them."""
    dead_letters: DeadLetters = fixed(DeadLetters())
    monitoring: Monitoring = Monitoring()
    retention: Retention = Retention()
    deployment: Deployment = Deployment()
    deploy: Deploy | None = None
    """null makes no role for a CI system."""
    lease_margin_seconds: int = fixed(60)
    """How long a claim outlives its function's time-out, for clocks that disagree."""

    def name(self, short: str = "") -> str:
        """The physical name of `short` in this stage, such as mailroom-dev-mail-dlq."""
        return f"mailroom-{self.stage}-{short}" if short else f"mailroom-{self.stage}"

    def lane_rows(self) -> Iterator[LaneRow]:
        """Every lane of every channel that is a row."""
        return lane_rows(self.channels, self.lease_margin_seconds)

    def has_day(self, event_type: str) -> bool:
        """Whether a row's day may end: it has a limit of the stage's, or its provider a quota."""
        return event_type == "mail" or bool(self.channels[event_type].days)

    @property
    def default_region(self) -> str:
        """The country of numbers without a country code; "": there is none."""
        return (self.sms and self.sms.default_region) or ""

    @property
    def twilio(self) -> Sms | None:
        """SMS, where Twilio sends them."""
        return self.sms if self.sms and self.sms.provider == "twilio" else None

    @property
    def provider_secrets(self) -> list[str]:
        """The short names of the secrets that people put providers' credentials into."""
        own = [name for name, row in self.channels.items() if row.secret is not None]
        known = {"twilio": self.twilio, "resend": self.mail.provider == "resend", "fax": self.fax}
        return [*(name for name, used in known.items() if used), *own]

    @property
    def own_channels(self) -> dict[str, str]:
        """The modules of the channels that are the project's own, by name."""
        return {name: row.module for name, row in self.channels.items() if row.module}

    @property
    def sms_configuration_set(self) -> str | None:
        """The name of the configuration set that AWS sends SMS with, where it does."""
        return self.name() if self.sms is not None and self.sms.provider == "aws" else None


def pairs_faults(settings: Settings) -> Iterator[str]:
    """Rows of `channels` without their section, and sections without their row."""
    for name in ("sms", "push"):
        row, section = name in settings.channels, getattr(settings, name) is not None
        if row and not section:
            yield f"{name}: is missing, and channels.{name} is there; add the section, or remove the row."
        if section and not row:
            yield (
                f"channels.{name}: is missing, and the section {name} is there; add the row, or set "
                f"{name} to null."
            )


def settings_faults(settings: Settings) -> Iterator[str]:
    """A sentence for each rule that `settings` break, each starting with the key below the stage."""
    keep, margin = settings.retention, settings.lease_margin_seconds
    yield from retention_faults(keep, fax=settings.fax is not None)
    yield from channels_faults(settings.channels, settings.mail, margin, keep)
    yield from pairs_faults(settings)
    yield from outcomes_faults(settings.outcomes, settings.deployment.region)
    if settings.fax:
        yield from fax_faults(settings.fax, margin, keep)
    yield from webhook_faults(settings.webhook, margin, keep)
    if settings.recipients:
        yield from recipients_faults(settings.recipients, settings.channels, settings.push)
    yield from api_faults(settings.api, settings.mail.senders)
    if settings.sms:
        yield from sms_faults(settings.sms, settings.api, settings.channels.get("sms"))
    if settings.push:
        yield from push_faults(settings.push, settings.deployment.region)
    yield from feedback_faults(settings.feedback, settings.webhook, settings.monitoring)
    yield from campaign_section_faults(settings.campaigns, margin, keep)
