"""The terminal: everything is printed through it, so that no stored text can do anything to it.

Producers, recipients and providers write what commands print. An escape sequence could move the cursor or
write to the clipboard, a bidirectional control could show `exe.txt` as `txt.exe`, and Rich's markup could
end a command with an error.
"""

import io
import re
import sys
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

_UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""C0 and C1 controls but tab and newline, separators of lines, and bidirectional controls (Unicode's property
Bidi_Control)."""


def printable(text: str) -> str:
    """The text with a replacement character for each character that a terminal could obey."""
    return _UNSAFE.sub("�", text)


def escaped(json: str) -> str:
    """JSON that says the same and holds no such character. Only strings in it can, and they have escapes."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", json)


class Terminal(Console):
    """A console that prints every text as it is written, without markup, as far as it is printable."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, markup=False, emoji=False)

    def print(self, *objects: Any, **options: Any) -> None:
        """Print objects. At a terminal, texts with `soft_wrap` break between words."""
        if options.get("soft_wrap") and self.is_terminal:
            objects = (self._filled(Text.assemble(*objects)),)
        super().print(*objects, **options)

    def _filled(self, text: Text) -> Text:
        """Break a text between words by spaces up to the terminal's edge. A line end would break a command
        in two where somebody copies it."""
        lines = [line.wrap(self, self.width) for line in text.split(allow_blank=True)]
        for row in (row for rows in lines for row in rows[:-1]):
            row.pad_right(self.width - row.cell_len)
        return Text("\n").join(Text().join(rows) for rows in lines)

    def render_str(self, text: str, **options: Any) -> Text:
        """A string, wherever it stands: Rich measures and prints what this returns."""
        return super().render_str(printable(text), **{**options, "markup": False, "emoji": False})

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Everything else that has a text. Rich's own control codes are segments of their own."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)


class LogStream(io.TextIOBase):
    """Standard error for log lines, which are JSON."""

    def write(self, line: str) -> int:
        return sys.stderr.write(escaped(line))
