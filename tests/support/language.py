"""Counts habits of language that confuse new readers, and fails if a package has more of them than before.

It reads docstrings, names of tests, comments of tests and of files besides code, and local names of others.

    python -m tests.support.language           compare the counts with the ceilings in language.toml
    python -m tests.support.language --lower   write the ceilings that fell, then compare
    python -m tests.support.language PACKAGE   list the places of a package, the worst first

CONTRIBUTING.md has the rules. A count is a place to look: the aim is a text that a stranger understands.
"""

import ast
import io
import json
import re
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from tests.support import ROOT

CEILINGS = Path(__file__).with_suffix(".toml")
FOLDERS = ("lambdas", "stacks", "mailroom_ops", "mailroom_local", "lab", "tests")
FREE_NAMES = re.compile(r"tests/(?!proof/|oracle/)")
"""Files whose local names are free."""
COMMENTED = re.compile(r"lab/|tests/(?!proof/)")
"""Files of code whose comments are read, too."""
OTHERS = (
    *(
        "SECURITY.md",
        "Makefile",
        ".checkov.yaml",
        ".ci/run",
        ".github/renovate.json",
        ".github/workflows/*.yml",
    ),
    *("requirements-dev.in", "requirements/*.in"),
)
"""Files besides code."""
OTHER_FILES = "other files"
"""Name of the package of OTHERS."""
DEEP = ("lambdas/mailroom/", "stacks/mailroom_stacks/")
"""Folders whose packages are named by three levels instead of two."""
HEADLESS, ODD_NAME = "headless", "odd name"
HABITS = {
    HEADLESS: r"^(What|Who|Whom|Whose|Those|All|One|Its?|They|Theirs|Ours|Each of)\b",
    "possessive without a noun": r"\b[A-Za-z]+'s[.,;:)]|\bof [A-Za-z]+'s (?![a-z]+ )",
    "where for if": r"\b[Ww]here (it|that|there|nobody|nothing|none|this|they|the|an?|one)\b",
    "negated existence": r"\b((is|are|was|has|have|takes|needs|holds) no|[Nn]obody|[Nn]othing)\b",
    "value riddle": r'(None|""|\{\}|\[\]|\(\)|\b0):? ?(:|is) ',
    "pronoun for a subject": r"^(\w+ ){0,3}(its?|them|they|theirs)\b",
    "as it stands": r"\bas \w+ (stands?|has|have|had|says?|does|do|counts?|is|are|was)\b",
}
ODD_NAMES = re.compile(
    "said|told|made|kept|found|asked|wanted|taken|given|named|known|left|gone|heard|seen|shown|held|begun|ended|"
    "chosen|spelt|stays|lacking|opened|worked|moved|noted|dated|judged|refused|unwanted|permitted|elsewhere|there|"
    "those|these|each|one|others?|rest|more|most|least|both|own|odd|about|at|now|then|why|how|what|who|where|news|"
    "once|same"
)
TEST_NAME = re.compile(
    r"(what|whatever|who|whom|whose|those|its?|they|nobody|nothing|here|there)_"
    r"|.*_(stands?|lies|befalls?|says_so|all_the_same|of_itself|as_it_is|minds)(_|$)"
    r"|.*_rings?_nothing(_|$)|.*_where_(it|there|nobody|nothing|none|this|they)_"
)
"""Names of tests without a subject, or with a word that means something else elsewhere."""
HEADER = """\
# Ceilings of headless texts, texts with any habit, and odd local names. Packages without a row: 0.
# They only fall: if a count rises, reword the text. `python -m tests.support.language --lower` lowers them. A
# renamed package keeps its row under the new name.
"""
COUNTS = ("headless", "habits", "odd_names")
Ceilings = dict[str, dict[str, int]]
"""The highest number of each of COUNTS by package."""


class Place(NamedTuple):
    """A text or a local name with a habit."""

    package: str
    path: str
    line: int
    habits: tuple[str, ...]
    text: str

    def adds_to(self, count: str) -> bool:
        """Return whether the place is part of one of COUNTS."""
        if count == "headless":
            return HEADLESS in self.habits
        return (ODD_NAME in self.habits) == (count == "odd_names")


def _docstrings(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """Yield the lines and texts of docstrings, those of fields too."""
    for node in nodes:
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        documents = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        for before, statement in zip([None, *body], body, strict=False):
            follows = documents if before is None else isinstance(before, ast.Assign | ast.AnnAssign)
            match statement:
                case ast.Expr(value=ast.Constant(value=str(text))) if follows:
                    yield statement.lineno, " ".join(text.split())


def _comments(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yield the lines and texts of comments. Comments on consecutive lines are one text."""
    text, first, before = "", 0, 0
    for number, line in enumerate(lines, 1):
        code, mark, comment = line.partition("#")
        follows = not code.strip() and before == number - 1
        if text and not (mark and follows):
            yield first, text
            text = ""
        if mark and not re.match(r"!|: ?|\s*(noqa|type:|v?\d+[.\d]*$)", comment):
            words = comment.strip("# ")
            text, first = (f"{text} {words}", first) if text else (words[:1].upper() + words[1:], number)
            before = number if not code.strip() else 0
    if text:
        yield first, text


def _comment_lines(source: str) -> list[str]:
    """Return the lines of a module with blanks in place of all but comments."""
    lines = [""] * (source.count("\n") + 1)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            code = "." if token.line[: token.start[1]].strip() else ""
            lines[token.start[0] - 1] = code + token.string
    return lines


def _texts_besides_code(file: Path) -> Iterator[tuple[int, str]]:
    """Yield the texts of a file besides code: paragraphs of a page, descriptions, or comments."""
    source = file.read_text()
    if file.suffix == ".md":
        starts = [0, *(match.end() for match in re.finditer(r"\n\n|\n(?=- )", source)), len(source)]
        for start, end in pairwise(starts):
            yield source.count("\n", 0, start) + 1, " ".join(source[start:end].strip("-# \n").split())
    elif file.suffix == ".json":
        for match in re.finditer(r'"description": (\[[^\]]*\]|"[^"]*")', source):
            description = json.loads(match[1])
            texts = [description] if isinstance(description, str) else description
            yield from ((source.count("\n", 0, match.start()) + 1, text) for text in texts)
    else:
        yield from _comments(re.sub(r"(?<=\S)#", "", source).splitlines())


def _test_names(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """Yield the lines and names of tests, without `test_`."""
    for node in nodes:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield node.lineno, node.name.removeprefix("test_")


def _local_names(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """Yield each function's parameters and local names once, with a line."""
    for function in nodes:
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            parameters = function.args.args + function.args.kwonlyargs
            lines = {parameter.arg: parameter.lineno for parameter in parameters}
            for node in ast.walk(function):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    lines.setdefault(node.id, node.lineno)
            yield from ((line, name) for name, line in lines.items())


def _names(path: str, nodes: list[ast.AST]) -> Iterator[tuple[int, str, str]]:
    """Yield the line, the name and the habit of each name in a file that has one."""
    if path.startswith("tests/"):
        yield from ((line, name, HEADLESS) for line, name in _test_names(nodes) if TEST_NAME.match(name))
    if not FREE_NAMES.match(path):
        yield from ((line, name, ODD_NAME) for line, name in _local_names(nodes) if ODD_NAMES.fullmatch(name))


def _places_in(package: str, path: str, texts: Iterable[tuple[int, str]]) -> Iterator[Place]:
    """Yield the texts of a file that have a habit."""
    for line, text in texts:
        if habits := tuple(name for name, pattern in HABITS.items() if re.search(pattern, text)):
            yield Place(package, path, line, habits, text)


def read_places(root: Path) -> Iterator[Place]:
    """Yield the places with a habit in all packages of a checkout."""
    for file in sorted(file for folder in FOLDERS for file in (root / folder).rglob("*.py")):
        path = file.relative_to(root)
        if "tests" in path.parts[1:]:  # the tests of a new project
            continue
        package = "/".join(path.parts[:-1][: 3 if str(path).startswith(DEEP) else 2])
        source = file.read_text()
        nodes = list(ast.walk(ast.parse(source)))
        yield from _places_in(package, str(path), _docstrings(nodes))
        if COMMENTED.match(str(path)):
            yield from _places_in(package, str(path), _comments(_comment_lines(source)))
        for line, name, habit in _names(str(path), nodes):
            yield Place(package, str(path), line, (habit,), name)
    for file in sorted(file for pattern in OTHERS for file in root.glob(pattern)):
        yield from _places_in(OTHER_FILES, str(file.relative_to(root)), _texts_besides_code(file))


def counts_of(places: Iterable[Place]) -> Counter[tuple[str, str]]:
    """Return how many places each package has of each of COUNTS."""
    return Counter((place.package, name) for place in places for name in COUNTS if place.adds_to(name))


def worst(places: Iterable[Place]) -> list[str]:
    """Describe places, one a line. Docstrings with several habits come first."""
    ordered = sorted(places, key=lambda place: (-len(place.habits), place.path, place.line))
    return [f"  {path}:{line} {', '.join(habits)}: {text[:100]}\n" for _, path, line, habits, text in ordered]


def differences(places: Sequence[Place], ceilings: Ceilings) -> list[str]:
    """Describe each count that is not its ceiling, with the ten worst places if it rose."""
    counts = counts_of(places)
    lines = []
    for package in sorted({*ceilings, *(package for package, _ in counts)}):
        for name in COUNTS:
            count, ceiling = counts[package, name], ceilings.get(package, {}).get(name, 0)
            if count > ceiling:
                lines.append(f"{package}: {name} rose from {ceiling} to {count}. The worst places:\n")
                rising = (place for place in places if place.package == package and place.adds_to(name))
                lines += worst(rising)[:10]
            elif count < ceiling:
                lines.append(
                    f"{package}: {name} fell to {count}. Run it with --lower to keep what you won.\n"
                )
    return lines


def lower(places: Iterable[Place], ceilings: Ceilings) -> str:
    """Return the text of language.toml with each ceiling lowered to its count, and none raised."""
    counts = counts_of(places)
    text = HEADER
    for package, row in sorted(ceilings.items()):
        values = [f"{name} = {min(row[name], counts[package, name])}" for name in COUNTS]
        if any(counts[package, name] for name in COUNTS):
            text += f'"{package}" = {{ {", ".join(values)} }}\n'
    return text


def main(arguments: list[str], root: Path = ROOT, file: Path = CEILINGS) -> int:
    """Return the exit code: 1 if a count is not its ceiling."""
    places = list(read_places(root))
    if arguments == ["--lower"]:
        file.write_text(lower(places, tomllib.loads(file.read_text())))
    elif arguments:
        sys.stdout.writelines(worst(place for place in places if place.package in arguments))
        return 0
    lines = differences(places, tomllib.loads(file.read_text()))
    sys.stdout.writelines(lines)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
