"""The list of refused lines that an import leaves beside its source."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mailroom_ops.imports.items import LineFault
from mailroom_ops.screen import Refused

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
"""Beginnings of a cell that a spreadsheet runs as a formula
(https://owasp.org/www-community/attacks/CSV_Injection)."""


class RefusedLines:
    """FILE.mailroom-refused.csv: line, column and problem of each line that was refused. Each run writes the
    list anew. There is no file while nothing was refused. Raises Refused where it cannot be changed."""

    def __init__(self, source: Path) -> None:
        self.path = source.with_name(f"{source.name}.mailroom-refused.csv")
        self._file: Any = None
        self._on_disk(lambda: self.path.unlink(missing_ok=True))

    def add(self, fault: LineFault) -> None:
        """Note a line. Raises Refused where the list cannot be written."""
        if self._file is None:
            self._file = self._on_disk(lambda: self.path.open("w", encoding="utf-8", newline=""))
            csv.writer(self._file).writerow(LineFault.__struct_fields__)
        # A column's name is the file's own, and the problem may quote a value.
        cells = (f"'{text}" if text.startswith(_FORMULA) else text for text in (fault.column, fault.problem))
        csv.writer(self._file).writerow((fault.line, *cells))

    def close(self) -> None:
        """Nothing more is refused."""
        if self._file is not None:
            self._file.close()

    def _on_disk(self, change: Callable[[], Any]) -> Any:
        try:
            return change()
        except OSError as error:
            raise Refused(f"{self.path} cannot be written: {error.strerror}.") from None
