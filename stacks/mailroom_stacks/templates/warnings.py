"""Warnings about templates that render, but whose messages may not look as intended.

Some mistakes are visible in the sources, such as text that a layout does not show. The others are visible in
a rendered example, such as a link without https://.
"""

import html
import re
from collections.abc import Iterator, Mapping
from functools import partial
from html.parser import HTMLParser

from minijinja import Environment, TemplateError

from mailroom.channels.preview import Preview

EMPTY = "is empty when rendered; write content that is always shown, or remove the file"
"""Sentence about an empty part, which is a fault."""
GMAIL_BYTES = 102 * 1024
"""Number of bytes of a mail's HTML after which Gmail cuts it off."""
_TEXT = r""""(?:\\.|[^"\\])*+"|'(?:\\.|[^'\\])*+'"""
_MAP = rf"\{{(?:{_TEXT}|\{{(?:{_TEXT}|[^{{}}])*+\}}|[^{{}}])*+\}}"
_TAG = re.compile(
    r"\{%[-+]?\s*raw\s*[-+]?%\}(?P<raw>.*?)\{%[-+]?\s*endraw\s*[-+]?%\}|(?P<comment>\{#.*?(?:#\}|\Z))"
    r"|(?:\{%[-+]?\s*(?P<word>\w*)|\{\{[-+]?)\s*"
    rf"(?P<code>(?:{_TEXT}|{_MAP}|(?![-+]?[%}}]\}}).)*+)(?:[-+]?[%}}]\}}|\Z)|\Z",
    re.DOTALL,
)
"""Pattern of raw text, a comment, a tag that may begin with a keyword, or the end of a template."""
_CHOICES = 3
"""Number of layouts among which a condition can choose; further ones are not examined."""
_CALL = re.compile(r"\b(?:self\.\w+|super)\(\)")
_GLUED = re.compile(r"\{#(?![\s#+-])|(?<=[\w)\]*])\{[{%](?![\s+-])")
"""Pattern of the beginning of a tag that may be meant as CSS or as script."""


class Page(HTMLParser):
    """HTML of a mail."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.links: list[str] = []
        """Addresses of all links."""
        self.code = ""
        """Content of styles and scripts."""
        self.visible = False
        """Whether the page shows a text or a picture."""
        self.mjml = False
        self._element = ""
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._element = tag
        self.links += (value or "" for name, value in attrs if name == "href")
        self.visible |= tag in ("img", "svg", "video")
        self.mjml |= tag == "mjml" or tag.startswith("mj-")

    def handle_endtag(self, tag: str) -> None:  # noqa: ARG002 - the elements that matter contain no others
        self._element = ""

    def handle_data(self, data: str) -> None:
        if self._element in ("script", "style"):
            self.code += data
        elif self._element != "title":
            self.visible |= _is_visible(data)


def _is_visible(text: str) -> bool:
    return any(character.isprintable() and not character.isspace() for character in text)


def in_source(name: str, sources: Mapping[str, str]) -> Iterator[tuple[int, str]]:
    """Yield warnings about a part, each with its position. `sources` has the sources of all parts by name."""
    source = sources[name]
    if name.endswith(".html"):
        yield from _in_styles(source)
    extends, outside = _outside(source)
    if not extends:
        return
    environments = (Environment(loader=partial(_skeleton, sources, choice)) for choice in range(_CHOICES))
    try:
        marks = "".join(environment.render_template(name) for environment in environments)
    except TemplateError:  # a fault, such as a missing layout
        return
    blocks = ", ".join(sorted(set(re.findall(r"/(\w+)>", marks)))) or "it has none"
    for tag in _TAG.finditer(source):
        if tag["word"] == "block" and f"<{name}/{(block := _name(tag))}>" not in marks:
            sentence = f"the layout does not show the block {block!r}; rename it to one of the layout's"
            yield tag.start(), f"{sentence} blocks ({blocks})"
    if outside is not None:
        sentence = "this is not shown, because the file extends a layout; put it into one of the layout's"
        yield outside, f"{sentence} blocks ({blocks})"


def _in_styles(source: str) -> Iterator[tuple[int, str]]:
    # Each tag is replaced by its position. A tag without an end may contain the end of the style.
    marked = _TAG.sub(lambda tag: f"\ue000{tag.start()}\ue001", source)
    for mark in re.findall("\ue000(\\d+)\ue001", Page(f"{marked}</style></script>").code):
        if sign := _GLUED.match(source, int(mark)):
            yield (
                sign.start(),
                f"`{sign[0]}` begins code of the template in CSS and scripts, too; write "
                f"`{{ {sign[0][1]}` for CSS or a script, or a blank behind `{sign[0]}`",
            )


def _outside(source: str) -> tuple[bool, int | None]:
    """Return whether a part extends a layout in any case, and the position of the first content behind
    `extends` and outside of blocks, which a layout does not show."""
    extends, nesting, end = False, list[str](), 0
    for tag in _TAG.finditer(source):
        word, code, text = tag["word"], tag["code"] or "", source[end : tag.start()]
        if extends and not {"block", "macro", "set"} & {*nesting}:
            if text.strip():
                return True, tag.start() - len(text.lstrip())
            if word == "include" or ((tag["raw"] or code).strip() and not word):
                return True, tag.start()
        end = tag.end()
        if word == "extends" and not nesting:
            extends = True
        elif nesting and word == f"end{nesting[-1]}":
            nesting.pop()
        elif word in ("block", "macro", "if", "for") or (word == "set" and not re.match("[^|=]*=", code)):
            nesting.append(word)
    return extends, None


def _skeleton(sources: Mapping[str, str], choice: int, name: str) -> str | None:
    """Return the blocks of a part without their content, but each with the names of part and block. `choice`
    selects one of several layouts."""

    def reduced(tag: re.Match[str]) -> str:
        if tag["word"] == "block":
            return f"{{% block {_name(tag)} %}}<{name}/{_name(tag)}>"
        if tag["word"] == "extends":
            names = [text[1:-1] for text in re.findall(_TEXT, tag["code"], re.DOTALL)]
            layouts = [layout for layout in names if layout in sources] or [""]
            return f"{{% extends {layouts[min(choice, len(layouts) - 1)]!r} %}}"
        if tag["word"] == "endblock":
            return tag[0]
        return "".join(f"{{{{ {call} }}}}" for call in _CALL.findall(tag["code"] or ""))

    return "".join(map(reduced, _TAG.finditer(sources[name]))) if name in sources else None


def _name(tag: re.Match[str]) -> str:
    return "".join(tag["code"].split()[:1])


def in_result(preview: Preview) -> Iterator[tuple[str, str, str]]:
    """Yield sentences about a rendered message, each with the file of the part, and with a pattern of the
    cause if it may be a text of the source."""
    for file, text in (("subject.txt", preview.subject), ("body.txt", preview.text or "")):
        for entity in re.findall(r"&#?\w+;", text):
            if html.unescape(entity) != entity:
                sentence = "is shown as it is written, because this is not HTML; write its character"
                yield file, f"{entity} {sentence}", entity
    if preview.text is not None and not _is_visible(preview.text):
        yield "body.txt", EMPTY, ""
    if preview.html is not None:
        yield from (("body.html", *remark) for remark in _in_html(preview.html))


def _in_html(source: str) -> Iterator[tuple[str, str]]:
    page = Page(source)
    if not page.visible:
        yield EMPTY, ""
    if page.mjml:
        yield "mail programs do not read MJML; compile it to HTML, and use that", "<mj"
    if len(source.encode()) > GMAIL_BYTES:
        yield "Gmail cuts off HTML after 102 KB; shorten it", ""
    for link in page.links:
        if not link.strip().lower().startswith(("https://", "http://", "mailto:", "tel:", "#")):
            cause = rf"""href\s*=\s*["']?{re.escape(html.escape(link))}["'\s>]"""
            yield (
                f"the link {link!r:.200} does not work in a mail; begin it with https://, mailto: or tel:",
                cause,
            )
