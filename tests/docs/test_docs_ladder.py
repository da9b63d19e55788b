"""The ladder of docs/limits.md: settings pass synth's rules, and speed and money are as its table says."""

import copy
import json
import re
from typing import Any

import pytest

from ops.cost.answer import WantedMessages, cost
from ops.cost.fixed import of_settings
from ops.estimates.lanes import Assumed, Senders, SendingPlan, Stages
from ops.estimates.prices import lambda_time
from ops.estimates.quotas import WHOLE_VCPU_MB
from stacks.settings.channels import Mail, memory_faults
from stacks.settings.load import load
from tests.support.docs_pages import Page
from tests.support.stacks.refusals import STAGES


def _ladder() -> list[tuple[dict[str, Any], list[str]]]:
    """The settings of each rung, and its row of the table."""
    page = Page("docs/limits.md")
    settings = [json.loads(block.text) for block in page.blocks("json")]
    rows = re.findall(
        r"^\| ([\d,]+) \| ([\d,]+) \| ([\d.]+) s \| ([\d.,]+)[^|]*\| ([\d.]+) h \| ([\d.]+) \|$",
        page.text,
        re.M,
    )
    return list(zip(settings, [[each.replace(",", "") for each in row] for row in rows], strict=True))


@pytest.mark.parametrize("rung", range(5))
@pytest.mark.parametrize("lane", ["normal", "bulk"])
def test_each_rung_of_the_ladder_passes_synth_and_is_as_fast_as_its_row_says(rung: int, lane: str) -> None:
    settings, (rate, workers, pace, speed, hours, _) = _ladder()[rung]
    stages = _stages(settings)
    found = Stages(stages).lane("prod", "mail", lane)
    plan = SendingPlan(found.senders, Assumed.of("mail"), 500_000)
    assert (found.allowed, found.workers) == (float(rate), int(workers))
    assert found.senders.pace == pytest.approx(float(pace), rel=0.01)
    assert 2 * plan.speed == pytest.approx(float(speed), rel=0.01)
    assert plan.ramp.time_of(500_000) / 3600 == pytest.approx(float(hours), rel=0.02)


@pytest.mark.parametrize("rung", range(5))
def test_a_million_mails_cost_at_each_rung_what_its_row_says(rung: int) -> None:
    settings, row = _ladder()[rung]
    beside_ses, _ = _a_million_mails(_stages(settings))
    assert beside_ses == pytest.approx(float(row[-1]), abs=0.005)


def _rows_of_threads() -> list[tuple[float, ...]]:
    rows = re.findall(
        r"^\| (\d+) \| (\d+) \| (\d+) \| (\d+) MB \| ([\d.]+)[^|]*\| ([\d.]+) \|$",
        Page("docs/limits.md").text,
        re.M,
    )
    assert len(rows) == 14
    return [tuple(map(float, row)) for row in rows]


@pytest.mark.parametrize(("rate", "workers", "at_once", "memory_mb", "speed", "price"), _rows_of_threads())
def test_several_at_a_time_pass_synth_and_are_as_fast_and_cost_as_their_row_says(
    rate: float, workers: float, at_once: float, memory_mb: float, speed: float, price: float
) -> None:
    mail = {
        "messages_per_second": 2 * rate,
        "submits_at_once": int(at_once),
        "memory_mb": int(memory_mb),
        "lanes": {"normal": {"share": 0.5, "maximum_concurrency": int(workers)}},
    }
    found = Stages(_stages({"channels": {"mail": mail}})).lane("prod", "mail", "normal")
    plan = SendingPlan(found.senders, Assumed.of("mail"), 1)
    assert (found.senders.rate, found.at_once) == (rate, at_once)
    assert plan.speed == pytest.approx(speed, rel=0.003)
    seconds = plan.working + plan.waiting
    assert lambda_time(seconds, found.memory_mb) * 1e6 == pytest.approx(price, abs=0.005)


def test_the_largest_lane_alone_reaches_10_000_a_second_only_with_threads() -> None:
    one, two = (_unbound(at_once, memory_mb, 10_000) for at_once, memory_mb in ((1, 256), (2, 272)))
    assert (one.workers_for_rate(), two.workers_for_rate()) == (1396, 780)
    both = _unbound(1, 256, 10_530 / 2)
    assert 2 * both.speed == pytest.approx(10_000, rel=0.001)


def _unbound(at_once: int, memory_mb: int, rate: float | None) -> SendingPlan:
    """As many mails as 1,000 workers send within the rate."""
    senders = Senders(1000, 10, rate, at_once, memory_mb / WHOLE_VCPU_MB)
    return SendingPlan(senders, Assumed.of("mail"), 1)


@pytest.mark.parametrize("memory_mb", [256, 320, 400, 512, 1024])
def test_a_worker_that_never_waits_sends_and_costs_by_its_memory_as_its_row_says(memory_mb: int) -> None:
    (row,) = re.findall(rf"^\| {memory_mb:,} MB \| (\d.*) \|$", Page("docs/limits.md").text, re.M)
    for at_once, cell in zip((1, 2, 5, 10), row.split(" | "), strict=True):
        plan = _unbound(at_once, memory_mb, None)
        cost = lambda_time(plan.working, memory_mb) * 1e6
        refused = [*memory_faults("", memory_mb, Mail.model_fields["max_attachment_bytes"].default, at_once)]
        assert cell == ("refused" if refused else f"{plan.speed / 1000:.1f}, {cost:.2f}")


def test_what_the_readme_says_a_million_mails_cost_is_what_prod_would_pay() -> None:
    (said,) = re.findall(
        r"A million mails a month cost \$([\d.]+) beside SES's\s+\$100 \(\$160 by its plan Essentials\),\s+"
        r"and the stage itself \$([\d.]+)",
        Page("README.md").text,
    )
    assert said == tuple(f"{each:.2f}" for each in _a_million_mails(_stages({})))


def test_the_readmes_idle_month_is_what_prod_would_pay() -> None:
    (said,) = re.findall(r"An idle month costs \$([\d.]+)", Page("README.md").text)
    found = cost(Stages(STAGES), "prod", [], of_settings(Stages(STAGES).settings("prod")))
    assert said == f"{found.dollars:.2f}"


def _stages(changes: dict[str, Any]) -> dict[str, Any]:
    """cdk.json's stages, with `changes` laid over prod."""
    stages: dict[str, Any] = copy.deepcopy(STAGES)
    _merge(stages["prod"], changes)
    return stages


def _a_million_mails(stages: dict[str, Any]) -> tuple[float, float]:
    """Dollars for a million mails of prod, without SES's; and for the stage itself."""
    settings = load(stages, "prod")
    found = cost(Stages(stages), settings.stage, [WantedMessages("mail", 1_000_000)], of_settings(settings))
    (mails,) = found.channels
    return mails.dollars - mails.parts["SES"], found.fixed.dollars


def _merge(section: dict[str, Any], changes: dict[str, Any]) -> None:
    for name, value in changes.items():
        if isinstance(value, dict) and isinstance(section.get(name), dict):
            _merge(section[name], value)
        else:
            section[name] = value
