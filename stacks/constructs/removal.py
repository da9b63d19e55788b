"""What becomes of data when its stack is deleted."""

from aws_cdk import RemovalPolicy

from stacks.settings.stage import Settings


def removal_policy(settings: Settings, *, refuses: bool = False) -> RemovalPolicy:
    """The stage's choice, in CDK's words. `refuses`: it cannot be deleted, whoever asks.

    What is retained goes all the same when the deployment that makes it fails: nothing is in it yet, and
    outside of every stack it would only keep its name from the next deployment. What refuses stays even then,
    for people to delete: a rollback that tries in vain ends in ROLLBACK_FAILED, with the table still there.
    """
    if settings.deployment.removal == "destroy":
        return RemovalPolicy.DESTROY
    return RemovalPolicy.RETAIN if refuses else RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE
