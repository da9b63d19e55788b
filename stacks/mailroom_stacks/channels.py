"""Channels of the setting `channels`: a queue, dead-letter queue and sender function for each lane, with the
permissions and settings of each sender."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from email.utils import parseaddr
from typing import Any

from aws_cdk import Stack
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from mailroom.channels.sms.segments import MAX_SEGMENTS
from mailroom.environment import OtherProvider, PushSender, ResendSender, Sender, SesSender, SmsSender
from mailroom.ledger.items import LINES
from mailroom.providers import client_modules
from mailroom_stacks.api import ApiStack
from mailroom_stacks.constructs.grants import Grant
from mailroom_stacks.constructs.naming import StageStack, pascal
from mailroom_stacks.constructs.storage import provider_secret, read_payloads
from mailroom_stacks.constructs.templates import read_templates, templates_fields
from mailroom_stacks.constructs.worker import Work, Worker
from mailroom_stacks.feedback import FeedbackStack
from mailroom_stacks.mailbox import MailboxStack
from mailroom_stacks.settings.channels import RESEND_URL, Channel, LaneRow
from mailroom_stacks.settings.queues import RESEND_DELAYS
from mailroom_stacks.settings.sections import OnUnknown
from mailroom_stacks.settings.settings import Settings
from mailroom_stacks.settings.sms import Sms
from mailroom_stacks.settings.times import Times


@dataclass(frozen=True)
class Needs:
    """Permissions and settings that a channel's sender needs."""

    grants: Sequence[Grant]
    kind: type[Sender]
    own: Mapping[str, Any]
    templates: str = ""
    handler: str = ""
    """Name, without .py, of the file in lambdas/ for the provider, if it differs from the channel's setting
    `handler`."""
    modules: Sequence[str] = ()
    """Modules of the provider, which the handler imports by name."""
    by_number: bool = False
    """Whether a look-up of a message at the provider queries the ledger for other messages to the same
    number, to exclude the ids that the provider gave to them."""


class ChannelsStack(StageStack):
    """Stack of all channels in the setting `channels`. NEEDS has the further permissions and settings of
    mail, SMS and push."""

    def __init__(
        self,
        scope: Construct,
        settings: Settings,
        storage: MailboxStack,
        feedback: FeedbackStack,
        api: ApiStack,
    ) -> None:
        super().__init__(scope, settings, "channels")
        self.settings, self.storage, self.feedback, self.api = settings, storage, feedback, api
        needs: dict[tuple[str, str], Needs] = {}
        self.workers: dict[tuple[str, str], Worker] = {}
        """Workers of the queues to which `dispatch` sends messages, by channel and lane."""
        self.fallbacks: list[Worker] = []
        """Workers of the queues of second providers."""
        for row in settings.lane_rows():
            provider = row.event_type, row.fallback
            needs[provider] = needs.get(provider) or self._needs(row)
            worker = Worker(self, settings, self._work(row, needs[provider]))
            if row.fallback:
                self.fallbacks.append(worker)
            else:
                self.workers[row.event_type, row.lane] = worker

    def _needs(self, row: LaneRow) -> Needs:
        if row.event_type in NEEDS:
            return NEEDS[row.event_type](self, row.fallback)
        return _by_row(row.event_type, row.channel, self)

    def find_unwilling(self) -> Grant:
        """Return the permission to read the suppression list and people's preferences, with one request for a
        batch."""
        tables = (self.storage.suppressions, self.storage.preferences)
        return Grant(["dynamodb:BatchGetItem"], [table.table_arn for table in tables])

    def mark_suppressed(self) -> Grant:
        """Return the permission to add recipients to the suppression list whom the provider reports as
        gone."""
        return Grant(["dynamodb:UpdateItem"], [self.storage.suppressions.table_arn])

    def unwilling(self) -> dict[str, str]:
        """Return the fields of `SuppressingSender`: the tables of suppressions and preferences."""
        return {
            "suppressions_table": self.storage.suppressions.table_name,
            "preferences_table": self.storage.preferences.table_name,
        }

    def _work(self, row: LaneRow, needs: Needs) -> Work:
        ledger = self.storage.ledger.table_arn
        send_on, other_provider = self._other_provider(row)
        return Work(
            queue=row.queue,
            function=row.function,
            handler=needs.handler or row.channel.handler,
            timeout_seconds=row.timeout_seconds,
            memory_mb=row.memory_mb,
            batch_size=row.batch_size,
            maximum_concurrency=row.polling.maximum_concurrency,
            rules=row.rules,
            grants=[
                # For a message with `unless`, the sender reads the outcomes of other messages.
                Grant(["dynamodb:UpdateItem", "dynamodb:BatchGetItem"], [ledger]),
                *([Grant(["dynamodb:Query"], [f"{ledger}/index/{LINES}"])] if needs.by_number else []),
                *self._wait(row),
                Grant(["dynamodb:BatchGetItem"], [self.storage.runs.table_arn]),
                # A message of any channel may have attributes in an object of the payload bucket.
                *read_payloads(self, self.settings),
                *needs.grants,
                *send_on,
            ],
            environment=needs.kind(
                **self.storage.common,
                **sender_fields(
                    self.settings.times,
                    row.event_type,
                    row.channel.on_unknown,
                    lease=row.rules.lease,
                    pace=row.pace,
                    submit_seconds=row.channel.submit_seconds,
                ),
                submits_at_once=row.channel.submits_at_once,
                **self._timing(row),
                **needs.own,
                **reachable(self.settings, row.event_type),
                **other_provider,
            ),
            templates=needs.templates,
            modules=needs.modules,
            channel=row.event_type,
            loop_ends=TWO_PROVIDERS_END if other_provider else "",
        )

    def _other_provider(self, row: LaneRow) -> tuple[list[Grant], dict[str, Any]]:
        """Return the permission to send messages to the lane's queue at the channel's other provider, and the
        fields of `Sender` about that provider. Both are empty if the channel has one provider."""
        second = self.settings.fallbacks.get(row.event_type)
        if second is None:
            return [], {}
        short_name = replace(row, fallback="" if row.fallback else second).queue
        # The queue is imported by name, because each of the two senders needs the queue of the other.
        arn = self.format_arn(service="sqs", resource=self.settings.name(short_name))
        url = sqs.Queue.from_queue_arn(self, f"{pascal(short_name)}ByName", arn).queue_url
        grants = [Grant(["sqs:SendMessage"], [arn])]
        if row.fallback:
            first = getattr(self.settings, row.event_type).provider
            return grants, {"other_provider": OtherProvider(name=first, queue_url=url), "budget": row.budget}
        rules = row.channel.fallback.model_dump(exclude={"messages_per_second", "per_day"})
        return grants, {"other_provider": OtherProvider(name=second, queue_url=url, **rules)}

    def _timing(self, row: LaneRow) -> dict[str, Any]:
        """Return the fields of `Sender` that determine when messages may be sent: the table for waiting
        messages, the daily limit and the window."""
        days = row.channel.days
        fields: dict[str, Any] = {
            "contents_table": self.storage.contents.table_name,
            "runs_table": self.storage.runs.table_name,
            "bulk": row.lane == "bulk",
        }
        if row.lane == "bulk":
            fields["window"] = row.channel.window
        if days:
            # The settings contain the table's name instead of a reference. CloudFormation could not remove a
            # reference together with `per_day`, because this stack is deployed after the table's stack.
            fields["budgets_table"] = self.storage.budgets.plain_name
            fields["per_day"] = days
            fields["reserve"] = row.channel.lanes["normal"].reserve
        return fields

    def _wait(self, row: LaneRow) -> list[Grant]:
        """Return the permissions to count messages in the daily budget, and to store messages until they may
        be sent."""
        grants = [
            Grant(["dynamodb:BatchWriteItem"], [self.storage.contents.table_arn]),
            # Needed because the new ledger items of a batch, for waits and for claims, are inserted together
            # by BatchExecuteStatement.
            Grant(["dynamodb:PartiQLInsert"], [self.storage.ledger.table_arn]),
        ]
        if row.channel.days:
            grants.append(Grant(["dynamodb:UpdateItem"], [self.storage.budgets.plain_arn]))
        return grants


class RowSender(Sender, frozen=True, kw_only=True, rename="upper"):
    """Settings of the sender of a project's own channel. The channel's handler reads them with a type of the
    project, which has fields with the same names."""

    provider_url: str = ""
    provider_secret_arn: str = ""
    suppressions_table: str = ""
    preferences_table: str = ""


def _by_row(event_type: str, channel: Channel, stack: ChannelsStack) -> Needs:
    """Return the needs that follow from a channel's settings: the provider's URL, the secret with its
    credentials, and the suppression list."""
    grants: list[Grant] = []
    fields = {"provider_url": channel.base_url or ""}
    if channel.secret is not None:
        secret = provider_secret(stack, stack.settings, event_type, channel.secret)
        grants.append(secret.read())
        fields["provider_secret_arn"] = secret.secret_arn
    if channel.suppressible:
        grants += [stack.find_unwilling(), stack.mark_suppressed()]
        fields |= stack.unwilling()
    return Needs(grants, RowSender, fields)


def _mail(stack: ChannelsStack, fallback: str) -> Needs:
    """Return the needs of mail: sender addresses, unsubscribe links, templates, and those of the provider,
    which is `fallback` or, if that is empty, the first provider."""
    settings, secret = stack.settings, stack.feedback.resend_secret
    templates = read_templates(stack, settings, "mail/*", PUBLISHED)
    common = {
        **stack.unwilling(),
        "mail_senders": settings.mail.senders,
        "unsubscribe_url": stack.api.unsubscribe_url,
        "unsubscribe_secret_arn": stack.api.secret.secret_arn,
        "max_attachment_bytes": settings.mail.max_attachment_bytes,
        **templates_fields(settings, "mail"),
    }
    grants = [stack.find_unwilling(), stack.api.secret.read(), *templates]
    if secret is None or (fallback or settings.mail.provider) == "ses":
        fields, handler = {**common, "configuration_set": settings.name()}, "send_mail" if fallback else ""
        ses = [_send_email(stack, settings), *grants]
        return Needs(ses, SesSender, fields, templates="mail", handler=handler)
    url = settings.channels["mail"].base_url or RESEND_URL
    fields = {**common, "resend_secret_arn": secret.secret_arn, "resend_base_url": url}
    # Resend has its own handler, so that the sender for SES contains no code for Resend.
    return Needs([secret.read(), *grants], ResendSender, fields, templates="mail", handler="send_mail_resend")


def _send_email(stack: Stack, settings: Settings) -> Grant:
    return Grant(
        # The function calls SendEmail. AWS does not document which of these actions SES checks for a mail
        # with headers or attachments.
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
        "in its sandbox, the recipient's as well; the condition allows only the stage's own senders.",
    )


def _push(stack: ChannelsStack, _fallback: str) -> Needs:
    """Return the needs of push: to publish to endpoints of the platform applications and to topics, and to
    create an endpoint for a token."""
    section = stack.settings.push
    assert section is not None  # a validation rule rejects a channel without its section
    return Needs(
        grants=[
            *_to_endpoints(sorted(section.platform_applications.values())),
            *([Grant(["sns:Publish"], section.topics)] if section.topics else []),
            stack.find_unwilling(),
            stack.mark_suppressed(),
        ],
        kind=PushSender,
        own={
            **stack.unwilling(),
            "platform_applications": section.platform_applications,
            "topics": section.topics,
        },
    )


def _to_endpoints(applications: list[str]) -> list[Grant]:
    if not applications:
        return []
    return [
        Grant(["sns:CreatePlatformEndpoint"], applications),
        Grant(
            ["sns:Publish"],
            [arn.replace(":app/", ":endpoint/", 1) + "/*" for arn in applications],
            wildcard="SNS generates the names of the endpoints of the stage's platform applications.",
        ),
    ]


def _sms(stack: ChannelsStack, fallback: str) -> Needs:
    """Return the needs of SMS: templates, and those of the provider, which is `fallback` or, if that is
    empty, the first provider. Media need no further permission: Twilio gets presigned URLs of media in the
    payload bucket, and AWS reads media with the sender's permissions."""
    sms = stack.settings.sms
    assert sms is not None  # a validation rule rejects a channel without its section
    section = sms.by_provider[fallback or sms.provider]
    of_provider = _by_twilio if section.provider == "twilio" else _by_aws
    grants, provider = of_provider(stack, section)
    templates = read_templates(stack, stack.settings, "sms/*", PUBLISHED)
    return Needs(
        grants=[*grants, *templates, stack.find_unwilling(), stack.mark_suppressed()],
        by_number=True,
        modules=client_modules(section.provider),
        kind=SmsSender,
        own={
            **stack.unwilling(),
            "sms_provider": section.provider,
            "sms_sender": section.sender or "",
            "default_region": stack.settings.default_region,
            "max_segments": MAX_SEGMENTS,
            "media_seconds": MEDIA_SECONDS,
            "clock_skew_seconds": CLOCK_SKEW_SECONDS,
            **templates_fields(stack.settings, "sms"),
            **provider,
        },
        templates="sms",
    )


def _by_twilio(stack: ChannelsStack, section: Sms) -> tuple[list[Grant], dict[str, str]]:
    secret = stack.feedback.twilio_secret
    assert secret is not None
    return [secret.read()], {
        "twilio_secret_arn": secret.secret_arn,
        "sms_base_url": section.url,
        "messaging_service_sid": section.messaging_service_sid or "",
        "callback_url": stack.api.twilio_url,
    }


def _by_aws(stack: ChannelsStack, section: Sms) -> tuple[list[Grant], dict[str, str]]:
    name = stack.settings.sms_configuration_set
    arn = stack.format_arn(service="sms-voice", resource="configuration-set", resource_name=name)
    grants = [send_sms(stack, str(section.sender)), Grant(SMS_ACTIONS, [arn])]
    return grants, {"sms_configuration_set": str(name)}


SMS_ACTIONS = ("sms-voice:SendTextMessage", "sms-voice:SendMediaMessage")


def send_sms(stack: Stack, sender: str) -> Grant:
    """Return the permission to send with the origination identity `sender`:
    https://docs.aws.amazon.com/sms-voice/latest/userguide/permissions-actions.html."""
    if sender.startswith("arn:"):
        return Grant(SMS_ACTIONS, [sender])
    resource, name, wildcard = _identity(sender)
    return Grant(
        SMS_ACTIONS,
        [stack.format_arn(service="sms-voice", resource=resource, resource_name=name)],
        wildcard=wildcard,
    )


def _identity(sender: str) -> tuple[str, str, str]:
    """Return the type and name of the resource of an origination identity, and the reason for a wildcard in
    the name."""
    if sender.startswith("pool-"):
        return "pool", sender, ""
    if sender.startswith("phone-"):
        return "phone-number", sender, ""
    if sender.lstrip("+").isdigit():
        return "phone-number", "*", "A number's ARN contains its id: to avoid *, use the id or ARN as sender."
    return "sender-id", f"{sender}/*", "A sender id is registered once for each country that it sends to."


PUBLISHED = "Publishers choose the names of templates."
NEEDS: Mapping[str, Callable[[ChannelsStack, str], Needs]] = {"mail": _mail, "sms": _sms, "push": _push}
"""Functions that return the needs of channels that have a section of settings, templates or further
permissions."""


TWO_PROVIDERS_END = (
    "The fallback's sender returns a message only to the queue of a provider with a try of unknown outcome, "
    "and the message stays there until that outcome is known."
)
MEDIA_SECONDS = 3_600
"""Seconds for which a provider may fetch a fax's PDF or an SMS's media from the payload bucket by a presigned
URL. The URL expires with the credentials that signed it, and a function's credentials are replaced every few
hours, so a longer time could not be guaranteed."""
CLOCK_SKEW_SECONDS = 60
"""Seconds by which a provider's clock may be behind ours when a submit without a response is looked up. A
large value is harmless, because the look-up ignores submits that the ledger already contains."""


def sender_fields(
    times: Times,
    event_type: str,
    on_unknown: OnUnknown,
    *,
    lease: int,
    pace: float,
    submit_seconds: int,
    **others: object,
) -> dict[str, Any]:
    """Return the fields of `environment.Sender` that every sender has. `lease`, `pace` and `submit_seconds`
    are in seconds. `others` overrides fields."""
    return {
        "channel": event_type,
        "queue_url": "",
        "lease_seconds": lease,
        "pace_seconds": pace,
        "on_unknown": on_unknown,
        "resend_delays": RESEND_DELAYS,
        "backoff_seconds": times.backoff,
        "backoff_cap_seconds": times.backoff_cap,
        "misconfigured_seconds": times.misconfigured,
        "submit_seconds": submit_seconds,
        "record_seconds": times.record,
        **others,
    }


def reachable(settings: Settings, event_type: str) -> dict[str, Any]:
    """Return the fields with the recipients that a channel's sender may reach, if the setting `recipients`
    restricts them."""
    rules = settings.recipients
    if rules is None:
        return {}
    return {"recipients_only": list(rules.only), "redirect_to": rules.redirect_to.get(event_type, "")}
