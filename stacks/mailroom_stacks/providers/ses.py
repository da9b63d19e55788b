"""SES: the permission to send, the configuration set with its events, and alarms of the reputation."""

from email.utils import parseaddr

from aws_cdk import Duration, Stack
from aws_cdk import aws_ses as ses
from aws_cdk.aws_cloudwatch import MathExpression, TreatMissingData
from constructs import Construct

from mailroom.environment import SesSender
from mailroom_stacks.channels import ChannelsStack, Needs
from mailroom_stacks.constructs.grants import Grant
from mailroom_stacks.constructs.stage_alarm import AlarmText, metric, stage_alarm
from mailroom_stacks.feedback import FeedbackStack
from mailroom_stacks.settings.constants import (
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


def needs(stack: ChannelsStack, name: str) -> Needs:
    """Return the permission to send, and the configuration set."""
    settings = stack.settings
    handler = "" if name == settings.mail.provider else "send_mail"
    fields = {"configuration_set": settings.name()}
    return Needs([_send_email(stack, settings)], SesSender, fields, handler=handler)


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


def resources(stack: FeedbackStack, settings: Settings) -> None:
    """Create the configuration set, also for a stage that sends by another provider, because events of mails
    that SES sent earlier still arrive; and the alarms of the reputation if SES sends."""
    _events(stack, settings)
    if "ses" in settings.providers("mail"):
        watch_reputation(stack, settings)


def _events(stack: FeedbackStack, settings: Settings) -> None:
    """Create SES's configuration set, which adds bounces and complaints to SES's suppression list,
    computes reputation metrics, and publishes events."""
    mail = ses.ConfigurationSet(
        stack,
        "Mail",
        configuration_set_name=settings.name(),
        suppression_reasons=ses.SuppressionReasons.BOUNCES_AND_COMPLAINTS,
        reputation_metrics=True,
    )
    # The event destination also allows SES to publish to the topic, for this configuration set only.
    mail.add_event_destination(
        "Events",
        configuration_set_event_destination_name=settings.name("feedback"),
        destination=ses.EventDestination.sns_topic(stack.topic),
        events=EVENTS,
    )


def watch_reputation(scope: Construct, settings: Settings) -> None:
    """Create two alarms for each rate, one of which is a warning. The rates are those of the whole account,
    because SES reviews accounts. The alarms ring only if the account sent at least LEAST_MAILS in the last 24
    hours."""
    bounces = (
        "bounced permanently. SES reviews an account at 5 %, and may pause its sending. Addresses are old, "
        "invented, or bought",
        f"mailroom people list --stage {settings.stage} --channel mail (the newest first: which "
        "producer or campaign do they come from?), and stop that one (mailroom campaign list --stage "
        f"{settings.stage} names it)",
    )
    complaints = (
        "were reported as spam. SES reviews an account at 0.1 %, and may pause its sending. People get "
        "messages that they do not want, or cannot opt out of",
        f"mailroom people list --stage {settings.stage} --channel mail (the newest first: which topic "
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
