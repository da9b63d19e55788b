"""The prices of stages without messages, as README and docs/reference/limits.md quote them."""

import re
from collections.abc import Mapping

from mailroom.providers.ses import PLANS
from mailroom_ops.costs.cost import month_cost
from mailroom_ops.costs.prices import (
    ALARM,
    CUSTOM_METRIC,
    DASHBOARD,
    FREE_ALARMS,
    FREE_METRICS,
    FREE_SQS_REQUESTS,
    SQS_REQUEST,
)
from mailroom_ops.setup.init import IDLE
from mailroom_stacks.settings.load import load
from tests.support import ROOT
from tests.support.stacks.refusals import REMOVED, with_settings
from tests.support.stacks.variants import variant

PROD = {"monitoring": {"level": "full", "canary": True}}
"""Settings of the stage `prod` of cdk.json, from which the tests' stages differ."""
MAIL_ALONE = {"sms": None, "channels.sms": REMOVED, "fax": None, "monitoring": {}}
WORDS = {
    "alarms": "alarms {}",
    "metrics": "metrics {}",
    "keys": "KMS keys {}",
    "secrets": "secrets {}",
    "canaries": "canaries {}",
    "rounds of release": "rounds of `release` {}",
}
PAGE = " ".join((ROOT / "docs" / "reference" / "limits.md").read_text().split())


def parts_of(changes: Mapping[str, object], stage: str) -> dict[str, float]:
    """Return the price of a month without messages, by its parts."""
    templates = [stack.body for stack in variant(changes, stage).stacks.values()]
    parts = month_cost(load(with_settings(changes, stage), stage), templates, {}).stage_parts
    return {name: price for name, price in parts.items() if price}


def check_sentence(sentence: str, parts: Mapping[str, float], queues: str) -> None:
    """Check that a sentence quotes each part of a price."""
    words = {**WORDS, "polling of queues": f"polling of {queues} queues {{}}"}
    assert [name for name in parts if words[name].format(f"{parts[name]:.2f}") not in sentence] == []


def test_the_pages_quote_the_price_of_a_stage_of_mail_alone_and_its_parts() -> None:
    parts = parts_of(MAIL_ALONE, "dev")
    total = f"{sum(parts.values()):.2f}"
    (sentence,) = re.findall(
        rf"a stage of mail alone costs \*\*{total}\*\* US dollars a month.*?`release` 0\.12\.", PAGE
    )
    check_sentence(sentence, parts, "four")
    assert f"A stage of mail alone costs ${total} a" in " ".join((ROOT / "README.md").read_text().split())
    assert total == f"{IDLE['minimal']:.2f}"
    assert "less than six US dollars a month" in (ROOT / "CHANGELOG.md").read_text()
    assert sum(parts.values()) < 6


def test_the_pages_quote_the_price_of_the_stage_prod_and_its_parts() -> None:
    parts = parts_of(PROD, "prod")
    (sentence,) = re.findall(rf"costs \*\*{sum(parts.values()):.2f}\*\*: alarms.*?`release` 0\.19\.", PAGE)
    check_sentence(sentence, parts, "seven")


def test_the_pages_quote_how_much_more_a_stage_costs_without_the_free_allowances_of_its_account() -> None:
    free = FREE_ALARMS * ALARM + FREE_METRICS * CUSTOM_METRIC + DASHBOARD + FREE_SQS_REQUESTS * SQS_REQUEST
    assert f"in the same account costs up to {free:.2f} more" in PAGE


def test_the_pages_quote_the_prices_of_ses_with_and_without_a_plan() -> None:
    page, readme = (
        " ".join((ROOT / name).read_text().split()) for name in ("docs/reference/limits.md", "README.md")
    )
    new, old = PLANS["essentials"], PLANS["none"]
    assert f"plan Essentials costs ${new * 1e3:.2f} for a thousand mails" in page
    assert f"an account without a plan pays ${old * 1e3:.2f}" in page
    assert f"SES's ${new * 1e6:.0f} (${old * 1e6:.0f} without a plan;" in readme
