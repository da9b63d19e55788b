"""A segment as Amazon Pinpoint exports endpoints, imported: several channels, opt-outs, nested attributes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.docs_pages import Page
from tests.support.ops.message import Stage, answer, deployed, run, write
from tests.support.segment import CSV, JSON_LINES
from tests.support.unit.shelf import Shelf

(WORDS,) = (
    words[3:-3]  # without the stage and --dry-run
    for words in Page("docs/leaving-pinpoint.md").command_lines()
    if words[:2] == ["mailroom", "import"]
)
"""What the page says behind `mailroom import segment.jsonl`."""
FIRST_NAME = "User.UserAttributes.FirstName"
MAILS = {
    "spring-2026-e-1": "ada@example.com",
    "spring-2026-e-2": "bob@example.com",
    "spring-2026-e-8": "eve@example.com",
}


@pytest.fixture(autouse=True)
def stage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    with deployed(monkeypatch) as stage:
        yield stage


@pytest.fixture(autouse=True)
def templates(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The one of the page's example."""
    root = tmp_path_factory.mktemp("templates")
    Shelf(root / "mail").put("spring", subject="Spring", text="Dear {{ first_name }}")
    monkeypatch.setattr("mailroom_ops.messages.items.TEMPLATES", root)


@pytest.fixture
def segment(tmp_path: Path) -> str:
    file = tmp_path / "segment.jsonl"
    file.write_bytes(JSON_LINES)
    return str(file)


def test_active_endpoints_of_a_channel_that_have_not_opted_out_become_messages(
    stage: Stage, segment: str
) -> None:
    result = run("import", segment, *WORDS, "--json")
    assert result.exit_code == 0, result.stdout
    found = answer(result)
    assert (found["put"], found["left_out"], found["refused"], found["lines"]) == (3, 5, 0, 8)
    mailbox = stage.mailbox()
    assert {id_: item["to"] for id_, item in mailbox.items()} == MAILS
    ada = mailbox["spring-2026-e-1"]
    assert (ada["first_name"], ada["template"], ada["topic"]) == ("Ada", "spring", "news")
    assert ada["User"] == {"UserId": "user-e-1", "UserAttributes": {"FirstName": ["Ada"]}}
    assert "first_name" not in mailbox["spring-2026-e-2"]


def test_the_same_of_a_csv_file_whose_columns_have_dots(stage: Stage, tmp_path: Path) -> None:
    file = write(tmp_path / "segment.csv", *CSV)
    words = [
        *("--channel", "mail", "--id-prefix", "spring-2026", "--id-column", "Id", "--map", "Address=to"),
        *("--map", f"{FIRST_NAME}=first_name", "--set", "subject=Hi", "--set", "text=Hi"),
        *("--only", "ChannelType=EMAIL", "--only", "OptOut=NONE", "--only", "OptOut="),
    ]
    result = run("import", str(file), *words, "--json")
    assert result.exit_code == 0, result.stdout
    assert (answer(result)["put"], answer(result)["left_out"]) == (3, 2)
    mailbox = stage.mailbox()
    assert {id_: item["to"] for id_, item in mailbox.items()} == MAILS
    assert [item["first_name"] for item in mailbox.values()] == ["Ada", "", 'Eve, the "2nd"']


def test_texts_and_pushes_of_the_same_file_are_imports_of_their_own(stage: Stage, segment: str) -> None:
    common = ("--id-prefix", "s", "--id-column", "Id", "--map", "Address=to")
    sms = ("--channel", "sms", "--set", "text=Hi", "--only", "ChannelType=SMS")
    push = ("--channel", "push", "--set", "body=Hi", "--set", "platform=app")
    devices = ("--only", "ChannelType=GCM", "--only", "ChannelType=APNS")
    stage.functions.environment["LANES"] = '{"sms": ["normal"], "push": ["normal"]}'
    for words in (sms, (*push, *devices)):
        result = run("import", segment, *common, *words, "--json")
        assert result.exit_code == 0, result.stdout
    assert {id_: item["event_type"] for id_, item in stage.mailbox().items()} == {
        "s-e-4": "sms",
        "s-e-5": "push",
        "s-e-6": "push",
    }


def test_an_id_may_come_from_within_a_line(stage: Stage, segment: str) -> None:
    words = [each if each != "Id" else "User.UserId" for each in WORDS]
    result = run("import", segment, *words, "--json")
    assert answer(result)["faults"] == [
        {"line": 8, "column": "User.UserId", "problem": "is empty; every line needs an id of its own"}
    ]
    assert set(stage.mailbox()) == {"spring-2026-user-e-1", "spring-2026-user-e-2"}


def test_what_is_left_out_is_counted_and_not_shown(segment: str) -> None:
    words = ("--channel", "mail", "--set", "subject=Hi", "--set", "text=Hi", "--id-prefix", "s")
    asked = ("--map", "Address=to", "--only", "ChannelType=EMAIL", "--only", "OptOut=ALL")
    result = run("import", segment, *words, *asked, "--dry-run")
    assert result.exit_code == 0, result.stdout
    assert "no-more@example.com" in result.stdout
    assert "ada@example.com" not in result.stdout
    assert "do not have what --only asks for" in result.stdout


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--only", "Chanel=EMAIL"), "--only: there is no column 'Chanel'"),
        (("--only", "EMAIL"), "write --only name=value"),
    ],
)
def test_a_choice_that_cannot_be_meant_is_refused(
    stage: Stage, tmp_path: Path, words: tuple[str, ...], sentence: str
) -> None:
    file = write(tmp_path / "segment.csv", *CSV)
    result = run("import", str(file), "--channel", "mail", "--id-prefix", "s", *words)
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert not stage.mailbox()
