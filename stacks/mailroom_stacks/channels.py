"""Channels of the setting `channels`: a queue, dead-letter queue and sender function for each lane, with the
permissions and settings of each sender."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pkgutil import resolve_name
from typing import Any

from aws_cdk import aws_sqs as sqs
from constructs import Construct

from mailroom.channels.sms.segments import MAX_SEGMENTS
from mailroom.environment import MailSender, OtherProvider, Sender, SmsSender, SuppressingSender
from mailroom.ledger.items import LINES
from mailroom.providers import client_modules, provider
from mailroom_stacks.api import ApiStack
from mailroom_stacks.constructs.grants import Grant
from mailroom_stacks.constructs.naming import StageStack, pascal
from mailroom_stacks.constructs.storage import provider_secret, read_payloads
from mailroom_stacks.constructs.templates import read_templates, templates_fields
from mailroom_stacks.constructs.worker import Work, Worker
from mailroom_stacks.feedback import FeedbackStack
from mailroom_stacks.mailbox import MailboxStack
from mailroom_stacks.settings.channels import Channel, LaneRow
from mailroom_stacks.settings.queues import RESEND_DELAYS
from mailroom_stacks.settings.sections import OnUnknown
from mailroom_stacks.settings.settings import Settings
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
        if row.event_type not in NEEDS:
            return _by_row(row.event_type, row.channel, self)
        name = row.fallback or self.settings.providers(row.event_type)[0]
        of_provider: Needs = resolve_name(provider(name).needs)(self, name)
        of_channel = NEEDS[row.event_type](self, name)
        return replace(
            of_channel,
            grants=[*of_provider.grants, *of_channel.grants],
            kind=of_provider.kind,
            own={**of_channel.own, **of_provider.own},
            handler=of_provider.handler,
        )

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
            modules=client_modules(row.event_type),
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
            first = self.settings.providers(row.event_type)[0]
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


def _mail(stack: ChannelsStack, _name: str) -> Needs:
    """Return the needs of mail by any provider: sender addresses, unsubscribe links and templates."""
    settings = stack.settings
    fields = {
        **stack.unwilling(),
        "mail_senders": settings.mail.senders,
        "unsubscribe_url": stack.api.unsubscribe_url,
        "unsubscribe_secret_arn": stack.api.secret.secret_arn,
        "max_attachment_bytes": settings.mail.max_attachment_bytes,
        **templates_fields(settings, "mail"),
    }
    templates = read_templates(stack, settings, "mail/*", PUBLISHED)
    grants = [stack.find_unwilling(), stack.api.secret.read(), *templates]
    return Needs(grants, MailSender, fields, templates="mail")


def _push(stack: ChannelsStack, _name: str) -> Needs:
    return Needs([stack.find_unwilling(), stack.mark_suppressed()], SuppressingSender, stack.unwilling())


def _sms(stack: ChannelsStack, name: str) -> Needs:
    """Return the needs of SMS by any provider: the sender, and templates."""
    settings = stack.settings
    templates = read_templates(stack, settings, "sms/*", PUBLISHED)
    return Needs(
        grants=[*templates, stack.find_unwilling(), stack.mark_suppressed()],
        by_number=True,
        kind=SmsSender,
        own={
            **stack.unwilling(),
            "sms_provider": name,
            "sms_sender": settings.sms_by(name).sender or "",
            "default_region": settings.default_region,
            "max_segments": MAX_SEGMENTS,
            "media_seconds": MEDIA_SECONDS,
            "clock_skew_seconds": CLOCK_SKEW_SECONDS,
            **templates_fields(settings, "sms"),
        },
        templates="sms",
    )


PUBLISHED = "Publishers choose the names of templates."
NEEDS: Mapping[str, Callable[[ChannelsStack, str], Needs]] = {"mail": _mail, "sms": _sms, "push": _push}
"""Functions that return the needs of the built-in channels in the section `channels`, without those of the
provider, whose name is the argument."""


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
