"""A message's template and its variables as the parts of the message."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
from jinja2 import DictLoader, Template, TemplateError, TemplateNotFound
from jinja2.exceptions import UndefinedError
from msgspec import Struct

from mailroom.aws import clients
from mailroom.content.payloads import Payloads
from mailroom.content.sandbox import BoundedEnvironment, budget
from mailroom.environment import MailSender, SmsSender
from mailroom.errors import Invalid
from mailroom.message.address import has_control
from mailroom.message.message import DEFAULT_TEMPLATE, Templated

FILES = ("subject.txt", "body.html", "body.txt")
"""The parts of a template; a text's has the last alone."""
TOP: Mapping[str, str] = {"mail": "subject.txt", "sms": "body.txt"}
"""The part that each template has, by channel; these are the channels that have templates."""
EXAMPLES = "examples"
"""The folder of a template with items that show it."""
MAX_COMPILED = 64
"""Versions that a process keeps compiled: some 40 KB each."""
MAX_VERSION_BYTES = 1024 * 1024
"""What a published version may have, parts and examples together."""


@dataclass(frozen=True, slots=True)
class Content:
    """A mail's parts; `html` or `text` is None where there is none."""

    subject: str
    html: str | None
    text: str | None


class Version(Struct, frozen=True):
    """A published version of a template: an object of a bucket, which never changes. `parts` are its files
    and those that they refer to, by their paths in the channel's folder; `examples` are items by name; `by`
    is who published it, by AWS, and `at` when (ISO 8601)."""

    channel: str
    name: str
    number: int
    parts: dict[str, str]
    examples: dict[str, dict[str, Any]]
    by: str
    at: str

    @property
    def key(self) -> str:
        return version_key(self.channel, self.name, self.number)


_versions = msgspec.json.Decoder(Version, float_hook=Decimal)  # numbers as an item has them


def read_version(content: bytes) -> Version:
    """The version that an object of the bucket is. Raises msgspec.DecodeError."""
    return _versions.decode(content)


def version_key(channel: str, name: str, number: int) -> str:
    """Where a version lies in the bucket. S3 lists keys in their order, and so versions."""
    return f"{channel}/{name}/{number:06}.json"


class Templates:
    """The templates under one folder: `<name>/subject.txt` with `body.html`, `body.txt` or both; where texts
    alone are sent, `<name>/body.txt`. What they are in another language lies in `<name>/fr/`, all of it.

    Names that start with `_` are shared parts, for `extends` and `include` alone.

    `published` reads the bucket of published versions; None: there are none.
    """

    def __init__(self, root: Path, published: Payloads | None = None) -> None:
        self._root = root
        self._environment = BoundedEnvironment(root)
        self._published = published
        self._versions = lru_cache(MAX_COMPILED)(self._version)
        # Files outside of a bundle may change, as the environment knows.
        self._used = self._variables if root.is_absolute() else lru_cache(MAX_COMPILED)(self._variables)

    def names(self, file: str = "subject.txt") -> list[str]:
        """The templates there are, by the file that each of them has."""
        return sorted(path.parent.name for path in self._root.glob(f"[!_]*/{file}"))

    def render(
        self,
        name: str,
        variables: Mapping[str, Any],
        *,
        locale: str | None = None,
        version: int | None = None,
    ) -> Content:
        """The mail's content. Raises Invalid that names the template or the variable at fault, and botocore's
        errors where a version cannot be read."""
        environment = self._environment_of(name, version)
        shared = {**environment.globals, **variables}
        folder, subject = self._first(environment, name, "subject.txt", locale, shared)
        html, text = (_part(environment, folder, file, shared) for file in ("body.html", "body.txt"))
        if html is None and text is None:
            raise Invalid("template", f"{folder!r} has neither body.html nor body.txt; add one")
        subject = subject.strip()
        if has_control(subject):
            raise Invalid("subject", "the rendered one holds a line break; a variable in it must be one line")
        if not subject:
            raise Invalid("subject", f"the one of template {name!r} came out empty; fill its variables")
        return Content(subject, html, text)

    def text(
        self,
        name: str,
        variables: Mapping[str, Any],
        *,
        locale: str | None = None,
        version: int | None = None,
    ) -> str:
        """A text alone, of `body.txt`. Raises as `render`."""
        environment = self._environment_of(name, version)
        shared = {**environment.globals, **variables}
        return self._first(environment, name, "body.txt", locale, shared)[1]

    def check(self, message: Templated) -> None:
        """Raise Invalid for a template, or a version of one, that is not there or cannot be read."""
        if (name := message.template_name) is None:
            return
        file = TOP[message.event_type]
        if _template(self._environment_of(name, message.template_version), f"{name}/{file}") is None:
            raise self._unknown(name, file)

    def used(self, name: str, *, locale: str | None = None, version: int | None = None) -> frozenset[str]:
        """The variables that a template uses in that language, by itself or in parts that it refers to.
        Raises Invalid for a template that cannot be read."""
        return self._used(name, locale, version)

    def _variables(self, name: str, locale: str | None, version: int | None) -> frozenset[str]:
        environment = self._environment_of(name, version)
        folders = _folders(name, locale)
        folder = next((each for each in folders if _files(environment, each)), name)
        try:
            return environment.variables(_files(environment, folder))
        except (TemplateError, RecursionError) as error:
            raise Invalid("template", f"{folder} cannot be read: {error}") from None

    def check_names(self, message: Templated, *, strict: bool = False) -> None:
        """Raise Invalid for an attribute that is misspelt and that the message's template does not use;
        `strict`: for any that nobody uses. The template is looked at for a doubtful name alone."""
        if not (strict or (message.may_use and message.misspelt())):
            return
        name, used = message.template_name, frozenset[str]()
        if name is not None:
            used = self.used(name, locale=message.locale, version=message.template_version)
        message.check_names(used, strict=strict)

    def _environment_of(self, name: str, version: int | None) -> BoundedEnvironment:
        return self._versions(name, version) if version else self._environment

    def _version(self, name: str, number: int) -> BoundedEnvironment:
        """What renders a published version, which has all that it refers to."""
        if self._published is None:
            raise Invalid("template_version", "is given, and this stage publishes no templates; leave it out")
        ref = self._published.ref(version_key(self._root.name, name, number))
        try:
            content = self._published.read("template_version", ref, MAX_VERSION_BYTES)
        except Invalid:
            raise Invalid("template_version", f"{name!r} has no version {number}; leave it out") from None
        return self._environment.overlay(loader=DictLoader(read_version(content).parts))

    def _first(
        self,
        environment: BoundedEnvironment,
        name: str,
        file: str,
        locale: str | None,
        variables: dict[str, Any],
    ) -> tuple[str, str]:
        """The folder of the language, and this file of it as rendered."""
        for folder in _folders(name, locale):
            if (rendered := _part(environment, folder, file, variables)) is not None:
                return folder, rendered
        raise self._unknown(name, file)

    def _unknown(self, name: str, file: str) -> Invalid:
        missing = (
            "is missing, and so is other content; give a subject with text or html, or a template's name"
        )
        problem = missing if name == DEFAULT_TEMPLATE else f"{name!r} is unknown; use one of"
        return Invalid("template", f"{problem}: {', '.join(self.names(file))}")


def templates_of(settings: MailSender | SmsSender) -> Templates:
    """The templates of a sender's bundle, and those that its stage publishes."""
    bucket = settings.templates_bucket
    return Templates(Path(settings.templates), Payloads(clients.s3(), bucket) if bucket else None)


def _folders(name: str, locale: str | None) -> Iterator[str]:
    """Where a template's files may lie: in the folder of the language, of a more general one, or in its own.
    As RFC 4647, 3.4, shortens a tag: zh-Hant-TW, zh-Hant, zh."""
    subtags = canonical(locale).split("-") if locale else []
    while subtags:
        yield f"{name}/{'-'.join(subtags)}"
        subtags.pop()
        if subtags and len(subtags[-1]) == 1:  # it only says what the subtag after it is
            subtags.pop()
    yield name


def canonical(locale: str) -> str:
    """A language tag as its folder is called: fr, fr-CA, zh-Hant-TW (RFC 5646, 2.1.1)."""
    language, *subtags = locale.split("-")
    forms = {2: str.upper, 4: str.title}
    return "-".join((language.lower(), *(forms.get(len(each), str.lower)(each) for each in subtags)))


def _files(environment: BoundedEnvironment, folder: str) -> list[str]:
    names = (f"{folder}/{file}" for file in FILES)
    return [name for name in names if environment.source(name) is not None]


def _part(environment: BoundedEnvironment, folder: str, file: str, variables: dict[str, Any]) -> str | None:
    name = f"{folder}/{file}"
    template = _template(environment, name)
    return None if template is None else _render(template, name, variables)


def _template(environment: BoundedEnvironment, name: str) -> Template | None:
    try:
        return environment.get_template(name)
    except TemplateNotFound:
        return None
    except (TemplateError, RecursionError) as error:  # the second: of thousands of brackets
        raise Invalid("template", f"{name} cannot be read: {error}") from None


def _render(template: Template, name: str, variables: dict[str, Any]) -> str:
    try:
        context = template.new_context(variables, shared=True)  # as it is: no copy for each of the parts
        with budget():
            return BoundedEnvironment.concat(template.root_render_func(context))
    except UndefinedError as error:
        missing = re.match(r"'(\w+)' is undefined", str(error))
        if missing:
            raise Invalid(missing[1], f"is missing; {name} uses it, so the item must have it") from None
        raise Invalid("template", f"{name}: {error}; check the item's attributes against it") from None
    except Exception as error:  # noqa: BLE001 - whatever a template raises is its own or its variables' fault
        raise Invalid("template", f"{name} failed: {type(error).__name__}: {error}") from None
