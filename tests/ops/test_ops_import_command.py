"""`mailroom messages import`: what of a file comes into the mailbox, what is refused, and what is said of
both."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.ops.message import Stage, answer, run, write, write_mails
from tests.support.unit.fakes import client_error

pytestmark = pytest.mark.usefixtures("stage")
MAIL = ("--channel", "mail")
NUMBERED = (*MAIL, "--id-prefix", "n")
HELLO_ITEM = {"event_type": "mail", "subject": "Hello", "text": "Hi", "lane": "bulk"}


def test_an_import_puts_a_message_for_each_csv_line_under_the_id_in_the_column_id(
    stage: Stage, tmp_path: Path
) -> None:
    file = write_mails(
        tmp_path / "people.csv", "id,email,name", "u-1,ada@example.com,Ada", "u-2,bob@example.com,"
    )
    result = run("import", str(file), *MAIL, "--json")
    assert result.exit_code == 0, result.stderr
    assert (answer(result)["put"], answer(result)["state"]) == (2, "done")
    assert stage.mailbox() == {
        "u-1": HELLO_ITEM | {"id": "u-1", "email": "ada@example.com", "name": "Ada"},
        "u-2": HELLO_ITEM | {"id": "u-2", "email": "bob@example.com", "name": ""},
    }


def test_an_import_makes_ids_of_the_option_id_prefix_and_the_line_numbers(
    stage: Stage, tmp_path: Path
) -> None:
    file = write_mails(tmp_path / "p.csv", "email", '"ada@example.com"', "", "bob@example.com")
    assert run("import", str(file), *MAIL, "--id-prefix", "news-11").exit_code == 0
    assert {id_: item["email"] for id_, item in stage.mailbox().items()} == {
        "news-11-2": "ada@example.com",
        "news-11-4": "bob@example.com",
    }


def test_an_import_puts_the_option_id_prefix_before_the_ids_of_a_column(stage: Stage, tmp_path: Path) -> None:
    file = write_mails(tmp_path / "p.csv", "id,email", "7,ada@example.com")
    assert run("import", str(file), *MAIL, "--id-prefix", "news").exit_code == 0
    assert set(stage.mailbox()) == {"news-7"}


def test_an_import_leaves_out_an_attribute_of_the_channel_whose_cell_is_empty(
    stage: Stage, tmp_path: Path
) -> None:
    file = write(
        tmp_path / "p.csv",
        "id;to;send_at;ttl;lane;subject;text",
        "1;ada@example.com;;1900000000;normal;Hello;Hi",
    )
    assert run("import", str(file), *MAIL).exit_code == 0
    said = {"id": "1", "to": "ada@example.com", "ttl": 1_900_000_000, "lane": "normal"}
    assert stage.mailbox()["1"] == HELLO_ITEM | said


def test_an_import_accepts_a_column_that_resembles_an_attribute_and_records_its_name_in_the_item(
    stage: Stage, tmp_path: Path
) -> None:
    file = write_mails(tmp_path / "p.csv", "id,email,expires,timezone", "7,ada@example.com,soon,UTC")
    assert answer(run("import", str(file), *MAIL, "--json"))["put"] == 1
    assert stage.mailbox()["7"]["audience_columns"] == ["expires"]


def test_an_import_accepts_json_lines_of_several_channels_and_keeps_the_types_of_their_values(
    stage: Stage, tmp_path: Path
) -> None:
    lines = [
        {"id": 1, "event_type": "sms", "to": "(617) 555-1234", "text": "Hi"},
        {"id": "b", "event_type": "webhook", "url": "https://example.com/x", "payload": {"n": 1.5}},
    ]
    file = write(tmp_path / "p.jsonl", *map(json.dumps, lines))
    assert run("import", str(file)).exit_code == 0
    mailbox = stage.mailbox()
    assert mailbox["1"]["to"] == "(617) 555-1234"
    assert "lane" not in mailbox["1"]
    assert float(mailbox["b"]["payload"]["n"]) == 1.5


def test_an_import_names_the_line_and_column_of_each_bad_line_and_puts_the_others(
    stage: Stage, tmp_path: Path
) -> None:
    lines = ("1,ada@", "2,bob@example.com", "3,a=b", "4,e@example.com,x", '5,"f@example.com')
    file = write_mails(tmp_path / "p.csv", "id,email", *lines, "6,g@example.com", "7,")
    result = run("import", str(file), *MAIL, "--json")
    assert result.exit_code == 1
    assert set(stage.mailbox()) == {"2", "6"}
    found = answer(result)
    assert (found["put"], found["refused"], found["lines"]) == (2, 5, 7)
    assert [(each["line"], each["column"]) for each in found["faults"]] == [
        (2, "email"),
        (4, "email"),
        (5, ""),
        (6, ""),
        (8, "to"),
    ]
    assert "is not a mail address" in found["faults"][0]["problem"]
    assert "is not a mail address" in found["faults"][1]["problem"]


@pytest.mark.parametrize(("name", "lines"), [("p.csv", ("id,email",)), ("p.jsonl", ("", ""))])
@pytest.mark.parametrize("words", [(), ("--dry-run",)])
def test_an_import_refuses_a_file_without_an_entry(
    stage: Stage, tmp_path: Path, name: str, lines: tuple[str, ...], words: tuple[str, ...]
) -> None:
    result = run("import", str(write(tmp_path / name, *lines)), *MAIL, *words, "--json")
    assert result.exit_code == 1
    (fault,) = answer(result)["faults"]
    assert (fault["line"], answer(result)["refused"]) == (1, 1)
    assert "is the only line; put each entry on a separate line" in fault["problem"]


def test_an_import_skips_a_message_that_exists_and_reports_other_content_under_its_id_as_a_conflict(
    stage: Stage, tmp_path: Path
) -> None:
    file = write_mails(tmp_path / "p.csv", "id,email", "1,ada@example.com", "2,bob@example.com")
    assert run("import", str(file), *MAIL).exit_code == 0
    write_mails(file, "id,email", "1,ada@example.com", "2,else@example.com", "3,new@example.com")
    result = run("import", str(file), *MAIL, "--json")
    assert result.exit_code == 1
    found = answer(result)
    assert (found["put"], found["existed"], found["conflict"]) == (1, 1, 1)
    assert found["faults"] == [
        {"line": 3, "column": "id", "problem": "is used for another message; use a new one"}
    ]
    assert stage.mailbox()["2"]["email"] == "bob@example.com"


def test_a_dry_run_of_an_import_checks_every_line_shows_three_messages_and_writes_nothing(
    stage: Stage, tmp_path: Path
) -> None:
    people = [f"{n},p{n}@example.com" for n in range(5)]
    file = write_mails(tmp_path / "p.csv", "id,email", *people, "9,no address")
    result = run("import", str(file), *MAIL, "--dry-run", "--json")
    assert result.exit_code == 1
    found = answer(result)
    assert (found["dry_run"], found["state"], found["put"], found["refused"]) == (True, "done", 5, 1)
    assert [(each["to"], each["subject"]) for each in found["samples"]] == [
        (f"p{n}@example.com", "Hello") for n in range(3)
    ]
    assert not stage.mailbox()
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(
    ("name", "header", "words", "sentence"),
    [
        ("p.csv", "email", MAIL, "The lines have no ids"),
        ("p.csv", "id,id", MAIL, "two columns have the name 'id'"),
        ("p.csv", "id,email", (), "The channel is missing."),
        ("p.csv", "id,email", ("--channel", "fxa"), "--channel 'fxa' is unknown"),
        ("p.csv", "id,email", (*MAIL, "--id-prefix", "a@b"), "--id-prefix"),
        ("p.xlsx", "id,email", MAIL, "does not end in .csv or .jsonl"),
        ("p.csv", "PK\x03\x04", MAIL, "compressed (zip, or a spreadsheet)"),
    ],
)
def test_an_invalid_option_or_file_is_refused_before_a_message_is_put(
    stage: Stage, tmp_path: Path, name: str, header: str, words: tuple[str, ...], sentence: str
) -> None:
    file = write(tmp_path / name, header, "1,ada@example.com")
    result = run("import", str(file), *words)
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert not result.stdout
    assert not stage.mailbox()


def test_an_id_that_is_a_mail_address_is_refused_because_logs_contain_ids(tmp_path: Path) -> None:
    file = write_mails(tmp_path / "p.csv", "id", "ada@example.com")
    result = run("import", str(file), *MAIL, "--json")
    assert result.exit_code == 1
    assert "ids appear in logs" in answer(result)["faults"][0]["problem"]


def test_an_import_sets_the_ttl_of_the_stage_and_a_second_import_finds_the_same_messages(
    stage: Stage, tmp_path: Path
) -> None:
    stage.functions.environment["MAILBOX_TTL_SECONDS"] = "86400"
    file = write_mails(tmp_path / "p.csv", "id,email", "1,ada@example.com")
    assert run("import", str(file), *MAIL).exit_code == 0
    assert stage.mailbox()["1"]["ttl"] > 0
    assert answer(run("import", str(file), *MAIL, "--json"))["existed"] == 1


class Gone:
    def put_item(self, **_: Any) -> None:
        raise client_error("ResourceNotFoundException")


def test_an_import_stops_if_the_mailbox_table_is_missing_and_says_how_to_continue(
    stage: Stage, tmp_path: Path
) -> None:
    file = write_mails(tmp_path / "p.csv", "id,email", *(f"{n},p{n}@example.com" for n in range(200)))
    stage.instead["dynamodb"] = Gone()
    result = run("import", str(file), *MAIL, "--json", "--workers", "2")
    assert result.exit_code == 2
    found = answer(result)
    assert found["state"] == "stopped"
    assert "ResourceNotFoundException" in found["trouble"]
    assert (found["put"], found["failed"]) == (0, 1)
    assert "To continue, run the same command again" in run("import", str(file), *MAIL).stdout
    del stage.instead["dynamodb"]
    again = answer(run("import", str(file), *MAIL, "--json"))
    assert (again["put"], again["failed"]) == (200, 0)
    assert list(tmp_path.iterdir()) == [file]


# Refused lines are corrected in the same place, and imported again.


def refused_lines(file: Path) -> list[tuple[int, str, str]]:
    """Import the file, and return the refused lines that the answer names."""
    result = run("import", str(file), *NUMBERED, "--json")
    faults = json.loads(result.stdout)["faults"]
    assert result.exit_code == (1 if faults else 0)
    return [(each["line"], each["column"], each["problem"]) for each in faults]


def test_an_import_prints_twenty_refused_lines_as_text_and_a_thousand_as_json(tmp_path: Path) -> None:
    file = write_mails(tmp_path / "p.csv", "email", *(["bad"] * 1_001))
    assert [line for line, _, _ in refused_lines(file)] == [*range(2, 1_002)]
    shown = run("import", str(file), *NUMBERED).stdout
    assert "- line 21, email" in shown
    assert "- line 22, email" not in shown
    assert "and 981 more; --json names the first 1,000." in shown


def test_a_repeated_import_puts_the_lines_that_were_corrected_in_place(stage: Stage, tmp_path: Path) -> None:
    file = write_mails(
        tmp_path / "p.csv", "email,name", "a@example.com,A", "bad,B", "worse,C", "d@example.com,D"
    )
    assert [line for line, _, _ in refused_lines(file)] == [3, 4]
    file.write_text(file.read_text().replace(",bad,", ",b@example.com,"))
    assert [line for line, _, _ in refused_lines(file)] == [4]
    assert {id_: item["email"] for id_, item in stage.mailbox().items()} == {
        "n-2": "a@example.com",
        "n-3": "b@example.com",
        "n-5": "d@example.com",
    }
    file.write_text(file.read_text().replace(",worse,", ",c@example.com,"))
    assert refused_lines(file) == []


def test_an_import_names_each_bad_json_line_by_its_line_number_and_puts_the_others(
    stage: Stage, tmp_path: Path
) -> None:
    numbers = ("1.50", "1E999999999999999999999", "1E300", "2")
    lines = [
        f'{{"to": "a@example.com", "subject": "Hello", "text": "Hi", "n": {number}}}' for number in numbers
    ]
    file = write(tmp_path / "p.jsonl", *lines, '{"to": ', "[1]")
    assert [line for line, _, _ in refused_lines(file)] == [2, 3, 5, 6]
    assert set(stage.mailbox()) == {"n-1", "n-4"}
