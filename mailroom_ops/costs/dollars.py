"""Costs by part in US dollars: multiplied, and printed as a table."""

from collections.abc import Mapping

from rich.table import Column, Table

from mailroom_ops.shared.screen import right, table_of


def multiplied(parts: Mapping[str, float], count: int) -> dict[str, float]:
    """Return the cost of `count` messages, without the digits that floating-point numbers add."""
    return {name: round(price * count, 8) for name, price in parts.items()}


def money(dollars: float) -> str:
    """Format dollars with two decimals, and from 10,000 on without."""
    if dollars >= 10_000:
        return f"{dollars:,.0f}"
    return f"{dollars:,.2f}" if dollars >= 0.005 else "< 0.01"


def cost_table(title: str, parts: Mapping[str, float], messages: int = 0) -> Table:
    """Return a table of the parts of a cost and of their sum. With `messages`, it also has the cost of a
    million messages."""
    figures = {"US dollars": 1.0}
    if messages:
        figures["a million"] = 1_000_000 / messages
    total = sum(parts.values())
    footers = (right(heading, money(total * factor)) for heading, factor in figures.items())
    table = table_of(
        Column("part", "together"), *footers, show_footer=True, title=title, title_justify="left"
    )
    for name, price in parts.items():
        table.add_row(name, *(money(price * factor) for factor in figures.values()))
    return table
