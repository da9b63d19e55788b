"""CSV files as they come: what is wrong is said by line and column, and the good lines go on."""

import random
from csv import QUOTE_ALL, QUOTE_MINIMAL, writer
from io import StringIO

import pytest

from mailroom.campaigns.audience import Recipient
from mailroom.campaigns.definition import File
from mailroom.campaigns.file_audience import FileAudience
from mailroom.campaigns.file_formats import MAX_RECORD_BYTES
from mailroom.errors import Invalid
from tests.support.fuzz.work import lines_of
from tests.support.unit.audience import LOCATION, Bucket, csv, faults, keys, page, pages, people

HEADER = b"id,email,name\n"


def test_each_line_is_a_recipient_with_its_columns_as_attributes() -> None:
    found = people(csv(b"user,email,name\n7,ann@example.com,Ann\n8,bo@example.com,\n", key="user"))
    assert found == [
        Recipient("7", {"user": "7", "email": "ann@example.com", "name": "Ann"}),
        Recipient("8", {"user": "8", "email": "bo@example.com", "name": ""}),
    ]


@pytest.mark.parametrize("column", ["id", "event_type"])
def test_a_key_column_where_a_message_has_its_own_is_no_attribute(column: str) -> None:
    (only,) = people(csv(f"{column},email\n7,ann@example.com\n".encode(), key=column))
    assert only == Recipient("7", {"email": "ann@example.com"})


@pytest.mark.parametrize(
    "content",
    [
        b"id,name\n1,Ann\n2,Bo\n",
        b"id,name\n1,Ann\n2,Bo",
        b"id,name\r\n1,Ann\r\n2,Bo\r\n",
        b"id,name\r\n1,Ann\r\n2,Bo",
        b"\xef\xbb\xbfid,name\n1,Ann\n2,Bo\n",
        b'\xef\xbb\xbf"id","name"\r\n"1","Ann"\r\n"2","Bo"\r\n',
        b"id, name\n1,Ann\n\n\r\n2,Bo\n\n",
    ],
)
@pytest.mark.parametrize("size", [1, 2, 1000])
def test_a_file_may_end_its_lines_as_it_likes(content: bytes, size: int) -> None:
    names = [each.attributes["name"] for each in people(csv(content), size)]
    assert names == ["Ann", "Bo"]


def test_quoted_cells_may_hold_the_delimiter_quotes_and_line_breaks() -> None:
    content = b'id,name,note\n1,"Lane, Ann","says ""no"""\n2,"two\nlines","\n\r\n"\n3,a 5" disk,""\n'
    assert [(each.attributes["name"], each.attributes["note"]) for each in people(csv(content), 1)] == [
        ("Lane, Ann", 'says "no"'),
        ("two\nlines", "\n\r\n"),
        ('a 5" disk', ""),
    ]


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_another_delimiter_is_one(delimiter: str) -> None:
    content = delimiter.join(("id", "na,me")) + "\n" + delimiter.join(("1", "a,b")) + "\n"
    (only,) = people(csv(content.encode(), delimiter=delimiter))
    assert only.attributes == {"na,me": "a,b"}


def test_spaces_around_a_key_are_none_of_it() -> None:
    (only,) = people(csv(b"user ,email\n 7\xc2\xa0, ann@example.com\n", key="user"))
    assert only == Recipient("7", {"user": "7", "email": " ann@example.com"})


@pytest.mark.parametrize("delimiter", ["", ",,", "§", '"', "\n"])
def test_a_delimiter_that_cannot_be_one_is_refused(delimiter: str) -> None:
    with pytest.raises(Invalid, match=r"audience\.delimiter: is not one ASCII character"):
        csv(b"", delimiter=delimiter).page(page())


EMPTY = "is empty; fill it, or take the entry out"
NOT_CLOSED = "has a quote that is not closed; close it, or double it"


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (b"2,b\xfcrger@example.com,Bo", "line 3, column email: is not UTF-8; save the file as UTF-8"),
        (b'2,"b",\xff', "line 3, column name: is not UTF-8; save the file as UTF-8"),
        (b"2,,Bo", f"line 3, column email: {EMPTY}"),
        (b'2," ",Bo', f"line 3, column email: {EMPTY}"),
        (b",bo@example.com,Bo", "line 3, column id: is empty; every entry needs a key of its own"),
        (b'" ",bo@example.com,Bo', "line 3, column id: is empty; every entry needs a key of its own"),
        (
            b" 1 ,bo@example.com,Bo",
            "line 3, column id: is the same as an entry's before it; keep one of them",
        ),
        (
            b"2,bo@example.com",
            "line 3: has 2 cells where the header has 3; quote cells that hold the delimiter",
        ),
        (b"2", "line 3: has 1 cell where the header has 3; quote cells that hold the delimiter"),
        (
            b"2,bo@example.com,Lane, Bo",
            "line 3: has 4 cells where the header has 3; quote cells that hold the delimiter",
        ),
        (
            b"1,bo@example.com,Bo",
            "line 3, column id: is the same as an entry's before it; keep one of them",
        ),
        (b'2,"bo@example.com,Bo', f"line 3, column email: {NOT_CLOSED}"),
        (
            b'2,bo@example.com,"Bo"s',
            "line 3, column name: has text behind its closing quote; double the quotes within",
        ),
        (b"2,bo@example.com,B\0o", "line 3, column name: holds a NUL character; take it out"),
        (
            b"2\t2,bo@example.com,Bo",
            "line 3, column id: holds a line break or control character; use plain text",
        ),
        (
            b"k" * 101 + b",bo@example.com,Bo",
            "line 3, column id: is longer than 64 bytes; use a shorter one",
        ),
        (b"2,bo@example.com," + b"o" * MAX_RECORD_BYTES * 2, "line 3: is longer than 256 KiB; shorten it"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
@pytest.mark.parametrize("size", [1, 1000])
def test_a_bad_line_is_said_and_the_others_go_on(line: bytes, fault: str, size: int) -> None:
    content = HEADER + b"1,ann@example.com,Ann\n" + line + b"\n3,cy@example.com,Cy\n"
    audience = csv(content, columns=["email"])
    if "same as" in fault and size == 1:
        assert keys(audience, size) == ["1", "1", "3"]  # the mailbox has one of an id
        return
    assert keys(audience, size) == ["1", "3"]
    assert faults(audience, size) == [fault]


@pytest.mark.parametrize(
    "cell", ["=1+1", "@SUM(A1)", "\tx", "\rx", "+cmd|' /C calc'!A0", "-2+3", "-", "+A1", "=", "+1+1"]
)
def test_a_cell_that_a_spreadsheet_would_run_is_refused_and_not_shown(cell: str) -> None:
    audience = csv(HEADER + f'1,ann@example.com,"{cell}"\n2,bo@example.com,Bo\n'.encode())
    assert keys(audience) == ["2"]
    assert faults(audience) == [
        f"line 2, column name: begins with {cell[0]!r}, as a formula does; take that out"
    ]


@pytest.mark.parametrize(
    "cell",
    [
        "+4930123456",
        "+1 (555) 010-99",
        "+(49) 30/1234",
        "-5",
        "+5",
        "-0.25",
        "-1.234,50",
        "-3%",
        "-1e-3",
        "-.5",
        "a=b",
        "",
    ],
)
def test_numbers_and_phone_numbers_with_a_sign_are_no_formulas(cell: str) -> None:
    (only,) = people(csv(HEADER + f'1,ann@example.com,"{cell}"\n'.encode()))
    assert only.attributes["name"] == cell


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        (b"", "line 1, the header, is empty; it must name the columns"),
        (b"\n1,2\n", "line 1, the header, is empty; it must name the columns"),
        (b"id,mail\n", "the audience has no column 'email'; it has: id, mail"),
        (b"key,email\n", "the audience has no column 'id'; it has: email, key"),
        (b"id,email,\n", "column 3 of the audience has no name; give it one"),
        (b"id,email,email\n", "the audience has two columns 'email'; rename one"),
        (b"id,em\xe4il\n", "line 1, the header, is not UTF-8; save the file as UTF-8"),
        (b'id,"email\n', "line 1, the header, has a quote that is not closed; close it, or double it"),
        (b"id" * MAX_RECORD_BYTES, "line 1, the header, is longer than 256 KiB; shorten it"),
    ],
)
def test_a_header_that_cannot_be_one_stops_the_run(header: bytes, problem: str) -> None:
    with pytest.raises(Invalid) as fault:
        csv(header, columns=["email"]).page(page())
    assert str(fault.value) == f"audience.columns: {problem}"


def test_line_numbers_are_those_of_an_editor() -> None:
    content = b'id,name\n1,"a\nb\nc"\n\n2,=\n3,"d\n"\n4,=\n'
    assert [fault.split(",")[0] for fault in faults(csv(content), 1)] == ["line 6", "line 9"]


def test_a_quote_that_is_not_closed_costs_its_line_alone() -> None:
    """Also where the file is larger than what may be read ahead."""
    rest = b"".join(b"%d,Bo\n" % number for number in range(2, 80_000))
    audience = csv(b'id,name\n1,"Ann\n' + rest)
    assert len(rest) > 2 * MAX_RECORD_BYTES
    assert faults(audience) == [f"line 2, column name: {NOT_CLOSED}"]
    assert keys(audience) == [str(number) for number in range(2, 80_000)]


BEHIND = "has text behind its closing quote; double the quotes within"


@pytest.mark.parametrize(
    ("end", "problem"),
    [(b"", NOT_CLOSED), (b'x"y\n', BEHIND), (b"x" * 3 * MAX_RECORD_BYTES, NOT_CLOSED)],
    ids=["the end", "text behind a quote", "an endless line"],
)
def test_lines_that_each_open_a_quote_are_not_read_once_for_each_of_them(end: bytes, problem: str) -> None:
    """Each of these closes the quote of the line before, and opens one."""
    count = 1000
    audience = csv(b"id,name\n1,Ann\n" + b'p","r\n' * count + end)

    def read() -> None:
        said = faults(audience)
        assert [each.rpartition(": ")[2] for each in said[:count]] == [problem] * count

    assert lines_of(read) < 200 * count
    assert keys(audience) == ["1"]


def test_a_record_that_is_closed_in_time_is_whole_behind_one_that_is_not() -> None:
    """Though its quote was open when the look at the first record ended."""
    long = b"y" * 60 + b"\n"
    unclosed = b'2,"Ann\n' + long * (MAX_RECORD_BYTES // len(long) - 5)
    content = b"id,name\n" + unclosed + b'p","r\n' + long * 10 + b'"\n4,Cy\n'
    assert faults(csv(content))[0] == f"line 2: {NOT_CLOSED}"
    assert keys(csv(content)) == ['p"', "4"]


def test_a_quote_that_is_not_closed_before_an_endless_line_costs_both() -> None:
    audience = csv(b'id,name\n1,"Ann\n2,' + b"x" * MAX_RECORD_BYTES * 3 + b"\n3,Cy\n")
    assert keys(audience) == ["3"]
    assert faults(audience) == [
        f"line 2, column name: {NOT_CLOSED}",
        "line 3: is longer than 256 KiB; shorten it",
    ]


def test_a_file_of_one_endless_line_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mailroom.campaigns.file_formats.MAX_LINE_BYTES", 2**20)
    with pytest.raises(Invalid, match="line 2 has over 1 MiB; put a line break behind each entry"):
        keys(csv(b"id\n" + b"x" * 2**21))


def test_long_lines_end_a_page_before_it_is_full() -> None:
    content = b"id,note\n" + b"".join(b"%d,%s\n" % (number, b"x" * 200_000) for number in range(100))
    sizes = [len(found.recipients) for found in pages(csv(content))]
    assert max(sizes) < 45
    assert sum(sizes) == 100


def test_whatever_a_csv_writer_writes_is_read_the_same() -> None:
    """Pages of any size, and chunks that end anywhere, in a quote or between CR and LF."""
    chance = random.Random(7)
    for _ in range(60):
        all_quoted = chance.random() < 0.5
        # Bare, a carriage return before the line's end is part of the line break.
        letters = 'ab",\n é' + ("\r" if all_quoted else "")
        rows = [
            [str(number), *("x" + "".join(chance.choices(letters, k=chance.randint(0, 9))) for _ in range(2))]
            for number in range(30)
        ]
        text = StringIO(newline="")
        ends = chance.choice(["\n", "\r\n"])
        write = writer(text, lineterminator=ends, quoting=QUOTE_ALL if all_quoted else QUOTE_MINIMAL)
        write.writerows([["id", "a", "b"], *rows])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("mailroom.campaigns.file_audience.CHUNK_BYTES", chance.randint(3, 60))
            found = people(csv(text.getvalue().encode()), chance.randint(1, 12))
        assert [[each.key, each.attributes["a"], each.attributes["b"]] for each in found] == rows


def test_a_cursor_carries_the_header_and_the_version_and_is_small() -> None:
    audience = csv(HEADER + b"1,ann@example.com,Ann\n2,bo@example.com,Bo\n")
    found = audience.page(page(size=1))
    etag = audience.client.content.etag  # type: ignore[attr-defined]
    assert found.cursor == {"offset": 36, "line": 3, "etag": etag, "header": ["id", "email", "name"]}


def test_a_file_that_changes_under_the_run_stops_it() -> None:
    bucket = Bucket(HEADER + b"1,ann@example.com,Ann\n2,bo@example.com,Bo\n")
    audience = FileAudience(File(LOCATION, "id"), bucket)  # type: ignore[arg-type]
    cursor = audience.page(page(size=1)).cursor
    bucket.content.data += b"3,cy@example.com,Cy\n"
    with pytest.raises(Invalid, match=r"audience\.location: s3://lists/people/all\.csv has changed since"):
        audience.page(page(cursor))
