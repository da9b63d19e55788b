"""`python -m mailroom_ops.deploying`: install the CDK's command line, and run nothing."""

import sys

from mailroom_ops.deploying.cdk import cdk
from mailroom_ops.screen import Refused

if __name__ == "__main__":
    try:
        cdk()
    except Refused as refused:
        sys.exit(f"{refused}")
