"""The version of a build: each commit has its own, and only a release's commit has the release's number."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from packaging.version import Version
from version_of_the_wheel import NUMBER, version

pytestmark = pytest.mark.process


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the variables that a git hook sets, and settings of this machine."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)


def git(folder: Path, *arguments: str) -> str:
    person = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
    command = ["git", *person, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout.strip()


def commit(folder: Path, text: str) -> str:
    """Commit a file with a text, and return the first eight digits of the commit."""
    (folder / "file.txt").write_text(text)
    git(folder, "add", "file.txt")
    git(folder, "commit", "-m", text)
    return git(folder, "rev-parse", "--short=8", "HEAD")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a checkout with one commit. Other tests do not need git."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    folder = tmp_path / "checkout"
    folder.mkdir()
    git(folder, "init")
    commit(folder, "one")
    return folder


def test_the_version_of_a_commit_is_above_its_parents_and_below_the_next_release(
    checkout: Path,
) -> None:
    first = version(checkout)
    digits = commit(checkout, "two")
    assert version(checkout) == f"{NUMBER}.dev2+g{digits}"
    assert Version(first) < Version(version(checkout)) < Version(NUMBER)


@pytest.mark.parametrize("options", [(), ("--annotate", "--message=release")], ids=["light", "annotated"])
def test_only_the_tagged_commit_has_exactly_the_version_of_the_release(
    checkout: Path, options: tuple[str, ...]
) -> None:
    git(checkout, "tag", *options, "v9.9.9")
    assert version(checkout) != NUMBER
    git(checkout, "tag", *options, f"v{NUMBER}")
    assert version(checkout) == NUMBER
    commit(checkout, "two")
    assert version(checkout).startswith(f"{NUMBER}.dev2+g")


def test_uncommitted_changes_have_versions_of_their_own_even_at_a_releases_commit(checkout: Path) -> None:
    git(checkout, "tag", f"v{NUMBER}")
    versions = []
    for content in (b"two", b"three \xff"):
        (checkout / "file.txt").write_bytes(content)
        versions.append(version(checkout))
    assert len({NUMBER, *versions}) == 3
    assert all(Version(changed).local for changed in versions)
    (checkout / "file.txt").write_bytes(b"two")
    assert version(checkout) == versions[0]


def test_a_shallow_clone_has_the_release_number_at_a_tag_and_the_version_of_its_commit_elsewhere(
    checkout: Path,
) -> None:
    git(checkout, "tag", f"v{NUMBER}")
    url = f"file://{checkout}"
    git(checkout.parent, "clone", "--depth=1", f"--branch=v{NUMBER}", url, "release")
    assert version(checkout.parent / "release") == NUMBER
    digits = commit(checkout, "two")
    git(checkout.parent, "clone", "--depth=1", url, "shallow")
    assert version(checkout.parent / "shallow") == f"{NUMBER}.dev1+g{digits}"


def test_a_worktree_has_the_version_of_its_commit(checkout: Path) -> None:
    git(checkout, "worktree", "add", "../worktree")
    assert version(checkout.parent / "worktree") == version(checkout)


def test_a_version_omits_the_commit_in_a_source_archive_and_if_git_is_not_installed(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = checkout / "archive"
    archive.mkdir()
    assert version(archive) == f"{NUMBER}.dev0"
    monkeypatch.setenv("PATH", "")
    assert version(checkout) == f"{NUMBER}.dev0"
