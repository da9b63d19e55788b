"""Deployment without a person's credentials, by a CI system that proves its identity with OpenID Connect; and
the place of a stage."""

import re
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from mailroom_stacks.settings.sections import ORIGIN, Section

URLS = {"github": "https://token.actions.githubusercontent.com", "gitlab": "https://gitlab.com"}
"""Issuers of tokens: https://docs.github.com/actions/reference/openid-connect-reference and
https://docs.gitlab.com/ci/cloud_services/aws/."""
_AUDIENCES = {"github": "sts.amazonaws.com"}
_NAME = r"[^:*?/\s]+"
_BEGUN = r"[^*?\s]\S*"
"""Branch, tag or environment. Its name may end in a wildcard, but not begin with one, which would match every
name."""
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
"""Required beginning of a subject before any wildcard. A pull request is no valid subject either: everybody
who can push a branch can open one."""
_ISSUERS = {
    "github": r"token\.actions\.(githubusercontent\.com|[a-z0-9-]+\.ghe\.com)(/.*)?|.*/_services/token",
    "gitlab": r"gitlab\.com(/.*)?",
}
"""Systems by their issuers' hosts and paths, whatever `provider` is: GitHub itself, its enterprises and
servers, and GitLab itself."""


class Deploy(Section):
    """Identity provider, and the subjects that the stage's roles trust."""

    provider: Literal["github", "gitlab", "other"]
    """System that runs the deployments."""
    subjects: tuple[str, ...] = Field(min_length=1)
    """Subjects that may deploy, by the token's `sub`: `mailroom docs deploy-from-ci`."""
    reader_subjects: tuple[Annotated[str, Field(pattern=r"^[^*?\s]+$")], ...] = ()
    """Subjects that may only compare templates: whole subjects, such as repo:OWNER/NAME:pull_request."""
    url: str | None = Field(default=None, pattern=rf"^{ORIGIN}(/[A-Za-z0-9._~-]+)*$")
    """Issuer of the tokens, if it is not github.com or gitlab.com."""
    audience: str | None = Field(default=None, pattern=r"^\S{1,255}$")
    """`aud` of the token; by default that of GitHub's action, else the issuer's URL."""
    provider_arn: str | None = Field(default=None, pattern=r"^arn:aws[a-z-]*:iam::\d{12}:oidc-provider/\S+$")
    """Identity provider that the account has already. null makes one."""
    permissions_boundary: str | None = Field(default=None, pattern=r"^[A-Za-z0-9+=,.@_-]{1,128}$")
    """Name of a managed policy that bounds every role of the stage."""
    qualifier: str | None = Field(default=None, pattern=r"^[A-Za-z0-9_-]{1,10}$")
    """Bootstrap that deploys the stage. null means that of cdk.json's context, else the account's default."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.provider == "other" and self.url is None:
            raise ValueError("has provider other and no url; add the issuer's url")
        pattern, form = _SUBJECTS[self.signer]
        for subject in self.subjects:
            if not re.fullmatch(pattern, subject):
                raise ValueError(f"has the subject {subject!r}, which lets in too many; use {form}")
        return self

    @property
    def issuer(self) -> str:
        """URL of the issuer of the tokens."""
        return self.url or URLS[self.provider]

    @property
    def signer(self) -> str:
        """System whose tokens and rules apply: that of the issuer, if its URL is known."""
        parts = urlsplit(self.issuer)
        place = f"{(parts.hostname or '').rstrip('.')}{parts.path}"
        systems = (name for name, form in _ISSUERS.items() if re.fullmatch(form, place))
        return next(systems, self.provider)

    @property
    def host(self) -> str:
        """Issuer in the form of IAM's condition keys."""
        return self.issuer.removeprefix("https://")

    @property
    def expected_audience(self) -> str:
        """Required `aud` of a token."""
        return self.audience or _AUDIENCES.get(self.signer, self.issuer)


class Deployment(Section):
    """Place and protection of the stage."""

    account: str | None = Field(default=None, pattern=r"^\d{12}$")
    """12 digits; null means the account of the person or system that deploys."""
    region: str | None = Field(default=None, pattern=r"^[a-z]{2}(-[a-z]+)+-\d$")
    """Region such as eu-central-1; null means the region of the person or system that deploys."""
    removal: Literal["retain", "destroy"] = "retain"
    """Fate of tables, buckets and secrets when a stack is deleted."""
    deletion_protection: bool = True
    """Whether tables refuse to be deleted."""
    termination_protection: bool = False
    """Whether stacks refuse to be deleted."""
    point_in_time_recovery: bool = True
    """Whether tables can be restored to any second of the last 35 days."""
    gradual: bool = False
    """Whether an update reaches senders within half an hour, and goes back by itself if their alarms ring:
    `mailroom docs deploy-update-go-back#gradual-deployment`."""
    tags: dict[str, str] = Field(default_factory=dict)
    """Tags of all resources."""
