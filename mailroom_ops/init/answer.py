"""What `init` answers: what was written, what is to be done outside of it, and what will be deployed."""

from collections.abc import Iterator
from email.utils import parseaddr

from msgspec import Struct

from mailroom_ops.cost.answer import cost
from mailroom_ops.cost.fixed import of_settings
from mailroom_ops.estimates.forecast import Sending
from mailroom_ops.estimates.lanes import Assumed, Stages
from mailroom_ops.estimates.quotas import MOST_WORKERS
from mailroom_ops.init.draft import StageDraft
from mailroom_ops.stage import stack_parts
from mailroom_stacks.settings.stage import Settings


class Step(Struct, frozen=True):
    """One thing to do: why, and the command or the place."""

    why: str
    how: str


class Initialized(Struct, frozen=True):
    """What came of it. `written`: whether cdk.json has changed; `verify`: what to see to outside of cdk.json;
    `stacks`: what will be deployed; `idle_dollars`: what a month costs in which nothing is sent, in US
    dollars; `next`: what to run."""

    stage: str
    written: bool
    verify: list[Step]
    notes: list[str]
    stacks: list[str]
    idle_dollars: float
    next: list[Step]


def initialized(draft: StageDraft, *, written: bool) -> Initialized:
    """The answer for a stage. Raises SettingsError where synth would refuse its section."""
    settings, stages = draft.settings(), Stages({draft.stage: draft.section})
    return Initialized(
        stage=settings.stage,
        written=written,
        verify=[*_to_verify(settings)],
        notes=[*_notes(draft, settings, stages)],
        stacks=[settings.name(each) for each in stack_parts(settings)],
        idle_dollars=cost(stages, settings.stage, [], of_settings(settings)).dollars,
        next=_next(settings.stage),
    )


def _to_verify(settings: Settings) -> Iterator[Step]:
    stage = settings.stage
    if "mail" in settings.channels:
        yield from _by_resend(settings) if settings.mail.provider == "resend" else _by_ses(settings)
    for address in settings.monitoring.emails:
        yield Step(
            f"SNS mails a link to {address} during the first deployment. Until somebody follows the link, "
            "nobody hears of alarms.",
            f"mailroom doctor --stage {stage} --only alarms",
        )
    for name in settings.provider_secrets:
        secret = settings.name(name)
        yield Step(
            f"After the first deployment, put the provider's credentials into the secret {secret} "
            "(docs/settings.md, What a channel needs). Before that, messages become dead letters.",
            f"aws secretsmanager put-secret-value --secret-id {secret} --secret-string file://{name}.json",
        )
    if settings.sms and settings.sms.provider == "aws":
        yield Step(
            "A new account may spend 1 US dollar a month on AWS's texts, until AWS raises that.",
            "aws pinpoint-sms-voice-v2 describe-spend-limits",
        )
    if settings.monitoring.slack or settings.monitoring.teams:
        yield Step(
            "Somebody has to let AWS into the Slack workspace or the Teams team first, in this account: "
            "without that the stack monitoring cannot be made.",
            "https://console.aws.amazon.com/chatbot/home",
        )
    yield Step(
        f"Lambda has to let the account run {settings.monitoring.concurrency_quota:,} functions at once. A "
        "new account may have 10: then set monitoring.concurrency_quota to what it has.",
        "aws lambda get-account-settings --query AccountLimit.ConcurrentExecutions",
    )
    if not settings.deployment.deletion_protection and settings.deployment.removal == "retain":
        yield Step(
            "When the first deployment has worked, protect the tables, and deploy again.",
            f"mailroom init --stage {stage} --set deployment.deletion_protection=true",
        )


def _by_ses(settings: Settings) -> Iterator[Step]:
    for sender in settings.mail.senders:
        address = parseaddr(sender)[1]
        yield Step(
            f"SES has to verify {address}, or its domain, in the region that you deploy to.",
            f"aws sesv2 create-email-identity --email-identity {address}",
        )
    rate = settings.channels["mail"].messages_per_second
    yield Step(
        "A new account is in SES's sandbox: 1 mail a second, 200 a day, and only to verified recipients. "
        f"Ask for production access, for {rate:g} a second, and for the mails of your busiest day.",
        "https://console.aws.amazon.com/ses/home#/account",
    )


def _by_resend(settings: Settings) -> Iterator[Step]:
    for domain in sorted({parseaddr(each)[1].rpartition("@")[2] for each in settings.mail.senders}):
        yield Step(f"Resend has to verify the domain {domain}.", "https://resend.com/domains")
    yield Step(
        "After the first deployment, Resend needs a webhook to <ApiUrl>/callbacks/resend, for all events "
        "that begin with email. (docs/providers.md, Mail by Resend). Before that, mails stay `sent`.",
        "https://resend.com/webhooks",
    )


def _notes(draft: StageDraft, settings: Settings, stages: Stages) -> Iterator[str]:
    if draft.removed:
        yield (
            f"The stage has no {', '.join(draft.removed)} any more. If that is deployed, first read Taking "
            "parts out in docs/going-back.md."
        )
    if not settings.monitoring.emails and not settings.monitoring.urls:
        yield "Nobody hears of alarms. Give an address with --alarms, or another of monitoring's settings."
    for row in settings.lane_rows():
        lane = stages.lane(settings.stage, row.event_type, row.lane)
        sending = Sending(lane, Assumed.of(lane.channel))
        needed = sending.workers_for_rate()
        if needed and needed > lane.workers:
            yield (
                f"The lane {lane.name} of {lane.channel} may send {lane.rate:g} a second, and its "
                f"{lane.workers} workers reach {lane.workers * sending.a_worker:.3g}. Give it more: "
                f"--set {lane.keys.workers}={min(needed, MOST_WORKERS)}"
            )


def _next(stage: str) -> list[Step]:
    return [
        Step("Write the templates, and see that all fits together.", f"mailroom synth --stage {stage}"),
        Step("Once for each account and region.", f"mailroom bootstrap --stage {stage}"),
        Step("Deploy, with AWS credentials in the environment.", f"mailroom deploy --stage {stage}"),
        Step("See what is missing.", f"mailroom doctor --stage {stage}"),
    ]
