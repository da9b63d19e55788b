"""Stack class, names, outputs, removal policies and accepted findings of all stacks."""

from collections.abc import Mapping

from aws_cdk import (
    Acknowledgment,
    CfnOutput,
    Environment,
    IStackSynthesizer,
    RemovalPolicy,
    Stack,
    Stage,
    Validations,
)
from aws_cdk import aws_ssm as ssm
from constructs import Construct, IConstruct

from mailroom_stacks.settings.settings import Settings


class StageStack(Stack):
    """Stack named mailroom-{stage}-{part}, in the account and region that the stage may pin."""

    def __init__(
        self,
        scope: Construct,
        settings: Settings,
        part: str,
        synthesizer: IStackSynthesizer | None = None,
    ) -> None:
        """Make the stack. `synthesizer` is for a stack that is not deployed by the bootstrap's roles."""
        place = settings.deployment
        super().__init__(
            scope,
            settings.name(part),
            stack_name=settings.name(part),  # by default a cdk.Stage would prefix its name
            description=f"Mailroom, stage {settings.stage}: {part}",
            env=Environment(account=place.account, region=place.region),
            termination_protection=place.termination_protection,
            synthesizer=synthesizer,
        )


def stage_of(scope: IConstruct) -> IConstruct:
    """Return the `Stage` that `scope` is or belongs to. CDK's `Stage.of` returns a Stage's parent instead."""
    return scope if Stage.is_stage(scope) else Stage.of(scope) or scope.node.root


def publish(scope: Construct, **values: str) -> None:
    """Add an output for each keyword, under exactly that name, to the stack of `scope`."""
    stack = Stack.of(scope)
    for name, value in values.items():
        CfnOutput(stack, name, value=value)


def parameter_of(settings: Settings, short: str) -> str:
    """Return the name of the SSM parameter with a stage's `short`."""
    return f"/{settings.name()}/{short}"


def name_for_others(scope: Construct, settings: Settings, values: Mapping[str, str]) -> None:
    """Add an SSM parameter for each value, for Terraform and for stacks outside of this app."""
    for short, value in values.items():
        name = parameter_of(settings, short)
        ssm.StringParameter(scope, f"{pascal(short)}Parameter", parameter_name=name, string_value=value)


def pascal(short_name: str) -> str:
    """Return a short name in the form of output names: mail-bulk → MailBulk."""
    return "".join(part.capitalize() for part in short_name.split("-"))


def removal_policy(settings: Settings, *, refuses: bool = False) -> RemovalPolicy:
    """Return the CDK's policy for the stage's setting. `refuses`: the resource refuses to be deleted.

    A retained resource is deleted all the same if the deployment that makes it fails: it is still empty, and
    outside of every stack it would only keep its name from the next deployment. A resource that refuses stays
    even then, for people to delete: a rollback that tries in vain ends in ROLLBACK_FAILED, with the table
    still there.
    """
    if settings.deployment.removal == "destroy":
        return RemovalPolicy.DESTROY
    return RemovalPolicy.RETAIN if refuses else RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE


def accept(construct: IConstruct, rule: str, reason: str) -> None:
    """Accept the finding of AwsSolutions' `rule` on `construct`."""
    Validations.of(construct).acknowledge(Acknowledgment(id=f"AwsSolutions-{rule}", reason=reason))
