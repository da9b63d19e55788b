"""Tables and buckets of a stage, which every deployment must preserve."""

from typing import Any

from aws_cdk import Duration
from aws_cdk import aws_dynamodb as dynamodb
from constructs import Construct

from mailroom.campaigns.runs import BEGUN, PAUSES
from mailroom.content.payloads import CONSOLE
from mailroom.ledger.items import FAILURE_KEYS, FAILURES, LINES
from mailroom.ledger.waits import INDEX, PROJECTED
from mailroom.recipients.choices import TOPICS
from mailroom_stacks.constructs.naming import StageStack, name_for_others, publish
from mailroom_stacks.constructs.search import Search
from mailroom_stacks.constructs.second_copy import export_daily
from mailroom_stacks.constructs.storage import TTL, PrivateBucket, StreamTable, Table
from mailroom_stacks.settings.queues import DAY
from mailroom_stacks.settings.settings import Settings


class MailboxStack(StageStack):
    """Data of a stage. Producers write the mailbox, functions the ledger and the suppression list, and
    recipients their preferences. Messages that are too large for an item are in the payload bucket."""

    def __init__(self, scope: Construct, settings: Settings) -> None:
        super().__init__(scope, settings, "mailbox")
        self.mailbox = StreamTable(self, "Mailbox", settings, dynamodb.StreamViewType.NEW_IMAGE)
        self.ledger = StreamTable(self, "Ledger", settings, dynamodb.StreamViewType.NEW_AND_OLD_IMAGES)
        # The index has whole items, so that a list of failures is read with the queries alone.
        self.ledger.add_whole_index(FAILURES, *FAILURE_KEYS)
        self.ledger.add_index(LINES, "line", "submittedAt", ["provider_ids"])
        self.ledger.add_index(INDEX, "waits_in", "waits_at", PROJECTED)
        # Contents have a separate table, because the small items of the ledger change more often.
        self.contents = Table(
            self,
            "Contents",
            settings,
            name="contents",
            key="message",
            sort_key="version",
            time_to_live_attribute=TTL,
        )
        # Suppressions have no stream and no TTL: a bounce or complaint is valid until an operator lifts the
        # suppression.
        self.suppressions = Table(
            self, "Suppressions", settings, name="suppressions", key="recipient", sort_key="channel"
        )
        # Preferences have no TTL either: an opt-out does not expire.
        self.preferences = Table(
            self, "Preferences", settings, name="preferences", key="recipient", sort_key="topic"
        )
        # The index is for counting the opt-outs of a topic since a campaign. If a person opts in again, the
        # item leaves the index.
        self.preferences.add_index(TOPICS, "topic", "opted_out_at")
        if copy := settings.deployment.second_copy:
            exported = [self.suppressions, self.preferences]
            export_daily(Construct(self, "SecondCopy"), settings, copy, exported)
        # Deeds have a separate table, which exists without search too, and which functions do not use.
        keys = {"key": "found_by", "sort_key": "asked_at", "time_to_live_attribute": TTL}
        Table(self, "Deeds", settings, name="deeds", **keys)
        # Budgets have a separate table: in the ledger, each batch that is counted would invoke a function
        # through the stream.
        self.budgets = Table(self, "Budgets", settings, name="budgets", key="name")
        # Runs are in this stack, because messages of a run may wait for longer than the campaigns' stack
        # exists, and a message goes on only if its run can be read.
        self.runs = Table(
            self,
            "Runs",
            settings,
            name="campaign-runs",
            key="campaign",
            sort_key="run",
            time_to_live_attribute=TTL,
        )
        self.runs.add_index(BEGUN, "campaign", "begun_at")
        self.runs.add_index(PAUSES, "paused", "begun_at")
        self.search = Search(self, settings) if settings.search else None
        self.payloads = PrivateBucket(self, "Payloads", settings, keep_days=settings.retention.payload_days)
        if settings.console:
            self.payloads.add_lifecycle_rule(prefix=f"{CONSOLE}/", expiration=Duration.days(1))
        self.templates = (
            PrivateBucket(self, "Templates", settings, keep_days=None) if settings.templates.publish else None
        )
        if self.templates:
            publish(self, TemplatesBucketName=self.templates.bucket_name)
        self.common: dict[str, Any] = {
            "ledger_table": self.ledger.table_name,
            "ledger_ttl_seconds": settings.retention.ledger_days * DAY,
            "payload_bucket": self.payloads.bucket_name,
        }
        """Fields of `environment.Common`, which the settings of most functions have."""
        mailbox_days = settings.retention.mailbox_days
        self.put: dict[str, Any] = {
            "mailbox_table": self.mailbox.table_name,
            "mailbox_ttl_seconds": (mailbox_days or 0) * DAY,
        }
        """Fields of the settings of a function that puts items into the mailbox."""
        publish(self, PayloadBucketName=self.payloads.bucket_name)
        tables = {"mailbox-table": self.mailbox.table_name, "ledger-table": self.ledger.table_name}
        name_for_others(self, settings, {**tables, "payload-bucket": self.payloads.bucket_name})
        if mailbox_days:
            publish(self, MailboxTtlSeconds=str(mailbox_days * DAY))
