"""CPU time of a rendering in a bundle: cold, which reads and compiles the template, and warm.

Each figure is the lowest of many runs, each in a process of its own, because other load can only increase the
time.
"""

import time
from pathlib import Path
from typing import Any

from lab import size
from lab.bench.functions import in_a_process, report

ROUNDS = size(10, 1)
PASSES = size(400, 10)
TEMPLATE = "weekly-followers"
VARIABLES = {
    "first_name": "Ada",
    "new_followers": 7,
    "followers": ["Grace Hopper", "Alan Turing", "Mary Shelley"],
    "unsubscribe_url": "https://example.com/unsubscribe/x",
}


def measure() -> dict[str, Any]:
    """Return the CPU time of one rendering in microseconds, cold and warm."""
    rounds = [in_a_process("lab.bench.rendering") for _ in range(ROUNDS)]
    return {f"render_us_{kind}": round(min(run[kind] for run in rounds), 1) for kind in ("cold", "warm")}


def main() -> None:
    """Measure both figures. This is the entry point of the process that `measure` starts."""
    from mailroom.content.templates import Templates

    # A relative path, as in a bundle: the engine does not check files with such a path for changes.
    templates = Templates(Path("templates", "mail"))

    def rendered(passes: int) -> float:
        began = time.process_time()
        for _ in range(passes):
            templates.render(TEMPLATE, VARIABLES)
        return (time.process_time() - began) / passes * 1e6

    report({"cold": rendered(1), "warm": min(rendered(PASSES) for _ in range(5))})


if __name__ == "__main__":
    main()
