"""`.local/bench/bin/python -m bench.plots`: draw docs/pictures from the figures of bench/results.json and the
curves of bench/scale.json.

It runs apart from the rest of the bench, where matplotlib is installed.
"""

import json
from collections.abc import Sequence
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
LOADS = {
    "prod": ("scale_100000", "100,000 mails at once, stage prod"),
    "hour": ("scale_hour", "1,000,000 mails in an hour, the rung of 1,000 a second"),
    "second_new": ("scale_second_new", "10,000 mails a second for 10 minutes, the highest rung, new tables"),
    "second": ("scale_second", "10,000 mails a second for 10 minutes, the highest rung, warm tables"),
}
"""The file and the title of each simulated load."""
PUT, SENT, BOUND, EVENTS = "#57534e", "#1f7fd1", "#b91c1c", "#c2410c"
UNITS = (("hours", 3600, 3 * 3600), ("minutes", 60, 180), ("seconds", 1, 0))
"""A unit of time, its seconds, and from which time on it is used."""


def main() -> None:
    """Write each plot as SVG and as PNG."""
    mpl.rcParams.update({"font.size": 13, "svg.hashsalt": "mailroom", "figure.facecolor": "white"})
    by_memory = json.loads((REPOSITORY / "bench" / "results.json").read_text())["by_memory"]
    for name, (figure, title) in PLOTS.items():
        draw(name, title, {each: by_memory[each] for each in STYLE}, figure)
    curves = json.loads((REPOSITORY / "bench" / "scale.json").read_text())
    for load, (name, title) in LOADS.items():
        draw_load(name, title, curves[load])


def draw_load(name: str, title: str, curve: dict[str, Any]) -> None:
    """Above, what is put and sent a second, and the bound; below, what waits."""
    # The last sample is the end, soon after the one before.
    times, put, queued, sent, events, _ = zip(*curve["samples"][:-1], strict=True)
    unit, seconds, _ = next(each for each in UNITS if times[-1] >= each[2])
    drawing, (rates, waits) = plt.subplots(2, figsize=(9, 6.2), layout="constrained", sharex=True)
    drawing.suptitle(title, x=0.01, ha="left")
    at, speed = [each / seconds for each in times], curve["a_second"]
    for values, colour, label in ((put, PUT, "put"), (sent, SENT, "accepted by SES")):
        rates.step(at, _a_second(times, values), color=colour, linewidth=2.2, label=label)
    rates.axhline(speed, color=BOUND, linestyle="--", label=f"bound: {_number(speed)}")
    rates.set(ylim=(0, 1.6 * max(speed, *_a_second(times, sent))), ylabel="mails a second")
    rates.set_title(curve["bound"], loc="left", color=BOUND, fontsize=11)
    waits.fill_between(at, queued, color=SENT, alpha=0.35, label="mails that wait in the lanes' queues")
    waits.plot(at, events, color=EVENTS, linewidth=2.2, label="events of SES that wait")
    waits.set(xlabel=unit, ylabel="waiting", ylim=(0, 1.4 * max(100, *queued)), xlim=(0, at[-1]))
    for axes in (rates, waits):
        axes.yaxis.set_major_formatter("{x:,.0f}")
        axes.grid(axis="y", color="#dddddd")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(loc="upper right", fontsize=11, ncols=3)
    save(drawing, name)


def _number(speed: float) -> str:
    return f"{speed:,.0f}" if speed >= 100 else f"{speed:.3g}"


def _a_second(times: Sequence[float], counts: Sequence[float]) -> list[float]:
    """How fast a count grew up to each time."""
    steps = zip(times, times[1:], counts, counts[1:], strict=False)
    grown = [(after - before) / max(end - start, 1e-9) for start, end, before, after in steps]
    return [grown[0], *grown]


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
