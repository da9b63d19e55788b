"""A mail's HTML without what a sandbox and a content security policy do not stop."""

import re
from html import escape
from html.parser import HTMLParser

_REMOVED = frozenset(("link", "meta", "base"))
"""A browser looks up and connects to the host of `<link rel=preconnect>`, whatever the policy says."""
_TAG = re.compile(r"[a-z][a-z0-9:-]*")
_ATTRIBUTE = re.compile(r"[a-z_:][a-z0-9_:.-]*")


def inert(html: str) -> str:
    """The document written anew, without these elements and without comments. Every other `<` in the result
    begins a tag, so a browser finds none of them either, however it reads what is broken."""
    parser = _Writer()
    # Without `close`: a tag that never ends is nothing to a browser, and costs the parser quadratic time.
    parser.feed(f"{html}<p>")
    written = "".join(parser.written)
    return written.removesuffix("<p>")


class _Writer(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.written: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._write(tag, attrs, ">")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._write(tag, attrs, " />")

    def _write(self, tag: str, attrs: list[tuple[str, str | None]], end: str) -> None:
        if tag in _REMOVED or not _TAG.fullmatch(tag):
            return
        kept = (
            f" {name}" if value is None else f' {name}="{escape(value)}"'
            for name, value in attrs
            if _ATTRIBUTE.fullmatch(name)
        )
        self.written.append(f"<{tag}{''.join(kept)}{end}")

    def handle_endtag(self, tag: str) -> None:
        if tag not in _REMOVED and _TAG.fullmatch(tag):
            self.written.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        # Styles are not decoded by a browser, and mean something by `>`.
        raw = self.cdata_elem is not None
        self.written.append(data.replace("<", "") if raw else escape(data, quote=False))

    def handle_decl(self, decl: str) -> None:
        if "<" not in decl:
            self.written.append(f"<!{decl}>")

    def parse_marked_section(self, i: int, report: int = 1) -> int:
        """Read `<![…]>` as a browser does, as a comment: the library's own reading fails for some."""
        return self.parse_bogus_comment(i, bool(report))
