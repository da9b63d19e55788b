"""The command `policy`: writes IAM policies with the permissions that CloudFormation needs to deploy a
stage."""

import json
from typing import Annotated

import typer

from mailroom_ops.shared.files import write_whole
from mailroom_ops.shared.options import WrittenStage
from mailroom_ops.shared.screen import print_line, refusals
from mailroom_stacks.paths import DOT_LOCAL


def policy(
    stage: WrittenStage = "dev",
    *,
    qualifier: Annotated[
        str | None,
        typer.Option(
            help="The qualifier of the CDK bootstrap. Default: deploy.qualifier of the stage, or the context "
            "key @aws-cdk/core:bootstrapQualifier, or the CDK's default qualifier."
        ),
    ] = None,
) -> None:
    """Write the IAM policies that deploying a stage needs.

    The files are for `cdk bootstrap`: .local/policy/STAGE/execution-1.json and so on.

    Example: mailroom policy --stage prod
    """
    # These imports load the CDK, which the other commands of this group do not need.
    from mailroom_stacks.app.application import NagError
    from mailroom_stacks.deploy_policy.document import size
    from mailroom_stacks.deploy_policy.policies import policies_of
    from mailroom_stacks.deploy_policy.scopes import UnscopedError
    from mailroom_stacks.settings.sentences import SettingsError

    with refusals(SettingsError, NagError, UnscopedError):
        policies = policies_of(stage, qualifier)
        folder = DOT_LOCAL / "policy" / stage
        folder.mkdir(parents=True, exist_ok=True)
        for file in folder.glob("execution-*.json"):  # files of an earlier run, which may have written more
            file.unlink()
        for number, content in enumerate(policies, 1):
            file = folder / f"execution-{number}.json"
            write_whole(file, json.dumps(content, separators=(",", ":")).encode() + b"\n")
            print_line(f"{file}: {size(content)} characters")
