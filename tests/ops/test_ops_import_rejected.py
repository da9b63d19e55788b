"""The file of refused lines: they stand there as they are, are fixed there, and imported alone."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.support.ops.message import Stage, answer, deployed, run, write

MAIL = ("--channel", "mail", "--set", "subject=Hello", "--set", "text=Hi", "--id-prefix", "n")


@pytest.fixture(autouse=True)
def stage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    with deployed(monkeypatch) as stage:
        yield stage


def rejected(file: Path, kind: str = "csv") -> Path:
    return file.with_name(f"{file.name}.mailroom-rejected.{kind}")


def test_a_refused_line_stands_there_as_it_is_behind_its_number_and_the_reason(tmp_path: Path) -> None:
    file = tmp_path / "p.csv"
    file.write_bytes(
        b'\xef\xbb\xbfemail,name\r\n"bad",A\r\ngood@example.com,B\r\nx@example.com,"C\r\n\xff@x,D'
    )
    assert run("import", str(file), *MAIL).exit_code == 1
    header, *lines = rejected(file).read_bytes().splitlines(keepends=True)
    assert header == b"mailroom_line,mailroom_reason,email,name\r\n"
    assert [line.partition(b",")[0] for line in lines] == [b"2", b"4", b"5"]
    assert lines[0].endswith(b'use name@domain.example",' + b'"bad",A\r\n')
    assert lines[1].endswith(b'x@example.com,"C\r\n')
    assert lines[2].endswith(b"\xff@x,D\n")


def test_mended_lines_are_imported_alone_and_keep_the_ids_of_their_first_numbers(
    stage: Stage, tmp_path: Path
) -> None:
    file = write(tmp_path / "p.csv", "email,name", "a@example.com,A", "bad,B", "worse,C", "d@example.com,D")
    assert run("import", str(file), *MAIL).exit_code == 1
    refused = rejected(file)
    refused.write_text(refused.read_text().replace(",bad,", ",b@example.com,"))
    result = run("import", str(refused), *MAIL, "--json")
    assert result.exit_code == 1
    assert (answer(result)["put"], answer(result)["refused"]) == (1, 1)
    assert {id_: item["email"] for id_, item in stage.mailbox().items()} == {
        "n-2": "a@example.com",
        "n-3": "b@example.com",
        "n-5": "d@example.com",
    }
    assert not {"mailroom_line", "mailroom_reason"} & stage.mailbox()["n-3"].keys()
    header, line = rejected(refused).read_text().splitlines()
    assert header == "mailroom_line,mailroom_reason,email,name"
    assert (line.startswith('4,"email: '), line.endswith('",worse,C')) == (True, True)


def test_lines_of_json_are_mended_in_the_same_way(stage: Stage, tmp_path: Path) -> None:
    file = write(
        tmp_path / "p.jsonl",
        '{"to": "a@example.com"}',
        '  {"to": "bad", "n": 1.50}',
        '{"to": ',
        "[1]",
        "{}",
    )
    assert run("import", str(file), *MAIL).exit_code == 1
    refused = rejected(file, "jsonl")
    lines = refused.read_text().splitlines()
    assert msgspec.json.decode(lines[0]) == {
        "mailroom_line": 2,
        "mailroom_reason": "to: 'bad' is not a mail address; use name@domain.example",
        "to": "bad",
        "n": 1.5,
    }
    assert lines[0].endswith('"to": "bad", "n": 1.50}')
    assert (lines[1][:19], lines[1][-6:]) == ('{"mailroom_line":3,', '"to": ')
    assert msgspec.json.decode(lines[2])["mailroom_text"] == "[1]"
    assert msgspec.json.decode(lines[3])["mailroom_line"] == 5
    refused.write_text(lines[0].replace('"bad"', '"b@example.com"') + "\n" + lines[3] + "\n")
    result = run("import", str(refused), *MAIL, "--json")
    assert (answer(result)["put"], answer(result)["refused"]) == (1, 1)
    assert stage.mailbox()["n-2"]["to"] == "b@example.com"
    (again,) = rejected(refused, "jsonl").read_text().splitlines()
    assert msgspec.json.decode(again)["mailroom_line"] == 5


def test_a_file_of_refused_lines_from_before_is_not_overwritten_unasked(tmp_path: Path) -> None:
    file = write(tmp_path / "p.csv", "email", "bad")
    assert run("import", str(file), *MAIL).exit_code == 1
    rejected(file).write_text("being fixed")
    result = run("import", str(file), *MAIL)
    assert result.exit_code == 2
    assert "import it when its lines are fixed, or delete it" in " ".join(result.stderr.split())
    assert rejected(file).read_text() == "being fixed"
    rejected(file).unlink()
    assert run("import", str(file), *MAIL).exit_code == 1
    assert rejected(file).read_text().count("bad") == 2


def test_a_line_that_is_too_long_is_refused_and_stands_there_whole(stage: Stage, tmp_path: Path) -> None:
    long = "x" * 900_000
    file = write(tmp_path / "p.csv", "email,name", f"a@example.com,{long}", "b@example.com,B")
    assert run("import", str(file), *MAIL).exit_code == 1
    assert set(stage.mailbox()) == {"n-3"}
    assert rejected(file).read_text().splitlines()[1].endswith(f",a@example.com,{long}")


def test_a_number_beyond_all_bounds_costs_its_line_alone(stage: Stage, tmp_path: Path) -> None:
    numbers = ("1.50", "1E999999999999999999999", "1E300", "2")
    lines = [f'{{"to": "a@example.com", "n": {number}}}' for number in numbers]
    file = write(tmp_path / "p.jsonl", *lines)
    assert run("import", str(file), *MAIL).exit_code == 1
    assert set(stage.mailbox()) == {"n-1", "n-4"}
    refused = rejected(file, "jsonl").read_text().splitlines()
    assert [line.rpartition('"n": ')[2] for line in refused] == ["1E999999999999999999999}", "1E300}"]
