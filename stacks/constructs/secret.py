"""A secret that CloudFormation makes and people, or nobody, put a value into."""

from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from stacks.constructs.findings import accept
from stacks.constructs.grants import Grant
from stacks.constructs.removal import removal_policy
from stacks.settings.stage import Settings


class Secret(secretsmanager.Secret):
    """Named mailroom-{stage}-`name`.

    A changed `generated` would make CloudFormation put a new value over what people put there: let it be.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        settings: Settings,
        *,
        name: str,
        description: str,
        generated: secretsmanager.SecretStringGenerator,
        not_rotated: str,
    ) -> None:
        """`not_rotated` is why AWS does not rotate it."""
        super().__init__(
            scope,
            construct_id,
            secret_name=settings.name(name),
            description=description,
            generate_secret_string=generated,
            removal_policy=removal_policy(settings),
        )
        accept(self, "SMG4", not_rotated)

    def read(self) -> Grant:
        """What a function needs to read it."""
        return Grant(["secretsmanager:GetSecretValue"], [self.secret_arn])
