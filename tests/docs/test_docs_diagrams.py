"""The documentation's diagrams can be drawn, as far as their text alone shows it."""

import re
from collections.abc import Iterator, Sequence

import pytest

from tests.support.docs_pages import Page, docs_pages

PATHS = [page.path for page in docs_pages()]
DIAGRAMS = ("flowchart", "sequenceDiagram", "stateDiagram-v2")
MESSAGE = re.compile(r"[\w ]+?(-->>|->>|--x|-x)[\w ]+: [^;]+|Note over [\w ,]+: [^;]+|participant \w+ as .+")


@pytest.mark.parametrize("path", PATHS)
def test_every_diagram_has_a_known_type_balanced_brackets_and_declared_participants(path: str) -> None:
    for block in Page(path).blocks("mermaid"):
        first, *lines = [line.strip() for line in block.text.splitlines() if line.strip()]
        assert first.split()[0] in DIAGRAMS, first
        assert _balanced(block.text), f"{path}: {first}"
        if first == "sequenceDiagram":
            assert [line for line in lines if not MESSAGE.fullmatch(line)] == []
            assert _speakers(lines) <= _participants(lines), f"{path}: {lines[0]}"


def _balanced(text: str) -> bool:
    """Whether each bracket has its partner, outside of what is quoted; flags (a>text]) and arrows aside."""
    bare = re.sub(r'"[^"\n]*"|<br>|\w+>[^\]\n]+\]|[<>]', "", text)
    if '"' in bare:
        return False
    opened: list[str] = []
    partners = {")": "(", "]": "[", "}": "{"}
    for each in bare:
        if each in partners.values():
            opened.append(each)
        elif each in partners and (not opened or opened.pop() != partners[each]):
            return False
    return not opened


def _participants(lines: Sequence[str]) -> set[str]:
    return {line.split()[1] for line in lines if line.startswith("participant ")}


def _speakers(lines: Sequence[str]) -> set[str]:
    return set(_named(lines))


def _named(lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        who = line.partition(":")[0]
        if who.startswith("Note over "):
            yield from (each.strip() for each in who.removeprefix("Note over ").split(","))
        elif not who.startswith("participant "):
            yield from (each.strip() for each in re.split(r"-->>|->>|--x|-x", who))
