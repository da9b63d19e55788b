"""docs/chaos.md and README.md show what the recorded run found."""

import json
import re
from typing import Any

from chaos.load import PARTS
from chaos.report import TOTALS
from local.harness.judge import Figures
from tests.support import ROOT
from tests.support.docs_pages import Page

RECORDED: dict[str, Any] = json.loads((ROOT / "bench" / "chaos.json").read_text())
CHANNELS = {name: Figures(**each) for name, each in RECORDED["by_channel"].items()}


def test_the_pages_table_has_the_figures_of_each_channel() -> None:
    rows = re.findall(r"^\| (\w+) \|((?: [\d,.]+ \|){7})$", Page("docs/chaos.md").text, re.M)
    shown = {
        name: [float(each.replace(",", "")) for each in figures.split("|")[:-1]] for name, figures in rows
    }
    assert list(CHANNELS) == list(PARTS)
    assert shown == {
        name: [*(getattr(each, total) for total in TOTALS), each.median_seconds, each.worst_seconds]
        for name, each in CHANNELS.items()
    }


def test_the_totals_are_those_of_the_channels() -> None:
    for name in ("sent_twice", "declared", "lost"):
        assert RECORDED[name] == sum(getattr(each, name) for each in CHANNELS.values())
    assert RECORDED["messages"] == sum(each.put for each in CHANNELS.values())
    assert RECORDED["kills"] == sum(RECORDED["killed"].values())


def test_the_readme_says_what_was_found() -> None:
    counts = [RECORDED[name] for name in ("messages", "kills", "lost", "sent_twice", "declared")]
    found = re.search(
        r"([\d,]+) messages under ([\d,]+) kills: (\d+) lost, (\d+) sent twice, (\d+) declared",
        " ".join(Page("README.md").text.split()),
    )
    assert found is not None
    assert [int(each.replace(",", "")) for each in found.groups()] == counts
