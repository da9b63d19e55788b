"""The wheel, installed where nothing else of this repository is on the path."""

import os
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.support import ROOT

PROGRAMS = ("uv", "node", "npm")
"""What this environment brings beside packages, and commands look for beside their interpreter."""


@dataclass(frozen=True)
class Environment:
    """An environment with the wheel in it. Other packages are those of this one: a fresh environment is half
    a gigabyte of CDK."""

    folder: Path

    def run(
        self, *words: str, cwd: Path, variables: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment, as a shell does where it is activated."""
        own = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
        path = f"{self.folder / 'bin'}{os.pathsep}{own['PATH']}"
        return subprocess.run(
            [str(self.folder / "bin" / words[0]), *words[1:]],
            cwd=cwd,
            env={**own, "PATH": path, "CDK_VALIDATION": "false", **(variables or {})},
            capture_output=True,
            text=True,
            check=False,
        )

    def answer(self, *words: str, cwd: Path, variables: Mapping[str, str] | None = None) -> str:
        """What it prints; fails with what it says where it fails."""
        done = self.run(*words, cwd=cwd, variables=variables)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def install(folder: Path) -> Environment:
    """Build the wheel, and install it alone."""
    uv = str(Path(sys.executable).with_name("uv"))
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "dist")]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = (folder / "dist").glob("*.whl")
    environment = folder / "environment"
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, str(environment)], check=True)
    python = str(environment / "bin" / "python")
    alone = ("--no-deps", "--no-index")
    subprocess.run([uv, "pip", "install", "--quiet", *alone, "--python", python, str(wheel)], check=True)
    (packages,) = environment.glob("lib/python3.*/site-packages")
    (packages / "reused.pth").write_text(sysconfig.get_path("purelib"))  # whose own .pth files are not read
    for program in PROGRAMS:
        (environment / "bin" / program).symlink_to(Path(sys.executable).with_name(program))
    return Environment(environment)
