"""A campaign's own Python file: loaded once, and held to its word."""

from pathlib import Path

import pytest
from msgspec import structs

from mailroom.campaigns.audience import Found, Page, Recipient, Recipients
from mailroom.campaigns.definition import Definition, Module, Modules, Postgresql, read
from mailroom.errors import Invalid

OWN = Definition("weekly-news", "mail", Module(), module="campaigns/weekly-news/campaign.py")
PAGE = Page(None, 10, "r", "2026-11-18T13:00:00Z")
PEOPLE = Recipients([Recipient("1"), Recipient("2")], "r", "2026-11-18T13:00:00Z")
GOOD = """
from mailroom.campaigns import Found, Page, Recipient, Recipients

loads = []
loads.append(1)


def recipients(page: Page) -> Found:
    return Found([Recipient(f"{page.run}-{at}") for at in range(page.size)], cursor=None)


def compose(recipients: Recipients) -> dict[str, dict[str, object]]:
    return {each.key: {"loads": len(loads), "of": len(recipients)} for each in recipients}
"""


def modules(folder: Path, text: str) -> Modules:
    path = folder / "campaigns" / "weekly-news" / "campaign.py"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return Modules(folder)


def test_a_campaigns_python_file_is_loaded_once_and_both_of_its_functions_are_called(tmp_path: Path) -> None:
    own = modules(tmp_path, GOOD)
    assert len(own.recipients(OWN, PAGE).recipients) == 10
    assert own.compose(OWN, PEOPLE) == {"1": {"loads": 1, "of": 2}, "2": {"loads": 1, "of": 2}}
    assert own.compose(OWN, PEOPLE) == {"1": {"loads": 1, "of": 2}, "2": {"loads": 1, "of": 2}}


def test_a_campaign_without_a_python_file_or_a_function_compose_composes_no_attributes(
    tmp_path: Path,
) -> None:
    own = modules(tmp_path, "")
    assert own.compose(OWN, PEOPLE) is None
    assert own.compose(structs.replace(OWN, module=None), PEOPLE) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no recipients(page); add it"),
        ("def recipients(page): return []", "recipients: returned list; use Found"),
    ],
)
def test_a_module_is_refused_if_its_function_recipients_is_missing_or_returns_a_list(
    tmp_path: Path, text: str, said: str
) -> None:
    with pytest.raises(Invalid) as fault:
        modules(tmp_path, text).recipients(OWN, PAGE)
    assert said in str(fault.value)


def test_an_audience_from_code_is_refused_if_the_campaign_has_no_python_file() -> None:
    with pytest.raises(Invalid, match=r"no campaign\.py"):
        Modules().recipients(structs.replace(OWN, module=None), PAGE)


@pytest.mark.parametrize(
    ("composed", "problem"),
    [
        ("[{}]", "returned list; use a mapping by the recipients' keys"),
        ("{1: {}, 2: {}}", "returned 2 unknown keys; use the keys of the recipients"),
        ("{'1': {}, '99': {}}", "returned 1 unknown key;"),
    ],
)
def test_a_result_of_compose_that_is_not_a_mapping_by_the_keys_of_the_recipients_is_refused(
    tmp_path: Path, composed: str, problem: str
) -> None:
    own = modules(tmp_path, f"def compose(recipients): return {composed}")
    with pytest.raises(Invalid, match=f"compose: {problem}"):
        own.compose(OWN, PEOPLE)


def test_an_error_in_a_campaigns_python_file_is_raised_at_each_call(tmp_path: Path) -> None:
    own = modules(tmp_path, "raise ZeroDivisionError")
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            own.compose(OWN, PEOPLE)


def test_a_database_connection_of_a_module_is_refused_if_the_stage_has_no_databases() -> None:
    for asked in (PAGE, PEOPLE):
        with pytest.raises(LookupError, match="have no database 'app'"):
            asked.connection("app")


def test_the_definitions_of_campaigns_in_a_bundle_are_read_with_their_audiences(tmp_path: Path) -> None:
    path = tmp_path / "campaigns.json"
    path.write_text(
        '{"a": {"name": "a", "channel": "sms", "attributes": {"text": "hi"}, "audience":'
        ' {"kind": "postgresql", "database": "app", "query": "SELECT 1", "key": "id", "columns": ["to"]}}}'
    )
    assert read(path) == {
        "a": Definition("a", "sms", Postgresql("app", "SELECT 1", "id", ("to",)), attributes={"text": "hi"})
    }
    assert Found([]).cursor is None
