"""Data of the simulators, which outlive a restart of their process.

Data are the lists, dictionaries, sets, flags and Disorders that are attributes of a simulator or of an object
that it uses. Other attributes are settings and methods, which the code of the new process determines.
"""

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mailroom_local.providers.delay_queue import Disorder

DATA = (list, dict, set, bool, Disorder)


def attributes_of(owner: dict[str, Any], path: str = "") -> Iterator[tuple[dict[str, Any], str, str]]:
    """Yield the attributes of an owner, such as `vars(simulator)`, and of the objects that it uses: the owner
    of each, its name, and the path to it, such as `.ses._simulator.inbox._accepted`."""
    for name, value in owner.items():
        yield owner, name, f"{path}.{name}"
        # The classes of simulators are in one of these packages.
        if type(value).__module__.startswith(("mailroom_local.", "channels.")) and hasattr(value, "__dict__"):
            yield from attributes_of(vars(value), f"{path}.{name}")


def store(simulators: dict[str, Any], file: Path) -> None:
    """Write the data to a file that only this user can read. Afterwards no thread can change data, because
    all locks are held, so the process has to end."""
    attributes = [*attributes_of(simulators)]
    for lock in {owner[name] for owner, name, _ in attributes if hasattr(owner[name], "acquire")}:
        lock.acquire()
    data = {path: owner[name] for owner, name, path in attributes if isinstance(owner[name], DATA)}
    file.touch(mode=0o600)
    file.write_bytes(pickle.dumps(data))


def restore(simulators: dict[str, Any], file: Path | None) -> None:
    """Read the data from the file if there is one. The data of an attribute that was renamed are dropped."""
    if file and file.exists():
        stored = pickle.loads(file.read_bytes())  # noqa: S301 - only `store` writes the file
        for owner, name, path in attributes_of(simulators):
            owner[name] = stored.get(path, owner[name])
