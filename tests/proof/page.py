"""Table of README.md and of docs/explanation/sent-once.md, with its picture, made of the recorded figures."""

import json
import re
from collections.abc import Mapping
from html import escape
from typing import Any

from lab import REPOSITORY
from tests.proof.rows import ROWS
from tests.proof.trial import COLUMNS, MAILS

PAGES = (REPOSITORY / "README.md", REPOSITORY / "docs" / "explanation" / "sent-once.md")
PICTURE = REPOSITORY / "docs" / "pictures" / "sent-once.svg"
_TABLE = re.compile(r"(?<=<!-- table -->\n).*?(?=\n<!-- end of the table -->)", re.DOTALL)
_MEASURED = re.compile(r"(?<=highest\scount of )\d+ runs \([^)]*\)")
COLOURS = {
    "sent_twice": "#c0392b",
    "lost": "#111111",
    "stuck": "#8e44ad",
    "unknown": "#7f8c8d",
    "late": "#f0b429",
}
_ROW, _BAR, _LEFT, _TOP = 24, 420, 300, 40


def cells(counts: Mapping[str, int]) -> str:
    """Return the cells of a table's row. Counts of mails above 0 are bold."""
    mails = (f"**{counts[name]}**" if counts[name] else "0" for name in COLUMNS[1:])
    return " | ".join((str(counts["stops"]), *mails))


def table(results: Mapping[str, Any]) -> str:
    """Return the table in Markdown."""
    head = " | ".join(name.replace("_", " ") for name in COLUMNS)
    lines = [f"| sender | waits for | {head} |", "|---" * (len(COLUMNS) + 2) + "|"]
    for name, row in ROWS.items():
        counts = results["rows"][name]
        end = (
            cells(counts) if isinstance(counts, dict) else f"not judged: {counts}" + " |" * (len(COLUMNS) - 1)
        )
        lines.append(f"| {row.label} | {row.after} | {end} |")
    return "\n".join(lines)


def picture(results: Mapping[str, Any]) -> str:
    """Return the picture: a bar for each row, whose parts are the shares of the mails that ended badly."""
    height = _TOP + _ROW * len(ROWS) + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_LEFT + _BAR + 20} {height}" '
        'font-family="sans-serif" font-size="12">',
        f"<!-- measured {results['measured']} -->",
        f'<rect width="100%" height="{height}" fill="#ffffff"/>',
    ]
    for number, (name, colour) in enumerate(COLOURS.items()):
        corner = _LEFT + 84 * number
        parts.append(f'<rect x="{corner}" y="12" width="12" height="12" fill="{colour}"/>')
        parts.append(f'<text x="{corner + 16}" y="22">{name.replace("_", " ")}</text>')
    for number, (name, row) in enumerate(ROWS.items()):
        counts, y = results["rows"][name], _TOP + _ROW * number
        label = escape(row.label.replace("`", ""))
        parts.append(f'<text x="{_LEFT - 10}" y="{y + 14}" text-anchor="end">{label}</text>')
        parts.append(f'<rect x="{_LEFT}" y="{y}" width="{_BAR}" height="18" fill="#eef2f5"/>')
        x = float(_LEFT)
        for column, colour in COLOURS.items() if isinstance(counts, dict) else ():
            width = round(_BAR * counts[column] / (counts["stops"] * MAILS), 1)
            if width:
                parts.append(f'<rect x="{x:.1f}" y="{y}" width="{width}" height="18" fill="{colour}"/>')
            x += width
    return "\n".join([*parts, "</svg>\n"])


def write_pages(results: Mapping[str, Any]) -> None:
    """Write the table with its date into the pages, and the picture."""
    measured = ", ".join(results["measured"].split(", ")[:2])
    for path in PAGES:
        text = _TABLE.sub(lambda _: f"\n{table(results)}\n", path.read_text())
        path.write_text(_MEASURED.sub(f"{results['runs']} runs ({measured})", text))
    PICTURE.write_text(picture(results))


def verdicts(rows: Mapping[str, Any]) -> dict[str, Any]:
    """Return whether each cell is above 0, or the reason why a row cannot be judged."""
    return {
        name: {column: counts[column] > 0 for column in COLUMNS} if isinstance(counts, dict) else counts
        for name, counts in rows.items()
    }


if __name__ == "__main__":
    write_pages(json.loads((REPOSITORY / "lab" / "bench" / "sent_once.json").read_text()))
