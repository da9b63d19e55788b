"""CSV files of people: faults are reported by line and column, and valid lines are used."""

import random
from csv import QUOTE_ALL, QUOTE_MINIMAL, writer
from io import StringIO

import pytest

from mailroom.campaigns.audience import Recipient
from mailroom.campaigns.file_formats import MAX_RECORD_BYTES
from mailroom.errors import Invalid
from tests.support.fuzz.work import lines_of
from tests.support.unit.audience import audience_pages, csv, cursor_page, faults, keys_of, recipients_of

HEADER = b"id,email,name\n"


def test_each_line_of_a_csv_file_is_a_recipient_with_its_cells_as_attributes() -> None:
    found = recipients_of(csv(b"user,email,name\n7,ann@example.com,Ann\n8,bo@example.com,\n", key="user"))
    assert found == [
        Recipient("7", {"user": "7", "email": "ann@example.com", "name": "Ann"}),
        Recipient("8", {"user": "8", "email": "bo@example.com", "name": ""}),
    ]


@pytest.mark.parametrize("column", ["id", "event_type"])
def test_a_key_column_named_id_or_event_type_does_not_become_an_attribute(column: str) -> None:
    (only,) = recipients_of(csv(f"{column},email\n7,ann@example.com\n".encode(), key=column))
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
def test_a_csv_file_may_have_lf_or_cr_lf_line_ends_blank_lines_and_a_byte_order_mark(
    content: bytes, size: int
) -> None:
    names = [each.attributes["name"] for each in recipients_of(csv(content), size)]
    assert names == ["Ann", "Bo"]


def test_quoted_cells_may_contain_the_delimiter_quotes_and_line_breaks() -> None:
    content = b'id,name,note\n1,"Lane, Ann","says ""no"""\n2,"two\nlines","\n\r\n"\n3,a 5" disk,""\n'
    assert [
        (each.attributes["name"], each.attributes["note"]) for each in recipients_of(csv(content), 1)
    ] == [
        ("Lane, Ann", 'says "no"'),
        ("two\nlines", "\n\r\n"),
        ('a 5" disk', ""),
    ]


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
@pytest.mark.parametrize("size", [1, 1000])
def test_the_delimiter_in_the_header_of_a_csv_file_separates_the_cells_of_all_its_lines(
    delimiter: str, size: int
) -> None:
    lines = ("id", '"na,me, or, title"'), ("1", "a,b"), ("2", "c,d")
    found = recipients_of(csv("".join(f"{delimiter.join(line)}\n" for line in lines).encode()), size)
    assert [each.attributes for each in found] == [{"na,me, or, title": "a,b"}, {"na,me, or, title": "c,d"}]


@pytest.mark.parametrize(
    "first", [b"sep=;\r\n", b'"sep=;"\n', b"\xef\xbb\xbfSEP=;\n", b"sep=^\n", b"sep=\t\n"]
)
@pytest.mark.parametrize("size", [1, 1000])
def test_the_delimiter_of_a_csv_file_may_be_named_by_a_sep_line_before_the_header(
    first: bytes, size: int
) -> None:
    content = first + b"id;name\n1;Ann\n2;\n=;Cy;\n4;D;E\n".replace(b";", first.partition(b"=")[2][:1])
    audience = csv(content)
    assert [each.attributes["name"] for each in recipients_of(audience, size)] == ["Ann", "", "Cy"]
    assert faults(audience, size) == [
        "line 6: has 3 cells, but the header has 2; quote cells that hold the delimiter"
    ]


@pytest.mark.parametrize("size", [1, 1000])
def test_a_csv_line_may_lack_cells_at_its_end_or_have_surplus_empty_cells_there(size: int) -> None:
    content = b"id,email,name,town\n1,a@example.com,Ann\n2,b@example.com\n3,c@example.com,,,,\n4\n,,,\n,\n"
    audience = csv(content, columns=["email"])
    found = [
        {"name": each.attributes["name"], "town": each.attributes["town"]}
        for each in recipients_of(audience, size)
    ]
    assert found == [{"name": "Ann", "town": ""}, {"name": "", "town": ""}, {"name": "", "town": ""}]
    assert faults(audience, size) == [f"line 5, column email: {EMPTY}"]


@pytest.mark.parametrize("size", [1, 1000])
def test_a_column_becomes_the_attribute_to_which_the_campaign_maps_it(size: int) -> None:
    audience = csv(
        b"User,First Name,E-Mail\n7,Ann,ann@example.com\n8,Bo,\n",
        "user",
        ["email"],
        user="User",
        first_name="First Name",
        email="E-Mail",
    )
    assert recipients_of(audience, size) == [
        Recipient("7", {"user": "7", "first_name": "Ann", "email": "ann@example.com"})
    ]
    assert faults(audience, size) == [f"line 3, column email: {EMPTY}"]


def test_a_run_stops_if_its_audience_lacks_a_column_that_the_campaign_maps() -> None:
    with pytest.raises(Invalid) as fault:
        csv(b"id,First name\n1,Ann\n", first_name="First Name").page(cursor_page())
    assert str(fault.value) == "audience.map: the audience has no column 'First Name'; it has: id, First name"


@pytest.mark.parametrize("content", [b"id,name\n", b"id,name", b"id,name\n\n,\n\r\n"])
def test_a_csv_file_that_has_only_a_header_is_reported_as_a_fault(content: bytes) -> None:
    assert faults(csv(content)) == [
        "line 1: is the only line; put each entry on a separate line, which ends with LF or CR LF"
    ]


def test_spaces_around_the_key_of_a_recipient_are_removed() -> None:
    (only,) = recipients_of(csv(b"user ,email\n 7\xc2\xa0, ann@example.com\n", key="user"))
    assert only == Recipient("7", {"user": "7", "email": " ann@example.com"})


EMPTY = "is empty; fill it, or remove the entry"
NOT_CLOSED = "has a quote that is not closed within 256 KiB; close it, or double it"
STRAY = (
    "has text after a closing quote, or a single carriage return; double the quotes within a cell, and end "
    "lines with LF or CR LF"
)


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (b"2,b\xfcrger@example.com,Bo", "line 3, column email: is not UTF-8; save the file as UTF-8"),
        (b'2,"b",\xff', "line 3, column name: is not UTF-8; save the file as UTF-8"),
        (b"2,,Bo", f"line 3, column email: {EMPTY}"),
        (b'2," ",Bo', f"line 3, column email: {EMPTY}"),
        (b",bo@example.com,Bo", "line 3, column id: is empty; every entry needs a unique key"),
        (b'" ",bo@example.com,Bo', "line 3, column id: is empty; every entry needs a unique key"),
        (
            b" 1 ,bo@example.com,Bo",
            "line 3, column id: is also the key of an earlier entry; keep one of them",
        ),
        (b"2", f"line 3, column email: {EMPTY}"),
        (
            b"2,bo@example.com,Lane, Bo",
            "line 3: has 4 cells, but the header has 3; quote cells that hold the delimiter",
        ),
        (
            b"1,bo@example.com,Bo",
            "line 3, column id: is also the key of an earlier entry; keep one of them",
        ),
        (b'2,"bo@example.com,Bo', f"line 3: {NOT_CLOSED}"),
        (b'2,bo@example.com,"Bo"s', f"line 3: {STRAY}"),
        (b"2,bo@example.com,B\ro", f"line 3: {STRAY}"),
        (b"2,bo@example.com,B\0o", "line 3, column name: holds a NUL character; remove it"),
        (
            b"2\t2,bo@example.com,Bo",
            "line 3, column id: holds a line break or control character; use plain text",
        ),
        (
            b"k" * 101 + b",bo@example.com,Bo",
            "line 3, column id: is longer than 64 bytes; use a shorter key",
        ),
        (b"2,bo@example.com," + b"o" * MAX_RECORD_BYTES * 2, "line 3: is longer than 256 KiB; shorten it"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
@pytest.mark.parametrize("size", [1, 1000])
def test_an_invalid_line_is_reported_as_a_fault_and_the_other_lines_are_collected(
    line: bytes, fault: str, size: int
) -> None:
    content = HEADER + b"1,ann@example.com,Ann\n" + line + b"\n3,cy@example.com,Cy\n"
    audience = csv(content, columns=["email"])
    if "earlier entry" in fault and size == 1:
        assert keys_of(audience, size) == ["1", "1", "3"]  # the mailbox has one of an id
        return
    assert keys_of(audience, size) == ["1", "3"]
    assert faults(audience, size) == [fault]


@pytest.mark.parametrize(
    "cell", ["=1+1", "@ada", "\tx", "-", "- none -", "-2+3", "+1 guest", "+4930123456", "=", "", "a=b"]
)
def test_a_cell_that_begins_like_a_spreadsheet_formula_is_read_as_text(cell: str) -> None:
    (only,) = recipients_of(csv(HEADER + f'1,ann@example.com,"{cell}"\n'.encode()))
    assert only.attributes["name"] == cell


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        (b"", "line 1, the header, is empty; it must name the columns"),
        (b"\n1,2\n", "line 1, the header, is empty; it must name the columns"),
        (b"id,mail\n", "the audience has no column 'email'; it has: id, mail"),
        (b"key,email\n", "the audience has no column 'id'; it has: email, key"),
        (b"id,email,\n", "column 3 has no name; add a name"),
        (b"id,email,email\n", "two columns have the name 'email'; rename one"),
        (b"id,em\xe4il\n", "line 1, the header, is not UTF-8; save the file as UTF-8"),
        (b'id,"email\n', f"line 1, the header, {NOT_CLOSED}"),
        (b"id,email\r1,ann@example.com\r", f"line 1, the header, {STRAY}"),
        (b"sep=;\nid,email\n", "the audience has no column 'id'; it has: id,email"),
        (b"sep=;\n\n", "line 2, the header, is empty; it must name the columns"),
        (b"id," * 1000, "line 1, the header, has 1001 columns; use at most 1000"),
        (b"id" * MAX_RECORD_BYTES, "line 1, the header, is longer than 256 KiB; shorten it"),
    ],
)
def test_a_run_stops_if_the_header_of_its_csv_file_is_invalid(header: bytes, problem: str) -> None:
    with pytest.raises(Invalid) as fault:
        csv(header, columns=["email"]).page(cursor_page())
    assert str(fault.value) == f"audience.columns: {problem}"


def test_line_numbers_in_faults_match_the_line_numbers_of_a_text_editor() -> None:
    content = b'id,name\n1,"a\nb\nc"\n\n2,\0\n3,"d\n"\n4,\0\n'
    assert [fault.split(",")[0] for fault in faults(csv(content), 1)] == ["line 6", "line 9"]


def test_an_unclosed_quote_is_reported_as_a_fault_of_its_own_line_only() -> None:
    """The file may also be larger than the part that is read ahead."""
    rest = b"".join(b"%d,%s\n" % (number, b"Bo" * 100) for number in range(2, 4_000))
    audience = csv(b'id,name\n1,"Ann\n' + rest)
    assert len(rest) > 2 * MAX_RECORD_BYTES
    assert faults(audience) == [f"line 2: {NOT_CLOSED}"]
    assert keys_of(audience) == [str(number) for number in range(2, 4_000)]


@pytest.mark.parametrize(
    "end", [b"", b'x"y\n', b"x" * 3 * MAX_RECORD_BYTES], ids=["end", "text", "endless line"]
)
def test_lines_that_each_open_a_quote_are_read_a_bounded_number_of_times(end: bytes) -> None:
    """Lines each of which closes the quote of the line before, and opens a new one."""
    count = 1000
    audience = csv(b"id,name\n1,Ann\n" + b'p","r\n' * count + end, columns=["name"])
    assert lines_of(lambda: faults(audience)) < 200 * count
    assert keys_of(audience) == ["1"]


@pytest.mark.parametrize("size", [1, 1000])
def test_entries_of_several_lines_after_an_unclosed_quote_are_read_whole(size: int) -> None:
    audience = csv(b'id,name\n1,"Ann\n2,Bo\n3,"two\nlines"\n4,"a\n\nb"\n')
    assert faults(audience, size) == [f"line 2: {STRAY}"]
    assert keys_of(audience, size) == ["2", "3", "4"]
    names = [each.attributes["name"] for each in recipients_of(audience, size)]
    assert names == ["Bo", "two\nlines", "a\n\nb"]


def test_a_file_with_one_endless_line_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mailroom.campaigns.file_formats.MAX_LINE_BYTES", 2**20)
    with pytest.raises(Invalid, match="line 2 has over 1 MiB; put a line break after each entry"):
        keys_of(csv(b"id\n" + b"x" * 2**21))


def test_a_page_of_long_csv_lines_ends_before_it_has_its_full_number_of_recipients() -> None:
    content = b"id,note\n" + b"".join(b"%d,%s\n" % (number, b"x" * 200_000) for number in range(100))
    sizes = [len(found.recipients) for found in audience_pages(csv(content))]
    assert max(sizes) < 45
    assert sum(sizes) == 100


def test_every_file_that_the_csv_writer_of_python_writes_is_read_unchanged() -> None:
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
            found = recipients_of(csv(text.getvalue().encode()), chance.randint(1, 12))
        assert [[each.key, each.attributes["a"], each.attributes["b"]] for each in found] == rows


def test_a_cursor_contains_only_the_position_the_version_the_delimiter_and_the_header_of_its_file() -> None:
    audience = csv(HEADER + b"1,ann@example.com,Ann\n2,bo@example.com,Bo\n")
    found = audience.page(cursor_page(size=1))
    etag = audience.client.content.etag  # type: ignore[attr-defined]
    assert found.cursor == {
        "offset": 36,
        "line": 3,
        "etag": etag,
        "delimiter": ",",
        "header": ["id", "email", "name"],
    }
