"""Where a stage is, for its policies."""

from dataclasses import dataclass


class UnscopedError(Exception):
    """An action that these tables do not know how to hold to the stage; its text says which."""


@dataclass(frozen=True)
class Place:
    """Where a stage is, and by which names IAM knows what is its own."""

    stage: str
    account: str = "*"
    region: str = "*"
    partition: str = "aws"
    qualifier: str = "hnb659fds"
    configuration_sets: tuple[str, ...] = ()
    """SES's and the SMS service's, which may be named freely."""
    passed_to: tuple[str, ...] = ()
    """The services that the stage's roles trust."""
    key_tags: tuple[tuple[str, str], ...] = ()
    """The tags by which a key of the stage is known; without any, no right to a key is given."""
    boundary: str | None = None
    """The name of the managed policy that bounds every role."""

    def arn(self, service: str, resource: str, *, region: bool = True, account: bool = True) -> str:
        """The ARN of a resource, its place filled in."""
        place = f"{self.region if region else ''}:{self.account if account else ''}"
        return f"arn:{self.partition}:{service}:{place}:{resource}"

    @property
    def own(self) -> str:
        """The pattern of the stage's names."""
        return f"mailroom-{self.stage}-*"

    @property
    def deployers(self) -> str:
        """The roles of the stack `deploy`, which no deployment may touch."""
        return self.arn("iam", f"role/mailroom-{self.stage}-deploy*", region=False)
