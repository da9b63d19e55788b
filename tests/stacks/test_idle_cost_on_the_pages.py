"""The price of a stage without messages, as README and docs/reference/limits.md quote it."""

import re

from mailroom.providers.ses import PLANS
from mailroom_ops.costs.cost import month_cost
from mailroom_ops.costs.prices import ALARM, FREE_ALARMS
from mailroom_stacks.settings.load import load
from tests.support import ROOT
from tests.support.stacks.refusals import with_settings
from tests.support.stacks.variants import variant

PROD = {"monitoring.canary": True}
"""Setting of the stage `prod` of cdk.json that the tests' stages lack."""
WORDS = {"alarms": "alarms {}", "dashboards": "dashboards {}", "metrics": "metrics {}", "keys": "KMS keys {}"}
WORDS |= {
    "secrets": "secrets {}",
    "polling of queues": "polling of seven queues {}",
    "canaries": "canaries {}",
}
WORDS |= {"rounds of release": "rounds of `release` {}"}


def test_the_pages_quote_the_price_of_the_stage_prod_without_messages_and_its_parts() -> None:
    templates = [stack.body for stack in variant(PROD, "prod").stacks.values()]
    parts = month_cost(load(with_settings(PROD, "prod"), "prod"), templates, {}).stage_parts
    page = " ".join((ROOT / "docs" / "reference" / "limits.md").read_text().split())
    (sentence,) = re.findall(r"Without messages, the stage `prod`.*? less than 10\.", page)
    assert [
        words for name, words in WORDS.items() if words.format(f"{parts[name]:.2f}") not in sentence
    ] == []
    assert {*WORDS} == {name for name, price in parts.items() if price}
    total = f"{sum(parts.values()):.2f}"
    assert f"costs **{total}** US dollars a month" in sentence
    assert f"({round(parts['alarms'] / ALARM) + FREE_ALARMS} metrics;" in sentence
    assert f"A stage without messages costs ${total} a" in " ".join((ROOT / "README.md").read_text().split())


def test_the_pages_quote_the_prices_of_ses_with_and_without_a_plan() -> None:
    page, readme = (
        " ".join((ROOT / name).read_text().split()) for name in ("docs/reference/limits.md", "README.md")
    )
    new, old = PLANS["essentials"], PLANS["none"]
    assert f"plan Essentials costs ${new * 1e3:.2f} for a thousand mails" in page
    assert f"an account without a plan pays ${old * 1e3:.2f}" in page
    assert f"SES's ${new * 1e6:.0f} (${old * 1e6:.0f} without a plan;" in readme
