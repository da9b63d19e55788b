"""The wheel, as a team installs it on a machine that has Python alone."""

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mailroom_stacks.paths import BUNDLES, DOT_LOCAL
from tests.support import ROOT

UV = str(Path(sys.executable).with_name("uv"))
SOURCES = (
    *(
        "lambdas",
        "stacks",
        "mailroom_ops",
        "mailroom_local",
        "docs",
        "pyproject.toml",
        "LICENSE",
        "requirements.txt",
    ),
    *(page.name for page in ROOT.glob("*.md")),
)
"""Files and folders of the repository that the wheel is built from."""
VERSION_FILE = "stacks/version_of_the_wheel.py"


@dataclass(frozen=True)
class Environment:
    """A team's folder with its `.venv`, which has the wheel and the packages of its lock, and no others."""

    team: Path
    wheel: Path

    @property
    def version(self) -> str:
        """Version in the name of the wheel."""
        return self.wheel.name.split("-")[1]

    def run(
        self, *words: str, cwd: Path | None = None, variables: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment, by default in the team's folder."""
        folder = self.team / ".venv" / "bin"
        return subprocess.run(
            [str(folder / words[0]), *words[1:]],
            cwd=cwd or self.team,
            env={
                **_variables(self.team.parent),
                "PATH": f"{folder}{os.pathsep}/usr/bin{os.pathsep}/bin",
                "CDK_VALIDATION": "false",
                **(variables or {}),
            },
            capture_output=True,
            text=True,
            check=False,
        )

    def answer(self, *words: str, cwd: Path | None = None, variables: Mapping[str, str] | None = None) -> str:
        """Run a program, and return its output. Fails with its output if it fails."""
        done = self.run(*words, cwd=cwd, variables=variables)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def install(self) -> None:
        """Install the folder's requirements by hash. The cache of this machine's set-up has the files."""
        python = str(self.team / ".venv" / "bin" / "python")
        command = [UV, "pip", "install", "--quiet", "--require-hashes", "--python", python]
        _succeed([*command, "-r", "requirements.txt"], self.team)
        share_bytecode(self.team / ".venv" / Path(sysconfig.get_path("purelib")).relative_to(sys.prefix))


def install(folder: Path) -> Environment:
    """Build the wheel, let it make a team's folder, and install that."""
    wheel = build(ROOT, folder / "dist")
    bare = [sys.executable, "-m", "venv", "--without-pip", str(folder / "bare")]
    _succeed(bare, folder)
    alone = {**_variables(folder), "PYTHONPATH": str(wheel)}
    python = str(folder / "bare" / "bin" / "python")
    environment = Environment(folder / "mail", wheel)
    # In the repository, Python without -P would import the repository's package.
    _succeed([python, "-P", "-m", "mailroom_ops.setup", str(environment.team)], ROOT, alone)
    _succeed([UV, "venv", "--quiet", "--python", sys.executable, ".venv"], environment.team)
    environment.install()
    return environment


def link_caches(team: Path) -> None:
    """Let a team's folder use what set-up has made in this one."""
    (team / ".local").mkdir()
    BUNDLES.mkdir(parents=True, exist_ok=True)
    for cache_folder in (DOT_LOCAL / "ministack", DOT_LOCAL / "cdk", BUNDLES):
        (team / ".local" / cache_folder.name).symlink_to(cache_folder)


def build(sources: Path, output: Path) -> Path:
    """Build a wheel, and return the file."""
    _succeed([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(output)], sources)
    (wheel,) = output.glob("*.whl")
    return wheel


def copy_sources(folder: Path, version: str) -> None:
    """Copy to a folder the sources of the wheel, with other times of change. The copy gets a version, because
    it is without a commit."""
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(
                ROOT / name,
                folder / name,
                copy_function=shutil.copyfile,
                ignore=shutil.ignore_patterns("__pycache__"),
            )
        else:
            shutil.copyfile(ROOT / name, folder / name)
    (folder / VERSION_FILE).write_text(f'__version__ = "{version}"\n')


def share_bytecode(packages: Path) -> None:
    """Give packages the bytecode that the same packages have here: to compile the CDK takes many seconds.
    Python uses bytecode only if its source has the size and time that the bytecode records."""
    here = Path(sysconfig.get_path("purelib"))
    for folder in here.rglob("__pycache__"):
        place = packages / folder.relative_to(here)
        if place.parent.is_dir():
            shutil.copytree(folder, place, copy_function=shutil.copyfile, dirs_exist_ok=True)


def _variables(home: Path) -> dict[str, str]:
    """Return variables of this process, without those that lead to programs, packages or settings of this
    machine. The caches of what set-up has fetched, and of what jsii has unpacked, are used."""
    left_out = ("PYTHONPATH", "VIRTUAL_ENV", "PATH")
    own = {name: value for name, value in os.environ.items() if name not in left_out}
    return {
        **own,
        "HOME": str(home),
        "UV_CACHE_DIR": _cache(),
        "JSII_RUNTIME_PACKAGE_CACHE_ROOT": str(Path.home() / ".cache/aws/jsii/package-cache"),
    }


@cache
def _cache() -> str:
    return subprocess.run([UV, "cache", "dir"], capture_output=True, text=True, check=True).stdout.strip()


def _succeed(command: list[str], cwd: Path, variables: Mapping[str, str] | None = None) -> None:
    done = subprocess.run(command, cwd=cwd, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
