"""Main program of a project's app.py: python3 app.py -c stage=dev"""

import argparse
import json
import os
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from mailroom_stacks.app.application import NagError, synthesize
from mailroom_stacks.settings.sentences import SettingsError


def main() -> None:
    """Write the cloud assembly of the stage. Exit with one sentence for an invalid setting, or with the
    findings of cdk-nag."""
    arguments = argparse.ArgumentParser(description="Writes a stage's CloudFormation templates.")
    arguments.add_argument("-c", "--context", action="append", default=[], type=_pair, metavar="KEY=VALUE")
    arguments.add_argument("-o", "--output", help="the folder to write to; cdk.out by default")
    options = arguments.parse_args()
    # CDK_OUTDIR is the folder that the CDK's command line reads.
    output = options.output or os.environ.get("CDK_OUTDIR", "cdk.out")
    try:
        assembly = synthesize(dict(options.context), output)
    except (SettingsError, NagError) as error:
        sys.exit(str(error))
    if "CDK_OUTDIR" not in os.environ:
        for stack in assembly.stacks:
            sys.stdout.write(f"{stack.stack_name}: {len(stack.template['Resources'])} resources\n")
        # Notes are written to standard error, so that a program finds only stacks on standard output.
        sys.stderr.writelines(f"{note}\n" for note in _notes(Path(assembly.directory)))


def _notes(folder: Path) -> Iterator[str]:
    """Yield the infos and warnings about the stacks in `folder`, as the CDK's command line shows them. They
    are read from the assembly's files, because the metadata that jsii returns depends on which modules of the
    CDK are imported."""
    for artifact in json.loads((folder / "manifest.json").read_text())["artifacts"].values():
        if "additionalMetadataFile" in artifact:
            metadata = json.loads((folder / artifact["additionalMetadataFile"]).read_text())
            for entry in chain.from_iterable(metadata.values()):
                level = entry["type"].removeprefix("aws:cdk:")
                if level in ("info", "warning"):
                    yield f"{level}: {entry['data']}"


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} has no value; write KEY=VALUE, such as stage=dev")
    return key, value
