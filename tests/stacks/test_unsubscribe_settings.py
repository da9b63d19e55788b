"""Settings of the page behind an unsubscribe link, and the resources that synth creates for it."""

import json
from typing import Any

import msgspec
import pytest

from mailroom.unsubscribe.page import PageSettings, Topic
from mailroom_stacks.settings.load import load
from tests.support.stacks.refusals import refusal_of_setting, with_settings
from tests.support.stacks.templates import Templates
from tests.support.stacks.variants import PAGE

KEY = "api.unsubscribe"


def page_of(said: dict[str, Any]) -> PageSettings:
    """Return the settings that the function reads."""
    page = load(with_settings({KEY: said}), "dev").api.unsubscribe.page()
    return msgspec.json.decode(json.dumps(page), type=PageSettings)


def test_the_unsubscribe_function_can_read_the_settings_of_its_page() -> None:
    assert page_of(PAGE) == PageSettings(
        brand="Example Books",
        default_language="de",
        languages={"en": {}, "fr": PAGE["languages"]["fr"]},
        topics={"news": Topic({"de": "Neues", "fr": "Nouvelles"}), "deals": Topic(brand="Shop B")},
    )
    assert page_of({"brand": "Example Books"}) == PageSettings(brand="Example Books")


def test_the_unsubscribe_function_has_a_variable_for_its_page_only_if_the_settings_define_a_page(
    dev: Templates, everything: Templates
) -> None:
    before = dev["api"].environment("mailroom-dev-unsubscribe")
    assert everything["api"].environment("mailroom-dev-unsubscribe").keys() - before.keys() == {
        "UNSUBSCRIBE_PAGE"
    }


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("languages.de", {"asking_titel": "?"}, "languages.de.asking_titel: 'asking_titel' should be "),
        (
            "languages.de",
            {"asking": "{name} …"},
            "languages.de.asking: '{name} …' has the unknown placeholder {name}; use ",
        ),
        (
            "languages.de",
            {"asking": "{0}"},
            "languages.de.asking: '{0}' has the unknown placeholder {0}; use",
        ),
        (
            "languages.de",
            {"asking": " "},
            "languages.de.asking: ' ' must have 1 to 500 printable characters.",
        ),
        ("languages.de", {"asking": "a" * 501}, "languages.de.asking: 'aaa"),
        ("languages.german", {}, "languages.german: 'german' should match pattern '^[a-z]{2,3}"),
        (
            "default_language",
            "fr",
            "languages.fr: has no words, and only en and de have built-in words; add its words.",
        ),
        ("default_language", "Deutsch", "default_language: 'Deutsch' should match pattern '^[a-z]{2,3}"),
        ("brand", "", "brand: '' must have 1 to 100 printable characters."),
        ("brand", "a\u202eb", "brand: 'a\\u202eb' must have 1 to 100 printable characters."),
    ],
)
def test_an_invalid_setting_of_the_unsubscribe_page_is_refused_with_the_valid_form(
    key: str, value: object, said: str
) -> None:
    field, _, name = key.partition(".")
    refused = refusal_of_setting(KEY, {field: {name: value} if name else value})
    assert refused.startswith(f"mailroom.dev.{KEY}.{said}")
