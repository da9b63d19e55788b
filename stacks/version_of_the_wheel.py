"""Version of the wheel, which hatchling reads from `__version__`. Builds of two commits have two versions,
because an installer does not install a version again. An editable install keeps the version that the checkout
had at `make setup`."""

from hashlib import sha256
from pathlib import Path
from subprocess import DEVNULL, CalledProcessError, check_output

NUMBER = "0.3.0"
"""Number of the next release. Only a build of the commit with the tag v<NUMBER> has exactly this version."""


def version(root: Path) -> str:
    """Return the version of a checkout, such as 0.3.0.dev1554+ga0666ab3: with the count of commits, and with
    the commit. A hash follows if tracked files differ from the commit. A shallow clone counts its own commits
    only. In a source archive, or without git, the version is 0.3.0.dev0."""

    def git(*arguments: str) -> str:
        # Without the name of the folder .git, git would use a repository around a source archive.
        command = ("git", f"--git-dir={root / '.git'}", *arguments)
        return check_output(command, cwd=root, stderr=DEVNULL, text=True, errors="replace").strip()  # noqa: S603

    try:
        tags, changes = git("tag", "--points-at=HEAD").split(), git("diff", "HEAD")
        commit, count = git("rev-parse", "--short=8", "HEAD"), git("rev-list", "--count", "HEAD")
    except (OSError, CalledProcessError):
        return f"{NUMBER}.dev0"
    mark = f".d{sha256(changes.encode()).hexdigest()[:8]}" if changes else ""
    return NUMBER if f"v{NUMBER}" in tags and not mark else f"{NUMBER}.dev{count}+g{commit}{mark}"


__version__ = version(Path(__file__).parents[1])
