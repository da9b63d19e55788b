"""Which tests share a process, and which come first: two processes are busy for about as long."""

PIPELINE = "tests/pipeline/"
OWN = f"{PIPELINE}test_documented_deploy.py"
"""A test of the pipeline that has an emulator of its own, and no stage."""
LAST = f"{PIPELINE}test_whole_stage.py"
"""Judges all that its stage did, so it comes last on each: which one, its tests' parameter says."""
ON_THE_SECOND = {
    f"{PIPELINE}test_{name}.py"
    for name in (
        "burst",
        "day_limit",
        "erase",
        "every_channel",
        "fax_by_telnyx",
        "import_to_mailbox",
        "redrive",
        "repeated_puts",
        "send_at",
        "webhooks_sent",
        "what_comes_back",
    )
}
"""A stage's tests run in one process. Two stages, side by side, take half the time: as long as each has about
half of the work, which `pytest --durations=0` tells."""
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
    """What the test shares a process with: its file, or all tests of its stage."""
    path, _, name = nodeid.partition("::")
    if not path.startswith(PIPELINE) or path == OWN:
        return path
    second = path in ON_THE_SECOND or (path == LAST and "[second" in name)
    return f"{PIPELINE}{'second' if second else 'first'}"


def place(nodeid: str) -> tuple[int, int, str]:
    """Where a test comes: by its scope, and there as it was collected, but for what is last on its stage."""
    path = nodeid.partition("::")[0]
    group = scope(nodeid)
    if group != path:
        return (0, int(path == LAST), group)
    names = [at for at, beginning in enumerate(LONGEST, 1) if path.startswith(beginning)]
    return (names[0] if names else len(LONGEST) + 1, 0, "")
