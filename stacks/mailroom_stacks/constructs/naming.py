"""Base class, names, outputs, removal policies and accepted findings of all stacks."""

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
    """Stack named mailroom-{stage}-{part}, in the account and region of the setting `deployment`."""

    def __init__(
        self,
        scope: Construct,
        settings: Settings,
        part: str,
        synthesizer: IStackSynthesizer | None = None,
    ) -> None:
        """Create the stack. `synthesizer` is only given for a stack that is not deployed by the roles of the
        CDK bootstrap."""
        place = settings.deployment
        super().__init__(
            scope,
            settings.name(part),
            stack_name=settings.name(part),  # by default a cdk.Stage adds its name as a prefix
            description=f"Mailroom, stage {settings.stage}: {part}",
            env=Environment(account=place.account, region=place.region),
            termination_protection=place.termination_protection,
            synthesizer=synthesizer,
        )


def stage_of(scope: IConstruct) -> IConstruct:
    """Return the `Stage` that `scope` is or belongs to. CDK's `Stage.of` returns a Stage's parent instead."""
    return scope if Stage.is_stage(scope) else Stage.of(scope) or scope.node.root


def publish(scope: Construct, **values: str) -> None:
    """Add an output to the stack of `scope` for each keyword, with exactly the keyword as its name."""
    stack = Stack.of(scope)
    for name, value in values.items():
        CfnOutput(stack, name, value=value)


def parameter_of(settings: Settings, short: str) -> str:
    """Return the name of the SSM parameter that contains the value `short` of a stage."""
    return f"/{settings.name()}/{short}"


def name_for_others(scope: Construct, settings: Settings, values: Mapping[str, str]) -> None:
    """Add an SSM parameter for each value, which Terraform and stacks outside of this app can read."""
    for short, value in values.items():
        name = parameter_of(settings, short)
        ssm.StringParameter(scope, f"{pascal(short)}Parameter", parameter_name=name, string_value=value)


def pascal(short_name: str) -> str:
    """Return a short name in the form of output names: mail-bulk → MailBulk."""
    return "".join(part.capitalize() for part in short_name.split("-"))


def removal_policy(settings: Settings, *, refuses: bool = False) -> RemovalPolicy:
    """Return the CDK's removal policy for the stage's setting `deployment.removal`. `refuses` is whether the
    resource is protected against deletion.

    A retained resource is still deleted if the deployment that creates it fails: it is empty, and if it
    existed outside of every stack, the next deployment could not use its name. A protected resource is
    retained even then, and people must delete it: a rollback would fail to delete it and end in
    ROLLBACK_FAILED, with the table still there.
    """
    if settings.deployment.removal == "destroy":
        return RemovalPolicy.DESTROY
    return RemovalPolicy.RETAIN if refuses else RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE


def accept(construct: IConstruct, rule: str, reason: str) -> None:
    """Accept the finding of cdk-nag's rule AwsSolutions-`rule` on `construct`."""
    Validations.of(construct).acknowledge(Acknowledgment(id=f"AwsSolutions-{rule}", reason=reason))
