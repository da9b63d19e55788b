"""Settings of deployments by a CI system, which authenticates by OpenID Connect instead of a person's
credentials; and of a stage's account, region and protection."""

import re
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from mailroom_stacks.settings.sections import ORIGIN, Section

URLS = {"github": "https://token.actions.githubusercontent.com", "gitlab": "https://gitlab.com"}
"""URLs of the issuers of tokens, by provider:
https://docs.github.com/actions/reference/openid-connect-reference and
https://docs.gitlab.com/ci/cloud_services/aws/."""
_AUDIENCES = {"github": "sts.amazonaws.com"}
_NAME = r"[^:*?/\s]+"
_BEGUN = r"[^*?\s]\S*"
"""Pattern of a branch, tag or environment. It may end with a wildcard, but not begin with one, because that
would match every name."""
_SUBJECTS = {
    "github": (
        rf"repo:{_NAME}/{_NAME}:(ref:refs/(heads|tags)/|environment:){_BEGUN}",
        "repo:OWNER/NAME:ref:refs/heads/BRANCH or repo:OWNER/NAME:environment:NAME",
    ),
    "gitlab": (
        rf"project_path:{_NAME}(/{_NAME})+:ref_type:(branch|tag):ref:{_BEGUN}",
        "project_path:GROUP/PROJECT:ref_type:branch:ref:BRANCH",
    ),
    "other": (r"[^*?\s]+", "the token's whole subject, without * and ?"),
}
"""Pattern of valid subjects and their form for error messages, by system. A subject needs a fixed beginning
before any wildcard. The subject of a pull request is not valid either, because everybody who can push a
branch can open a pull request."""
_ISSUERS = {
    "github": r"token\.actions\.(githubusercontent\.com|[a-z0-9-]+\.ghe\.com)(/.*)?|.*/_services/token",
    "gitlab": r"gitlab\.com(/.*)?",
}
"""Patterns of the issuer's host and path, by system. They override the setting `provider`. They match GitHub,
GitHub Enterprise Cloud and Server, and gitlab.com."""


class Deploy(Section):
    """OpenID Connect provider, and the subjects that the stage's roles trust."""

    provider: Literal["github", "gitlab", "other"]
    """CI system that runs the deployments."""
    subjects: tuple[str, ...] = Field(min_length=1)
    """Subjects (the claim `sub` of a token) that may deploy: see `mailroom docs deploy-from-ci`."""
    reader_subjects: tuple[Annotated[str, Field(pattern=r"^[^*?\s]+$")], ...] = ()
    """Subjects that may only compare the deployed templates with new ones. They may not have wildcards; for
    example repo:OWNER/NAME:pull_request."""
    url: str | None = Field(default=None, pattern=rf"^{ORIGIN}(/[A-Za-z0-9._~-]+)*$")
    """Issuer of the tokens, if it is not github.com or gitlab.com."""
    audience: str | None = Field(default=None, pattern=r"^\S{1,255}$")
    """Required claim `aud` of a token. null means the default of the action for GitHub, sts.amazonaws.com, or
    for other systems the issuer's URL."""
    provider_arn: str | None = Field(default=None, pattern=r"^arn:aws[a-z-]*:iam::\d{12}:oidc-provider/\S+$")
    """ARN of an OpenID Connect provider that already exists in the account; null creates one."""
    permissions_boundary: str | None = Field(default=None, pattern=r"^[A-Za-z0-9+=,.@_-]{1,128}$")
    """Name of a managed policy that is the permissions boundary of every role of the stage."""
    qualifier: str | None = Field(default=None, pattern=r"^[A-Za-z0-9_-]{1,10}$")
    """Qualifier of the CDK bootstrap that deploys the stage. null means the qualifier in the context of
    cdk.json, or else the CDK's default."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.provider == "other" and self.url is None:
            raise ValueError("has provider other and no url; add the issuer's url")
        pattern, form = _SUBJECTS[self.signer]
        for subject in self.subjects:
            if not re.fullmatch(pattern, subject):
                raise ValueError(f"has the subject {subject!r}, which matches too much; use {form}")
        return self

    @property
    def issuer(self) -> str:
        """URL of the issuer of the tokens."""
        return self.url or URLS[self.provider]

    @property
    def signer(self) -> str:
        """Name of the system whose rules for tokens apply: the system of the issuer's URL, or `provider` if
        no system matches the URL."""
        parts = urlsplit(self.issuer)
        place = f"{(parts.hostname or '').rstrip('.')}{parts.path}"
        systems = (name for name, form in _ISSUERS.items() if re.fullmatch(form, place))
        return next(systems, self.provider)

    @property
    def host(self) -> str:
        """Issuer without https://, as in IAM's condition keys."""
        return self.issuer.removeprefix("https://")

    @property
    def expected_audience(self) -> str:
        """Required claim `aud` of a token."""
        return self.audience or _AUDIENCES.get(self.signer, self.issuer)


class SecondCopy(Section):
    """Bucket for daily exports of the tables `suppressions` and `preferences`."""

    bucket: str = Field(pattern=r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$")
    """Name of an existing bucket, in any region, whose policy allows the exports: see `mailroom docs
    second-copy`."""
    account: str | None = Field(default=None, pattern=r"^\d{12}$")
    """AWS account of the bucket, 12 digits; null means the account of the stage."""


class Deployment(Section):
    """Account, region and protection of the stage."""

    account: str | None = Field(default=None, pattern=r"^\d{12}$")
    """AWS account of the stage, 12 digits; null means the account of the person or system that deploys."""
    region: str | None = Field(default=None, pattern=r"^[a-z]{2}(-[a-z]+)+-\d$")
    """AWS region of the stage, such as eu-central-1; null means the region of the person or system that
    deploys."""
    removal: Literal["retain", "destroy"] = "retain"
    """Whether tables, buckets and secrets are retained or destroyed when their stack is deleted."""
    deletion_protection: bool = True
    """Whether tables are protected against deletion."""
    termination_protection: bool = False
    """Whether stacks are protected against deletion."""
    point_in_time_recovery: bool = True
    """Whether tables can be restored to any second of the last 35 days."""
    second_copy: SecondCopy | None = None
    """Daily exports of opt-outs and suppressions to a bucket; null turns them off."""
    tags: dict[str, str] = Field(default_factory=dict)
    """Tags of all resources."""

    @model_validator(mode="after")
    def _recoverable(self) -> Self:
        if self.second_copy and not self.point_in_time_recovery:
            raise ValueError(
                "has a second_copy, and DynamoDB exports only tables with point-in-time recovery; set "
                "point_in_time_recovery to true, or second_copy to null"
            )
        return self
