"""What the app says of a stage with one wrong setting."""

import copy
import json
from collections.abc import Mapping
from typing import Any

import pytest

from mailroom_stacks.settings.load import load
from mailroom_stacks.settings.sentences import SettingsError
from mailroom_stacks.settings.settings import Settings
from tests.support import ROOT

SHIPPED: dict[str, Any] = json.loads((ROOT / "cdk.json").read_text())["context"]["mailroom"]
"""The stages of cdk.json. They are the deployer's own: no test expects more of them than that they fit."""
OURS = ROOT / "tests" / "support" / "cdk.json"
"""What tests count on in its place."""
STAGES: dict[str, Any] = json.loads(OURS.read_text())["context"]["mailroom"]
REMOVED = object()


def with_settings(changes: Mapping[str, object], stage: str = "dev") -> dict[str, Any]:
    """All of STAGES, one with these values by the path of their keys; REMOVED removes one."""
    stages = copy.deepcopy(STAGES)
    for key, value in changes.items():
        section, (*path, last) = stages[stage], key.split(".")
        for part in path:
            section = section.setdefault(part, {})
        section[last] = copy.deepcopy(value)
        if value is REMOVED:
            del section[last]
    return stages


def accepted(key: str, value: object) -> Settings:
    """Stage dev once `key` is `value`."""
    return load(with_settings({key: value}), "dev")


def refusal(key: str, value: object) -> str:
    """What `load` says of stage dev once `key` is `value`."""
    with pytest.raises(SettingsError) as refused:
        load(with_settings({key: value}), "dev")
    return str(refused.value)
