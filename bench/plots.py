"""`.local/bench/bin/python -m bench.plots`: draw docs/pictures from the figures of bench/results.json.

It runs apart from the rest of the bench, where matplotlib is installed.
"""

import json
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt

from bench import PICTURES, REPOSITORY

STYLE = {
    "mailroom_1": ("Mailroom, one at a time", "#0b2f5b", "-"),
    "mailroom_2": ("Mailroom, two at a time", "#1558a0", "-"),
    "mailroom_5": ("Mailroom, five at a time", "#1f7fd1", "-"),
    "mailroom_10": ("Mailroom, ten at a time", "#0e8f9e", "-"),
    "powertools": ("Powertools' sender", "#c2410c", "--"),
    "pattern": ("The plain pattern", "#57534e", ":"),
}
"""Each variant's label, colour and line."""
PLOTS = {
    "dollars_by_memory": ("dollars_a_million", "US dollars of function time for a million mails"),
    "mails_by_memory": ("a_second", "Mails a second of one function"),
}
GAP = 0.06
"""The space between labels, as a share of the height."""


def main() -> None:
    """Write each plot as SVG and as PNG."""
    mpl.rcParams.update({"font.size": 13, "svg.hashsalt": "mailroom", "figure.facecolor": "white"})
    by_memory = json.loads((REPOSITORY / "bench" / "results.json").read_text())["by_memory"]
    for name, (figure, title) in PLOTS.items():
        draw(name, title, {each: by_memory[each] for each in STYLE}, figure)


def draw(name: str, title: str, variants: dict[str, dict[str, dict[str, float]]], figure: str) -> None:
    """One line a variant, its label at its end."""
    drawing, axes = plt.subplots(figsize=(9, 5), layout="constrained")
    memory = [int(each) for each in variants["mailroom_1"]]
    ends = {}
    for variant, at in variants.items():
        _, colour, line = STYLE[variant]
        values = [at[str(each)][figure] for each in memory]
        axes.plot(memory, values, line, color=colour, linewidth=2.2, marker="o", markersize=4)
        ends[variant] = values[-1]
    axes.set(xscale="log", xlabel="memory of the function, MB", ylim=(0, None), xlim=(memory[0] * 0.93, None))
    axes.set_title(title, loc="left")
    axes.set_xticks(memory, [f"{each:,}" for each in memory])
    axes.minorticks_off()
    axes.grid(axis="y", color="#dddddd")
    axes.spines[["top", "right"]].set_visible(False)
    lowest, gap = 0.0, GAP * axes.get_ylim()[1]
    for variant, end in sorted(ends.items(), key=lambda each: each[1]):
        lowest = max(end, lowest + gap)
        label, colour, line = STYLE[variant]
        axes.annotate(
            f"{label}: {end:.3g}",
            (memory[-1], end),
            (memory[-1] * 1.12, lowest),
            color=colour,
            va="center",
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.8, "relpos": (0, 0.5)},
        )
    save(drawing, name)


def save(drawing: Any, name: str) -> None:
    for form, metadata in (("svg", {"Date": None}), ("png", {})):
        drawing.savefig(PICTURES / f"{name}.{form}", dpi=150, metadata=metadata)


if __name__ == "__main__":
    main()
