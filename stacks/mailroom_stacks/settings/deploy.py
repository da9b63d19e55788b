"""Who may deploy without a person's credentials: a CI system that proves itself by OpenID Connect."""

import re
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from mailroom_stacks.settings.sections import ORIGIN, Section

URLS = {"github": "https://token.actions.githubusercontent.com", "gitlab": "https://gitlab.com"}
"""Who signs the tokens: https://docs.github.com/actions/reference/openid-connect-reference and
https://docs.gitlab.com/ci/cloud_services/aws/."""
_AUDIENCES = {"github": "sts.amazonaws.com"}
_NAME = r"[^:*?/\s]+"
_BEGUN = r"[^*?\s]\S*"
"""A branch, tag or environment. It may end in a wildcard, not begin with one: that would be all of them."""
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
"""What a subject has to name before a wildcard may come. Neither may it be a pull request's: anybody who can
push a branch can open one."""
_ISSUERS = {
    "github": r"token\.actions\.(githubusercontent\.com|[a-z0-9-]+\.ghe\.com)(/.*)?|.*/_services/token",
    "gitlab": r"gitlab\.com(/.*)?",
}
"""The systems that an issuer's host and path belong to, whatever `provider` says: GitHub's own, its
enterprises' and its servers', and GitLab's own."""


class Deploy(Section):
    """The identity provider, and whom of it the stage's roles trust."""

    provider: Literal["github", "gitlab", "other"]
    """The system that runs the deployments."""
    subjects: tuple[str, ...] = Field(min_length=1)
    """Who may deploy, by the token's `sub`: `mailroom docs deploy-from-ci`."""
    reader_subjects: tuple[Annotated[str, Field(pattern=r"^[^*?\s]+$")], ...] = ()
    """Who may compare templates and nothing else: whole subjects, such as repo:OWNER/NAME:pull_request."""
    url: str | None = Field(default=None, pattern=rf"^{ORIGIN}(/[A-Za-z0-9._~-]+)*$")
    """The issuer of the tokens, where it is not github.com or gitlab.com."""
    audience: str | None = Field(default=None, pattern=r"^\S{1,255}$")
    """The token's `aud`; by default what GitHub's action asks for, else the issuer's URL."""
    provider_arn: str | None = Field(default=None, pattern=r"^arn:aws[a-z-]*:iam::\d{12}:oidc-provider/\S+$")
    """An identity provider that the account has already. null makes it."""
    permissions_boundary: str | None = Field(default=None, pattern=r"^[A-Za-z0-9+=,.@_-]{1,128}$")
    """The name of a managed policy that bounds every role of the stage."""
    qualifier: str | None = Field(default=None, pattern=r"^[A-Za-z0-9_-]{1,10}$")
    """The bootstrap that deploys the stage. null takes cdk.json's context, else the account's default."""

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
        """The URL of who signs the tokens."""
        return self.url or URLS[self.provider]

    @property
    def signer(self) -> str:
        """The system whose tokens they are, and whose rules hold: the issuer's, where its URL is known."""
        parts = urlsplit(self.issuer)
        place = f"{(parts.hostname or '').rstrip('.')}{parts.path}"
        known = (name for name, form in _ISSUERS.items() if re.fullmatch(form, place))
        return next(known, self.provider)

    @property
    def host(self) -> str:
        """The issuer as IAM's condition keys name it."""
        return self.issuer.removeprefix("https://")

    @property
    def expected_audience(self) -> str:
        """The `aud` that a token must have."""
        return self.audience or _AUDIENCES.get(self.signer, self.issuer)


class Deployment(Section):
    """Where the stage lives and what protects it."""

    account: str | None = Field(default=None, pattern=r"^\d{12}$")
    """12 digits; null takes the account of whoever deploys."""
    region: str | None = Field(default=None, pattern=r"^[a-z]{2}(-[a-z]+)+-\d$")
    """A region such as eu-central-1; null takes the region of whoever deploys."""
    removal: Literal["retain", "destroy"] = "retain"
    """What becomes of tables, buckets and secrets when a stack is deleted."""
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
    """Tags of everything that is deployed."""
