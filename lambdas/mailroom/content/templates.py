"""A message's template and its variables as the parts of the message."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from mailroom.aws import clients
from mailroom.content.engine import Engine, TemplateFault
from mailroom.content.payloads import Payloads
from mailroom.content.source import read_source
from mailroom.content.variables import values_of
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
"""Maximum number of published versions that a process keeps compiled."""
MAX_VERSION_BYTES = 1024 * 1024
"""Maximum size of a published version, parts and examples together."""


@dataclass(frozen=True, slots=True)
class Content:
    """Rendered parts of a mail; `html` or `text` is None if the template lacks it."""

    subject: str
    html: str | None
    text: str | None


class Version(Struct, frozen=True):
    """Published version of a template: an object of a bucket, which never changes."""

    channel: str
    name: str
    number: int
    parts: dict[str, str]
    """Sources of the template and of all to which it refers, by their paths in the channel's folder."""
    examples: dict[str, dict[str, Any]]
    """Items by name."""
    by: str
    """Identity that published the version, as AWS names it."""
    at: str
    """Time of the publication, in ISO 8601."""

    @property
    def key(self) -> str:
        return version_key(self.channel, self.name, self.number)


_versions = msgspec.json.Decoder(Version, float_hook=Decimal)  # numbers are read as Decimal, as in an item


def read_version(content: bytes) -> Version:
    """Read the object of a version. Raises msgspec.DecodeError."""
    return _versions.decode(content)


def version_key(channel: str, name: str, number: int) -> str:
    """Return the key of a version in the bucket. S3 lists keys in their order, and so versions."""
    return f"{channel}/{name}/{number:06}.json"


class Templates:
    """Templates of one channel, which lie in one folder.

    A template is a folder with `subject.txt` and `body.html`, `body.txt` or both; of a text message with
    `body.txt` alone. A folder in it, such as `fr`, has all parts in another language. A folder whose name
    begins with `_` has parts for other templates.
    """

    def __init__(self, root: Path, published: Payloads | None = None) -> None:
        """`published` reads the bucket of published versions. None: the stage publishes none."""
        self._root = root
        self._engine = engine_of(root)
        self._published = published
        self._versions = lru_cache(MAX_COMPILED)(self._version)
        # Only the results for a bundle are cached: files outside of a bundle may change.
        self._used = self._variables if root.is_absolute() else lru_cache(MAX_COMPILED)(self._variables)

    def names(self, file: str = "subject.txt") -> list[str]:
        """Return the names of the templates that have a file."""
        return sorted(path.parent.name for path in self._root.glob(f"[!_]*/{file}"))

    def render(
        self,
        name: str,
        variables: Mapping[str, Any],
        *,
        locale: str | None = None,
        version: int | None = None,
    ) -> Content:
        """Render a mail. Raises Invalid that names the template or the variable at fault, and botocore's
        errors if a version cannot be read."""
        engine, values = self._engine_for(name, version), values_of(variables)
        folder, subject = self._first(engine, name, "subject.txt", locale, values)
        html, text = (_rendered(engine, f"{folder}/{file}", values) for file in ("body.html", "body.txt"))
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
        """Render `body.txt` alone, and raise as `render`."""
        engine = self._engine_for(name, version)
        return self._first(engine, name, "body.txt", locale, values_of(variables))[1]

    def check(self, message: Templated) -> None:
        """Raise Invalid for an unknown template or version, and for one that cannot be read."""
        if (name := message.template_name) is None:
            return
        file = TOP[message.event_type]
        engine = self._engine_for(name, message.template_version)
        if f"{name}/{file}" not in engine:
            raise self._unknown(name, file)
        engine.part(f"{name}/{file}")

    def used(self, name: str, *, locale: str | None = None, version: int | None = None) -> frozenset[str]:
        """Return the variables that a template uses in a language, by itself or in parts to which it refers.
        Raises Invalid for a template that cannot be read."""
        return self._used(name, locale, version)

    def _variables(self, name: str, locale: str | None, version: int | None) -> frozenset[str]:
        engine = self._engine_for(name, version)
        folder = next((folder for folder in _folders(name, locale) if _files(engine, folder)), name)
        return engine.variables(_files(engine, folder))

    def check_names(self, message: Templated, *, strict: bool = False) -> None:
        """Raise Invalid for a misspelt attribute that the message's template does not use; if `strict`, for
        any attribute that is not used. The template is read only if a name is doubtful."""
        if not (strict or (message.may_use and message.misspelt())):
            return
        name, used = message.template_name, frozenset[str]()
        if name is not None:
            used = self.used(name, locale=message.locale, version=message.template_version)
        message.check_names(used, strict=strict)

    def _engine_for(self, name: str, version: int | None) -> Engine:
        return self._versions(name, version) if version else self._engine

    def _version(self, name: str, number: int) -> Engine:
        """Load a published version, which has all parts to which it refers."""
        if self._published is None:
            raise Invalid("template_version", "is given, and this stage publishes no templates; leave it out")
        ref = self._published.ref(version_key(self._root.name, name, number))
        try:
            content = self._published.read("template_version", ref, MAX_VERSION_BYTES)
        except Invalid:
            raise Invalid("template_version", f"{name!r} has no version {number}; leave it out") from None
        return engine_of(read_version(content).parts)

    def _first(
        self, engine: Engine, name: str, file: str, locale: str | None, values: Mapping[str, Any]
    ) -> tuple[str, str]:
        """Return the folder of the language, and its rendered file."""
        for folder in _folders(name, locale):
            if (rendered := _rendered(engine, f"{folder}/{file}", values)) is not None:
                return folder, rendered
        raise self._unknown(name, file)

    def _unknown(self, name: str, file: str) -> Invalid:
        missing = (
            "is missing, and so is other content; give a subject with text or html, or a template's name"
        )
        problem = missing if name == DEFAULT_TEMPLATE else f"{name!r} is unknown; use one of"
        return Invalid("template", f"{problem}: {', '.join(self.names(file))}")


def templates_of(settings: MailSender | SmsSender) -> Templates:
    """Return the templates of a sender's bundle, with those that its stage publishes."""
    bucket = settings.templates_bucket
    return Templates(Path(settings.templates), Payloads(clients.s3(), bucket) if bucket else None)


def _folders(name: str, locale: str | None) -> Iterator[str]:
    """Yield the folders that may have a template's files: of the language, of more general ones as RFC 4647,
    3.4, shortens a tag (zh-Hant-TW, zh-Hant, zh), and the template's own."""
    subtags = canonical(locale).split("-") if locale else []
    while subtags:
        yield f"{name}/{'-'.join(subtags)}"
        subtags.pop()
        if subtags and len(subtags[-1]) == 1:
            # A subtag of one letter only introduces the subtag after it, which has just been removed.
            subtags.pop()
    yield name


def canonical(locale: str) -> str:
    """Return the folder name of a language tag: fr, fr-CA, zh-Hant-TW (RFC 5646, 2.1.1)."""
    language, *subtags = locale.split("-")
    forms = {2: str.upper, 4: str.title}
    return "-".join((language.lower(), *(forms.get(len(subtag), str.lower)(subtag) for subtag in subtags)))


def _files(engine: Engine, folder: str) -> list[str]:
    return [name for file in FILES if (name := f"{folder}/{file}") in engine]


def _rendered(engine: Engine, name: str, values: Mapping[str, Any]) -> str | None:
    return engine.render(name, values) if name in engine else None


def engine_of(templates: Path | Mapping[str, str]) -> Engine:
    """Return the engine that renders the templates of a folder, or these sources by their names."""
    if isinstance(templates, Mapping):
        return Engine(templates.get, lambda: sorted(templates))
    load = _loader(templates)
    if templates.is_absolute():  # an absolute path is outside of a bundle, and its files may change
        return Engine(load, lambda: _names(templates), reload=True)
    load, names = cache(load), cache(lambda: frozenset(_names(templates)))
    return Engine(lambda name: load(name) if name in names() else None, names)


def _loader(root: Path) -> Callable[[str], str | None]:
    def load(name: str) -> str | None:
        path = root / name
        # A name must not lead out of the folder.
        inside = "\0" not in name and not {"", ".", ".."} & {*name.replace("\\", "/").split("/")}
        try:
            return read_source(path) if inside and path.is_file() else None
        except UnicodeDecodeError:
            raise TemplateFault("template", f"{name} is not UTF-8; save it as UTF-8", name) from None

    return load


def _names(root: Path) -> list[str]:
    files = (path for path in root.rglob("*") if path.suffix in {".html", ".txt"})
    return sorted(path.relative_to(root).as_posix() for path in files)
