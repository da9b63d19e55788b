"""The recorded run of `make chaos` adds up."""

import json
from typing import Any

from mailroom_local.harness.judge import Figures
from tests.support import ROOT

RECORDED: dict[str, Any] = json.loads((ROOT / "bench" / "chaos.json").read_text())
CHANNELS = {name: Figures(**each) for name, each in RECORDED["by_channel"].items()}


def test_the_totals_are_those_of_the_channels() -> None:
    for name in ("sent_twice", "declared", "lost"):
        assert RECORDED[name] == sum(getattr(each, name) for each in CHANNELS.values())
    assert RECORDED["messages"] == sum(each.put for each in CHANNELS.values())
    assert RECORDED["kills"] == sum(RECORDED["killed"].values())
