"""What all stacks of a stage have in common."""

from aws_cdk import App, Environment, IStackSynthesizer, Stack

from stacks.settings.stage import Settings


class StageStack(Stack):
    """A stack named mailroom-{stage}-{part}, in the account and region that the stage may pin."""

    def __init__(
        self, app: App, settings: Settings, part: str, synthesizer: IStackSynthesizer | None = None
    ) -> None:
        """`synthesizer` is how it is deployed, where not by the bootstrap's roles."""
        place = settings.deployment
        super().__init__(
            app,
            settings.name(part),
            description=f"Mailroom, stage {settings.stage}: {part}",
            env=Environment(account=place.account, region=place.region),
            termination_protection=place.termination_protection,
            synthesizer=synthesizer,
        )
