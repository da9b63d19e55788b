"""The table of docs/reference/limits.md: each release's last rehearsal, of docs/rehearsals. `make schema`
writes the table."""

import re
from pathlib import Path

import msgspec

from mailroom_ops.deploying.rehearse import Report
from tests.support import ROOT

FOLDER = ROOT / "docs" / "rehearsals"
"""Folder of reports, a file a release, such as 0.3.0.json: what `mailroom rehearse --json` printed."""
PAGE = ROOT / "docs" / "reference" / "limits.md"
BEGIN, END = "<!-- made by `make schema` -->\n", "<!-- until here -->\n"
NONE = "**None yet: nobody has rehearsed Mailroom in an account of AWS.**"
HEAD = """\
| release | day | region | as it should be | put to accepted | put to delivered | with |
|---|---|---|---|---|---|---|
"""


def table(folder: Path) -> str:
    """Return the table of the reports in a folder. Raises ValueError for a report that is not of a
    release, or not of the release that its file names, or that has an address or the number of an account."""
    files = sorted(folder.glob("*.json"), key=_number, reverse=True)
    return HEAD + "\n".join(map(_row, files)) if files else NONE


def page(text: str, folder: Path = FOLDER) -> str:
    """Return the page with its table made anew."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{table(folder)}\n\n{END}{rest.partition(END)[2]}"


def _number(file: Path) -> list[int]:
    """Return the number of a report's release. Raises ValueError for the report of another build."""
    if not re.fullmatch(r"\d+(\.\d+)*", file.stem):
        raise ValueError(f"{file.name}: is not of a release, such as 0.3.0; rehearse with a release's wheel")
    return [int(part) for part in file.stem.split(".")]


def _row(file: Path) -> str:
    text = file.read_text()
    if found := re.search(r"\S+@\S+|\d{12}", text):
        raise ValueError(f"{file.name}: {found[0]} is an address or an account; take it out")
    report = msgspec.json.decode(text, type=Report)
    release = report.versions["mailroom"]
    if release != file.stem:
        raise ValueError(f"{file.name}: the report is of {release}; name the file {release}.json")
    right = sum(step.ok for step in report.steps)
    wrong = "".join(f"; not: {step.step} ({step.outcome})" for step in report.steps if not step.ok)
    tools = ", ".join(f"{name} {version}" for name, version in report.versions.items() if name != "mailroom")
    seconds = (_range(report, station) for station in ("accepted", "delivered"))
    cells = (release, report.day, report.region, f"{right} of {len(report.steps)}{wrong}", *seconds, tools)
    return f"| {' | '.join(cells)} |"


def _range(report: Report, station: str) -> str:
    times = [step.seconds[station] for step in report.steps if station in step.seconds]
    return f"{min(times)} to {max(times)} s" if times else ""


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
