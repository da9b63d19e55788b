"""Runs the commands of pages as a reader types them: by a shell, in order, at a terminal."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pexpect  # type: ignore[import-untyped] # it has no py.typed

from mailroom_stacks.paths import DOT_LOCAL
from tests.support import ROOT
from tests.support.docs_pages import Page
from tests.support.release.installed import share_bytecode

SECONDS = 900
"""Maximum seconds of one shell."""
READING_SECONDS = 2
"""Pause of a reader between two commands. In this time, the events about a message arrive."""
ROWS, COLUMNS = 400, 140
"""Size of the terminal. On a smaller one, long answers would open a pager."""
ANSWERS = {
    r"Mails per second that SES allows you.*: $": "\n",
    r"The sender address of mails.*: $": "ada@example.com\n",
    r"The address that gets alarms.*: $": "\n",
    r"Run it now\? \[Y/n\]: $": "y\n",
    r"use --identity domain\.\) \[Y/n\]: $": "\n",
    r"deploy these changes\?\S* \(y/n\)": "y\n",
}
"""Text that a reader types, by the pattern of the question at the end of the output so far."""
FAILED = "A printed command failed"


class Command(NamedTuple):
    """A command of a page's shell block, with its comments and continued lines."""

    page: str
    section: str
    text: str

    @property
    def name(self) -> str:
        """Text without comments and line breaks, by which lists of commands name it."""
        lines = (re.sub(r"(^|\s+)#\s.*", "", line) for line in self.text.splitlines())
        return " ".join(" ".join(lines).replace("\\ ", " ").split())


def commands_of(path: str) -> Iterator[Command]:
    """Yield the commands of a page's `sh` blocks, in order, each with the heading of its section."""
    page = Page(path)
    headings = re.split(r"^(#+ .*)$", page.text, flags=re.MULTILINE)
    blocks = [block.text for block in page.blocks("sh")]
    position = 0
    for block in blocks:
        first = block.splitlines()[0].strip()
        position = page.text.index(first, position)
        sections = [line for line in page.text[:position].splitlines() if re.match(r"##+ ", line)]
        section = sections[-1] if sections else headings[1]
        yield from (Command(path, section, text) for text in _split(block))


def _split(block: str) -> Iterator[str]:
    """Yield the commands of a block. A command ends at the line with which the shell could run it."""
    lines: list[str] = []
    for line in block.splitlines():
        lines.append(line)
        text = "\n".join(lines)
        if not text.endswith("\\") and _complete(text):
            if re.search(r"^\s*[^#\s]", text, re.MULTILINE):
                yield text
            lines = []
    assert lines == [], f"the shell cannot run {lines}"


@cache
def _complete(text: str) -> bool:
    return subprocess.run(["bash", "-n", "-c", text], capture_output=True, check=False).returncode == 0


def run_in_shell(
    commands: list[Command], folder: Path, variables: Mapping[str, str], before: str, after: str
) -> str:
    """Run commands in a shell at a terminal, and return the output. `before` and `after` are the shell's own
    first and last commands. Fails with the output at the first command that fails."""
    script = [before]
    for command in commands:
        words = f"{command.page}: {command.name}"
        script += [
            f"printf '%s\\n' {_quoted(f'$ {words}')}",
            f"{{ {command.text}",
            f"}} || fail {_quoted(words)}",
            f"sleep {READING_SECONDS}",
        ]
    script += [after]
    preamble = f'fail() {{ printf "{FAILED}: %s\\n" "$1"; {after}; exit 9; }}'
    file = folder.parent / f"{folder.name}-commands.sh"
    file.write_text("\n".join([preamble, *script]))
    output, code = pexpect.run(
        f"bash --noprofile --norc {file}",
        timeout=SECONDS,
        withexitstatus=True,
        events=ANSWERS,
        cwd=folder,
        env=dict(variables),
        encoding="utf-8",
        codec_errors="replace",
        dimensions=(ROWS, COLUMNS),
    )
    assert code == 0, f"{output[-6000:]}\nexit code {code}"
    return str(output)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


PIP_BY_UV = (
    'pip() { "$MAILROOM_TEST_UV" pip "$@" && '
    f'(cd {ROOT} && {sys.executable} -m tests.support.printed "$VIRTUAL_ENV"); }}'
)
"""The shell's function `pip`: uv installs the same files by the same hashes from its cache, with their
bytecode, in seconds. pip itself needs two minutes."""


def clone(folder: Path) -> Path:
    """Make a fresh clone of the repository, with the changes that are not committed yet."""
    if not (ROOT / ".git").exists():  # a source archive
        generated = shutil.ignore_patterns(".venv", ".local", "cdk.out", "dist", "__pycache__")
        return Path(shutil.copytree(ROOT, folder, ignore=generated))
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder)], check=True)
    listed = ("git", "ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate")
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    for name in names:
        source, copy = ROOT / name, folder / name
        if not source.exists():
            copy.unlink(missing_ok=True)
        elif not copy.exists() or copy.read_bytes() != source.read_bytes():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, copy)
    return folder


PROGRAMS = {
    "python3": Path(getattr(sys, "_base_executable", sys.executable)),
    "node": Path(sys.executable).with_name("node"),
    "npm": Path(sys.executable).with_name("npm"),
    "aws": DOT_LOCAL / "awscli" / "bin" / "aws",
}


def programs(variables: Mapping[str, str], *names: str) -> Path:
    """Return a folder with these programs alone, below the shell's HOME."""
    folder = Path(variables["HOME"], "-".join(("bin", *names)))
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        if not (folder / name).exists():
            (folder / name).symlink_to(PROGRAMS[name])
    return folder


def variables_of(home: Path) -> dict[str, str]:
    """Return the environment of a shell on a machine with Python, make and git: an empty HOME, no
    configuration of AWS, and the caches that set-up has filled on this machine."""
    python = programs({"HOME": str(home)}, "python3")
    uv = Path(sys.executable).with_name("uv")
    caches = {
        "UV_CACHE_DIR": subprocess.run(
            [uv, "cache", "dir"], capture_output=True, text=True, check=True
        ).stdout.strip(),
        "JSII_RUNTIME_PACKAGE_CACHE_ROOT": str(Path.home() / ".cache/aws/jsii/package-cache"),
        "npm_config_cache": str(Path.home() / ".npm"),
        "npm_config_prefix": str(home / "npm"),
    }
    own = ("PIP_", "UV_", "SSL_", "NODE_EXTRA", "NPM_CONFIG", "npm_config", "LANG", "LC_")
    kept = {name: value for name, value in os.environ.items() if name.startswith(own)}
    return {
        **kept,
        **caches,
        "HOME": str(home),
        "PATH": os.pathsep.join(map(str, (python, home / "npm" / "bin", "/usr/bin", "/bin"))),
        "TERM": "xterm",
        "MAILROOM_TEST_UV": str(uv),
        "CDK_VALIDATION": "false",
        "CDK_DISABLE_CLI_TELEMETRY": "true",
        "JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION": "true",
        "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1",
    }


if __name__ == "__main__":
    share_bytecode(Path(sys.argv[1], Path(sysconfig.get_path("purelib")).relative_to(sys.prefix)))
