"""Queue of the events that providers publish to a topic or send to the API."""

from pkgutil import resolve_name

from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct

from mailroom.environment import FeedbackSettings
from mailroom.providers import built_in, provider, reader_modules
from mailroom_stacks.constructs.grants import Grant
from mailroom_stacks.constructs.logical_ids import hold_logical_id
from mailroom_stacks.constructs.naming import StageStack, publish
from mailroom_stacks.constructs.stage_alarm import AlarmText, counted, read_log, stage_alarm
from mailroom_stacks.constructs.storage import Secret, provider_secret
from mailroom_stacks.constructs.topic import EventTopic, event_key_by_name
from mailroom_stacks.constructs.worker import Work, Worker
from mailroom_stacks.mailbox import MailboxStack
from mailroom_stacks.settings.feedback import FEEDBACK_BATCH, FEEDBACK_WINDOW, feedback_rules
from mailroom_stacks.settings.settings import Settings


class FeedbackStack(StageStack):
    """Function `feedback`, which reads the queue of events, and writes the ledger and the suppression
    list."""

    def __init__(self, scope: Construct, settings: Settings, storage: MailboxStack) -> None:
        super().__init__(scope, settings, "feedback")
        self.topic = EventTopic(
            self, "Topic", settings, name="feedback", key=event_key_by_name(self, settings)
        )
        self.secrets: dict[str, Secret] = {}
        """Secrets of the providers of mail and SMS, by the provider's name."""
        for name in (*settings.providers("mail"), *settings.providers("sms")):
            if credentials := (descriptor := provider(name)).credentials:
                text = f"Credentials of {descriptor.title}: {credentials}"
                self.secrets[name] = provider_secret(self, settings, name, text, issuer=descriptor.title)
        for descriptor in built_in().values():
            if descriptor.resources:
                resolve_name(descriptor.resources)(self, settings)
        self.worker = Worker(self, settings, self._work(settings, storage))
        # The subscription does not use raw delivery, because the function needs the topic of an event from
        # the envelope of SNS.
        subscription = self.topic.add_subscription(subscriptions.SqsSubscription(self.worker.queue))
        hold_logical_id(subscription.node.default_child, self.topic)  # type: ignore[arg-type] # it is a CfnResource
        publish(self, ConfigurationSetName=settings.name(), FeedbackTopicArn=self.topic.topic_arn)
        watch_accounts(self, settings)

    def _work(self, settings: Settings, storage: MailboxStack) -> Work:
        # A function that receives a provider's requests classifies texts itself, so `feedback` needs the stop
        # and start words only for texts from the topic.
        by_topic = any(provider(name).topic_events for name in settings.providers("sms"))
        texts = settings.sms if by_topic else None
        times = settings.times
        return Work(
            queue="feedback",
            function="feedback",
            modules=reader_modules(),
            timeout_seconds=times.feedback_timeout,
            batch_size=FEEDBACK_BATCH,
            window_seconds=FEEDBACK_WINDOW,
            maximum_concurrency=settings.feedback.maximum_concurrency,
            rules=feedback_rules(times),
            grants=[
                Grant(["dynamodb:UpdateItem"], [storage.ledger.table_arn, storage.suppressions.table_arn])
            ],
            environment=FeedbackSettings(
                **storage.common,
                queue_url="",
                suppressions_table=storage.suppressions.table_name,
                feedback_topics=[self.topic.topic_arn],
                default_region=settings.default_region,
                stop_words=texts.stop_words if texts else (),
                start_words=texts.start_words if texts else (),
            ),
        )


def watch_accounts(scope: Construct, settings: Settings) -> None:
    """Create an alarm that rings if a provider reports that it did not deliver a message because of the
    account or of another setting of the stage. Such a message never becomes a dead letter."""
    text = AlarmText(
        kind="misconfigured",
        meaning="A provider accepted messages, and then did not deliver them because of its account or of a "
        "setting of the stage, such as a number that is not registered. Later messages will fail too.",
        next_step=f"{read_log(settings, 'feedback')} (lines with 'not delivered: the configuration is "
        "invalid' have the provider's words), and correct the setting or ask the provider",
    )
    stage_alarm(scope, "Misconfigured", settings, text, counted(settings, "feedback", "Misconfigured"), 1)
