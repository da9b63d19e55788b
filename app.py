"""The app: settings in, stacks out. The CDK CLI runs it, or you do: python app.py -c stage=dev"""

import argparse
import os
import sys

from stacks.application import NagError, synthesize
from stacks.settings.sentences import SettingsError


def main() -> None:
    """Write the stage's stacks; a wrong setting or a finding ends it with one sentence."""
    arguments = argparse.ArgumentParser(description="Writes a stage's CloudFormation templates.")
    arguments.add_argument("-c", "--context", action="append", default=[], type=_pair, metavar="KEY=VALUE")
    arguments.add_argument("-o", "--output", help="the folder to write to; cdk.out by default")
    given = arguments.parse_args()
    # Under the CLI this is the folder that it will read.
    output = given.output or os.environ.get("CDK_OUTDIR", "cdk.out")
    try:
        assembly = synthesize(dict(given.context), output)
    except (SettingsError, NagError) as error:
        sys.exit(str(error))
    if "CDK_OUTDIR" not in os.environ:
        for stack in assembly.stacks:
            sys.stdout.write(f"{stack.stack_name}: {len(stack.template['Resources'])} resources\n")


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} has no value; write KEY=VALUE, such as stage=dev")
    return key, value


if __name__ == "__main__":
    main()
