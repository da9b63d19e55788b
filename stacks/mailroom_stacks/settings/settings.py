"""Settings of one stage, and the rules that span several sections."""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from mailroom.providers import providers_of
from mailroom_stacks.settings.api import Api, api_faults
from mailroom_stacks.settings.campaigns import Campaigns
from mailroom_stacks.settings.canary import canary_faults
from mailroom_stacks.settings.channels import Channel, LaneRow, Mail, channels_faults, lane_rows
from mailroom_stacks.settings.console import Console, console_faults
from mailroom_stacks.settings.content import Items, Templates
from mailroom_stacks.settings.databases import Database
from mailroom_stacks.settings.deploy import Deploy, Deployment
from mailroom_stacks.settings.fax import Fax, fax_faults
from mailroom_stacks.settings.feedback import Feedback
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
    """deployed for a stage on AWS, or local for the stage on your machine, in which waits are shorter."""
    stage: str = Field(pattern=r"^[a-z][a-z0-9]{0,11}$")
    """Name of the stage: a lower-case letter, then up to 11 lower-case letters or digits. A longer name would
    not fit into bucket names."""
    channels: dict[EventType, Channel] = Field(min_length=1)
    mail: Mail
    sms: Sms | None = None
    """Settings that channels.sms requires."""
    push: Push | None = None
    """Settings that channels.push requires."""
    fax: Fax | None = None
    """Settings of the channel fax; null means that the stage sends no faxes."""
    webhook: Webhook = Webhook()
    recipients: Recipients | None = None
    """Restriction of the stage's recipients; null allows all recipients."""
    templates: Templates = Templates()
    items: Items = Items()
    dispatch: Stream = Stream()
    outcomes: Outcomes = Outcomes()
    search: bool = True
    """Whether messages can be found by recipient and by time. If false, they can only be found by id."""
    release: Release = Release()
    feedback: Feedback = Feedback()
    api: Api = Api()
    campaigns: Campaigns = Campaigns()
    databases: dict[DatabaseName, Database] = Field(default_factory=dict)
    """Databases that campaigns may query, by the names that campaigns use."""
    monitoring: Monitoring = Monitoring()
    retention: Retention = Retention()
    deployment: Deployment = Deployment()
    console: Console | None = None
    """Console behind a team's sign-in; null creates none."""
    deploy: Deploy | None = None
    """Trust in a CI system that deploys the stage; null creates no roles for a CI system."""

    @property
    def is_local(self) -> bool:
        """Whether the stage runs on this machine instead of AWS."""
        return self.profile == "local"

    @property
    def times(self) -> Times:
        """Times that no setting changes."""
        return LOCAL if self.is_local else AWS

    @property
    def url_schemes(self) -> tuple[str, ...]:
        """Allowed URL schemes of webhooks and callbacks. A local stage allows http, because receivers on this
        machine have no certificate."""
        return ("https", "http") if self.is_local else ("https",)

    def name(self, short: str = "") -> str:
        """Return the physical name of `short` in this stage, such as mailroom-dev-mail-dlq."""
        return f"mailroom-{self.stage}-{short}" if short else f"mailroom-{self.stage}"

    def lane_rows(self) -> Iterator[LaneRow]:
        """Yield every lane of every channel in the section `channels`, with a second row for the lane's queue
        at a fallback."""
        return lane_rows(self.channels, self.mail, self.times, self.fallbacks)

    @property
    def fallbacks(self) -> dict[str, str]:
        """Names of the second providers, by channel."""
        return {channel: names[1] for channel in self.channels if len(names := self.providers(channel)) > 1}

    def providers(self, channel: str) -> tuple[str, ...]:
        """Return the names of the providers of a built-in channel that the stage uses, the first provider
        first. A channel with several providers needs a section that names one."""
        built_in, section = providers_of(channel), getattr(self, channel, None)
        names = (getattr(section, setting, None) for setting in ("provider", "fallback"))
        return (tuple(filter(None, names)) or tuple(built_in)[: len(built_in) == 1]) if built_in else ()

    @property
    def default_region(self) -> str:
        """Country of numbers without a country code, or an empty string."""
        return (self.sms and self.sms.default_region) or ""

    def sms_by(self, name: str) -> Sms:
        """Return the settings of SMS for one of its providers."""
        assert self.sms is not None  # a validation rule rejects a channel without its section
        return self.sms.by_provider[name]

    @property
    def own_channels(self) -> dict[str, str]:
        """Modules of the project's own channels, by name."""
        return {name: row.module for name, row in self.channels.items() if row.module}


def settings_faults(settings: Settings) -> Iterator[str]:
    """Yield a sentence for each rule that `settings` break, beginning with the key below the stage."""
    keep, times = settings.retention, settings.times
    fallbacks = settings.fallbacks
    yield from retention_faults(keep, fax=settings.fax is not None, queues=2 if fallbacks else 1)
    yield from channels_faults(settings.channels, settings.mail, times, keep, fallbacks)
    for name in ("sms", "push"):
        if name in settings.channels and getattr(settings, name) is None:
            yield f"{name}: is missing, but channels.{name} needs it; add {name}, or remove channels.{name}."
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
    yield from console_faults(settings.console, local=settings.is_local)
    if settings.sms:
        # The emulator does not throttle callbacks, so a local stage needs no check of their rate.
        row = None if settings.is_local else settings.channels.get("sms")
        yield from sms_faults(settings.sms, settings.api, row)


def _loopback_faults(settings: Settings) -> Iterator[str]:
    if settings.is_local:
        return
    rows = {f"channels.{name}": row for name, row in settings.channels.items()}
    for path, section in {**dict(settings), **rows}.items():
        if isinstance(section, HttpProvider) and (section.base_url or "").startswith("http:"):
            yield f"{path}.base_url: {section.base_url!r} is only allowed in a local stage; use https."


def _region_faults(settings: Settings) -> Iterator[str]:
    """Yield violations of the rule that a stage with a fixed region sends events and push messages only in
    that region."""
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
