"""What docs/limits.md predicts is what the stations compute, what was simulated, and what was measured."""

import re
from typing import Any

import pytest

from bench import scale
from ops.estimates.lanes import dollars
from ops.estimates.prices import measured
from ops.estimates.stations import Forecast, Station
from ops.times import exactly, speed_of
from tests.support.docs_pages import Page

PREDICTIONS = scale.predictions()
SIMULATED: dict[str, Any] = measured()["scale_simulated"]


def _rows(heading: str) -> list[list[str]]:
    """The rows of the table whose first heading it is, cell by cell."""
    lines = Page("docs/limits.md").text.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith(f"| {heading} |"))
    table = lines[at + 2 :]
    end = next(number for number, line in enumerate(table) if not line.startswith("|"))
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table[:end]]


@pytest.mark.parametrize("name", PREDICTIONS)
def test_each_prediction_is_what_its_row_says(name: str) -> None:
    row = dict(zip(PREDICTIONS, _rows("load"), strict=True))[name]
    forecast = PREDICTIONS[name].forecast()
    first = _named(forecast.bound)
    assert row[2:] == [
        exactly(forecast.seconds),
        f"{SIMULATED[name]['seconds']:,} s",
        f"none; the first is {first}" if forecast.keeps_up else first,
        _named(forecast.following),
        f"{forecast.deepest:,.0f}",
        f"{_beside_ses(forecast):.2f}",
    ]


def _named(station: Station) -> str:
    limit = f"`{station.limit}`" if station.is_setting else station.limit
    return f"{station.words}, {speed_of(station.speed)} a second: {limit}"


def _beside_ses(forecast: Forecast) -> float:
    parts = [dollars(lane, plan) for lane, plan in _lanes(forecast)]
    return sum(price for each in parts for part, price in each.items() if part != "SES")


def _lanes(forecast: Forecast) -> Any:
    return zip(forecast.lanes, forecast.plans, strict=True)


@pytest.mark.parametrize("name", PREDICTIONS)
def test_what_was_simulated_is_what_the_plan_says(name: str) -> None:
    # `python -m bench scale` simulates again, where this fails because settings have changed.
    forecast, found = PREDICTIONS[name].forecast(), SIMULATED[name]
    assert found["seconds"] == pytest.approx(forecast.seconds, rel=0.02)
    assert found["reported"] == pytest.approx(forecast.reported, rel=0.02)
    assert found["deepest"] == pytest.approx(forecast.deepest, rel=0.02, abs=300)


def test_what_was_measured_stands_beside_what_the_model_says() -> None:
    held = measured()["scale_held_against"].values()
    assert [row[-3:] for row in _rows("mails a second of")] == [
        [f"{each['predicted']:g}", f"{each['measured']:g}", f"{each['ratio']:.2f}"] for each in held
    ]


@pytest.mark.parametrize("name", ["hour", "second_new", "second"])
def test_the_rungs_know_what_became_of_mails_as_soon_as_they_are_sent(name: str) -> None:
    assert PREDICTIONS[name].forecast().slow_report is None


def test_every_station_has_a_row_with_its_setting_or_quota() -> None:
    rows = {row[0]: " | ".join(row) for row in _rows("station")}
    stations = {each.name: each for each in PREDICTIONS["second"].forecast().stations}
    assert stations.keys() <= rows.keys()
    for name, station in stations.items():
        if station.is_setting:
            assert re.sub(r"\.lanes\.\w+\.", ".lanes.<lane>.", station.limit) in rows[name]
