"""Which tests share a process, and which come first, so that no core waits at the end."""

PIPELINE = "tests/pipeline/"
OWN = f"{PIPELINE}test_documented_deploy.py"
"""A test of the pipeline that has an emulator of its own, and no stage."""
LAST = f"{PIPELINE}test_whole_stage.py"
"""Judges all that the stage did, so it comes last there."""
LONGEST = (
    OWN,
    "tests/release/",
    "tests/stacks/",
    "tests/postgres/",
    "tests/faults/",
    "tests/model/",
    "tests/ops/",
    "tests/local/",
)
"""Beginnings of files' names, in the order of what they take: the end is not one long file on one core."""


def scope(nodeid: str) -> str:
    """Return what a test shares its process with: its file, or the stage of the pipeline."""
    path = nodeid.partition("::")[0]
    return path if path == OWN or not path.startswith(PIPELINE) else PIPELINE


def place(nodeid: str) -> tuple[int, int, str]:
    """Return the sort key of a test: the stage's tests first, its LAST at their end, then the LONGEST."""
    path = nodeid.partition("::")[0]
    group = scope(nodeid)
    if group != path:
        return (0, int(path == LAST), group)
    names = [at for at, beginning in enumerate(LONGEST, 1) if path.startswith(beginning)]
    return (names[0] if names else len(LONGEST) + 1, 0, "")
