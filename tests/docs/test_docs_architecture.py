"""docs/explanation/architecture.md draws the layers that `make check` holds."""

import inspect
import re
import tomllib

from mailroom.delivery.attempt import Attempt
from tests.support import ROOT
from tests.support.docs_pages import Page

PAGE = Page("docs/explanation/architecture.md")
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]


def test_the_layers_on_the_page_about_architecture_are_those_of_the_import_contract() -> None:
    (layers,) = (each["layers"] for each in CONTRACTS if each.get("containers") == ["mailroom"])
    section = PAGE.text.partition("## The library's layers")[2].partition("\n## ")[0]
    drawn = [set(re.findall(r"`(\w+)`", row)) for row in re.findall(r"^\| (`[^|]*) \|", section, re.M)]
    assert drawn == [set(layer.split(" | ")) for layer in layers]


def test_every_folder_with_python_code_is_on_the_page_about_architecture() -> None:
    folders = {each.name for each in ROOT.iterdir() if any(each.glob("*.py")) or any(each.glob("*/*.py"))}
    section = PAGE.text.partition("## The parts")[2].partition("\n## ")[0]
    drawn = {folder.partition("/")[0] for folder in re.findall(r"`(\w+/)", section)}
    assert {each for each in folders if not each.startswith(".")} <= drawn | {"checkov", "cdk.out"}


def test_the_page_about_architecture_lists_the_steps_of_an_attempt_in_their_order() -> None:
    steps = re.findall(r'"""\d\. (\w+)', inspect.getsource(Attempt))
    assert len(steps) == 6
    assert f"through six steps: {', '.join(steps).lower()}." in " ".join(PAGE.text.split())
