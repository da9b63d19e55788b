"""What got worse since it was measured last is said, and noise is not."""

from typing import Any

import pytest

from bench.history import entry, has_figures, worse

FIRST = {"date": "2026-11-21", "commit": "aaaaaaa", "calls_per_mail": 3.2, "rate_ratio_powertools": 1.0}
LAST = {"date": "2026-11-22", "commit": "bbbbbbb", "calls_per_mail": 3.1, "cpu_ratio_mail": 1.0}


def said(**figures: float) -> list[str]:
    return [*worse({"date": "2026-11-23", "commit": "ccccccc", **figures}, [FIRST, LAST])]


def test_a_count_that_grew_got_worse_than_when_it_was_measured_last() -> None:
    assert said(calls_per_mail=3.2) == [
        "calls_per_mail got worse: 3.2, and 3.1 on 2026-11-22 at bbbbbbb (noise: 0%)"
    ]


@pytest.mark.parametrize(
    "figures",
    [
        {"calls_per_mail": 3.1},
        {"calls_per_mail": 2.3},
        {"cpu_ratio_mail": 1.04},
        {"rate_ratio_powertools": 0.9},
        {"rate_ratio_powertools": 2.0},
        {"seconds_10000": 1e6},
    ],
)
def test_what_is_better_or_within_the_noise_or_new_is_not_worse(figures: dict[str, float]) -> None:
    assert said(**figures) == []


@pytest.mark.parametrize("figures", [{"cpu_ratio_mail": 1.2}, {"rate_ratio_powertools": 0.7}])
def test_what_differs_by_more_than_the_noise_got_worse(figures: dict[str, float]) -> None:
    assert len(said(**figures)) == 1


def test_an_entry_has_the_key_figures_of_what_was_measured_now() -> None:
    measured: dict[str, Any] = {"import_ratio": {"send_mail": 1.1, "collect": 2.0}, "rate_lost": 0}
    made = entry("2026-11-23", "ccccccc", measured)
    assert made.pop("commit")
    assert made == {"date": "2026-11-23", "import_ratio.send_mail": 1.1}


def test_a_run_that_measured_no_key_figure_is_not_kept() -> None:
    assert not has_figures(entry("2026-11-23", "ccccccc", {"scale_simulated": {}}))
    assert has_figures(entry("2026-11-23", "ccccccc", {"calls_per_mail": 2.3}))
