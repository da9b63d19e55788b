"""`render`: templates with their examples, without a stage."""

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from mailroom_ops.templates.render import render
from tests.support import ROOT
from tests.support.unit.shelf import Shelf

app = typer.Typer()
app.command()(render)


class Folder(Shelf):
    """A folder of templates, of which mails are written here."""

    def __init__(self, root: Path) -> None:
        super().__init__(root / "mail")
        self.templates = root

    def example(self, template: str, name: str, text: str) -> None:
        file = self.root / template / "examples" / f"{name}.json"
        file.parent.mkdir(exist_ok=True, parents=True)
        file.write_text(text)

    def run(self, *words: str) -> Result:
        return CliRunner().invoke(app, words)


@pytest.fixture
def rendered_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.setattr("mailroom_ops.templates.render.TEMPLATES", tmp_path / "templates")
    folder = Folder(tmp_path / "templates")
    folder.put("a", subject="Hello {{ name }}", html="<p>{{ name }}</p>", text="Dear {{ name }}\nBye")
    folder.example("a", "ada", '{"name": "Ada"}')
    folder.example("a", "bob", '{"name": "Bob", "to": ["bob@example.com", "eve@example.com"]}')
    return folder


def test_a_mail_is_rendered_with_its_first_example(rendered_folder: Folder) -> None:
    result = rendered_folder.run("a")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[:3] == [
        "From: the stage's first sender <sender@example.com>",
        "To: ada@example.com",
        "Subject: Hello Ada",
    ]
    assert lines[-6:] == ["Text, 12 bytes", "Dear Ada", "Bye", "", "HTML, 10 bytes", "<p>Ada</p>"]


def test_render_takes_attributes_from_the_named_example_a_file_or_the_option_set(
    rendered_folder: Folder, tmp_path: Path
) -> None:
    assert "To: bob@example.com, eve@example.com" in rendered_folder.run("a", "--example", "bob").stdout
    file = tmp_path / "given.json"
    file.write_text('{"name": "Eve", "topic": "news"}')
    given = rendered_folder.run("a", "--json", str(file)).stdout
    assert "Subject: Hello Eve" in given
    assert "List-Unsubscribe: <https://example.com/unsubscribe/made-up>" in given
    assert "Subject: Hello 7" in rendered_folder.run("a", "--set", "name=7").stdout


def test_render_prints_the_number_of_segments_of_an_sms(rendered_folder: Folder) -> None:
    (rendered_folder.templates / "sms" / "code").mkdir(parents=True)
    (rendered_folder.templates / "sms" / "code" / "body.txt").write_text("Your code: {{ code }}")
    assert "1 segment in GSM-7" in rendered_folder.run("code", "--set", "code=4711").stdout
    assert "1 segment in UCS-2" in rendered_folder.run("code", "--set", "code=ы").stdout
    assert (
        "'\u2019' (U+2019) makes this text UCS-2: 70 characters a segment, not 160"
        in rendered_folder.run("code", "--set", "code=\u2019").stdout
    )


def test_render_chooses_the_language_by_the_locale_and_names_unused_attributes(
    rendered_folder: Folder,
) -> None:
    rendered_folder.put("a/fr", subject="Bonjour {{ name }}", html="<p>{{ name }}</p>", text="x")
    result = rendered_folder.run("a", "--set", "locale=fr-CA", "--set", "shoe=7")
    assert "Subject: Bonjour Ada" in result.stdout
    assert "Unused attributes: shoe." in result.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["b"], "There is no template 'b' in"),
        ([], "The template is missing."),
        (["a", "--example", "eve"], "mail/a has no example 'eve'. There are: ada, bob."),
        (["a", "--set", "sendAt=x"], "sendAt: is not used here; did you mean `send_at`?"),
        (["a", "--set", "to=ada@"], "to: 'ada@' is not a mail address"),
        (["a", "--set", "locale=french"], "locale: 'french' is not a language tag"),
        (["a", "--json", "nosuch.json"], "nosuch.json cannot be read"),
    ],
)
def test_render_refuses_an_invalid_option_or_attribute_with_a_sentence(
    rendered_folder: Folder, words: list[str], said: str
) -> None:
    result = rendered_folder.run(*words)
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.split())


def test_every_template_of_the_repository_renders_with_its_examples() -> None:
    result = CliRunner().invoke(app, ["--all"])
    assert result.exit_code == 0, result.output
    assert result.stdout.count("renders") == len(list((ROOT / "templates").glob("*/[!_]*")))


BROKEN = [
    ({"text": "one\n{{ nothing }}"}, "templates/mail/a/body.txt:2: nothing: is missing; this line uses it"),
    (
        {"text": "one\ntwo\n{{ name | nosuch }}"},
        "mail/a/body.txt:3 uses the filter 'nosuch', which is unknown",
    ),
    ({"text": "{% if %}"}, "mail/a/body.txt:1 cannot be read: unexpected end of block"),
    ({"html": "{{ name.x.y }}"}, "mail/a/body.html:1: name.x: is missing"),
    ({"subject": "{{ '' }}"}, "templates/mail/a/subject.txt: is empty after rendering template 'a'"),
]


@pytest.mark.parametrize(("parts", "said"), BROKEN)
def test_render_all_names_the_file_the_line_and_the_example_of_a_fault_in_a_template(
    rendered_folder: Folder, parts: dict[str, str], said: str
) -> None:
    rendered_folder.put("a", **parts)
    result = rendered_folder.run("--all")
    assert result.exit_code == 1
    assert said in result.stdout
    if "is unknown" not in said and "cannot be read" not in said:
        assert "(example templates/mail/a/examples/ada.json)" in result.stdout


def test_render_names_the_file_and_line_of_a_fault_in_a_template_or_in_its_shared_part(
    rendered_folder: Folder,
) -> None:
    rendered_folder.put("a", text="one\n{{ city }}")
    stderr = " ".join(rendered_folder.run("a").stderr.split())
    assert "mail/a cannot be sent: templates/mail/a/body.txt:2: city: is missing; this line uses it" in stderr
    rendered_folder.put("_part", html="<style>@media print{#a{b:c}}</style>")
    rendered_folder.put("a", text="Hi", html="{% include '_part/body.html' %}")
    stderr = " ".join(rendered_folder.run("a").stderr.split())
    # The fault alone does not explain that the code is CSS.
    assert "templates/mail/_part/body.html:1: `{#` begins code of the template in CSS" in stderr
    assert "templates/mail/_part/body.html:1 cannot be read: unexpected end of comment" in stderr


def test_render_prints_warnings_about_a_template_to_standard_error_and_exits_with_0(
    rendered_folder: Folder,
) -> None:
    rendered_folder.put("a", html="<a href='a.example'>{{ name }}</a>", subject="A &amp; B")
    warnings = [
        "templates/mail/a/subject.txt:1: &amp; is shown as it is written, because this is not HTML; "
        "write its character",
        "templates/mail/a/body.html:1: the link 'a.example' does not work in a mail; "
        "begin it with https://, mailto: or tel:",
    ]
    result = rendered_folder.run("a")
    assert (result.exit_code, result.stderr.splitlines()) == (0, warnings)
    assert result.stdout.endswith("<a href='a.example'>Ada</a>\n")
    result = rendered_folder.run("--all")
    example = "(example templates/mail/a/examples/ada.json)"
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-2:] == [f"{warning} {example}" for warning in warnings]


def test_render_all_names_a_template_that_exceeds_its_limits_and_checks_the_others(
    rendered_folder: Folder,
) -> None:
    rendered_folder.put("a", text="{% set ns = namespace() %}{% set ns.a = ns %}{{ ns }}")
    rendered_folder.put("b", subject="{{ name }}", html="<p></p>")
    rendered_folder.example("b", "ada", '{"name": "Ada"}')
    result = rendered_folder.run("--all")
    assert result.exit_code == 1
    assert "templates/mail/a/body.txt takes more than 0.8 s or 18 MB" in result.stdout
    assert "(example templates/mail/a/examples/ada.json)" in result.stdout
    assert "templates/mail/b/body.html: is empty when rendered" in result.stdout


def test_render_all_names_the_line_in_the_shared_part_that_causes_an_error(rendered_folder: Folder) -> None:
    rendered_folder.put("_line", text="a\nb\n{{ sku }}")
    rendered_folder.put("a", text="{% include '_line/body.txt' %}")
    assert "mail/_line/body.txt:3: sku: is missing" in rendered_folder.run("--all").stdout


def test_render_all_reports_a_language_that_lacks_a_part_or_has_an_invalid_name(
    rendered_folder: Folder,
) -> None:
    rendered_folder.put("a/fr-ca", subject="Bonjour", text="x")
    said = rendered_folder.run("--all").stdout
    assert "mail/a/fr-ca: is never selected; rename it to fr-CA" in said
    assert "mail/a/fr-ca/body.html: is missing; each language needs all parts" in said


def test_render_all_renders_each_example_in_each_language(rendered_folder: Folder) -> None:
    rendered_folder.put("a/fr", subject="Bonjour", html="x", text="{{ nom }}")
    assert "mail/a/fr/body.txt:1: nom: is missing" in rendered_folder.run("--all").stdout


def test_render_gives_a_template_the_numbers_of_an_example_as_they_come_from_an_item(
    rendered_folder: Folder,
) -> None:
    rendered_folder.put("a", text="{{ price }} {{ price * 2 }}")
    rendered_folder.example("a", "ada", '{"name": "Ada", "price": 9.5}')
    assert "9.5 19\n" in rendered_folder.run("a").stdout
    assert "9.25 18.5\n" in rendered_folder.run("a", "--set", "price=9.25").stdout
