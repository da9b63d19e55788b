"""The project's app, and the CDK's command line in the version that this package was tested with."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from mailroom_ops.shared.installed import beside, installed, run_locked
from mailroom_stacks.paths import DOT_LOCAL, PROJECT

LOCK = Path(__file__).parent
FILES = ("package.json", "package-lock.json", ".npmrc")


def cdk() -> Path:
    """Return the path of the CDK's program. The first call installs it below .local. Raises Refused if npm
    fails."""
    folder = installed(DOT_LOCAL / "cdk", [LOCK / name for name in FILES], _install)
    return folder / "node_modules" / ".bin" / "cdk"


def _install(folder: Path) -> None:
    for name in FILES:
        shutil.copyfile(LOCK / name, folder / name)
    run_locked(beside("npm"), "ci", "--loglevel", "error", "--prefix", str(folder))


def environment() -> Mapping[str, str]:
    """Return the environment variables for the CDK and the app, with the Node.js that the CDK was tested
    with."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {
        **variables,  # Without bytecode, each process would compile all libraries again.
        "PATH": path,
        "CDK_DISABLE_CLI_TELEMETRY": "true",
        "JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION": "true",
    }


def run_app(
    context: Mapping[str, object], output: str | Path, *, quiet: bool = False, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run the project's app, which writes the templates of a stage to `output`. It runs in a new process, so
    that the CDK's Node.js process ends with it. The app's notes and errors go to stderr; with `quiet`, they
    are only in the result."""
    options = [f"--context={key}={value}" for key, value in context.items()]
    command = [sys.executable, "app.py", *options, "--output", str(output)]
    return _run(command, subprocess.PIPE, subprocess.PIPE if quiet else None, variables)


def compare(assembly: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Compare an assembly's templates with the deployed ones in the account and region of `variables`,
    without a change set. The output is only in the result."""
    options = ("--app", str(assembly), "--method", "template", "--no-color", "--quiet")
    return run("diff", *options, quiet=True, **variables)


def run(*arguments: str, quiet: bool = False, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the CDK's program in the project's folder. With `quiet`, its output is only in the result."""
    stdout, stderr = (subprocess.PIPE, subprocess.STDOUT) if quiet else (None, None)
    return _run([str(cdk()), *arguments], stdout, stderr, variables)


def _run(
    command: list[str], stdout: int | None, stderr: int | None, variables: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    env = {**environment(), **variables}
    return subprocess.run(  # noqa: S603 - no shell
        command, cwd=PROJECT, env=env, stdout=stdout, stderr=stderr, text=True, check=False
    )
