"""The canary: every five minutes `release` puts a mail for the provider's test address into the mailbox. An
alarm rings if the provider's events report none of these mails as delivered."""

from aws_cdk import Duration
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_lambda as lambda_
from aws_cdk.aws_cloudwatch import TreatMissingData
from constructs import Construct

from mailroom.providers import provider
from mailroom_stacks.constructs.logical_ids import hold_permissions
from mailroom_stacks.constructs.stage_alarm import AlarmText, counted, read_log, stage_alarm
from mailroom_stacks.settings.monitoring import CANARY_MINUTES
from mailroom_stacks.settings.settings import Settings

CANARIES_MISSED = 3
"""Number of consecutive canaries that must be missing before the alarm rings: one or two may be late."""


def put_canaries(scope: Construct, settings: Settings, release: lambda_.Function) -> None:
    """Create the rule that invokes `release` for each canary, and the alarm."""
    address = provider(settings.mail.provider).test_address
    # The canary's id contains the event's time, so an event that is delivered twice puts only one canary.
    event = events.RuleTargetInput.from_object({"canary": events.EventField.time, "to": address})
    # EventBridge tries three times to pass an event to Lambda. If the put then fails, Lambda does not repeat
    # it, as FunctionSpec.max_event_age says: the alarm needs more than one missing canary.
    rule = events.Rule(
        scope,
        "Canary",
        rule_name=settings.name("canary"),
        description=f"Puts a mail for {address} into the mailbox",
        schedule=events.Schedule.rate(Duration.minutes(CANARY_MINUTES)),
        targets=[targets.LambdaFunction(release, event=event, retry_attempts=2)],
    )
    hold_permissions(rule, release)
    text = AlarmText(
        kind="canary-missing",
        meaning=f"No canary was delivered for {CANARIES_MISSED * CANARY_MINUTES} minutes. A canary is a mail "
        f"to {address}, which the stage sends every {CANARY_MINUTES} minutes. Other mails are probably "
        "not delivered either, or Mailroom does not receive the provider's events.",
        next_step=f"mailroom doctor --stage {settings.stage}, then {read_log(settings, 'release')} "
        "(which canaries were put?)",
    )
    delivered = counted(settings, "feedback", "CanaryDelivered")
    missing, number = TreatMissingData.BREACHING, CANARIES_MISSED
    stage_alarm(scope, "Missing", settings, text, delivered, 1, periods=number, below=True, missing=missing)
