"""Places widgets: from left to right, then downwards."""

from collections.abc import Iterable

from stacks.dashboard.widgets import Widget

COLUMNS = 24
MOST_WIDGETS = 500
"""CloudWatch shows no more on a dashboard."""


def placed(widgets: Iterable[Widget]) -> list[dict[str, object]]:
    """The widgets with their places. Raises ValueError where there are more than a dashboard may have."""
    column, row, below = 0, 0, 0
    shown: list[dict[str, object]] = []
    for widget in widgets:
        if column + widget.width > COLUMNS:
            column, row = 0, below
        place = {"x": column, "y": row, "width": widget.width, "height": widget.height}
        shown.append({"type": widget.kind, **place, "properties": dict(widget.properties)})
        column += widget.width
        below = max(below, row + widget.height)
    if len(shown) > MOST_WIDGETS:
        raise ValueError(f"a dashboard may have {MOST_WIDGETS} widgets, and this one would have {len(shown)}")
    return shown
