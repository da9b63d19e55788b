"""The ladder of docs/limits.md: its settings pass synth's rules, and are as fast as its table says."""

import json
import re
from typing import Any

import pytest

from ops.plan.lanes import Stages
from ops.plan.model import Assumed, Plan
from stacks.paths import ROOT
from tests.docs_pages import Page


def _ladder() -> list[tuple[dict[str, Any], list[str]]]:
    """The settings of each rung, and its row of the table."""
    page = Page("docs/limits.md")
    settings = [json.loads(block.text) for block in page.blocks("json")]
    rows = re.findall(
        r"^\| ([\d,]+) \| ([\d,]+) \| ([\d.]+) s \| ([\d.,]+)[^|]*\| ([\d.]+) h \|$", page.text, re.M
    )
    return list(zip(settings, [[each.replace(",", "") for each in row] for row in rows], strict=True))


@pytest.mark.parametrize("rung", range(5))
@pytest.mark.parametrize("lane", ["normal", "bulk"])
def test_each_rung_of_the_ladder_passes_synth_and_is_as_fast_as_its_row_says(rung: int, lane: str) -> None:
    settings, (rate, workers, pace, speed, hours) = _ladder()[rung]
    stages: dict[str, Any] = json.loads((ROOT / "cdk.json").read_text())["context"]["mailroom"]
    _merge(stages["prod"], settings)
    found = Stages(stages).lane("prod", "mail", lane)
    plan = Plan(found.senders, Assumed(latency=0.1, between=0.1), 500_000)
    assert (found.allowed, found.workers) == (float(rate), int(workers))
    assert found.senders.pace == pytest.approx(float(pace), rel=0.01)
    assert 2 * plan.speed == pytest.approx(float(speed), rel=0.01)
    assert plan.seconds / 3600 == pytest.approx(float(hours), rel=0.02)


def _merge(section: dict[str, Any], changes: dict[str, Any]) -> None:
    for name, value in changes.items():
        if isinstance(value, dict) and isinstance(section.get(name), dict):
            _merge(section[name], value)
        else:
            section[name] = value
