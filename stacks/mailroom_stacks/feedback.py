"""Queue of providers' events, which SES and AWS SMS publish to a topic, and Twilio and Resend send to the
API; and alarms of the account's reputation at SES."""

from aws_cdk import Duration, Stack
from aws_cdk import aws_ses as ses
from aws_cdk import aws_smsvoice as smsvoice
from aws_cdk import aws_sns_subscriptions as subscriptions
from aws_cdk.aws_cloudwatch import MathExpression, TreatMissingData
from constructs import Construct

from mailroom.environment import FeedbackSettings
from mailroom.providers import reader_modules
from mailroom_stacks.constructs.grants import Grant
from mailroom_stacks.constructs.logical_ids import hold_logical_id
from mailroom_stacks.constructs.naming import StageStack, publish
from mailroom_stacks.constructs.stage_alarm import AlarmText, counted, metric, read_log, stage_alarm
from mailroom_stacks.constructs.storage import Secret, provider_secret
from mailroom_stacks.constructs.topic import EventTopic
from mailroom_stacks.constructs.worker import Work, Worker
from mailroom_stacks.mailbox import MailboxStack
from mailroom_stacks.settings.feedback import FEEDBACK_BATCH, FEEDBACK_WINDOW, feedback_rules
from mailroom_stacks.settings.monitoring import (
    BOUNCE_RATE,
    BOUNCE_RATE_WARNING,
    COMPLAINT_RATE,
    COMPLAINT_RATE_WARNING,
)
from mailroom_stacks.settings.settings import Settings

Sending = ses.EmailSendingEvent
EVENTS = [
    *(Sending.SEND, Sending.DELIVERY, Sending.BOUNCE, Sending.COMPLAINT, Sending.REJECT),
    *(Sending.RENDERING_FAILURE, Sending.DELIVERY_DELAY),
]
"""Events of SES that are published. Opens and clicks are left out, because for them SES would rewrite the
mails."""
HOUR = 3_600
LEAST_MAILS = 100
"""Number of mails in a day from which a rate is meaningful: one bounce of ten mails is not evidence of a bad
list."""


class FeedbackStack(StageStack):
    """Function `feedback`, which reads the queue of events, and writes the ledger and the suppression
    list."""

    def __init__(self, scope: Construct, settings: Settings, storage: MailboxStack) -> None:
        super().__init__(scope, settings, "feedback")
        self.topic = EventTopic(self, "Topic", settings, name="feedback")
        # A stage that sends by Resend also gets SES's events, because events of mails that SES sent earlier
        # still arrive.
        self._mail_events(settings)
        self.resend_secret: Secret | None = None
        if "ses" in settings.mail.providers:
            watch_reputation(self, settings)
        if "resend" in settings.mail.providers:
            self.resend_secret = provider_secret(
                self,
                settings,
                "resend",
                'Credentials of Resend: {"api_key", "webhook_secret"}; the secret signs the events',
                issuer="Resend",
            )
        if settings.sms_configuration_set:
            sms_events(self, settings.sms_configuration_set, self.topic)
        self.twilio_secret: Secret | None = None
        if settings.twilio:
            self.twilio_secret = provider_secret(
                self,
                settings,
                "twilio",
                'Credentials of Twilio: {"account_sid", "auth_token"}, and "api_key", "api_key_secret" if '
                "requests use a key; callbacks are signed with the token",
                issuer="Twilio",
            )
        self.worker = Worker(self, settings, self._work(settings, storage))
        # The subscription does not use raw delivery, because the function needs the topic of an event from
        # the envelope of SNS.
        subscription = self.topic.add_subscription(subscriptions.SqsSubscription(self.worker.queue))
        hold_logical_id(subscription.node.default_child, self.topic)  # type: ignore[arg-type] # it is a CfnResource
        publish(self, ConfigurationSetName=settings.name(), FeedbackTopicArn=self.topic.topic_arn)
        watch_accounts(self, settings)

    def _mail_events(self, settings: Settings) -> None:
        """Create SES's configuration set, which adds bounces and complaints to SES's suppression list,
        computes reputation metrics, and publishes events."""
        mail = ses.ConfigurationSet(
            self,
            "Mail",
            configuration_set_name=settings.name(),
            suppression_reasons=ses.SuppressionReasons.BOUNCES_AND_COMPLAINTS,
            reputation_metrics=True,
        )
        self.topic.let_use_key("ses.amazonaws.com")
        # The event destination also allows SES to publish to the topic, for this configuration set only.
        mail.add_event_destination(
            "Events",
            configuration_set_event_destination_name=settings.name("feedback"),
            destination=ses.EventDestination.sns_topic(self.topic),
            events=EVENTS,
        )

    def _work(self, settings: Settings, storage: MailboxStack) -> Work:
        # The function `twilio-callbacks` classifies messages received by Twilio, so `feedback` needs the stop
        # and start words only for AWS.
        texts = settings.sms if settings.sms_configuration_set else None
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


def watch_reputation(scope: Construct, settings: Settings) -> None:
    """Create two alarms for each rate, one of which is a warning. The rates are those of the whole account,
    because SES reviews accounts. The alarms ring only if the account sent at least LEAST_MAILS in the last 24
    hours."""
    bounces = (
        "bounced permanently. SES reviews an account at 5 %, and may pause its sending. Addresses are old, "
        "invented, or bought",
        f"mailroom suppressions list --stage {settings.stage} --channel mail (the newest first: which "
        "producer or campaign do they come from?), and stop that one (mailroom campaign list --stage "
        f"{settings.stage} names it)",
    )
    complaints = (
        "were reported as spam. SES reviews an account at 0.1 %, and may pause its sending. People get "
        "messages that they do not want, or cannot opt out of",
        f"mailroom suppressions list --stage {settings.stage} --channel mail (the newest first: which topic "
        f"or campaign do they come from?), stop that one (mailroom campaign list --stage {settings.stage} "
        "names it), and see that its mails have a topic, so that recipients can opt out",
    )
    _pair(scope, settings, "Bounce", bounces, (BOUNCE_RATE_WARNING, BOUNCE_RATE))
    _pair(scope, settings, "Complaint", complaints, (COMPLAINT_RATE_WARNING, COMPLAINT_RATE))


def _pair(
    scope: Construct, settings: Settings, of: str, words: tuple[str, str], thresholds: tuple[float, float]
) -> None:
    meaning, look = words
    # All metrics of an expression have its period, so `rate` is the highest rate of the last 24 hours:
    # CloudWatch's window slides unless an alarm requests another (EvaluationWindow of PutMetricAlarm).
    hourly = metric("AWS/SES", f"Reputation.{of}Rate", "Maximum", period=HOUR).with_(label=f"{of.lower()}s")
    day = Duration.days(1)
    rate = MathExpression(
        # SES does not include canaries in its rates, but may count them as sent, so the threshold includes
        # them.
        expression=f"IF(sent >= {LEAST_MAILS + settings.monitoring.canaries_a_day}, rate, 0)",
        using_metrics={
            "rate": hourly.with_(period=day),
            "sent": metric("AWS/SES", "Send", "Sum").with_(period=day),
        },
        period=day,
    )
    kind = f"ses-{of.lower()}-rate"
    for suffix, threshold in zip(("-warning", ""), thresholds, strict=True):
        text = AlarmText(
            kind=f"{kind}{suffix}",
            meaning=f"{threshold:.2%} or more of the account's mails {meaning}.",
            next_step=look,
        )
        # According to SES's developer guide, the rate of a period without data is that of the period before.
        name = f"{of}Rate{'Warning' if suffix else ''}"
        missing = TreatMissingData.IGNORE
        stage_alarm(scope, name, settings, text, rate, threshold, drawn=hourly, missing=missing)


def sms_events(stack: Stack, name: str, topic: EventTopic) -> None:
    """Create the configuration set `name`, whose events go to `topic`. Text messages that people send to the
    account's numbers may go there too. AWS does not document which resource publishes these texts, so the
    policy is that of "Topic policies for Amazon SNS topics" in the service's user guide."""
    kind = smsvoice.CfnConfigurationSet
    topic.let_publish("sms-voice.amazonaws.com", stack.format_arn(service="sms-voice", resource="*"))
    configuration_set = kind(
        stack,
        "Sms",
        configuration_set_name=name,
        event_destinations=[
            kind.EventDestinationProperty(
                enabled=True,
                event_destination_name=name,
                matching_event_types=["TEXT_ALL", "MEDIA_ALL", "RCS_ALL"],
                sns_destination=kind.SnsDestinationProperty(topic_arn=topic.topic_arn),
            )
        ],
    )
    # AWS End User Messaging rejects the configuration set until it has permission to publish to the topic.
    configuration_set.node.add_dependency(topic)
    publish(stack, SmsConfigurationSetName=name)
