"""`new` and `update`: a folder is written from a wheel, and pinned to it and to its lock."""

import hashlib
from importlib.metadata import version
from pathlib import Path
from zipfile import ZipFile, ZipInfo

import pytest
from typer.testing import CliRunner, Result

from mailroom_ops import cli
from mailroom_ops.setup.project_folder import LOCK, TEMPLATE
from tests.support import ROOT

LOCKED = "boto3==1 --hash=sha256:0\n"


def wheel(folder: Path, number: str, lock: str = LOCKED) -> Path:
    """Write a small wheel, which has all that a folder is made of."""
    file = folder / f"mailroom_cdk-{number}-py3-none-any.whl"
    with ZipFile(file, "w") as archive:
        archive.writestr(ZipInfo(LOCK), lock)  # without the time of now: the same content has one hash
        for name in ("requirements.txt", "templates/mail/welcome/body.txt"):
            archive.write(ROOT / TEMPLATE / name, TEMPLATE + name)
    return file


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli.app, [f"{each}" for each in arguments], env={"COLUMNS": "300"})


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new folder of version 1, in which commands run."""
    team = tmp_path / "team"
    assert run("new", team, "--wheel", wheel(tmp_path, "1")).exit_code == 0
    monkeypatch.setattr("mailroom_ops.setup.new.PROJECT", team)
    return team


def requirements(team: Path) -> list[str]:
    lines = (team / "requirements.txt").read_text().splitlines()
    return [line for line in lines if not line.startswith("#")]


def vendored(team: Path) -> list[str]:
    return sorted(file.name for file in (team / "vendor").iterdir())


def pinned(file: Path) -> list[str]:
    """The lines of requirements.txt that install a wheel."""
    line = f"./vendor/{file.name}[local,test] --hash=sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}"
    return [line, "-r vendor/requirements.txt", "--only-binary :all:"]


def test_a_new_folder_is_not_written_over_another(tmp_path: Path) -> None:
    team = tmp_path / "team"
    team.mkdir()
    (team / "mine.txt").touch()
    refused = run("new", team, "--wheel", wheel(tmp_path, "1"))
    assert (refused.exit_code, "not empty" in refused.stderr) == (2, True)
    assert [file.name for file in team.iterdir()] == ["mine.txt"]


def test_a_new_folder_has_the_wheel_its_hash_and_the_lock_of_its_packages(tmp_path: Path, team: Path) -> None:
    assert requirements(team) == pinned(wheel(tmp_path, "1"))
    assert vendored(team) == ["mailroom_cdk-1-py3-none-any.whl", "requirements.txt"]
    assert (team / "vendor" / "requirements.txt").read_text() == LOCKED
    assert (team / "templates/mail/welcome/body.txt").is_file()


def test_an_installation_without_its_wheel_names_the_missing_option(tmp_path: Path) -> None:
    refused = run("new", tmp_path / "team")
    assert refused.exit_code == 2
    assert f"--wheel mailroom_cdk-{version('mailroom-cdk')}-py3-none-any.whl" in refused.stderr
    assert not (tmp_path / "team").exists()


def test_an_update_replaces_the_wheel_and_the_lock_and_leaves_packages_of_the_teams_own(
    tmp_path: Path, team: Path
) -> None:
    with (team / "requirements.txt").open("a") as file:
        file.write("six==1 --hash=sha256:1\n")
    newer = wheel(tmp_path, "2", lock="boto3==2 --hash=sha256:2\n")
    assert run("update", newer).exit_code == 0
    assert requirements(team) == [*pinned(newer), "six==1 --hash=sha256:1"]
    assert vendored(team) == ["mailroom_cdk-2-py3-none-any.whl", "requirements.txt"]
    assert (team / "vendor" / "requirements.txt").read_text() == "boto3==2 --hash=sha256:2\n"


def test_a_version_that_a_registry_gives_is_updated_in_the_same_line(tmp_path: Path, team: Path) -> None:
    (team / "requirements.txt").write_text("mailroom-cdk[local,test]==1 --hash=sha256:0\n")
    newer = wheel(tmp_path, "2")
    assert run("update", newer).exit_code == 0
    assert requirements(team) == pinned(newer)[:1]


def test_a_wheel_that_lies_in_vendor_already_is_pinned_and_stays(tmp_path: Path, team: Path) -> None:
    newer = wheel(team / "vendor", "2")
    assert run("update", newer).exit_code == 0
    assert requirements(team) == pinned(newer)


@pytest.mark.parametrize("content", [None, "no archive", LOCK], ids=["lacking", "no archive", "another's"])
def test_a_file_other_than_a_wheel_of_mailroom_changes_no_requirement(
    tmp_path: Path, team: Path, content: str | None
) -> None:
    other = tmp_path / "other.whl"
    if content == LOCK:
        with ZipFile(other, "w") as archive:
            archive.writestr("other/__init__.py", "")
    elif content:
        other.write_text(content)
    refused = run("update", other)
    assert (refused.exit_code, "is not a wheel of Mailroom" in refused.stderr) == (2, True)
    assert requirements(team) == pinned(wheel(tmp_path, "1"))


@pytest.mark.parametrize("text", [None, "", "./vendor/mailroom_cdk-1\nmailroom-cdk[local]==1\n"])
def test_requirements_that_do_not_name_mailroom_once_are_refused(
    tmp_path: Path, team: Path, text: str | None
) -> None:
    (team / "requirements.txt").unlink()
    if text is not None:
        (team / "requirements.txt").write_text(text)
    refused = run("update", wheel(tmp_path, "2"))
    assert (refused.exit_code, "must name Mailroom in one line" in refused.stderr) == (2, True)
    assert vendored(team) == ["mailroom_cdk-1-py3-none-any.whl", "requirements.txt"]


def test_the_version_option_prints_the_version_of_the_package() -> None:
    assert run("--version").stdout == f"mailroom {version('mailroom-cdk')}\n"
