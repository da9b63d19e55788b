"""Who may deploy without a person's credentials: a CI system that proves itself by OpenID Connect."""

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from stacks.settings.sections import Section
from stacks.settings.urls import ORIGIN

URLS = {"github": "https://token.actions.githubusercontent.com", "gitlab": "https://gitlab.com"}
"""Who signs the tokens: https://docs.github.com/actions/reference/openid-connect-reference and
https://docs.gitlab.com/ci/cloud_services/aws/."""
_AUDIENCES = {"github": "sts.amazonaws.com"}
_NAME = r"[^:*?/\s]+"
_SUBJECTS = {
    "github": (
        re.compile(rf"repo:{_NAME}/{_NAME}:(ref:refs/(heads|tags)/|environment:)\S+"),
        "repo:OWNER/NAME:ref:refs/heads/BRANCH or repo:OWNER/NAME:environment:NAME",
    ),
    "gitlab": (
        re.compile(rf"project_path:{_NAME}(/{_NAME})+:ref_type:(branch|tag):ref:\S+"),
        "project_path:GROUP/PROJECT:ref_type:branch:ref:BRANCH",
    ),
    "other": (re.compile(r"[^*?\s]+"), "the token's whole subject, without * and ?"),
}
"""What a subject has to name before a wildcard may come. Neither may it be a pull request's: anybody who can
push a branch can open one."""


def _reader(subject: str) -> str:
    if not re.fullmatch(r"[^*?\s]+", subject):
        raise ValueError("holds a wildcard; name the subject whole, such as repo:OWNER/NAME:pull_request")
    return subject


class Deploy(Section):
    """The identity provider, and whom of it the stage's roles trust."""

    provider: Literal["github", "gitlab", "other"]
    """Which system runs the deployments."""
    subjects: tuple[str, ...] = Field(min_length=1)
    """Who may deploy, by the token's `sub`; one `*` is fine where it cannot reach another repository."""
    reader_subjects: tuple[Annotated[str, AfterValidator(_reader)], ...] = ()
    """Who may compare templates and nothing else, such as repo:OWNER/NAME:pull_request."""
    url: str | None = Field(default=None, pattern=rf"^{ORIGIN}(/[A-Za-z0-9._~-]+)*$")
    """The issuer of the tokens, where it is not github.com or gitlab.com."""
    audience: str | None = Field(default=None, pattern=r"^\S{1,255}$")
    """The token's `aud`; by default what GitHub's action asks for, else the issuer's URL."""
    provider_arn: str | None = Field(default=None, pattern=r"^arn:aws[a-z-]*:iam::\d{12}:oidc-provider/\S+$")
    """An identity provider that the account has already: it can have each but once. null makes it."""
    permissions_boundary: str | None = Field(default=None, pattern=r"^[A-Za-z0-9+=,.@_-]{1,128}$")
    """The name of a managed policy that bounds every role of the stage: see docs/deploying.md."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.provider == "other" and self.url is None:
            raise ValueError("has provider other and no url; add the issuer's url")
        pattern, form = _SUBJECTS[self.provider]
        for subject in self.subjects:
            if not pattern.fullmatch(subject):
                raise ValueError(f"has the subject {subject!r}, which lets in too many; use {form}")
        return self

    @property
    def issuer(self) -> str:
        """The URL of who signs the tokens."""
        return self.url or URLS[self.provider]

    @property
    def host(self) -> str:
        """The issuer as IAM's condition keys name it."""
        return self.issuer.removeprefix("https://")

    @property
    def expected_audience(self) -> str:
        """The `aud` that a token must have."""
        return self.audience or _AUDIENCES.get(self.provider, self.issuer)
