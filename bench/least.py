"""`make least`: bench/least.json keeps the least that each count was since the last release. A test fails on
more, until CHANGELOG.md names it. No clock is read: every machine counts the same."""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from bench import REPOSITORY, counted
from stacks.paths import LAMBDAS, TEMPLATES

LEAST = REPOSITORY / "bench" / "least.json"
CHANGELOG = REPOSITORY / "CHANGELOG.md"
SLACK = {"bundle_kb": 0.01}
"""The share by which a figure may differ: a line of code makes a bundle larger, and is no news."""


def count(bundles: Mapping[str, Path]) -> dict[str, float]:
    """Every count, by the name that a note in the changelog has to use; `bundles` has the folder of each
    handler, as it goes to AWS."""
    mails = counted.mails()
    figures = {name: mails[name] for name in ("write_units_per_mail", "log_lines_per_mail")}
    figures |= {f"calls_by_name.{name}": calls for name, calls in mails["calls_by_name"].items()}
    for handler, folder in bundles.items():
        # Only a machine with the functions' own version of Python writes bytecode.
        files = [each for each in folder.rglob("*") if each.is_file() and each.suffix != ".pyc"]
        modules = [each for each in (folder / "mailroom").rglob("*.py") if each.name != "__init__.py"]
        figures[f"bundle_kb.{handler}"] = round(sum(each.stat().st_size for each in files) / 1000)
        figures[f"modules.{handler}"] = len(modules)
    return dict(sorted(figures.items()))


def release() -> str:
    """The last release."""
    version: str = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["version"]
    return version


def faults(now: Mapping[str, float], least: Mapping[str, float], changelog: str) -> Iterator[str]:
    """A sentence for each figure that is neither what it was nor what the changelog says of it."""
    unreleased = changelog.partition("\n## [Unreleased]")[2].partition("\n## [")[0]
    for name in sorted({*now, *least}):
        figure, before = now.get(name, 0), least.get(name, 0)
        slack = SLACK.get(name.partition(".")[0], 0)
        noted = re.search(rf"`{re.escape(name)}`\s+(\d+(?:\.\d+)?)", unreleased)
        if figure < before * (1 - slack):
            yield f"`{name}` fell from {before} to {figure}: run `make least`, so that it stays there."
        elif figure <= before * (1 + slack):
            if noted:
                yield f"`{name}` is {figure} as before: take its {noted[1]} out of CHANGELOG.md."
        elif not noted or abs(figure - float(noted[1])) > slack * figure:
            yield (
                f"`{name}` grew from {before} to {figure}: make it smaller again, or say why in "
                f"CHANGELOG.md, under Unreleased, with these words in the text: `{name}` {figure}."
            )


def lowered(now: Mapping[str, float], least: Mapping[str, float]) -> dict[str, float]:
    """The least of both; a figure that is new was 0, and stays away until the next release."""
    return {name: min(figure, now[name]) for name, figure in least.items() if name in now}


def _build(folder: Path) -> Iterator[tuple[str, Path]]:
    from stacks.constructs.bundle import Bundle, Target  # not above: the CDK takes seconds

    for handler in (file.stem for file in LAMBDAS.glob("*.py")):
        channel = handler.removeprefix("send_")
        templates = channel if (TEMPLATES / channel).exists() else ""
        Bundle(handler, Target("aarch64-manylinux_2_28"), templates=templates).build(folder / handler)
        yield handler, folder / handler


def main() -> None:
    """Keep what fell, and say what grew. After a release all begins anew."""
    with TemporaryDirectory() as folder:
        now = count(dict(_build(Path(folder))))
    kept = json.loads(LEAST.read_text())
    least = lowered(now, kept["least"]) if kept["release"] == release() else now
    LEAST.write_text(json.dumps({"release": release(), "least": least}, indent=2) + "\n")
    for fault in faults(now, least, CHANGELOG.read_text()):
        print(fault)


if __name__ == "__main__":
    main()
