"""The first graphs of the dashboard belong to the alarms for which docs/alarms pages a person."""

import re

from mailroom_stacks.dashboard.overview import URGENT
from tests.support import ROOT
from tests.support.stacks.alarm import alarms
from tests.support.stacks.dashboard import widgets
from tests.support.stacks.templates import Templates

PAGE = (ROOT / "docs" / "how-to" / "operate.md").read_text()


def alarms_in_table(after: str) -> set[str]:
    """The kinds of the alarms in the first table behind a sentence's beginning."""
    (_, _, rest) = PAGE.partition(f"\n{after}")
    assert rest, f"the page lacks {after!r}"
    rows = re.findall(r"^\| (`.*?) \|", rest.partition("\n\n")[2].partition("\n\n")[0], re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`([^`]+)`", row)}
    return {re.sub(r"^(<\w+>|dispatch|outcomes|index-messages)-", "", name) for name in named}


def test_the_table_of_urgent_alarms_on_the_page_lists_those_that_the_dashboard_shows_first() -> None:
    assert alarms_in_table("These alarms page somebody.") == set(URGENT)


def test_every_alarm_is_in_exactly_one_of_the_two_tables_of_urgent_and_other_alarms(whole: Templates) -> None:
    urgent, other = (
        alarms_in_table("These alarms page somebody."),
        alarms_in_table("These alarms can wait for working hours."),
    )
    assert not urgent & other
    assert {each.name for each in alarms(whole) if not each.name.endswith((*urgent, *other))} == set()


def test_the_dashboard_shows_exactly_the_urgent_alarms_under_act_now(whole: Templates) -> None:
    (shown,) = (
        each for each in widgets(whole, "alarm") if each["properties"]["title"] == "Alarms that ring: act now"
    )
    names = {arn.rpartition(":")[2] for arn in shown["properties"]["alarms"]}
    urgent = tuple(f"-{kind}" for kind in alarms_in_table("These alarms page somebody."))
    assert names == {each.name for each in alarms(whole) if each.name.endswith(urgent)}
