"""The terminal. Commands print only through the class Terminal, so that stored text cannot control the
terminal.

Producers, recipients and providers write what commands print. An escape sequence could move the cursor or
write to the clipboard, a bidirectional control could show `exe.txt` as `txt.exe`, and Rich's markup could end
a command with an error.
"""

import io
import sys
from collections.abc import Iterable
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from mailroom_ops.shared.printable import (
    escaped,
    printable,
)


class Terminal(Console):
    """Console that prints texts without markup, and replaces characters that could control the terminal."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, markup=False, emoji=False)

    def print(self, *objects: Any, **options: Any) -> None:
        """Print objects. At a terminal, texts with the option `soft_wrap` are wrapped between words."""
        if options.get("soft_wrap") and self.is_terminal:
            objects = (self._filled(Text.assemble(*objects)),)
        super().print(*objects, **options)

    def _filled(self, text: Text) -> Text:
        """Wrap a text between words, by spaces up to the terminal's edge. With line breaks instead, a copied
        command would be broken in two."""
        # A row ends with a space, because a copied row that fills the terminal would join two words. A word
        # that is longer than a row is broken, and needs the last cell too.
        longest = max(map(cell_len, text.plain.split()), default=0)
        width = self.width - 1 if longest < self.width else self.width
        lines = [line.wrap(self, width) for line in text.split(allow_blank=True)]
        for row in (row for rows in lines for row in rows[:-1]):
            row.pad_right(self.width - row.cell_len)
        return Text("\n").join(Text().join(rows) for rows in lines)

    def render_str(self, text: str, **options: Any) -> Text:
        """Return the printable text of a string. Rich calls this method to measure and print each string."""
        return super().render_str(printable(text), **{**options, "markup": False, "emoji": False})

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the printable segments of any other object. Rich's own control codes, which are segments of
        their own, stay unchanged."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)


class LogStream(io.TextIOBase):
    """Stream that writes log lines, which are JSON, to standard error, with unsafe characters escaped."""

    def write(self, line: str) -> int:
        return sys.stderr.write(escaped(line))
