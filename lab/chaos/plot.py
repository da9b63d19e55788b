"""`.local/chaos/bin/python -m lab.chaos.plot`: draw docs/pictures/chaos.svg from lab/bench/chaos.json.

It runs in a separate environment, in which matplotlib is installed.
"""

import json

import matplotlib as mpl
from matplotlib import pyplot as plt

from lab import REPOSITORY, SHORT, figures

RECORDED = figures("chaos.json")
PICTURES = RECORDED.parent if SHORT else REPOSITORY / "docs" / "pictures"
PUT, ACCEPTED, KILLED, OTHER = "#57534e", "#1558a0", "#c2410c", "#0e8f9e"
TROUBLES = {"throttled": "#e9d8a6", "error": "#f4b6a6", "timeout": "#c9b7e0", "slow": "#cfd8dc"}
LABELS = {"pump": "second pump", "deploy": "deployment", "day": "day closed", "stop": "release stopped"}


def main() -> None:
    """Draw the timeline of the recorded run, and write it as an SVG file."""
    mpl.rcParams.update({"font.size": 12, "svg.hashsalt": "mailroom", "figure.facecolor": "white"})
    recorded = json.loads(RECORDED.read_text())
    seconds, put, accepted, kills = zip(*recorded["timeline"], strict=True)
    drawing, (above, below) = plt.subplots(
        2, figsize=(9, 6), layout="constrained", sharex=True, height_ratios=[3, 1.3]
    )
    above.plot(seconds, put, "--", color=PUT, linewidth=1.6, label="put")
    above.plot(seconds, accepted, color=ACCEPTED, linewidth=2.2, label="accepted by a provider")
    above.set(ylim=(0, None), xlim=(0, seconds[-1]))
    above.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    twin = above.twinx()
    twin.plot(seconds, kills, color=KILLED, linewidth=1.4)
    twin.set(ylim=(0, kills[-1] * 1.6))
    twin.set_ylabel("processes killed", color=KILLED)
    twin.tick_params(axis="y", colors=KILLED)
    for second, kind in recorded["marks"]:
        above.axvline(second, color=OTHER, linewidth=1.2, linestyle=":")
        above.annotate(
            LABELS[kind],
            (second, 0.97),
            xycoords=("data", "axes fraction"),
            rotation=90,
            ha="right",
            va="top",
            color=OTHER,
            fontsize=10,
        )
    above.set_title(
        f"{recorded['messages']:,} messages, {recorded['kills']} processes killed: "
        f"{recorded['lost']} lost, {recorded['sent_twice']} sent twice, {recorded['declared']} declared",
        loc="left",
    )
    above.legend(loc="upper left", frameon=False)
    providers = sorted({window[0] for window in recorded["windows"]}, reverse=True)
    for provider, kind, begins, ends in recorded["windows"]:
        place = providers.index(provider)
        below.broken_barh([(begins, ends - begins)], (place - 0.4, 0.8), color=TROUBLES[kind])
        below.annotate(kind, ((begins + ends) / 2, place), ha="center", va="center", fontsize=8)
    below.set_yticks(range(len(providers)), providers)
    below.set_xlabel(f"seconds; measured {recorded['measured']}")
    below.set_title("Trouble at the providers", loc="left", fontsize=12)
    for axes in (above, below, twin):
        axes.spines[["top"]].set_visible(False)
    drawing.savefig(PICTURES / "chaos.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
