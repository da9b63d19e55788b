"""Which tests share a process, and which come first, so that no core waits at the end."""

PIPELINE = "tests/pipeline/"
OWN = f"{PIPELINE}test_documented_deploy.py"
"""A test of the pipeline that has an emulator of its own, and no stage."""
LAST = f"{PIPELINE}test_whole_stage.py"
"""Judges all that the stage did, so it comes last there."""
SHARING = (PIPELINE, "tests/local/", "tests/postgres/", "tests/stacks/")
"""Folders whose tests share something that takes seconds to start: a stage, an emulator, a database server,
the process of Node in which the CDK runs."""
ORDER = (
    PIPELINE,
    "tests/release/",
    "tests/stacks/",
    "tests/local/",
    "tests/postgres/",
    "tests/model/",
    "tests/faults/",
    "tests/ops/",
)
"""Folders whose tests take longest, in the order in which they start; all others follow."""


def scope(nodeid: str) -> str:
    """Return what a test shares its process with: its file, or its folder if that is SHARING."""
    path = nodeid.partition("::")[0]
    folders = [folder for folder in SHARING if path.startswith(folder) and path != OWN]
    return folders[0] if folders else path


def place(nodeid: str) -> tuple[int, bool, bool]:
    """Return the sort key of a test: the place of its folder in ORDER, with OWN after the tests of the stage,
    and LAST as the last of these."""
    path = nodeid.partition("::")[0]
    places = [place for place, folder in enumerate(ORDER) if path.startswith(folder)]
    return (places[0] if places else len(ORDER), path == OWN, path == LAST)
