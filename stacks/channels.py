"""The channels that are a row each: a queue, dead-letter queue and sender for each lane, and what each sender
needs beside that."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import parseaddr

from aws_cdk import Annotations, App, Stack

from mailroom.ledger.items import LINES
from stacks.api import ApiStack
from stacks.constructs.grants import Grant
from stacks.constructs.stage import StageStack
from stacks.constructs.storage import bucket_name, provider_secret
from stacks.constructs.worker import Work, Worker
from stacks.feedback import FeedbackStack
from stacks.mailbox import MailboxStack
from stacks.settings.channels import Channel, LaneRow, lane_advice
from stacks.settings.queues import Waits
from stacks.settings.sections import FailurePolicy
from stacks.settings.sms import Sms
from stacks.settings.stage import Settings


@dataclass(frozen=True)
class Needs:
    """Grants, environment, and the folder in templates/ that goes into the bundle ("" is none)."""

    grants: Sequence[Grant] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    templates: str = ""
    by_number: bool = False
    """Whether a look-up asks the ledger which of a provider's messages to a number are whose."""


class ChannelsStack(StageStack):
    """A channel is a row of the settings; NEEDS has what its provider needs beside that."""

    def __init__(
        self, app: App, settings: Settings, storage: MailboxStack, feedback: FeedbackStack, api: ApiStack
    ) -> None:
        super().__init__(app, settings, "channels")
        self.settings, self.storage, self.feedback, self.api = settings, storage, feedback, api
        needs = {
            name: NEEDS[name](self) if name in NEEDS else _by_row(name, row, self)
            for name, row in settings.channels.items()
        }
        self.workers: dict[tuple[str, str], Worker] = {}
        for row in settings.lane_rows():
            worker = Worker(self, settings, self._work(row, needs[row.event_type]))
            self.workers[row.event_type, row.lane] = worker
            for advice in lane_advice(settings.stage, row, settings.mail):
                Annotations.of(worker).add_info_v2("mailroom:submits-at-once", advice)

    def find_unwilling(self) -> Grant:
        """Asking the suppression list and people's preferences, in one read for all of a batch."""
        tables = (self.storage.suppressions, self.storage.preferences)
        return Grant(["dynamodb:BatchGetItem"], [table.table_arn for table in tables])

    def mark_suppressed(self) -> Grant:
        """Putting on the list whom the provider says to be gone."""
        return Grant(["dynamodb:UpdateItem"], [self.storage.suppressions.table_arn])

    def unwilling(self) -> dict[str, str]:
        """Where the suppression list and the preferences are."""
        return {
            "SUPPRESSIONS_TABLE": self.storage.suppressions.table_name,
            "PREFERENCES_TABLE": self.storage.preferences.table_name,
        }

    def _work(self, row: LaneRow, needs: Needs) -> Work:
        ledger = self.storage.ledger.table_arn
        return Work(
            queue=row.queue,
            function=row.function,
            handler=row.channel.handler,
            limits=row.channel,
            polling=row.polling,
            rules=row.rules,
            grants=[
                Grant(["dynamodb:UpdateItem"], [ledger]),
                *_ledger_beside(row, needs, ledger),
                # A message of any channel may have its further attributes there.
                *read_payloads(self, self.settings),
                *needs.grants,
            ],
            environment={
                **self.storage.shared_environment,
                **sender_environment(
                    row.event_type,
                    row.channel,
                    Waits.of(row.channel),
                    lease=row.rules.lease,
                    pace=row.pace,
                    submit_seconds=row.channel.submit_seconds,
                ),
                "SUBMITS_AT_ONCE": str(row.channel.submits_at_once),
                **needs.environment,
                **reachable(self.settings, row.event_type),
            },
            templates=needs.templates,
            channel=row.event_type,
            kept_back_seconds=row.channel.record_seconds,
        )


def _by_row(event_type: str, channel: Channel, stack: ChannelsStack) -> Needs:
    """The address of the provider, the secret with its credentials and the suppression list: those of them
    that the row names."""
    grants: list[Grant] = []
    environment = {"PROVIDER_URL": channel.base_url} if channel.base_url else {}
    if channel.secret is not None:
        secret = provider_secret(stack, stack.settings, event_type, channel.secret)
        grants.append(secret.read())
        environment["PROVIDER_SECRET_ARN"] = secret.secret_arn
    if channel.suppressible:
        grants += [stack.find_unwilling(), stack.mark_suppressed()]
        environment |= stack.unwilling()
    return Needs(grants, environment)


def _mail(stack: ChannelsStack) -> Needs:
    """The senders' addresses, the configuration set, the links for opting out, and the templates."""
    settings = stack.settings
    return Needs(
        grants=[_send_email(stack, settings), stack.find_unwilling(), stack.api.secret.read()],
        environment={
            **stack.unwilling(),
            "MAIL_SENDERS": json.dumps(settings.mail.senders),
            "CONFIGURATION_SET": settings.name(),
            "UNSUBSCRIBE_URL": stack.api.unsubscribe_url,
            "UNSUBSCRIBE_SECRET_ARN": stack.api.secret.secret_arn,
            "MAX_ATTACHMENT_BYTES": str(settings.mail.max_attachment_bytes),
        },
        templates="mail",
    )


def _send_email(stack: Stack, settings: Settings) -> Grant:
    return Grant(
        # The call is SendEmail. As what SES authorizes one with headers or attachments is documented nowhere.
        ["ses:SendEmail", "ses:SendRawEmail"],
        [
            stack.format_arn(service="ses", resource="identity", resource_name="*"),
            stack.format_arn(service="ses", resource="configuration-set", resource_name=settings.name()),
        ],
        conditions={
            "StringEqualsIgnoreCase": {
                "ses:FromAddress": [parseaddr(sender)[1] for sender in settings.mail.senders]
            }
        },
        wildcard="SES checks the identity that covers the sender (address, domain or a parent domain) and, "
        "in its sandbox, the recipient's as well; the condition holds the sender to the stage's own.",
    )


def _push(stack: ChannelsStack) -> Needs:
    """The platform applications' endpoints and the topics, and making an endpoint for a token."""
    section = stack.settings.push
    assert section is not None  # a rule refuses a row without its section
    return Needs(
        grants=[
            *_to_endpoints(sorted(section.platform_applications.values())),
            *([Grant(["sns:Publish"], section.topics)] if section.topics else []),
            stack.find_unwilling(),
            stack.mark_suppressed(),
        ],
        environment={
            **stack.unwilling(),
            "PLATFORM_APPLICATIONS": json.dumps(section.platform_applications),
            "TOPICS": json.dumps(section.topics),
        },
    )


def _to_endpoints(applications: list[str]) -> list[Grant]:
    if not applications:
        return []
    return [
        Grant(["sns:CreatePlatformEndpoint"], applications),
        Grant(
            ["sns:Publish"],
            [each.replace(":app/", ":endpoint/", 1) + "/*" for each in applications],
            wildcard="SNS names the endpoints below each platform application of the stage's.",
        ),
    ]


def _sms(stack: ChannelsStack) -> Needs:
    """The provider's own, and the templates. Media take no more: of those in the payload bucket Twilio gets
    URLs that the sender signs, and AWS reads them with the sender's permissions."""
    section = stack.settings.sms
    assert section is not None  # a rule refuses a row without its section
    of_provider = _by_twilio if section.provider == "twilio" else _by_aws
    provider = of_provider(stack, section)
    return Needs(
        grants=[*provider.grants, stack.find_unwilling(), stack.mark_suppressed()],
        by_number=True,
        environment={
            **stack.unwilling(),
            "SMS_PROVIDER": section.provider,
            "SMS_SENDER": section.sender or "",
            "DEFAULT_REGION": stack.settings.default_region,
            "MAX_SEGMENTS": str(section.max_segments),
            "MEDIA_SECONDS": str(section.media_seconds),
            "CLOCK_SKEW_SECONDS": str(section.clock_skew_seconds),
            **provider.environment,
        },
        templates="sms",
    )


def _by_twilio(stack: ChannelsStack, section: Sms) -> Needs:
    secret = stack.feedback.twilio_secret
    assert secret is not None
    return Needs(
        [secret.read()],
        {
            "TWILIO_SECRET_ARN": secret.secret_arn,
            "SMS_BASE_URL": section.url,
            "MESSAGING_SERVICE_SID": section.messaging_service_sid or "",
            "CALLBACK_URL": stack.api.twilio_url,
        },
    )


def _by_aws(stack: ChannelsStack, section: Sms) -> Needs:
    name = stack.settings.sms_configuration_set
    arn = stack.format_arn(service="sms-voice", resource="configuration-set", resource_name=name)
    return Needs(
        [_send_sms(stack, str(section.sender)), Grant(SMS_ACTIONS, [arn])],
        {"SMS_CONFIGURATION_SET": str(name)},
    )


SMS_ACTIONS = ("sms-voice:SendTextMessage", "sms-voice:SendMediaMessage")


def _send_sms(stack: Stack, sender: str) -> Grant:
    """Sending as `sender`: https://docs.aws.amazon.com/sms-voice/latest/userguide/permissions-actions.html."""
    if sender.startswith("arn:"):
        return Grant(SMS_ACTIONS, [sender])
    resource, name, wildcard = _identity(sender)
    return Grant(
        SMS_ACTIONS,
        [stack.format_arn(service="sms-voice", resource=resource, resource_name=name)],
        wildcard=wildcard,
    )


def _identity(sender: str) -> tuple[str, str, str]:
    """The resource of an origination identity: its type, its name, and why that is not exact."""
    if sender.startswith("pool-"):
        return "pool", sender, ""
    if sender.startswith("phone-"):
        return "phone-number", sender, ""
    if sender.lstrip("+").isdigit():
        return "phone-number", "*", "IAM knows a number by its id alone; the id or ARN as sender names it."
    return "sender-id", f"{sender}/*", "A sender id is registered once for each country that it sends to."


NEEDS: Mapping[str, Callable[[ChannelsStack], Needs]] = {"mail": _mail, "sms": _sms, "push": _push}
"""The channels whose provider needs more than a row says: a section of settings, templates, other grants."""


def sender_environment(
    event_type: str, policy: FailurePolicy, waits: Waits, *, lease: int, pace: float, submit_seconds: int
) -> dict[str, str]:
    """A sender's numbers; `lease`, `pace` and `submit_seconds` in seconds."""
    return {
        "CHANNEL": event_type,
        "LEASE_SECONDS": str(lease),
        "PACE_SECONDS": str(pace),
        "ON_UNKNOWN": policy.on_unknown,
        "RESEND_DELAYS": json.dumps(policy.resend_delays_seconds),
        "BACKOFF_SECONDS": str(waits.base),
        "BACKOFF_CAP_SECONDS": str(waits.cap),
        "MISCONFIGURED_SECONDS": str(policy.misconfigured_seconds),
        "SUBMIT_SECONDS": str(submit_seconds),
        "RECORD_SECONDS": str(policy.record_seconds),
    }


def reachable(settings: Settings, event_type: str) -> dict[str, str]:
    """Whom a channel's sender may reach, where that is not everybody."""
    return settings.recipients.environment(event_type) if settings.recipients else {}


def read_payloads(stack: Stack, settings: Settings) -> list[Grant]:
    """Reading the payload bucket, itself or by URLs signed for a provider."""
    bucket = stack.format_arn(service="s3", region="", account="", resource=bucket_name(settings, "payloads"))
    return [
        # Without it a missing object answers 403, as if it were our fault, and not 404.
        Grant(["s3:ListBucket"], [bucket]),
        Grant(
            ["s3:GetObject"],
            [f"{bucket}/*"],
            wildcard="Producers choose the keys of payloads and attachments.",
        ),
    ]


def _ledger_beside(row: LaneRow, needs: Needs, ledger: str) -> list[Grant]:
    """What a sender does with the table `ledger` beside one update at a time."""
    if needs.by_number:
        return [Grant(["dynamodb:Query"], [f"{ledger}/index/{LINES}"])]
    if row.channel.on_unknown == "hold":
        return []
    # It claims a batch's first attempts together, in statements of PartiQL.
    return [Grant(["dynamodb:PartiQLInsert"], [ledger])]
