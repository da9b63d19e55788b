"""Settings of one stage, and the rules that span several sections."""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from mailroom_stacks.settings.api import Api, api_faults
from mailroom_stacks.settings.campaigns import Campaigns
from mailroom_stacks.settings.canary import canary_faults
from mailroom_stacks.settings.channels import Channel, LaneRow, Mail, channels_faults, lane_rows
from mailroom_stacks.settings.content import Items, Templates
from mailroom_stacks.settings.databases import Database
from mailroom_stacks.settings.deploy import Deploy, Deployment
from mailroom_stacks.settings.fax import Fax, fax_faults
from mailroom_stacks.settings.feedback import Feedback, feedback_faults
from mailroom_stacks.settings.monitoring import Monitoring
from mailroom_stacks.settings.outcomes import Outcomes
from mailroom_stacks.settings.push import Push
from mailroom_stacks.settings.queues import Release, Retention, Stream, retention_faults, stay_faults
from mailroom_stacks.settings.recipients import Recipients, recipients_faults
from mailroom_stacks.settings.sections import DatabaseName, EventType, HttpProvider, Section
from mailroom_stacks.settings.sms import Sms, sms_faults
from mailroom_stacks.settings.times import AWS, LOCAL, Times
from mailroom_stacks.settings.webhook import Webhook, webhook_rules


class Settings(Section):
    """Settings of one stage."""

    profile: Literal["deployed", "local"] = "deployed"
    """local is for the stage on your machine, in which everything goes faster."""
    stage: str = Field(pattern=r"^[a-z][a-z0-9]{0,11}$")
    """A lower-case letter, then up to 11 letters or digits: bucket names have room for no more."""
    channels: dict[EventType, Channel] = Field(min_length=1)
    mail: Mail
    sms: Sms | None = None
    """Section that the row channels.sms needs."""
    push: Push | None = None
    """Section that the row channels.push needs."""
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
    """Whether messages are found by recipient and by time, or else by id alone."""
    release: Release = Release()
    feedback: Feedback = Feedback()
    api: Api = Api()
    campaigns: Campaigns = Campaigns()
    databases: dict[DatabaseName, Database] = Field(default_factory=dict)
    """Databases that campaigns may ask, by the names that campaigns use."""
    monitoring: Monitoring = Monitoring()
    retention: Retention = Retention()
    deployment: Deployment = Deployment()
    deploy: Deploy | None = None
    """null makes no role for a CI system."""

    @property
    def is_local(self) -> bool:
        """Whether the stage is the one on this machine."""
        return self.profile == "local"

    @property
    def times(self) -> Times:
        """Times without a setting."""
        return LOCAL if self.is_local else AWS

    @property
    def url_schemes(self) -> tuple[str, ...]:
        """Schemes of URLs of webhooks and callbacks. Receivers on this machine have no certificate."""
        return ("https", "http") if self.is_local else ("https",)

    def name(self, short: str = "") -> str:
        """Return the physical name of `short` in this stage, such as mailroom-dev-mail-dlq."""
        return f"mailroom-{self.stage}-{short}" if short else f"mailroom-{self.stage}"

    def lane_rows(self) -> Iterator[LaneRow]:
        """Yield every lane of every channel that is a row."""
        return lane_rows(self.channels, self.mail, self.times)

    def has_day(self, event_type: str) -> bool:
        """Return whether a row's day may end: the stage limits it, or the provider has a quota."""
        return event_type == "mail" or bool(self.channels[event_type].days)

    @property
    def default_region(self) -> str:
        """Country of numbers without a country code, if there is one."""
        return (self.sms and self.sms.default_region) or ""

    @property
    def twilio(self) -> Sms | None:
        """SMS settings, if Twilio sends SMS."""
        return self.sms if self.sms and self.sms.provider == "twilio" else None

    @property
    def provider_secrets(self) -> list[str]:
        """Short names of the secrets into which people put providers' credentials."""
        rows = [name for name, row in self.channels.items() if row.secret is not None]
        providers = {"twilio": self.twilio, "resend": self.mail.provider == "resend", "fax": self.fax}
        return [*(name for name, used in providers.items() if used), *rows]

    @property
    def own_channels(self) -> dict[str, str]:
        """Modules of the project's own channels, by name."""
        return {name: row.module for name, row in self.channels.items() if row.module}

    @property
    def sms_configuration_set(self) -> str | None:
        """Name of the configuration set by which AWS sends SMS, if AWS does."""
        return self.name() if self.sms is not None and self.sms.provider == "aws" else None


def settings_faults(settings: Settings) -> Iterator[str]:
    """Yield a sentence for each rule that `settings` break, beginning with the key below the stage."""
    keep, times = settings.retention, settings.times
    yield from retention_faults(keep, fax=settings.fax is not None)
    yield from channels_faults(settings.channels, settings.mail, times, keep)
    for name in ("sms", "push"):
        if name in settings.channels and getattr(settings, name) is None:
            yield f"{name}: is missing, and channels.{name} is there; add the section, or remove the row."
    yield from _loopback_faults(settings)
    yield from _region_faults(settings)
    if settings.fax:
        yield from fax_faults(settings.fax, times)
    yield from stay_faults("webhook.delays_seconds", webhook_rules(settings.webhook, times), keep)
    if settings.recipients:
        yield from recipients_faults(settings.recipients, settings.channels)
    if settings.monitoring.canary:
        yield from canary_faults(settings.monitoring, settings.channels, settings.mail, settings.recipients)
    yield from api_faults(settings.api)
    if settings.sms:
        # The emulator does not throttle callbacks, so stage local needs no check of their rate.
        row = None if settings.is_local else settings.channels.get("sms")
        yield from sms_faults(settings.sms, settings.api, row)
    yield from feedback_faults(settings.feedback, settings.webhook, settings.monitoring)


def _loopback_faults(settings: Settings) -> Iterator[str]:
    if settings.is_local:
        return
    rows = {f"channels.{name}": row for name, row in settings.channels.items()}
    for path, section in {**dict(settings), **rows}.items():
        if isinstance(section, HttpProvider) and (section.base_url or "").startswith("http:"):
            yield f"{path}.base_url: {section.base_url!r} is in reach of the stage local alone; use https."


def _region_faults(settings: Settings) -> Iterator[str]:
    """Yield violations of the rule that events and pushes go out only in the region to which the stage is
    pinned."""
    region = settings.deployment.region
    arns = {
        "outcomes.event_bus": settings.outcomes.event_bus or "",
        **(settings.push.arns if settings.push else {}),
    }
    for key, arn in arns.items():
        place = arn.split(":")[3:4]
        if region and place and place != [region]:
            yield (
                f"{key}: is in region {place[0]}, and the stage in deployment.region {region}; use one in "
                f"{region}."
            )
