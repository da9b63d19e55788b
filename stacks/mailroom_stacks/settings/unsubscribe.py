"""Texts of the pages behind the links in mails, by language and brand."""

import re
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, Field

from mailroom.unsubscribe.words import BUILT_IN
from mailroom_stacks.settings.sections import Section

MAX_WORDS = 500
MAX_NAME = 100
MAX_SENTENCE = 300
_PLACEHOLDERS = ("recipient", "topic", "brand")


def _short(text: str, longest: int) -> str:
    if not text.strip() or len(text) > longest or not text.isprintable():
        raise ValueError(f"must have 1 to {longest} printable characters")
    return text


def _words(text: str) -> str:
    for name in re.findall(r"\{([^{}]*)\}", _short(text, MAX_WORDS)):
        if name not in _PLACEHOLDERS:
            placeholders = ", ".join(f"{{{placeholder}}}" for placeholder in _PLACEHOLDERS)
            raise ValueError(f"has the unknown placeholder {{{name}}}; use {placeholders}")
    return text


# Only the usual case of each part is valid, so that a language has a single spelling.
Language = Annotated[str, Field(pattern=r"^[a-z]{2,3}(-[A-Z][a-z]{3})?(-([A-Z]{2}|[0-9]{3}))?$")]
Name = Annotated[str, AfterValidator(partial(_short, longest=MAX_NAME))]
Sentence = Annotated[str, AfterValidator(partial(_short, longest=MAX_SENTENCE))]
if TYPE_CHECKING:
    Word = str
else:
    Word = Literal[tuple(BUILT_IN["en"])]


class Topic(Section):
    """Display of a topic on the page."""

    titles: dict[Language, Name] = Field(default_factory=dict)
    """Titles by language. Without a title in the language of the page, the page shows the title in the
    default language, or else the topic itself."""
    sentences: dict[Language, Sentence] = Field(default_factory=dict)
    """Sentences about the topic by language, for the page of preferences."""
    brand: Name | None = None
    """Brand of the topic; null means the brand of the page."""


class Unsubscribe(Section):
    """Page behind the links by which recipients opt out."""

    brand: Name | None = None
    """Name of the sender that the page shows; null shows none."""
    default_language: Language = "en"
    """Language of the page for people who prefer none of `languages`."""
    languages: dict[Language, dict[Word, Annotated[str, AfterValidator(_words)]]] = Field(
        default_factory=dict, max_length=50
    )
    """Further languages of the page. The words of an entry replace the built-in words of en and de; an entry
    for another language is completed by the words of the default language."""
    topics: dict[Annotated[str, Field(min_length=1, max_length=64)], Topic] = Field(
        default_factory=dict, max_length=500
    )
    """Titles and brands of topics on the page, by the topics of messages. A topic without an entry is shown
    unchanged."""

    def page(self) -> dict[str, object]:
        """Return the settings that differ from the built-in page, in the form that the function reads."""
        return self.model_dump(exclude_defaults=True, exclude_none=True)


def unsubscribe_faults(page: Unsubscribe) -> Iterator[str]:
    """Yield violations of the rules of the section `api.unsubscribe`."""
    language = page.default_language
    if language not in BUILT_IN and not page.languages.get(language):
        yield (
            f"api.unsubscribe.languages.{language}: has no words, and only {' and '.join(BUILT_IN)} "
            "have built-in words; add its words."
        )
