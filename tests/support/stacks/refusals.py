"""Errors of the app about a stage with one wrong setting."""

import copy
import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import assume

from mailroom_stacks.settings.load import load
from mailroom_stacks.settings.sentences import SettingsError
from mailroom_stacks.settings.settings import Settings
from tests.support import ROOT

SHIPPED: dict[str, Any] = json.loads((ROOT / "cdk.json").read_text())["context"]["mailroom"]
"""The stages of cdk.json. They are the deployer's own: no test expects more of them than that they fit."""
OURS = ROOT / "tests" / "support" / "cdk.json"
"""Values in place of those of cdk.json, on which tests rely."""
STAGES: dict[str, Any] = json.loads(OURS.read_text())["context"]["mailroom"]
REMOVED = object()


def with_settings(changes: Mapping[str, object], stage: str = "dev") -> dict[str, Any]:
    """Return all of STAGES, one with these values by the path of their keys; REMOVED removes one."""
    stages = copy.deepcopy(STAGES)
    for key, value in changes.items():
        section, (*path, last) = stages[stage], key.split(".")
        for part in path:
            section = section.setdefault(part, {})
        section[last] = copy.deepcopy(value)
        if value is REMOVED:
            del section[last]
    return stages


def dev_with(key: str, value: object) -> Settings:
    """Stage dev once `key` is `value`."""
    return load(with_settings({key: value}), "dev")


def refusal_of_setting(key: str, value: object) -> str:
    """Return the error of `load` about stage dev with a key's value replaced."""
    with pytest.raises(SettingsError) as refused:
        load(with_settings({key: value}), "dev")
    return str(refused.value)


def settings_or_discard(stage: dict[str, Any]) -> Settings:
    """Return the settings of a stage. Discards the example of Hypothesis if the rules refuse them."""
    try:
        return load({"any": stage}, "any")
    except SettingsError:
        assume(False)
        raise
