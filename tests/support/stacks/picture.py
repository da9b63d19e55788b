"""Draws the dashboard of stage prod in docs/pictures: `.venv/bin/python -m tests.support.stacks.picture`.

The layout, the titles, the names of lines and the thresholds are read from the synthesized templates. The
numbers are invented: an endpoint is down, and its callbacks become dead letters.
"""

import re
from collections.abc import Iterator, Sequence
from html import escape
from itertools import product
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from tests.support import ROOT
from tests.support.stacks.dashboard import bodies
from tests.support.stacks.templates import Templates
from tests.support.stacks.variants import variant

PICTURES = ROOT / "docs" / "pictures"
COLUMN, ROW, GAP = 60, 52, 4
"""Pixels of a column, of a row and around a widget: a dashboard is 1,440 pixels wide."""
FONT, SMALL = 12, 10.5
WIDE = 0.56
"""Average width of a character, as a part of the font's size."""
POINTS = 40
EDGES = {"p50": (0.1, 0.3), "p99": (0.4, 0.9), "failed": (0, 0.15)}
"""Least and most of lines by the end of their names: a p99 is never below its p50."""
COLORS = ("#1f77b4", "#ff7f0e", "#2ca02c", "#9467bd", "#8c564b", "#e377c2", "#17becf", "#7f7f7f", "#bcbd22")
RINGING = ("-webhook-dlq-not-empty", "-webhooks-failing")
TILE, TILE_HEIGHT = 262, 34
LINE = 15
"""Height of a line of a legend."""
HEADROOM = {"left": 1.2, "right": 1.5}
"""Height of an axis, as a multiple of its highest threshold."""
GREY = "#687078"
SORTED = re.compile(r"SORT\(\[(.+)\], MAX, DESC, ([0-9]+)\)")
EXAMPLES = {
    "service": ["send-mail"],
    "MetricName": ["Failed"],
    "channel": ["mail", "sms"],
    "reason": ["rejected"],
}
"""Values of a search's results, unless the search names its own."""

Json = dict[str, Any]


class Field(NamedTuple):
    """Edges of the part of a graph in which its lines are."""

    left: int
    right: int
    top: int
    bottom: int


def drawing(body: Json) -> str:
    """Return a dashboard as SVG."""
    widgets = body["widgets"]
    height = max(widget["y"] + widget["height"] for widget in widgets) * ROW
    width = 24 * COLUMN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="Helvetica, Arial, sans-serif" font-size="{FONT}">',
        f'<rect width="{width}" height="{height}" fill="#e9ebed"/>',
    ]
    for widget in widgets:
        parts += _widget(widget)
    return "\n".join([*parts, "</svg>", ""])


def _widget(widget: Json) -> Iterator[str]:
    left, top = widget["x"] * COLUMN + GAP, widget["y"] * ROW + GAP
    width, height = widget["width"] * COLUMN - 2 * GAP, widget["height"] * ROW - 2 * GAP
    properties = widget["properties"]
    title = properties.get("title", "")
    assert len(title) * FONT * WIDE < width - 16, f"{title!r} is too long for its widget"
    yield f'<g transform="translate({left} {top})">'
    yield f'<rect width="{width}" height="{height}" rx="6" fill="#fff" stroke="#d1d5db"/>'
    yield _svg_text(10, 19, title, weight="bold")
    kind = widget["type"] if widget["type"] != "metric" else properties["view"]
    shapes = {"text": _markdown, "alarm": _tiles, "log": _table, "bar": _bars, "timeSeries": _curves}
    yield from shapes[kind](properties, width, height)
    yield "</g>"


def _markdown(properties: Json, width: int, height: int) -> Iterator[str]:
    """Draw the lines of a text widget: a heading with a link, and commands."""
    for at, line in enumerate(re.split(r"\s*\n+", properties["markdown"])):
        words = re.sub(r"\[(.+?)\]\(.+?\)", r"\1", line).replace("**", "").strip("`")
        assert len(words) * FONT * WIDE < width, words
        code = line.startswith("`")
        yield _svg_text(
            12, 30 + 28 * at, words, family="monospace" if code else "", weight="" if code else "bold"
        )


def _tiles(properties: Json, width: int, height: int) -> Iterator[str]:
    """Draw the alarms that a widget shows: all, or only those that ring."""
    names = [arn.rpartition(":")[2] for arn in properties["alarms"]]
    shown = [name for name in names if "states" not in properties or name.endswith(RINGING)]
    columns = max(1, (width - 10) // (TILE + 8))
    for at, name in enumerate(shown):
        x, y = 10 + at % columns * (TILE + 8), 30 + at // columns * (TILE_HEIGHT + 8)
        assert y + TILE_HEIGHT <= height, f"{name} is below the widget {properties['title']!r}"
        fill, mark = ("#d13212", "!") if name.endswith(RINGING) else ("#1d8102", "✓")
        box = f'x="{x}" y="{y}" width="{TILE}" height="{TILE_HEIGHT}" rx="4"'
        yield f'<rect {box} fill="none" stroke="{fill}"/>'
        yield _svg_text(x + 8, y + 21, mark, fill=fill, weight="bold")
        yield _svg_text(x + 24, y + 21, name, size=SMALL, fill=fill)
    if "states" in properties:
        yield _svg_text(10, height - 10, f"{len(shown)} of {len(names)} alarms", size=SMALL, fill=GREY)


def _table(properties: Json, width: int, height: int) -> Iterator[str]:
    """Draw the columns of a query's result."""
    counts, keys = re.findall(r"stats (.+) by ([^|]+)", properties["query"])[0]
    columns = [*keys.strip().split(", "), *re.findall(r" as (\w+)", counts)]
    for at, name in enumerate(columns):
        x = 10 + at * (width - 20) // len(columns)
        yield _svg_text(x, 46, name, size=SMALL, weight="bold")
        for row in range(4):
            box = f'x="{x}" y="{62 + 26 * row}" width="{90 - 12 * row}" height="8" rx="4"'
            yield f'<rect {box} fill="#d1d5db"/>'
    yield f'<path d="M10 53H{width - 10}" stroke="#aab7b8"/>'


def _bars(properties: Json, width: int, height: int) -> Iterator[str]:
    """Draw a bar for each line: a queue's letters."""
    names = _names(properties["metrics"])
    step = (height - 40) / len(names)
    for at, (name, _) in enumerate(names):
        y = 34 + at * step
        number = 3 if any(name in alarm.split("-") for alarm in RINGING) else 0
        yield _svg_text(110, y + step * 0.6, name, size=SMALL, anchor="end")
        box = f'x="118" y="{y + 2:.1f}" width="{1 + number * 120}" height="{step - 6:.1f}"'
        yield f'<rect {box} fill="{_color(at)}"/>'
        yield _svg_text(126 + number * 120, y + step * 0.6, str(number), size=SMALL)


def _curves(properties: Json, width: int, height: int) -> Iterator[str]:
    """Draw the lines of a graph, its thresholds, and its legend below."""
    names = _names(properties.get("metrics", []))
    if alarm := properties.get("annotations", {}).get("alarms"):
        names = [(alarm[0].rpartition("mailroom-prod-")[2], "left")]
    legend = [*_legend(names, width)]
    right = width - (44 if any(axis == "right" for _, axis in names) else 12)
    field = Field(44, right, 34, height - 29 - LINE * legend[-1][0])
    for y in (field.top, (field.top + field.bottom) / 2, field.bottom):
        yield f'<path d="M{field.left} {y:.0f}H{field.right}" stroke="#eaeded"/>'
    marks = properties.get("annotations", {}).get("horizontal", [])
    for side in sorted({axis for _, axis in names}):
        shown = [(at, name) for at, (name, axis) in enumerate(names) if axis == side]
        yield from _side(side, shown, [mark for mark in marks if mark["yAxis"] == side], field)
    for at, (line, x, name) in enumerate(legend):
        y = height - 10 - LINE * (legend[-1][0] - line)
        yield f'<rect x="{x}" y="{y - 8}" width="9" height="9" fill="{_color(at)}"/>'
        yield _svg_text(x + 13, y, name, size=SMALL)


def _side(side: str, names: Sequence[tuple[int, str]], marks: Sequence[Json], field: Field) -> Iterator[str]:
    """Draw an axis with its lines and thresholds. The right axis has dotted lines."""
    limit, highest = max([mark["value"] for mark in marks], default=100) * HEADROOM[side], 0.6
    if limit == HEADROOM[side]:  # alarms that ring at the first event: there are mostly none
        limit, highest = 10, 0.08
    left = side == "left"
    x, outwards, inwards = (field.left - 4, "end", "start") if left else (field.right + 4, "start", "end")
    yield _svg_text(x, field.bottom, "0", size=SMALL, anchor=outwards, fill=GREY)
    yield _svg_text(x, field.top + 4, _short(limit), size=SMALL, anchor=outwards, fill=GREY)
    for at, name in names:
        dots = "" if left else ' stroke-dasharray="2 2"'
        points = _walk(name, field, 0.5 if name == "webhooks-failing" else highest)
        yield f'<polyline points="{points}" fill="none" stroke="{_color(at)}" stroke-width="1.4"{dots}/>'
    for mark in marks:
        y = field.bottom - (field.bottom - field.top) * mark["value"] / limit
        color = mark.get("color", "#545b64")
        yield f'<path d="M{field.left} {y:.1f}H{field.right}" stroke="{color}" stroke-dasharray="6 3"/>'
        inside = x + 10 if left else x - 10
        yield _svg_text(inside, y - 3, mark["label"], size=SMALL, anchor=inwards, fill=color)


def _color(at: int) -> str:
    return COLORS[at % len(COLORS)]


def _names(metrics: Sequence[Sequence[Any]]) -> list[tuple[str, str]]:
    """Return the name and the axis of each line that a graph shows. A search shows its examples, and a sort
    the first lines of its list."""
    names = []
    labels = {options.get("id", ""): options.get("label", "") for *_, options in metrics}
    for *_, options in metrics:
        if options.get("visible", True):
            axis, expression = options.get("yAxis", "left"), options.get("expression", "")
            if match := SORTED.fullmatch(expression):
                names += [(labels[id_], axis) for id_ in match[1].split(", ")[: int(match[2])]]
            else:
                names += [(name, axis) for name in _found(options["label"], expression)]
    return names


def _found(label: str, expression: str) -> Iterator[str]:
    """Return a label, or the labels of what a search finds."""
    keys = re.findall(r"\$\{PROP\('(?:Dim\.)?(\w+)'\)\}", label)
    for values in product(*(re.findall(rf'{key}="(.+?)"', expression) or EXAMPLES[key] for key in keys)):
        name = label
        for value in values:
            name = re.sub(r"\$\{.+?\}", value, name, count=1)
        yield name


def _legend(names: Sequence[tuple[str, str]], width: int) -> Iterator[tuple[int, int, str]]:
    """Return the line and the place of each name of a legend."""
    line, x = 0, 10
    for name, _ in names:
        wide = round(len(name) * SMALL * WIDE) + 24
        if x + wide > width:
            line, x = line + 1, 10
        yield line, x, name
        x += wide


def _walk(name: str, field: Field, highest: float) -> str:
    """Return invented points for a line: the same for the same name. Sums only rise."""
    random = Random(name)
    least, most = next((edges for end, edges in EDGES.items() if name.endswith(end)), (0.02, 1))
    share, points = random.uniform(max(least, 0.1), min(most, 0.7)), []
    for at in range(POINTS):
        share = min(max(share + random.uniform(-0.07, 0.07), least), most)
        height = highest * (at / POINTS if name.endswith("accepted") else share)
        x = field.left + (field.right - field.left) * at / (POINTS - 1)
        points.append(f"{x:.0f},{field.bottom - (field.bottom - field.top) * height:.0f}")
    return " ".join(points)


def _short(value: float) -> str:
    return f"{value / 1000:,.0f}k" if value >= 10_000 else f"{value:,.4g}"


def _svg_text(
    x: float,
    y: float,
    text: str,
    *,
    size: float = FONT,
    anchor: str = "",
    fill: str = "#16191f",
    weight: str = "",
    family: str = "",
) -> str:
    optional = {"text-anchor": anchor, "font-weight": weight, "font-family": family}
    given = "".join(f' {name}="{value}"' for name, value in optional.items() if value)
    return f'<text x="{x:.0f}" y="{y:.0f}" font-size="{size}" fill="{fill}"{given}>{escape(text)}</text>'


def pictures(stage: Templates) -> dict[Path, str]:
    """Return the picture of a stage's dashboard, by file."""
    return {PICTURES / "dashboard.svg": drawing(*bodies(stage))}


if __name__ == "__main__":
    for file, picture in pictures(variant({}, "prod")).items():
        file.write_text(picture)
