"""The CDK app, which creates the stacks from the settings. The CDK's command line or `mailroom synth` runs
it."""

import sys
from pathlib import Path

# `cdk synth` also works if only requirements.txt is installed: our packages are in these folders.
sys.path[:0] = [str(Path(__file__).parent / folder) for folder in ("stacks", "lambdas")]

from mailroom_stacks.app.main import main  # noqa: E402 - it needs the path

main()
