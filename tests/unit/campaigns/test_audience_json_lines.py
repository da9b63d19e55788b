"""JSON Lines: a recipient a line, and a bad line costs itself alone."""

import pytest

from mailroom.campaigns.audience import Recipient
from mailroom.campaigns.file_formats import MAX_RECORD_BYTES
from mailroom.campaigns.queue_bodies import Chunk, chunk_of
from mailroom.errors import Invalid
from mailroom.message.message import encode
from tests.support.unit.audience import RUN, TIME, cursor_page, faults, jsonl, keys_of, recipients_of


@pytest.mark.parametrize("begin", [b"", b"\xef\xbb\xbf", b"\n"])
@pytest.mark.parametrize("size", [1, 2, 1000])
def test_each_line_of_a_json_lines_file_is_a_recipient(begin: bytes, size: int) -> None:
    content = begin + b'{"id": 7, "email": "ann@example.com", "tags": ["a", {"b": 1.5}]}\r\n\n'
    content += '{"id": "b-8", "name": "Bo Ö", "note": null}'.encode()
    assert recipients_of(jsonl(content), size) == [
        Recipient("7", {"email": "ann@example.com", "tags": ["a", {"b": 1.5}]}),
        Recipient("b-8", {"name": "Bo Ö", "note": None}),
    ]


def test_numbers_of_a_json_lines_file_keep_their_digits_on_the_way_to_the_function_compose() -> None:
    content = b'{"id": 1, "price": 19.90, "long": 0.12345678901234567890123456789, "far": 1e100}'
    (only,) = recipients_of(jsonl(content))
    assert [str(only.attributes[name]) for name in ("price", "long", "far")] == [
        *("19.90", "0.12345678901234567890123456789", "1E+100"),
    ]
    body = encode(Chunk("weekly", RUN, TIME, 1, [only]))
    assert '"price":19.90,' in body
    assert chunk_of(body).recipients == [only]


EMPTY_KEY = "line 2, column id: is empty; every entry needs a unique key"
NO_KEY = "line 2, column id: is not a key; use a text, a whole number or a UUID"
NO_NUMBER = "line 2: holds a number that DynamoDB cannot store; use up to 38 digits, 1E-130 to 1E+125"


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (b'["2", "b"]', "line 2: is not a JSON object; use one per line"),
        (b'{"id": 2, "email": "b"', "line 2: is not JSON in UTF-8 (Input data was truncated); correct it"),
        (b'{"id": 2, "email": "\xff"}', "line 2: is not JSON in UTF-8 ("),
        (b"{" * 9000, "line 2: is not JSON in UTF-8 ("),
        (b'{"a":' * 9000, "line 2: is not JSON in UTF-8 ("),
        (
            b'{"id": 2, "email": "b", "n": %s}' % (b"[" * 33 + b"]" * 33),
            "line 2: has over 32 levels of lists",
        ),
        (b'{"email": "b"}', EMPTY_KEY),
        (b'{"id": "", "email": "b"}', EMPTY_KEY),
        (b'{"id": " \\t", "email": "b"}', EMPTY_KEY),
        (b'{"id": null, "email": "b"}', EMPTY_KEY),
        (b'{"id": true, "email": "b"}', NO_KEY),
        (b'{"id": 2.5, "email": "b"}', NO_KEY),
        (b'{"id": ["2"], "email": "b"}', NO_KEY),
        (b'{"id": 2, "email": "b", "n": 1E999999999999999999999}', NO_NUMBER),
        (b'{"id": 2, "email": "b", "n": [-1E-999999999999999999999]}', NO_NUMBER),
        # The line would have a gigabyte if it were written out.
        (b'{"id": 2, "email": "b", "n": 1E999999999}', NO_NUMBER),
        (b'{"id": 2, "email": "b", "n": 1E300}', NO_NUMBER),
        (b'{"id": 2, "email": "b", "n": 0.%s}' % (b"1" * 39), NO_NUMBER),
        (b'{"id": "a\\u0000b", "email": "b"}', "line 2, column id: holds a line break or control character"),
        (b'{"id": "a\\u2028b", "email": "b"}', "line 2, column id: holds a line break or control character"),
        (b'{"id": 2}', "line 2, column email: is empty; fill it, or remove the entry"),
        (b'{"id": 2, "email": null}', "line 2, column email: is empty; fill it, or remove the entry"),
        (b'{"id": "1", "email": "b"}', "line 2, column id: is also the key of an earlier entry"),
        (b'{"id": 2, "email": "%s"}' % (b"b" * MAX_RECORD_BYTES * 2), "line 2: is longer than 256 KiB"),
    ],
    ids=lambda value: value[:50] if isinstance(value, str) else "",
)
def test_an_invalid_line_is_reported_as_a_fault_and_the_other_lines_are_collected(
    line: bytes, fault: str
) -> None:
    good = [b'{"id": %d, "email": "a"}' % number for number in (1, 3)]
    audience = jsonl(good[0] + b"\n" + line + b"\n" + good[1], columns=["email"])
    assert keys_of(audience) == ["1", "3"]
    (said,) = faults(audience)
    assert said.startswith(fault)


def test_a_fault_does_not_contain_the_text_of_its_line() -> None:
    audience = jsonl(b'{"id": 2, "email": secret@example.com}\n{"id": 2, "email": "\xffsecret"}\n')
    assert not any("secret" in said for said in faults(audience))
    assert len(faults(audience)) == 2


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"\x1f\x8b\x08\0", "the file is compressed (gzip); unpack it with gunzip"),
        (b"PK\x03\x04", "the file is compressed (zip, or a spreadsheet); put it there as plain text"),
        ('{"id": 1}'.encode("utf-16"), "the file is in UTF-16; save it as UTF-8"),
    ],
)
def test_a_compressed_file_or_a_file_in_utf_16_stops_the_run(content: bytes, problem: str) -> None:
    with pytest.raises(Invalid) as fault:
        jsonl(content).page(cursor_page())
    assert str(fault.value) == f"audience.location: {problem}"
