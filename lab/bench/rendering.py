"""CPU time of a rendering: cold, which reads and compiles the template, and warm; with one template and with
200.

Each figure is the lowest of many runs, each in a process of its own, because other load can only increase the
time.
"""

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from lab import REPOSITORY, size
from lab.bench.functions import in_a_process, report

ROUNDS = size(10, 1)
PASSES = size(400, 10)
COUNTS = (1, size(200, 2))
"""Numbers of templates."""
OURS = "weekly-followers"
VARIABLES = {
    "first_name": "Ada",
    "new_followers": 7,
    "followers": ["Grace Hopper", "Alan Turing", "Mary Shelley"],
    "unsubscribe_url": "https://example.com/unsubscribe/x",
}


def measure() -> dict[str, Any]:
    """Return the CPU time of one rendering in microseconds, by figure name: cold and warm, for each number of
    templates."""
    figures: dict[str, Any] = {}
    for kind in ("cold", "warm"):
        for count in COUNTS:
            rounds = [in_a_process("lab.bench.rendering", kind, str(count)) for _ in range(ROUNDS)]
            figures[f"render_us_{kind}_{count}"] = round(min(rounds), 1)
    return figures


def _measured(kind: str, root: Path, names: list[str]) -> float:
    """Return the CPU time of one rendering in this process, in microseconds."""
    from mailroom.content.templates import Templates

    def rendered(templates: Templates, passes: int) -> float:
        began = time.process_time()
        for number in range(passes):
            templates.render(names[number % len(names)], VARIABLES)
        return (time.process_time() - began) / passes * 1e6

    templates = Templates(root)
    cold = rendered(templates, len(names))
    return cold if kind == "cold" else min(rendered(templates, PASSES) for _ in range(5))


def main() -> None:
    """Measure one figure, with `count` copies of a template. This is the entry point of the process that
    `measure` starts."""
    kind, count = sys.argv[1], int(sys.argv[2])
    source = REPOSITORY / "templates" / "mail" / OURS
    with tempfile.TemporaryDirectory() as folder:
        # The templates get a relative path, as in a bundle: the engine does not check files with such a path
        # for changes.
        os.chdir(folder)
        names = [f"copy-{number}" for number in range(count)]
        for name in names:
            Path("mail", name).mkdir(parents=True)
            for part in source.glob("*.*"):
                Path("mail", name, part.name).write_bytes(part.read_bytes())
        report(_measured(kind, Path("mail"), names))


if __name__ == "__main__":
    main()
