"""Renders the parts of a message from its template and its variables."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from mailroom.aws import clients
from mailroom.clock import Clock
from mailroom.content.engine import MAX_RENDERED_BYTES, Engine
from mailroom.content.payloads import Payloads
from mailroom.content.variables import values_of
from mailroom.environment import MailSender, SmsSender
from mailroom.errors import Invalid
from mailroom.message.address import has_control
from mailroom.message.message import DEFAULT_TEMPLATE, Templated

FILES = ("subject.txt", "body.html", "body.txt")
"""Names of a template's files; a template of text messages has only the last."""
TOP: Mapping[str, str] = {"mail": "subject.txt", "sms": "body.txt"}
"""Name of the file that each template must have, by channel. Other channels do not have templates."""
EXAMPLES = "examples"
"""Name of a template's folder with example items."""
ATTACHED = "files"
"""Name of a mail template's folder with files that are attached to each of its mails."""
MAX_ATTACHED_BYTES = 700 * 1024
"""Maximum number of bytes of a template's attached files, so that they fit into a published version."""
MAX_COMPILED = 64
"""Maximum number of published versions that a process caches."""
MAX_VERSION_BYTES = 1024 * 1024
"""Maximum number of bytes of a published version, including its examples and attached files."""
MAX_READ = 8
"""Maximum number of templates whose attached files a process caches."""
FRESH_SECONDS = 1
"""Seconds until a process looks again for changed files of templates that are not in a bundle."""


@dataclass(frozen=True, slots=True)
class Content:
    """Rendered parts of a mail; `html` or `text` is None if the template lacks it."""

    subject: str
    html: str | None
    text: str | None
    attached: Mapping[str, bytes] = field(default_factory=dict)
    """Files of the template that are attached to the mail, by name."""


class Version(Struct, frozen=True):
    """Published version of a template: an object in a bucket that never changes."""

    channel: str
    name: str
    number: int
    parts: dict[str, str]
    """Sources of the template and of all templates that it uses, by path in the channel's folder."""
    examples: dict[str, dict[str, Any]]
    """Example items by name."""
    by: str
    """ARN of the AWS identity that published the version."""
    at: str
    """Time of the publication, in ISO 8601."""
    attached: dict[str, bytes] = {}
    """Attached files by name."""

    @property
    def key(self) -> str:
        return version_key(self.channel, self.name, self.number)


_versions = msgspec.json.Decoder(Version, float_hook=Decimal)  # numbers are read as Decimal, as in an item


def read_version(content: bytes) -> Version:
    """Return the version in the content of an object. Raises msgspec.DecodeError."""
    return _versions.decode(content)


def version_key(channel: str, name: str, number: int) -> str:
    """Return the key of a version in the bucket. Numbers have leading zeros, so that S3 lists the versions in
    order."""
    return f"{channel}/{name}/{number:06}.json"


class Templates:
    """Templates of one channel, in one folder.

    A template is a folder with `subject.txt` and `body.html`, `body.txt` or both. A template of text messages
    has only `body.txt`. A subfolder, such as `fr`, contains all files in another language. A folder whose
    name begins with `_` contains files that other templates use.
    """

    def __init__(self, root: Path, published: Payloads | None = None, clock: Clock = time.monotonic) -> None:
        """`published` reads the bucket with published versions; it is None if the stage does not publish
        templates."""
        self._root = root
        self._published = published
        self._clock = clock
        self._changed, self._read_at = self._state(), clock()
        self._engine = engine_of(root)
        self._versions = lru_cache(MAX_COMPILED)(self._version)
        self._attached = lru_cache(MAX_READ)(self._read_attached)

    def names(self, file: str = "subject.txt") -> list[str]:
        """Return the names of the templates that contain `file`."""
        paths = (name.split("/") for name in self._deployed().sources)
        return sorted(path[0] for path in paths if path[1:] == [file] and not path[0].startswith("_"))

    def render(
        self,
        name: str,
        variables: Mapping[str, Any],
        *,
        locale: str | None = None,
        version: int | None = None,
    ) -> Content:
        """Return the rendered parts of a mail. Raises Invalid for the invalid template or variable, and
        botocore's errors if a published version cannot be read."""
        engine = self._engine_for(name, version)
        folder = self._folder(engine, name, "subject.txt", locale)
        files = _files(engine, folder)
        if len(files) == 1:
            raise Invalid("template", f"{folder!r} has neither body.html nor body.txt; add one")
        rendered = dict(zip(files, engine.render_together(files, values_of(variables)), strict=True))
        subject, html, text = (rendered.get(f"{folder}/{file}") for file in FILES)
        subject = (subject or "").strip()
        if has_control(subject):
            raise Invalid("subject", "holds a line break when rendered; its variables must be one line each")
        if not subject:
            raise Invalid("subject", f"is empty after rendering template {name!r}; check its variables")
        return Content(subject, html, text, self._files_of(name, version))

    def text(
        self,
        name: str,
        variables: Mapping[str, Any],
        *,
        locale: str | None = None,
        version: int | None = None,
    ) -> str:
        """Return the rendered `body.txt`. Raises the same errors as `render`."""
        engine = self._engine_for(name, version)
        folder = self._folder(engine, name, "body.txt", locale)
        return engine.render(f"{folder}/body.txt", values_of(variables))

    def check(self, message: Templated) -> None:
        """Raise Invalid if the message's template or version is unknown or cannot be parsed."""
        if (name := message.template_name) is None:
            return
        file = TOP[message.event_type]
        engine = self._engine_for(name, message.template_version)
        if f"{name}/{file}" not in engine:
            raise self._unknown(name, file)
        engine.part(f"{name}/{file}")

    def used(self, name: str, *, locale: str | None = None, version: int | None = None) -> frozenset[str]:
        """Return the variables that a template uses in a language, directly or in other templates that it
        uses. Raises Invalid for a template that cannot be parsed."""
        engine = self._engine_for(name, version)
        files = next(filter(None, (_files(engine, folder) for folder in _folders(name, locale))), ())
        return engine.variables(*files)

    def check_names(self, message: Templated, *, strict: bool = False) -> None:
        """Raise Invalid for a misspelt attribute that the message's template does not use; if `strict`, for
        any attribute that is not used. The template is only read if it is needed for this check."""
        if not (strict or (message.may_use and message.misspelt())):
            return
        name, used = message.template_name, frozenset[str]()
        if name is not None:
            used = self.used(name, locale=message.locale, version=message.template_version)
        message.check_names(used, strict=strict)

    def _engine_for(self, name: str, version: int | None) -> Engine:
        return self._versions(name, version)[0] if version else self._deployed()

    def _files_of(self, name: str, version: int | None) -> Mapping[str, bytes]:
        """Return the attached files. Those of a version are only read again if it has some."""
        return self._attached(name, version) if not version or self._versions(name, version)[1] else {}

    def _read_attached(self, name: str, version: int | None) -> Mapping[str, bytes]:
        return self._read(name, version).attached if version else attached_files(self._root / name)

    def _deployed(self) -> Engine:
        """Return the engine for the folder. Only the files of a bundle, whose path is relative, never change;
        other files are read again if one of them has changed."""
        if self._root.is_absolute() and self._clock() - self._read_at >= FRESH_SECONDS:
            self._read_at = self._clock()
            if (changed := self._state()) != self._changed:
                self._changed, self._engine = changed, engine_of(self._root)
                self._attached.cache_clear()
        return self._engine

    def _state(self) -> list[tuple[Path, int, int]]:
        """Return the files in a folder outside of a bundle, with the times of their last changes in
        nanoseconds, and their sizes."""
        paths = _paths(self._root) if self._root.is_absolute() else ()
        return [(path, (state := path.stat()).st_mtime_ns, state.st_size) for path in paths]

    def _version(self, name: str, number: int) -> tuple[Engine, bool]:
        """Return the engine for a published version, which contains all templates that it uses, and whether
        the version has attached files."""
        version = self._read(name, number)
        return engine_of(version.parts), bool(version.attached)

    def _read(self, name: str, number: int) -> Version:
        if self._published is None:
            raise Invalid("template_version", "is set, but this stage does not publish templates; remove it")
        ref = self._published.ref(version_key(self._root.name, name, number))
        try:
            content = self._published.read("template_version", ref, MAX_VERSION_BYTES)
        except Invalid:
            raise Invalid("template_version", f"{name!r} has no version {number}; leave it out") from None
        return read_version(content)

    def _folder(self, engine: Engine, name: str, file: str, locale: str | None) -> str:
        """Return the folder for the language, which has the file. Raises Invalid if there is none."""
        for folder in _folders(name, locale):
            if f"{folder}/{file}" in engine:
                return folder
        raise self._unknown(name, file)

    def _unknown(self, name: str, file: str) -> Invalid:
        missing = "is missing, and so is other content; set subject and text or html, or use a template"
        problem = missing if name == DEFAULT_TEMPLATE else f"{name!r} is unknown; use one of"
        return Invalid("template", f"{problem}: {', '.join(self.names(file))}")


def templates_of(settings: MailSender | SmsSender) -> Templates:
    """Return the templates in a sender's bundle, together with the published versions of its stage."""
    bucket = settings.templates_bucket
    return Templates(Path(settings.templates), Payloads(clients.s3(), bucket) if bucket else None)


def _folders(name: str, locale: str | None) -> Iterator[str]:
    """Yield the folders in which a template's files are looked for: first that of the language, then those of
    shorter tags as in RFC 4647, 3.4 (zh-Hant-TW, zh-Hant, zh), and last the template's own folder."""
    subtags = canonical(locale).split("-") if locale else []
    while subtags:
        yield f"{name}/{'-'.join(subtags)}"
        subtags.pop()
        if subtags and len(subtags[-1]) == 1:
            # A subtag of one letter only introduces the subtag after it, which has just been removed.
            subtags.pop()
    yield name


def canonical(locale: str) -> str:
    """Return a language tag with canonical upper and lower case, which is the folder's name: fr, fr-CA,
    zh-Hant-TW (RFC 5646, 2.1.1)."""
    language, *subtags = locale.split("-")
    forms = {2: str.upper, 4: str.title}
    return "-".join((language.lower(), *(forms.get(len(subtag), str.lower)(subtag) for subtag in subtags)))


def _files(engine: Engine, folder: str) -> tuple[str, ...]:
    return tuple(name for file in FILES if (name := f"{folder}/{file}") in engine)


def engine_of(templates: Path | Mapping[str, str]) -> Engine:
    """Return the engine for the templates in a folder, or for sources by name."""
    return Engine(templates if isinstance(templates, Mapping) else sources_in(templates))


def sources_in(root: Path) -> dict[str, str]:
    """Return the sources of the templates in a folder, by their paths in it. Examples, attached files and
    files that are too large for a part are left out. A byte order mark is removed, and line ends become
    `\\n`. Bytes that are not UTF-8 become surrogates, so a file with such bytes is a fault only if a template
    uses it."""
    return {
        path.relative_to(root).as_posix(): path.read_text(encoding="utf-8-sig", errors="surrogateescape")
        for path in _paths(root)
        if ATTACHED not in path.relative_to(root).parts[1:-1] and path.stat().st_size <= MAX_RENDERED_BYTES
    }


def attached_files(template: Path) -> dict[str, bytes]:
    """Return the files that are attached to each mail of the template in a folder, by name. Files that a
    system or an editor hides are left out."""
    return {
        path.name: path.read_bytes()
        for path in sorted((template / ATTACHED).glob("[!.]*[!~]"))
        if path.is_file()
    }


def _paths(root: Path) -> list[Path]:
    files = (path for path in root.rglob("*") if path.is_file())
    return sorted(path for path in files if EXAMPLES not in path.relative_to(root).parts[1:-1])
