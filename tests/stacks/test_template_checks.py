"""Checks of templates: their process, which a template may end, and synth, which a fault stops."""

import signal
import subprocess
from pathlib import Path

import pytest

from mailroom_stacks.app.application import check_templates
from mailroom_stacks.settings.sentences import SettingsError
from mailroom_stacks.templates.checks import Finding, check, findings_of, steps
from mailroom_stacks.templates.folder import Folder
from tests.support.unit.shelf import Shelf

ENDS = "{% set ns = namespace() %}{% set ns.a = ns %}{{ ns }}"
WARNED = "<a href='a.example'>Hi</a>"
WARNING = "body.html:1: the link 'a.example' does not work in a mail; begin it with https://, mailto: or tel:"


class Project(Shelf):
    """The templates of a project."""

    def __init__(self, root: Path) -> None:
        super().__init__(root / "templates" / "mail")
        self.templates = root / "templates"

    def write(self, name: str, example: str = "{}", **parts: str) -> None:
        self.put(name, **{"subject": "Hello", "text": "Hi", **parts})
        (self.root / name / "examples").mkdir(exist_ok=True)
        (self.root / name / "examples" / "ada.json").write_text(example)

    def texts(self, *paths: str) -> list[str]:
        return [finding.text for finding in check(self.templates, paths)]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    return Project(tmp_path)


def ended(name: str, example: str = "ada.json") -> str:
    return (
        f"templates/mail/{name}: ends its process (SIGSEGV); do not write a value that contains itself, such "
        f"as `ns` after `{{% set ns.a = ns %}}` (example templates/mail/{name}/examples/{example})"
    )


def test_a_template_that_ends_its_process_is_named_and_the_others_are_checked(project: Project) -> None:
    project.write("a", html=WARNED)
    project.write(
        "b", text="{% if end is defined %}" + ENDS + "{% endif %}{{ name }}", example='{"name": "Ada"}'
    )
    (project.root / "b/examples/eve.json").write_text('{"name": "Eve", "end": 1}')
    project.write("b/fr", text=ENDS)
    project.write("c", text="{{ name }}")
    assert project.texts() == [
        f"templates/mail/a/{WARNING} (example templates/mail/a/examples/ada.json)",
        ended("b", "ada.json in fr"),
        "templates/mail/c/body.txt:1: name: is missing; this line uses it, so the item must have it "
        "(example templates/mail/c/examples/ada.json)",
    ]


def test_the_checks_of_one_template_find_nothing_in_the_others(project: Project) -> None:
    project.write("a", text=ENDS)
    project.write("b", html=WARNED)
    assert project.texts("mail/b") == [
        f"templates/mail/b/{WARNING} (example templates/mail/b/examples/ada.json)"
    ]
    assert project.texts("mail/a") == [ended("a")]


def test_the_process_of_the_checks_finds_the_same_as_this_process(project: Project) -> None:
    project.write("a", html=WARNED, text="{{ name }}", example='{"name": "\\u2028\\ud83d\\ude00"}')
    project.write("b", html="{{ x | nosuch }}", example="[]")
    project.put("_part", text="{% if %}")
    project.write("c/FR", text="")
    findings = check(project.templates)
    folder, here = Folder(project.templates), dict[str, Finding]()
    for finding in (finding for step in steps(folder) for finding in findings_of(folder, step)):
        here.setdefault(finding.sentence, finding)
    assert findings == list(here.values())
    assert len(findings) > 3


def test_an_example_that_is_not_a_json_object_is_a_fault_with_its_file(project: Project) -> None:
    project.write("a", example="[]")
    (project.root / "a/examples/bob.json").write_bytes(b'{"name": "\xe9"}')
    (project.root / "a/examples/eve.json").mkdir()
    files = [finding.sentence.partition(": ")[0] for finding in check(project.templates)]
    assert files == [f"templates/mail/a/examples/{name}.json" for name in ("ada", "bob", "eve")]


@pytest.mark.parametrize("example", ['{"id": ""}', '{"id": 7}', '{"to": "ada@"}'])
def test_an_example_that_is_not_a_valid_item_is_a_fault_with_its_file(project: Project, example: str) -> None:
    project.write("a", example=example)
    (text,) = project.texts()
    assert text.endswith("(example templates/mail/a/examples/ada.json)")


@pytest.mark.parametrize("command", ["exit 3", "kill -SEGV $$"])
def test_a_failure_of_the_checks_themselves_is_an_error(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\n{command}\n")
    program.chmod(0o700)
    monkeypatch.setattr("sys.executable", str(program))
    with pytest.raises(subprocess.CalledProcessError) as error:
        check(project.templates)
    assert error.value.returncode in (3, -signal.SIGSEGV)


def test_modules_in_the_current_folder_are_not_imported(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write("a", html=WARNED)
    (tmp_path / "html.py").write_text("raise SystemExit(1)")
    monkeypatch.chdir(tmp_path)
    assert len(check(Path("templates"))) == 1


def test_the_process_of_the_checks_imports_from_the_same_folders(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "html.py").write_text("raise SystemExit(3)")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(subprocess.CalledProcessError):
        check(project.templates)


def test_synth_writes_warnings_to_stderr_once_for_all_stages_of_an_app(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    project.write("a", html=WARNED)
    check_templates(project.templates)
    check_templates(project.templates)
    warning = f"warning: templates/mail/a/{WARNING} (example templates/mail/a/examples/ada.json)\n"
    assert capsys.readouterr() == ("", warning)
    project.write("a", html="Hi")
    check_templates(project.templates)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ({"text": "{{ name }}"}, "templates/mail/a/body.txt:1: name: is missing; "),
        ({"text": ENDS}, "templates/mail/a: ends its process (SIGSEGV); "),
        ({"html": "<p></p>"}, "templates/mail/a/body.html: is empty when rendered; "),
        ({"text": "{{ name | nosuch }}"}, "templates/mail/a/body.txt:1 uses the filter 'nosuch'"),
    ],
)
def test_a_template_with_a_fault_stops_synth(project: Project, parts: dict[str, str], sentence: str) -> None:
    project.write("a", **parts)
    with pytest.raises(SettingsError) as refused:
        check_templates(project.templates)
    assert str(refused.value).startswith(sentence)


def test_a_folder_without_templates_has_no_findings(tmp_path: Path) -> None:
    assert check(tmp_path / "templates") == []
