"""Prints the policies, or writes a file for each: python -m stacks.deploy_policy --stage prod"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stacks.application import NagError
from stacks.deploy_policy.document import documents, size
from stacks.deploy_policy.needs import needs_of
from stacks.deploy_policy.place import UnscopedError
from stacks.deploy_policy.scopes import statements
from stacks.deploy_policy.stage import place_of, qualifier_of, read
from stacks.settings.sentences import SettingsError


def main() -> None:
    """The policies of one stage, as JSON; a stage that cannot be read ends it with one sentence."""
    arguments = argparse.ArgumentParser(
        prog="python -m stacks.deploy_policy",
        description="The IAM policies that CloudFormation needs to deploy a stage, for "
        "cdk bootstrap --cloudformation-execution-policies.",
    )
    arguments.add_argument("--stage", default="dev", help="a stage of cdk.json; dev by default")
    arguments.add_argument(
        "--qualifier",
        help="the bootstrap's; by default what the stage is deployed by: deploy.qualifier, else "
        "cdk.json's context @aws-cdk/core:bootstrapQualifier, else the CDK's own",
    )
    arguments.add_argument("--output", type=Path, help="a folder to write execution-1.json, … to")
    given = arguments.parse_args()
    try:
        settings, templates = read(given.stage, {})
        qualifier = given.qualifier or qualifier_of(settings, {})
        policies = documents(statements(needs_of(templates), place_of(settings, templates, qualifier)))
    except (SettingsError, NagError, UnscopedError) as error:
        sys.exit(str(error))
    if given.output is None:
        sys.stdout.write(json.dumps(policies, indent=2) + "\n")
    else:
        _write(given.output, policies)


def _write(folder: Path, policies: Sequence[Any]) -> None:
    """In place of those that a former run left there."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("execution-*.json"):
        old.unlink()
    for number, policy in enumerate(policies, start=1):
        file = folder / f"execution-{number}.json"
        file.write_text(json.dumps(policy, separators=(",", ":")) + "\n")
        sys.stdout.write(f"{file}: {size(policy)} characters\n")


if __name__ == "__main__":
    main()
