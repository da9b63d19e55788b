"""`mailroom update`: a folder is written from a wheel, and follows another wheel."""

import hashlib
from collections.abc import Callable, Mapping
from functools import partial
from importlib.metadata import version
from itertools import product
from pathlib import Path
from zipfile import ZipFile, ZipInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mailroom_ops import cli
from mailroom_ops.setup import project_folder
from mailroom_ops.setup import update as command
from mailroom_ops.setup.project_folder import LOCK, TEMPLATE
from mailroom_ops.shared.screen import Refused
from tests.support import ROOT
from tests.support.ops.run_app import run_app

LOCKED = "boto3==1 --hash=sha256:0\n"
FILES: dict[str, bytes] = {
    str(file.relative_to(ROOT / TEMPLATE)): file.read_bytes()
    for file in sorted((ROOT / TEMPLATE).rglob("*"))
    if file.is_file() and "__pycache__" not in file.parts
}
"""The files of a new folder."""
CHANGED = b"changed by the release\n"
OWN = b"changed by the team\n"
NEXT = ["  pip install --require-hashes -r requirements.txt", "  mailroom diff --stage dev"]
IN_TEMPLATE = ("same", "changed", "removed", "added")
"""Kinds of difference between the templates of two wheels in a file."""
IN_FOLDER = ("same", "changed", "removed")
"""Ways in which a team treats a file. For a file that the other wheel adds, they say whether the team has the
file already."""


def wheel(
    folder: Path, number: str, lock: str = LOCKED, files: Mapping[str, bytes] = FILES, comment: bytes = b""
) -> Path:
    """Write a small wheel, which has all that a folder is made of."""
    file = folder / f"mailroom_cdk-{number}-py3-none-any.whl"
    with ZipFile(file, "w") as archive:
        archive.comment = comment
        archive.writestr(ZipInfo(LOCK), lock)  # without the time of now: the same content has one hash
        for name, content in files.items():
            archive.writestr(ZipInfo(TEMPLATE + name), content)
    return file


run = partial(run_app, cli.app, columns=300)


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, bytes]]:
    """The folders that `update` has checked: this resolves no requirements."""
    checked: list[dict[str, bytes]] = []
    monkeypatch.setattr(command, "check_installable", lambda folder: checked.append(content(folder)))
    return checked


@pytest.fixture
def team_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, checked: list[dict[str, bytes]]) -> Path:
    """A new folder of version 1, in which commands run."""
    team = tmp_path / "team"
    project_folder.make(team, wheel(tmp_path, "1"))
    monkeypatch.setattr(command, "PROJECT", team)
    return team


def content(folder: Path) -> dict[str, bytes]:
    """Return the content of a folder's files, by their names."""
    files = (file for file in folder.rglob("*") if file.is_file())
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def requirements(team: Path) -> list[str]:
    lines = (team / "requirements.txt").read_text().splitlines()
    return [line for line in lines if not line.startswith("#")]


def vendored(team: Path) -> list[str]:
    return sorted(file.name for file in (team / "vendor").iterdir())


def pinned(file: Path) -> list[str]:
    """The lines of requirements.txt that install a wheel."""
    line = f"./vendor/{file.name}[local,test] --hash=sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}"
    return [line, "-r vendor/requirements.txt", "--only-binary :all:"]


def test_a_new_project_folder_is_refused_at_a_folder_that_is_not_empty(tmp_path: Path) -> None:
    team = tmp_path / "team"
    team.mkdir()
    (team / "mine.txt").touch()
    with pytest.raises(ValueError, match="is not empty"):
        project_folder.make(team, wheel(tmp_path, "1"))
    assert [file.name for file in team.iterdir()] == ["mine.txt"]


def test_a_new_project_folder_has_the_wheel_its_hash_and_the_lock_of_its_packages(
    tmp_path: Path, team_folder: Path
) -> None:
    assert requirements(team_folder) == pinned(wheel(tmp_path, "1"))
    assert vendored(team_folder) == ["mailroom_cdk-1-py3-none-any.whl", "requirements.txt"]
    assert (team_folder / "vendor" / "requirements.txt").read_text() == LOCKED
    assert {*content(team_folder)} - {*FILES} == {f"vendor/{name}" for name in vendored(team_folder)}


def test_mailroom_update_replaces_the_wheel_and_the_lock_and_keeps_packages_that_the_team_added(
    tmp_path: Path, team_folder: Path
) -> None:
    with (team_folder / "requirements.txt").open("a") as file:
        file.write("six==1 --hash=sha256:1\n")
    newer = wheel(tmp_path, "2", lock="boto3==2 --hash=sha256:2\n")
    assert run("update", newer).exit_code == 0
    assert requirements(team_folder) == [*pinned(newer), "six==1 --hash=sha256:1"]
    assert vendored(team_folder) == ["mailroom_cdk-2-py3-none-any.whl", "requirements.txt"]
    assert (team_folder / "vendor" / "requirements.txt").read_text() == "boto3==2 --hash=sha256:2\n"


def test_mailroom_update_applies_a_changed_template_of_requirements_unless_the_team_added_packages(
    tmp_path: Path, team_folder: Path
) -> None:
    template = {**FILES, "requirements.txt": FILES["requirements.txt"] + b"--no-index\n"}
    newer = wheel(tmp_path, "2", files=template)
    assert run("update", newer).exit_code == 0
    assert requirements(team_folder) == [*pinned(newer), "--no-index"]
    own = "six==1 --hash=sha256:1"
    with (team_folder / "requirements.txt").open("a") as file:
        file.write(f"{own}\n")
    older = wheel(tmp_path, "1")
    updated = run("update", older)
    assert (updated.exit_code, "\n---no-index\n" in updated.stdout) == (1, True)
    assert requirements(team_folder) == [*pinned(older), "--no-index", own]


def test_mailroom_update_prints_the_difference_of_the_templates_for_a_file_that_the_team_changed(
    tmp_path: Path, team_folder: Path
) -> None:
    (team_folder / "app.py").write_bytes(OWN)
    (team_folder / ".gitignore").write_bytes(OWN)
    template = {**FILES, "app.py": FILES["app.py"] + CHANGED}
    del template[".gitignore"]
    lines = run("update", wheel(tmp_path, "2", files=template)).stdout.splitlines()
    head = lines.index("Change by hand:")
    removed = [f"-{line}" for line in FILES[".gitignore"].decode().splitlines()]
    assert lines[head + 1 : head + 4 + len(removed)] == [
        "--- .gitignore",
        "+++ /dev/null",
        f"@@ -1,{len(removed)} +0,0 @@",
        *removed,
    ]
    assert lines[-5:] == [" main()", f"+{CHANGED.decode().strip()}", "Next:", *NEXT]
    assert OWN.decode().strip() not in lines


def test_mailroom_update_is_refused_and_leaves_the_files_unchanged_if_the_pinned_wheel_is_missing(
    tmp_path: Path, team_folder: Path
) -> None:
    pinned_wheel = team_folder / "vendor" / "mailroom_cdk-1-py3-none-any.whl"
    pinned_wheel.unlink()
    before = content(team_folder)
    refused = run("update", wheel(tmp_path, "2", files={**FILES, "README.md": CHANGED}))
    path = team_folder / "requirements.txt"
    sentence = f"{pinned_wheel} is missing, and {path} names it. Restore the file from git.\n"
    assert (refused.exit_code, refused.stderr) == (2, sentence)
    assert content(team_folder) == before


def test_mailroom_update_pins_and_keeps_a_wheel_that_is_in_the_folder_vendor_already(
    tmp_path: Path, team_folder: Path
) -> None:
    newer = wheel(team_folder / "vendor", "2")
    assert run("update", newer).exit_code == 0
    assert requirements(team_folder) == pinned(newer)
    assert vendored(team_folder) == [newer.name, "requirements.txt"]


@pytest.mark.parametrize("text", [None, "no archive", LOCK], ids=["lacking", "no archive", "another's"])
def test_mailroom_update_refuses_a_file_that_is_not_a_wheel_of_mailroom_and_keeps_the_requirements(
    tmp_path: Path, team_folder: Path, text: str | None
) -> None:
    other = tmp_path / "other.whl"
    if text == LOCK:
        with ZipFile(other, "w") as archive:
            archive.writestr("other/__init__.py", "")
    elif text:
        other.write_text(text)
    refused = run("update", other)
    assert (refused.exit_code, "is not a wheel of Mailroom" in refused.stderr) == (2, True)
    assert requirements(team_folder) == pinned(wheel(tmp_path, "1"))


@pytest.mark.parametrize(
    "text", [None, "", "mailroom-cdk[local]==1\n", "./vendor/mailroom_cdk-1\n./vendor/mailroom_cdk-2\n"]
)
def test_mailroom_update_refuses_requirements_that_do_not_name_mailroom_in_exactly_one_line(
    tmp_path: Path, team_folder: Path, text: str | None
) -> None:
    (team_folder / "requirements.txt").unlink()
    if text is not None:
        (team_folder / "requirements.txt").write_text(text)
    refused = run("update", wheel(tmp_path, "2"))
    assert (refused.exit_code, "must name Mailroom in one line" in refused.stderr) == (2, True)
    assert vendored(team_folder) == ["mailroom_cdk-1-py3-none-any.whl", "requirements.txt"]


def test_mailroom_update_refuses_another_wheel_of_the_pinned_version_as_pip_would_not_install_it(
    tmp_path: Path, team_folder: Path
) -> None:
    before = content(team_folder)
    assert run("update", wheel(tmp_path, "1")).exit_code == 0
    refused = run("update", wheel(tmp_path, "1", comment=b"another"))
    assert (refused.exit_code, "Build another commit" in refused.stderr) == (2, True)
    assert content(team_folder) == before


def test_mailroom_update_leaves_the_files_unchanged_if_the_new_requirements_cannot_be_installed(
    tmp_path: Path, team_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(folder: Path) -> None:
        raise Refused("six==1 and six==2 are unsatisfiable")

    monkeypatch.setattr(command, "check_installable", refuse)
    before = content(team_folder)
    refused = run("update", wheel(tmp_path, "2", "boto3==2\n", files={**FILES, "README.md": CHANGED}))
    assert (refused.exit_code, refused.stderr) == (2, "six==1 and six==2 are unsatisfiable\n")
    assert content(team_folder) == before


def test_mailroom_update_checks_the_requirements_beside_the_top_files_and_the_vendor_folder(
    tmp_path: Path, team_folder: Path, checked: list[dict[str, bytes]]
) -> None:
    (team_folder / "constraints.txt").write_text("six<2\n")
    (team_folder / "vendor" / "ours-1.whl").write_text("a wheel of the team")
    assert run("update", wheel(tmp_path, "2", lock="boto3==2\n")).exit_code == 0
    (copy,) = checked
    after = content(team_folder)
    assert (
        copy.items()
        >= {
            name: text for name, text in after.items() if name.startswith("vendor/") or "/" not in name
        }.items()
    )


def state_before(name: str, in_template: str, in_folder: str) -> bytes | None:
    """Return the content of a file in the folder before the update, or None if it did not exist."""
    if in_folder == "changed":
        return OWN
    if in_template == "added":
        return CHANGED if in_folder == "same" else None
    return None if in_folder == "removed" else FILES[name]


def state_after(name: str, in_template: str, in_folder: str) -> tuple[bytes | None, str]:
    """Return the model of an update: the content of a file, and its mention in the output."""
    before = state_before(name, in_template, in_folder)
    match in_template, in_folder:
        case ("same", _) | (_, "removed") if in_template != "added":
            return before, "none"
        case ("added", "same"):
            return before, "none"
        case ("changed", "same") | ("added", "removed"):
            return CHANGED, "changed"
        case _:
            return before, "difference"


PLAIN = tuple(name for name in FILES if name != "requirements.txt")


def assert_like_the_model(team: Path, place: Path, states: Mapping[str, tuple[str, str]]) -> None:
    """Update a folder of version 1, in which each file has a state, and compare it with the model."""
    base = {name: text for name, text in FILES.items() if states.get(name, ("same",))[0] != "added"}
    template = {name: text for name, text in FILES.items() if states.get(name, ("same",))[0] != "removed"}
    template |= {name: CHANGED for name, (kind, _) in states.items() if kind in ("changed", "added")}
    project_folder.make(team, wheel(place, "1", files=base))
    for name, (in_template, in_folder) in states.items():
        before = state_before(name, in_template, in_folder)
        (team / name).unlink(missing_ok=True)
        if before is not None:
            (team / name).parent.mkdir(parents=True, exist_ok=True)
            (team / name).write_bytes(before)
    newer = wheel(place, "2", files=template)
    updated = run("update", newer)
    expected = {name: state_after(name, *state) for name, state in states.items()}
    after = content(team)
    assert {name: after.get(name) for name in states} == {name: text for name, (text, _) in expected.items()}
    assert {name: after[name] for name in FILES if name not in states and name != "requirements.txt"} == {
        name: FILES[name] for name in FILES if name not in states and name != "requirements.txt"
    }
    lines = updated.stdout.splitlines()
    changed = [name for name, (_, mention) in sorted(expected.items()) if mention == "changed"]
    assert [line.removeprefix("Changed: ") for line in lines if line.startswith("Changed: ")] == [
        *changed,
        "requirements.txt",
    ]
    differences = [name for name, (_, mention) in sorted(expected.items()) if mention == "difference"]
    assert [line.removeprefix("--- ") for line in lines if line.startswith("--- ")] == differences
    assert (updated.exit_code, "Change by hand:" in lines) == (int(bool(differences)), bool(differences))
    assert requirements(team) == pinned(newer)


@pytest.mark.parametrize(("in_template", "in_folder"), [*product(IN_TEMPLATE, IN_FOLDER)])
def test_mailroom_update_makes_a_file_follow_its_template_unless_the_team_changed_or_removed_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    checked: list[dict[str, bytes]],
    in_template: str,
    in_folder: str,
) -> None:
    monkeypatch.setattr(command, "PROJECT", tmp_path / "team")
    assert_like_the_model(tmp_path / "team", tmp_path, dict.fromkeys(PLAIN, (in_template, in_folder)))


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    states=st.fixed_dictionaries(
        dict.fromkeys(PLAIN, st.tuples(st.sampled_from(IN_TEMPLATE), st.sampled_from(IN_FOLDER)))
    )
)
def test_mailroom_update_treats_each_file_by_its_own_state_whatever_the_states_of_the_others(
    tmp_path_factory: pytest.TempPathFactory,
    checked: list[dict[str, bytes]],
    states: dict[str, tuple[str, str]],
) -> None:
    place = tmp_path_factory.mktemp("drawn")
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(command, "PROJECT", place / "team")
        assert_like_the_model(place / "team", place, states)


def test_a_repeated_mailroom_update_completes_one_that_was_interrupted_at_any_file(
    tmp_path: Path, checked: list[dict[str, bytes]]
) -> None:
    template = {**{name: text + CHANGED for name, text in FILES.items()}, "added.txt": CHANGED}
    older, newer = wheel(tmp_path, "1"), wheel(tmp_path, "2", "boto3==2\n", files=template)
    project_folder.make(tmp_path / "whole", older)
    project_folder.update(tmp_path / "whole", newer, lambda _: None)
    whole = content(tmp_path / "whole")
    for number in range(len(template) + 2):
        team = tmp_path / f"team{number}"
        project_folder.make(team, older)
        with pytest.MonkeyPatch.context() as monkeypatch:
            monkeypatch.setattr(Path, "write_bytes", writing(team, number))
            with pytest.raises(InterruptedError):
                project_folder.update(team, newer, lambda _: None)
        _, differences = project_folder.update(team, newer, lambda _: None)
        assert (content(team), differences) == (whole, [])


def writing(team: Path, number: int) -> Callable[[Path, bytes], None]:
    """Return a function that writes files, and that is interrupted after a number of files of the folder."""
    places = iter(range(number))

    def write(file: Path, text: bytes) -> None:
        if team in file.parents and next(places, None) is None:
            raise InterruptedError
        with file.open("wb") as stream:
            stream.write(text)

    return write


def test_the_version_option_prints_the_version_of_the_package() -> None:
    assert run("--version").stdout == f"mailroom {version('mailroom-cdk')}\n"
