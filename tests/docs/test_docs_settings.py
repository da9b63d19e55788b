"""docs/reference/settings.md is made of the code, and the settings that other pages name are there."""

import re

from tests.support.docs_pages import Page
from tests.support.settings_page import PAGE, settings_of, with_new_tables

KEYS = dict(settings_of())
SECTIONS = "|".join({key.partition(".")[0] for key in KEYS})
TABLES = ("channels", "lanes", "databases", "topics", "overrides", "waiting_minutes", "languages")
"""Settings whose next part is a name that the deployer gives."""


def test_the_page_of_settings_equals_the_generated_one() -> None:
    text = PAGE.read_text()
    assert with_new_tables(text) == text, "run: make schema"


def test_every_setting_has_a_description() -> None:
    assert [key for key, field in KEYS.items() if not field.description] == []


def test_the_settings_in_the_readme_exist() -> None:
    named = {span for span in Page("README.md").spans() if re.fullmatch(rf"({SECTIONS})(\.\w+)+", span)}
    assert {"mail.senders", "monitoring.emails", "channels.mail.on_unknown"} <= named
    known = {re.sub(r"<\w+>", "*", key) for key in KEYS}
    wrong = [key for key in named if not any(f"{each}.".startswith(f"{_general(key)}.") for each in known)]
    assert wrong == []


def _general(key: str) -> str:
    """The key with `*` in place of names."""
    parts = key.split(".")
    before = ["", *parts]
    return ".".join("*" if ahead in TABLES else part for ahead, part in zip(before, parts, strict=False))
