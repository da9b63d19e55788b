"""What providers tell us afterwards: for now, the SES configuration set that mails are sent with."""

from aws_cdk import App
from aws_cdk import aws_ses as ses

from stacks.constructs.outputs import publish
from stacks.settings import Settings
from stacks.stage_stack import StageStack


class FeedbackStack(StageStack):
    """The set keeps SES's suppression list and counts reputation."""

    def __init__(self, app: App, settings: Settings) -> None:
        super().__init__(app, settings, "feedback")
        ses.ConfigurationSet(
            self,
            "Mail",
            configuration_set_name=settings.configuration_set,
            suppression_reasons=ses.SuppressionReasons.BOUNCES_AND_COMPLAINTS,
            reputation_metrics=True,
        )
        publish(self, ConfigurationSetName=settings.configuration_set)
