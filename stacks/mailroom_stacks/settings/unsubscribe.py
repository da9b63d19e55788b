"""What the page behind an unsubscribe link says, by language and brand."""

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


def _short(text: str, most: int) -> str:
    if not text.strip() or len(text) > most or not text.isprintable():
        raise ValueError(f"is not 1 to {most} printable characters")
    return text


def _words(text: str) -> str:
    for name in re.findall(r"\{([^{}]*)\}", _short(text, MAX_WORDS)):
        if name not in _PLACEHOLDERS:
            known = ", ".join(f"{{{each}}}" for each in _PLACEHOLDERS)
            raise ValueError(f"has {{{name}}}, and nothing stands for it; use {known}")
    return text


# The usual case of each part, so that no language has two names.
Language = Annotated[str, Field(pattern=r"^[a-z]{2,3}(-[A-Z][a-z]{3})?(-([A-Z]{2}|[0-9]{3}))?$")]
Name = Annotated[str, AfterValidator(partial(_short, most=MAX_NAME))]
if TYPE_CHECKING:
    Word = str
else:
    Word = Literal[tuple(BUILT_IN["en"])]


class Topic(Section):
    """How the page names a topic."""

    titles: dict[Language, Name] = Field(default_factory=dict)
    """Titles by language; else in the default language, else the topic itself."""
    brand: Name | None = None
    """The brand that the topic belongs to; null: the page's."""


class Unsubscribe(Section):
    """The page behind the links by which recipients opt out."""

    brand: Name | None = None
    """Who sends, as the page names them; null: the page names nobody."""
    default_language: Language = "en"
    """The page's language for whoever prefers none of `languages`."""
    languages: dict[Language, dict[Word, Annotated[str, AfterValidator(_words)]]] = Field(
        default_factory=dict, max_length=50
    )
    """Languages beside the default one, each with the words that replace the built-in ones of en and de, or
    else of the default language."""
    topics: dict[Annotated[str, Field(min_length=1, max_length=64)], Topic] = Field(
        default_factory=dict, max_length=500
    )
    """How the page names topics, by what messages call them; others are shown as they are called."""

    def page(self) -> dict[str, object]:
        """What the function has to know beside the built-in words; nothing: empty."""
        return self.model_dump(exclude_defaults=True, exclude_none=True)


def unsubscribe_faults(page: Unsubscribe) -> Iterator[str]:
    """Rules of the section `api.unsubscribe`."""
    language = page.default_language
    if language not in BUILT_IN and not page.languages.get(language):
        yield (
            f"api.unsubscribe.languages.{language}: has no words, and only {' and '.join(BUILT_IN)} are "
            "built in; add its words."
        )
