"""`template`: versions are published, compared and taken back; two publishers, and crashes at every call."""

import json
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError
from typer.testing import CliRunner, Result

from mailroom.content.payloads import Payloads
from mailroom.content.templates import MAX_VERSION_BYTES, Templates, Version
from mailroom.content.versions import CURRENT, DEPLOYED, CurrentVersions
from mailroom_ops.cli import app
from mailroom_ops.shared.screen import Refused
from mailroom_ops.templates.folder import TemplateFolder
from mailroom_ops.templates.published import Published
from mailroom_stacks.templates.folder import TemplateName
from tests.support.ops.dead_letters import Over
from tests.support.ops.message import Stage, deployed
from tests.support.ops.shared import ACCOUNT, REGION, Recorded
from tests.support.unit.fakes import client_error
from tests.support.unit.shared import before_each_call
from tests.support.unit.shelf import Shelf

BUCKET = f"mailroom-dev-templates-{ACCOUNT}-{REGION}"
A = TemplateName("mail", "a")
NOW = 1795251600.0


class TemplateDesk:
    """A stage that publishes templates, and a folder of them."""

    def __init__(self, stage: Stage, root: Path) -> None:
        self.stage = stage
        self.root = root
        self.shelf = Shelf(root / "mail")
        self.s3 = stage.s3
        self.published = Published(stage.s3, BUCKET, Recorded(), lambda: NOW)

    def write(self, text: str, name: str = "a") -> None:
        self.shelf.put(name, subject="Hello {{ name }}", text=text)
        file = self.root / "mail" / name / "examples" / "ada.json"
        file.parent.mkdir(exist_ok=True)
        file.write_text('{"name": "Ada"}')

    def put(self, text: str, by: str = "arn:me", template: TemplateName = A) -> Version:
        parts = {f"{template.name}/subject.txt": "Hello", f"{template.name}/body.txt": text}
        publisher = Published(self.s3, BUCKET, Recorded(by), lambda: NOW)
        return publisher.put(template, parts, {"ada": {"name": "Ada"}}, {})[0]

    def run(self, *words: str) -> Result:
        return CliRunner().invoke(app, ("template", *words))

    def counts(self) -> dict[str, int]:
        return {path: each.version for path, each in self.published.choices().items()}

    def check(self) -> None:
        """A complete version that can be rendered counts."""
        versions = CurrentVersions(self.s3, BUCKET)
        for name, number in versions.of("mail").items():
            templates = Templates(self.root / "mail", Payloads(self.s3, BUCKET))
            assert templates.render(name, {"name": "Ada"}, version=number).text


@pytest.fixture
def template_desk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[TemplateDesk]:
    with deployed(monkeypatch) as stage:
        stage.s3.create_bucket(Bucket=BUCKET)
        stage.functions.environment["TEMPLATES_BUCKET"] = BUCKET
        monkeypatch.setattr("mailroom_ops.templates.template.TEMPLATES", tmp_path / "templates")
        yield TemplateDesk(stage, tmp_path / "templates")


def test_template_put_publishes_a_version_of_the_folders_template_and_makes_it_current(
    template_desk: TemplateDesk,
) -> None:
    template_desk.write("Dear {{ name }}")
    result = template_desk.run("put", "a")
    assert result.exit_code == 0, result.output
    assert result.stdout == "mail/a: version 1 is current within a minute.\n"
    assert template_desk.counts() == {"mail/a": 1}
    found = template_desk.published.version(A, 1)
    assert found.parts == {"a/body.txt": "Dear {{ name }}", "a/subject.txt": "Hello {{ name }}"}
    assert found.examples == {"ada": {"name": "Ada"}}
    assert found.by.startswith("arn:aws:sts::")
    template_desk.check()


def test_template_put_makes_a_new_version_only_if_the_content_differs(template_desk: TemplateDesk) -> None:
    template_desk.write("Dear {{ name }}")
    template_desk.run("put", "a")
    again = json.loads(template_desk.run("put", "a", "--json").stdout)
    assert (again["version"], again["new"], again["needs"]) == (1, False, [])
    assert template_desk.published.numbers(A) == [1]


def test_a_published_version_stores_the_numbers_of_its_examples_as_dynamodb_decimals(
    template_desk: TemplateDesk,
) -> None:
    template_desk.write("{{ name }} {{ price }}")
    (template_desk.root / "mail/a/examples/ada.json").write_text('{"name": "Ada", "price": 9.5}')
    assert template_desk.run("put", "a").exit_code == 0
    assert template_desk.published.version(A, 1).examples == {"ada": {"name": "Ada", "price": Decimal("9.5")}}
    assert json.loads(template_desk.run("put", "a", "--json").stdout)["new"] is False
    assert json.loads(template_desk.run("show", "a", "--json").stdout)["examples"]["ada"]["price"] == 9.5


def test_a_published_version_contains_each_language_and_only_the_shared_parts_that_it_includes(
    template_desk: TemplateDesk,
) -> None:
    template_desk.shelf.put("_x", text="{% include '_y/body.txt' %}")
    template_desk.shelf.put("_y", text="deep")
    template_desk.shelf.put("_z", text="unused")
    template_desk.write("{% include '_x/body.txt' %}")
    template_desk.shelf.put("a/fr", subject="Bonjour {{ name }}", text="fr")
    assert template_desk.run("put", "a").exit_code == 0
    assert sorted(template_desk.published.version(A, 1).parts) == [
        *("_x/body.txt", "_y/body.txt", "a/body.txt", "a/fr/body.txt", "a/fr/subject.txt", "a/subject.txt"),
    ]


def test_a_published_version_has_the_files_to_attach_and_a_changed_file_makes_a_new_version(
    template_desk: TemplateDesk,
) -> None:
    template_desk.write("Hi")
    (template_desk.root / "mail/a/files").mkdir()
    (template_desk.root / "mail/a/files/terms.pdf").write_bytes(b"%PDF\xff")
    assert "version 1 is current" in template_desk.run("put", "a").stdout
    assert "version 1 is current already" in template_desk.run("put", "a").stdout
    assert "attached files: terms.pdf" in template_desk.run("show", "a").stdout
    assert template_desk.run("show", "--diff", "a").exit_code == 0
    (template_desk.root / "mail/a/files/terms.pdf").write_bytes(b"%PDF 2")
    differs = template_desk.run("show", "--diff", "a")
    assert (differs.exit_code, "+ mail/a: the attached files differ" in differs.stdout) == (1, True)
    assert "version 2 is current" in template_desk.run("put", "a").stdout
    assert template_desk.published.version(A, 2).attached == {"terms.pdf": b"%PDF 2"}


def test_template_put_names_an_attribute_that_only_the_new_version_needs(template_desk: TemplateDesk) -> None:
    template_desk.write("Dear {{ name }}")
    template_desk.run("put", "a")
    template_desk.write("Dear {{ name }}{% if city is defined %} of {{ city }}{% endif %}")
    said = template_desk.run("put", "a").stdout
    assert "It uses new variables: city. Messages without them fail." in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{{ name | nosuch }}", "templates/mail/a/body.txt:1 uses the filter 'nosuch', which is unknown"),
        ("{% include name %}", "a/body.txt:1 takes the name of a template from a variable"),
        ("x" * MAX_VERSION_BYTES, "a version may have 1,048,576."),
        (
            "{% set ns = namespace() %}{% set ns.a = ns %}{{ ns }}",
            "templates/mail/a/body.txt takes more than 0.8 s or 18 MB",
        ),
        ("{% if name is undefined %}Hi{% endif %}", "templates/mail/a/body.txt: is empty when rendered"),
    ],
)
def test_a_template_with_a_fault_is_not_published(template_desk: TemplateDesk, text: str, said: str) -> None:
    template_desk.write(text)
    result = template_desk.run("put", "a")
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.split())
    assert template_desk.counts() == {}


def test_a_template_with_a_warning_is_published(template_desk: TemplateDesk) -> None:
    template_desk.write("Dear&nbsp;{{ name }}")
    result = template_desk.run("put", "a", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["new"]
    assert result.stderr.startswith("templates/mail/a/body.txt:1: &nbsp; is shown as it is written")


def test_a_template_without_an_example_is_not_published(template_desk: TemplateDesk) -> None:
    template_desk.shelf.put("b", subject="Hello", text="Hi")
    assert "mail/b has no example to check it with" in template_desk.run("put", "b").stderr
    assert template_desk.counts() == {}


def test_template_put_names_the_setting_templates_publish_if_the_stage_lacks_the_templates_bucket(
    template_desk: TemplateDesk,
) -> None:
    template_desk.write("Hi")
    del template_desk.stage.functions.environment["TEMPLATES_BUCKET"]
    assert 'Set "templates": {"publish": true} in cdk.json' in " ".join(
        template_desk.run("put", "a").stderr.split()
    )


def test_a_rollback_returns_to_the_previous_or_a_named_version_or_to_the_deployed_template(
    template_desk: TemplateDesk,
) -> None:
    for text in ("one", "two", "three"):
        template_desk.put(text)
    assert "version 2 is current within a minute" in template_desk.run("rollback", "a", "--yes").stdout
    assert "version 3 is current" in template_desk.run("rollback", "a", "--to", "3", "--yes").stdout
    assert (
        "the deployed template is current" in template_desk.run("rollback", "a", "--to", "0", "--yes").stdout
    )
    assert template_desk.counts() == {"mail/a": 0}
    assert "is at the deployed template already" in template_desk.run("rollback", "a", "--yes").stderr
    assert (
        "has no version 9. There are: 1, 2, 3."
        in template_desk.run("rollback", "a", "--to", "9", "--yes").stderr
    )


def test_a_version_that_was_rolled_back_is_skipped_by_later_rollbacks(template_desk: TemplateDesk) -> None:
    for text in ("one", "two", "three: a wrong price"):
        template_desk.put(text)
    assert template_desk.published.roll_back(A) == 2
    template_desk.put("four: another fault")
    assert [template_desk.published.roll_back(A) for _ in range(3)] == [2, 1, DEPLOYED]


def test_a_version_that_was_never_current_is_skipped_by_a_rollback(
    template_desk: TemplateDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    template_desk.put("one")
    with monkeypatch.context() as patch:
        writes: list[str] = []

        def between(operation: str) -> None:
            writes.append(operation)
            if operation == "PutObject" and writes.count("PutObject") == 2:  # mine is written, and not chosen
                patch.undo()
                template_desk.put("three: theirs", by="arn:other")

        before_each_call(patch, between)
        with pytest.raises(Refused, match="Somebody else has published"):
            template_desk.put("two: mine")
    assert template_desk.published.numbers(A) == [1, 2, 3]
    assert template_desk.published.roll_back(A) == 1


def test_a_rollback_undoes_an_earlier_rollback_to_a_named_version(template_desk: TemplateDesk) -> None:
    for text in ("one", "two", "three", "four"):
        template_desk.put(text)
    template_desk.published.roll_back(A, 2)  # takes back 3 and 4
    template_desk.published.roll_back(A, 4)  # a slip
    assert [template_desk.published.roll_back(A) for _ in range(3)] == [2, 1, DEPLOYED]


def test_the_number_of_versions_that_a_rollback_can_reach_is_bounded(
    template_desk: TemplateDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mailroom_ops.templates.published.MAX_BEFORE", 2)
    for text in ("one", "two", "three", "four"):
        template_desk.put(text)
    assert template_desk.published.choices()["mail/a"].before == (2, 3)
    assert [template_desk.published.roll_back(A) for _ in range(2)] == [3, 2]
    with pytest.raises(Refused, match="is at version 2 already"):
        template_desk.published.roll_back(A)


def test_a_version_that_was_rolled_back_can_be_published_again_under_a_new_number(
    template_desk: TemplateDesk,
) -> None:
    template_desk.put("one")
    template_desk.put("two")
    template_desk.published.roll_back(A)
    assert template_desk.put("two").number == 3


def test_template_list_shows_published_and_deployed_templates(template_desk: TemplateDesk) -> None:
    template_desk.put("one")
    template_desk.shelf.put("b", subject="Hello", text="Hi")
    found = json.loads(template_desk.run("list", "--json").stdout)["templates"]
    assert [(each["template"], each["version"], each["by"]) for each in found] == [
        ("mail/a", 1, "arn:me"),
        ("mail/b", 0, ""),
    ]
    assert "deployed" in template_desk.run("list").stdout


def test_template_list_names_a_current_version_that_does_not_render_and_its_fault(
    template_desk: TemplateDesk,
) -> None:
    template_desk.put("{% if name == 1 %}{{ no | xmlattr }}{% endif %}")
    problem = "mail/a/body.txt:1 uses the filter 'xmlattr'"
    template_desk.put("Dear {{ name }}", template=TemplateName("mail", "b"))
    lines = json.loads(template_desk.run("list", "--json").stdout)["templates"]
    assert [line["fault"][: len(problem)] for line in lines] == [problem, ""]
    shown = template_desk.run("list").stdout
    assert f"mail/a does not render: {problem}" in shown
    assert shown.endswith(" Correct it, and publish it.\n")


def test_template_show_prints_the_parts_of_the_current_or_a_named_version(
    template_desk: TemplateDesk,
) -> None:
    template_desk.put("one\nand more")
    template_desk.put("two")
    said = template_desk.run("show", "a", "--version", "1").stdout
    assert "mail/a, version 1 of 1, 2" in said
    assert "one\nand more" in said
    assert json.loads(template_desk.run("show", "a", "--json").stdout)["parts"]["a/body.txt"] == "two"
    assert (
        "There is no template 'b' among the published. There are: mail/a."
        in template_desk.run("show", "b").stderr
    )


def test_template_show_prints_the_difference_between_published_templates_and_the_folder(
    template_desk: TemplateDesk,
) -> None:
    template_desk.write("Dear {{ name }}")
    template_desk.run("put", "a")
    assert template_desk.run("show", "--diff").stdout == "The published templates are equal to the folder.\n"
    template_desk.write("Hi {{ name }}")
    result = template_desk.run("show", "--diff", "a")
    assert result.exit_code == 1
    assert "-Dear {{ name }}" in result.stdout
    assert "+Hi {{ name }}" in result.stdout


@pytest.mark.parametrize("name", ["a", "b"])
@pytest.mark.parametrize("at", range(1, 5))
def test_two_simultaneous_publications_of_templates_keep_every_version(
    template_desk: TemplateDesk, monkeypatch: pytest.MonkeyPatch, at: int, name: str
) -> None:
    other = TemplateName("mail", name)
    seen: list[str] = []
    theirs: list[Version] = []

    def between(operation: str) -> None:
        seen.append(operation)
        if len(seen) == at:
            theirs.append(template_desk.put("theirs", template=other))

    with monkeypatch.context() as patch, suppress(Refused):
        before_each_call(patch, between)
        template_desk.put("mine")
    assert template_desk.counts()[other.path] >= theirs[0].number
    mine = template_desk.put("mine")
    assert template_desk.counts() == {other.path: theirs[0].number, "mail/a": mine.number}
    template_desk.check()


class Died(Exception):
    """The publisher's process is gone."""


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("at", range(1, 6))
def test_a_crash_during_a_publication_leaves_whole_versions_and_the_next_publication_succeeds(
    template_desk: TemplateDesk, monkeypatch: pytest.MonkeyPatch, at: int, *, after: bool
) -> None:
    template_desk.put("one")
    with monkeypatch.context() as patch, suppress(Died):
        _die(patch, at, after=after)
        template_desk.put("two")
    template_desk.check()
    assert template_desk.counts()["mail/a"] in (1, *template_desk.published.numbers(A))
    assert template_desk.put("two").parts["a/body.txt"] == "two"
    template_desk.check()


def _die(patch: pytest.MonkeyPatch, at: int, *, after: bool) -> None:
    """The `at`-th call to AWS is the last, and is made (`after`) or not."""
    client: Any = BaseClient
    make = client._make_api_call
    count = 0

    def call(client: Any, operation: str, arguments: Any) -> Any:
        nonlocal count
        count += 1
        if count == at and not after:
            raise Died
        answer = make(client, operation, arguments)
        if count == at:
            raise Died
        return answer

    patch.setattr("botocore.client.BaseClient._make_api_call", call)


def test_a_publication_raises_an_error_of_aws_instead_of_blaming_another_publisher(
    template_desk: TemplateDesk,
) -> None:
    def refuse(**_: Any) -> Any:
        raise client_error("AccessDenied")

    client: Any = Over(template_desk.s3, put_object=refuse)
    with pytest.raises(ClientError, match="AccessDenied"):
        Published(client, BUCKET, Recorded(), lambda: NOW).put(A, {"a/body.txt": "x"}, {}, {})


def test_the_s3_object_of_current_versions_has_the_version_and_the_operator_of_a_template(
    template_desk: TemplateDesk,
) -> None:
    template_desk.put("one")
    body = json.loads(template_desk.s3.get_object(Bucket=BUCKET, Key=CURRENT)["Body"].read())
    choice = {"version": 1, "by": "arn:me", "at": "2026-11-21T09:00:00.000Z", "before": [DEPLOYED]}
    assert body == {"mail/a": choice}


def test_a_template_name_that_two_channels_have_is_refused_without_and_found_with_the_channel(
    template_desk: TemplateDesk,
) -> None:
    template_desk.write("Hi")
    (template_desk.root / "sms" / "a").mkdir(parents=True)
    (template_desk.root / "sms" / "a" / "body.txt").write_text("Hi")
    folder = TemplateFolder(template_desk.root)
    with pytest.raises(Refused, match="a is a template of mail and sms; use --channel"):
        folder.named("a")
    assert folder.named("a", "sms") == TemplateName("sms", "a")
