"""Texts of the page behind an unsubscribe link, by language and brand."""

import re
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, Field

from mailroom.unsubscribe.words import BUILT_IN
from mailroom_stacks.settings.sections import Section

MAX_WORDS = 500
MAX_NAME = 100
_PLACEHOLDERS = ("recipient", "topic", "brand")


def _short(text: str, longest: int) -> str:
    if not text.strip() or len(text) > longest or not text.isprintable():
        raise ValueError(f"is not 1 to {longest} printable characters")
    return text


def _words(text: str) -> str:
    for name in re.findall(r"\{([^{}]*)\}", _short(text, MAX_WORDS)):
        if name not in _PLACEHOLDERS:
            placeholders = ", ".join(f"{{{placeholder}}}" for placeholder in _PLACEHOLDERS)
            raise ValueError(f"has {{{name}}}, and nothing stands for it; use {placeholders}")
    return text


# Each part has its usual case, so that a language has a single name.
Language = Annotated[str, Field(pattern=r"^[a-z]{2,3}(-[A-Z][a-z]{3})?(-([A-Z]{2}|[0-9]{3}))?$")]
Name = Annotated[str, AfterValidator(partial(_short, longest=MAX_NAME))]
if TYPE_CHECKING:
    Word = str
else:
    Word = Literal[tuple(BUILT_IN["en"])]


class Topic(Section):
    """Name of a topic on the page."""

    titles: dict[Language, Name] = Field(default_factory=dict)
    """Titles by language; else in the default language, else the topic itself."""
    brand: Name | None = None
    """Brand of the topic; null: that of the page."""


class Unsubscribe(Section):
    """Page behind the links by which recipients opt out."""

    brand: Name | None = None
    """Name of the sender on the page; null: the page shows none."""
    default_language: Language = "en"
    """Language of the page for people who prefer none of `languages`."""
    languages: dict[Language, dict[Word, Annotated[str, AfterValidator(_words)]]] = Field(
        default_factory=dict, max_length=50
    )
    """Languages beside the default one, each with the words that replace the built-in ones of en and de, or
    else of the default language."""
    topics: dict[Annotated[str, Field(min_length=1, max_length=64)], Topic] = Field(
        default_factory=dict, max_length=500
    )
    """Names of topics on the page, by the topics of messages. Without an entry the page shows the topic as
    messages write it."""

    def page(self) -> dict[str, object]:
        """Return the settings that differ from the built-in page, for its function."""
        return self.model_dump(exclude_defaults=True, exclude_none=True)


def unsubscribe_faults(page: Unsubscribe) -> Iterator[str]:
    """Yield violations of the rules of the section `api.unsubscribe`."""
    language = page.default_language
    if language not in BUILT_IN and not page.languages.get(language):
        yield (
            f"api.unsubscribe.languages.{language}: has no words, and only {' and '.join(BUILT_IN)} are "
            "built in; add its words."
        )
