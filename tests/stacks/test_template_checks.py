"""Checks of templates, and synth, which a fault stops."""

from pathlib import Path

import pytest

from mailroom.content.templates import MAX_ATTACHED_BYTES
from mailroom_stacks.app.application import check_templates
from mailroom_stacks.settings.sentences import SettingsError
from mailroom_stacks.templates.checks import check
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
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def sentence_of_limit(name: str, example: str = "ada.json") -> str:
    file = name if "/" in name else f"{name}/body.txt"
    return (
        f"templates/mail/{file} takes more than 0.8 s or 18 MB; loop over less, send smaller variables, and "
        f"write no value that contains itself (example templates/mail/{name[0]}/examples/{example})"
    )


@pytest.mark.process
def test_a_template_that_would_crash_its_process_is_reported_and_the_others_are_checked(
    project: Project,
) -> None:
    project.write("a", html=WARNED)
    project.write(
        "b", text="{% if end is defined %}" + ENDS + "{% endif %}{{ name }}", example='{"name": "Ada"}'
    )
    (project.root / "b/examples/eve.json").write_text('{"name": "Eve", "end": 1}')
    project.write("b/fr", text=ENDS)
    project.write("c", text="{{ name }}")
    assert project.texts() == [
        f"templates/mail/a/{WARNING} (example templates/mail/a/examples/ada.json)",
        sentence_of_limit("b/fr/body.txt", "ada.json in fr"),
        sentence_of_limit("b", "eve.json"),
        "templates/mail/c/body.txt:1: name: is missing; this line uses it, so the message must have it "
        "(example templates/mail/c/examples/ada.json)",
    ]


def test_the_checks_of_one_template_do_not_report_faults_of_other_templates(project: Project) -> None:
    project.write("a", text="{{ name }}")
    project.write("b", html=WARNED)
    assert project.texts("mail/b") == [
        f"templates/mail/b/{WARNING} (example templates/mail/b/examples/ada.json)"
    ]
    (fault,) = project.texts("mail/a")
    assert fault.startswith("templates/mail/a/body.txt:1: name: is missing")


def test_the_checks_report_files_that_a_template_cannot_attach(project: Project) -> None:
    project.write("a")
    (project.root / "a/files").mkdir()
    (project.root / "a/files/terms.pdf").write_bytes(b"x" * MAX_ATTACHED_BYTES)
    assert project.texts() == []
    (project.root / "a/files/setup.exe").write_bytes(b"x")
    code = project.templates / "sms/code"
    (code / "files").mkdir(parents=True)
    (code / "body.txt").write_text("Hi")
    (code / "files/terms.pdf").write_bytes(b"x")
    assert project.texts() == [
        "templates/mail/a/files: 'setup.exe': .exe is refused by providers; send a link to the file",
        "templates/mail/a/files: 716,801 bytes are too many; attach at most 716,800, or link to a file",
        "files['setup.exe'].filename: .exe is refused by providers; send a link to the file "
        "(example templates/mail/a/examples/ada.json)",
        "templates/sms/code/files: only mails have files; remove the folder",
    ]


def test_the_checks_name_a_file_that_no_template_uses(project: Project) -> None:
    project.write("a")
    for folder in ("a/files/more", "a/fr/files", "_layout/files"):
        (project.root / folder).mkdir(parents=True)
        (project.root / folder / "terms.pdf").write_bytes(b"x")
    (project.root / "a/files/.DS_Store").write_bytes(b"x")
    sentence = "is not attached to a mail; put it into the folder `files` of a template"
    assert [text for text in project.texts() if sentence in text] == [
        f"templates/mail/{path}: {sentence}"
        for path in ("_layout/files/terms.pdf", "a/files/more", "a/fr/files/terms.pdf")
    ]


def test_an_example_that_is_not_a_json_object_is_reported_with_its_file(project: Project) -> None:
    project.write("a", example="[]")
    (project.root / "a/examples/bob.json").write_bytes(b'{"name": "\xe9"}')
    (project.root / "a/examples/eve.json").mkdir()
    files = [finding.sentence.partition(": ")[0] for finding in check(project.templates)]
    assert files == [f"templates/mail/a/examples/{name}.json" for name in ("ada", "bob", "eve")]


@pytest.mark.parametrize("example", ['{"id": ""}', '{"id": 7}', '{"to": "ada@"}'])
def test_an_example_that_is_not_a_valid_item_is_reported_with_its_file(
    project: Project, example: str
) -> None:
    project.write("a", example=example)
    (text,) = project.texts()
    assert text.endswith("(example templates/mail/a/examples/ada.json)")


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
        ({"text": ENDS}, "templates/mail/a/body.txt takes more than 0.8 s or 18 MB; "),
        ({"html": "<p></p>"}, "templates/mail/a/body.html: is empty when rendered; "),
        ({"text": "{{ name | nosuch }}"}, "templates/mail/a/body.txt:1 uses the filter 'nosuch'"),
    ],
)
def test_a_template_with_a_fault_stops_synth(project: Project, parts: dict[str, str], sentence: str) -> None:
    project.write("a", **parts)
    with pytest.raises(SettingsError) as refused:
        check_templates(project.templates)
    assert str(refused.value).startswith(sentence)


def test_the_checks_report_nothing_if_the_folder_of_templates_is_missing(tmp_path: Path) -> None:
    assert check(tmp_path / "templates") == []
