"""An audience in PostgreSQL: every row once, by pages, whatever its key is; and what is wrong with a row."""

from collections.abc import Sequence
from uuid import UUID

import psycopg
import pytest
from psycopg import Connection

from mailroom.campaigns.audience import Audience, Recipient
from mailroom.campaigns.databases import Databases
from mailroom.campaigns.definition import Postgresql
from mailroom.campaigns.postgresql import PostgresqlAudience
from mailroom.errors import Invalid
from tests.support.unit.audience import Connected, audience_pages, cursor_page, faults, keys_of, recipients_of


def audience(databases: Databases, query: str, key: str = "key", columns: Sequence[str] = ()) -> Audience:
    return Connected(PostgresqlAudience(Postgresql("app", query, key, tuple(columns))), databases)


NUMBERS = "SELECT number FROM generate_series(-7, 29) AS number"
KEYS = {
    "integer": "number",
    "bigint": "number::bigint * 1000000000000",
    "numeric": "number::numeric",
    "uuid": "md5(number::text)::uuid",
    "text": "chr(97 + abs(number) % 3) || E' \\'\"%Ä' || number",
    "varchar": "('K' || number)::varchar(9)",
    "text in C": '(chr(65 + abs(number * 7) % 60) || number) COLLATE "C"',
    "text in ucs_basic": "(chr(65 + abs(number * 7) % 60) || number) COLLATE ucs_basic",
    "text by words": "(chr(65 + abs(number * 7) % 60) || number) COLLATE pg_unicode_fast",
}


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
@pytest.mark.parametrize("size", [1, 5, 37, 1000])
def test_the_pages_of_an_audience_contain_each_row_once_in_the_order_of_the_key(
    databases: Databases, key: str, size: int
) -> None:
    asked = audience(databases, f"SELECT {key} AS key FROM ({NUMBERS}) AS numbers")
    found = keys_of(asked, size)
    with databases.connection("app") as connection:
        rows = connection.execute(
            f"SELECT key::text FROM (SELECT {key} AS key FROM ({NUMBERS}) AS n) AS rows ORDER BY rows.key"
        )
        assert found == [text for (text,) in rows]
    assert len(set(found)) == 37


def test_a_full_last_page_of_an_audience_is_not_followed_by_an_empty_page(databases: Databases) -> None:
    sizes = [
        len(found.recipients)
        for found in audience_pages(audience(databases, "SELECT 1 AS key UNION SELECT 2"), 1)
    ]
    assert sizes == [1, 1]


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
@pytest.mark.parametrize("kind", ["integer", "text"])
def test_a_second_row_with_the_same_key_is_a_fault_whatever_the_size_of_a_page(
    databases: Databases, kind: str, size: int
) -> None:
    asked = audience(databases, f"SELECT key::{kind} FROM unnest(ARRAY[1, 1, 2, 3, 3]) AS key")
    assert keys_of(asked, size) == ["1", "2", "3"]
    assert faults(asked, size) == [
        f"key {key}, column key: is also the key of an earlier entry; keep one of them" for key in (1, 3)
    ]


def test_an_audience_collects_a_valid_row_after_an_invalid_one_with_the_same_key(
    databases: Databases,
) -> None:
    query = "SELECT 1 AS key, NULL AS email UNION ALL SELECT 1, 'a@example.com'"
    for size in (1, 1000):
        asked = audience(databases, query, columns=["email"])
        assert keys_of(asked, size) == ["1"]
        assert faults(asked, size) == [f"key 1, column email: {EMPTY}"]


def test_rows_that_appear_or_disappear_between_two_pages_of_an_audience_do_not_shift_other_rows(
    databases: Databases, app: Connection
) -> None:
    app.execute("CREATE TABLE people AS SELECT generate_series(10, 90, 10) AS key")
    asked = audience(databases, "TABLE people")
    first = asked.page(cursor_page(size=3))
    app.execute("DELETE FROM people WHERE key IN (10, 30)")
    app.execute("INSERT INTO people VALUES (5), (45)")
    second = asked.page(cursor_page(first.cursor))
    assert [each.key for each in first.recipients] == ["10", "20", "30"]
    assert [each.key for each in second.recipients] == ["40", "45", "50", "60", "70", "80", "90"]


def test_the_columns_of_an_audiences_query_become_valid_attributes_of_a_message(databases: Databases) -> None:
    query = """
      SELECT 7 AS key, 'Ann' AS name, true AS here, NULL AS nothing, 12.50::numeric AS price,
        3::numeric AS whole, 3.00::numeric AS even, 1e30::numeric AS huge, 0.5::float8 AS half,
        '2026-11-18'::date AS day,
        '2026-11-18T13:00:00Z'::timestamptz AT TIME ZONE 'UTC' AS moment, '13:00'::time AS hour,
        md5('x')::uuid AS token, ARRAY['a', NULL] AS names, '{"a": [1, 2.5]}'::jsonb AS more
    """
    (only,) = recipients_of(audience(databases, query))
    assert only == Recipient(
        "7",
        {
            "key": 7,
            "name": "Ann",
            "here": True,
            "nothing": None,
            "price": "12.50",
            "whole": 3,
            "even": "3.00",
            "huge": "1" + "0" * 30,
            "half": 0.5,
            "day": "2026-11-18",
            "moment": "2026-11-18T13:00:00",
            "hour": "13:00:00",
            "token": str(UUID("9dd4e461268c8034f5c8564e155c67a6")),
            "names": ["a", None],
            "more": {"a": [1, 2.5]},
        },
    )


@pytest.mark.parametrize("column", ["id", "event_type"])
def test_a_key_column_with_the_name_of_an_attribute_does_not_set_the_attribute(
    databases: Databases, column: str
) -> None:
    (only,) = recipients_of(audience(databases, f"SELECT 7 AS {column}, 'a@example.com' AS email", column))
    assert only == Recipient("7", {"email": "a@example.com"})


EMPTY = "is empty; fill it, or remove the entry"


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ("(2, NULL, NULL)", f"key 2, column email: {EMPTY}"),
        ("(2, '  ', NULL)", f"key 2, column email: {EMPTY}"),
        (
            "(1, 'b', NULL)",
            "key 1, column key: is also the key of an earlier entry; keep one of them",
        ),
        (
            "(2, 'b', '\\x00ff'::bytea)",
            "key 2, column more: holds bytes; remove it, or convert it to text",
        ),
        (
            "(NULL, 'b', NULL)",
            "all rows, column key: is NULL in 1 row; add their keys, or exclude them in the query",
        ),
    ],
)
@pytest.mark.parametrize("size", [2, 1000])
def test_an_audience_reports_a_bad_row_as_a_fault_and_collects_the_others(
    databases: Databases, row: str, fault: str, size: int
) -> None:
    query = f"""
      SELECT * FROM (VALUES (1, 'a', NULL::bytea), {row}, (3, 'c', NULL)) AS rows (key, email, more)
    """
    asked = audience(databases, query, columns=["email"])
    assert keys_of(asked, size) == ["1", "3"]
    assert faults(asked, size) == [fault]


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("'NaN'::numeric", "is NaN or infinity; use NULL or a number"),
        ("'-Infinity'::float8", "is NaN or infinity; use NULL or a number"),
        ("ARRAY['\\x00'::bytea]", "holds bytes; remove it, or convert it to text"),
        (
            "'1 day'::interval",
            "has an unsupported type; remove it, or convert it to text",
        ),
        (
            "int4range(1, 2)",
            "has an unsupported type; remove it, or convert it to text",
        ),
    ],
)
def test_an_audience_reports_a_value_that_a_message_cannot_contain_as_a_fault(
    databases: Databases, value: str, problem: str
) -> None:
    assert faults(audience(databases, f"SELECT 'k' AS key, {value} AS more")) == [
        f"key k, column more: {problem}"
    ]


TIME = "is infinity, 24:00 or not in the years 1 to 9999; use NULL, or convert it to text"
DEEP = "has over 32 levels of lists and objects; use fewer"
NO_TEXT = "holds half of a surrogate pair, which is invalid in UTF-8; remove it"


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("'infinity'::timestamptz", TIME),
        ("'-infinity'::timestamp", TIME),
        ("'infinity'::date", TIME),
        ("'12026-11-18'::date", TIME),
        ("'0044-03-15 BC'::date", TIME),
        ("'12026-11-18T13:00:00Z'::timestamptz", TIME),
        ("'24:00'::time", TIME),
        ("ARRAY['2026-11-18', 'infinity']::timestamptz[]", TIME),
        ("(repeat('[', 33) || repeat(']', 33))::jsonb", DEEP),
        ("(repeat('[', 5000) || repeat(']', 5000))::json", "has too many levels or digits; use fewer"),
        ("('[' || repeat('9', 5000) || ']')::json", "has too many levels or digits; use fewer"),
        ("""'{"a": ["\\ud83d"]}'::json""", NO_TEXT),
        ("""'{"\\ud83d": 1}'::json""", NO_TEXT),
    ],
)
@pytest.mark.parametrize("size", [1, 2, 1000])
def test_an_audience_reports_a_value_that_python_cannot_represent_and_collects_the_other_rows(
    databases: Databases, value: str, problem: str, size: int
) -> None:
    rows = "generate_series(1, 3) AS key"
    asked = audience(databases, f"SELECT key, CASE key WHEN 2 THEN {value} END AS more FROM {rows}")
    assert keys_of(asked, size) == ["1", "3"]
    assert faults(asked, size) == [f"key 2, column more: {problem}"]


def test_the_fault_of_a_row_with_an_invalid_key_names_its_place_in_the_page(databases: Databases) -> None:
    query = "SELECT repeat('k', 101) AS key UNION SELECT E'a\\nb' UNION SELECT ''"
    assert faults(audience(databases, query)) == [
        "row 1 of the page, column key: is empty; every entry needs a unique key",
        "row 2 of the page, column key: holds a line break or control character; use plain text",
        "row 3 of the page, column key: is longer than 64 bytes; use a shorter key",
    ]


def test_an_audience_reports_rows_without_a_key_as_one_fault_and_not_once_for_each_page(
    databases: Databases,
) -> None:
    query = "SELECT nullif(number, 3) AS key FROM generate_series(1, 9) AS number"
    assert [len(found.faults) for found in audience_pages(audience(databases, query), 3)] == [1, 0, 0]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT 1 AS key, '5%' AS email",
        "SELECT 1 AS key, '5%%' AS email;",
        "SELECT 1 AS key, '5%' AS email ; \n ; ",
        "SELECT 1 AS key, 105 % 100 || '%' AS email -- per cent",
        "WITH one AS (SELECT 1 AS key) SELECT key, '5%' AS email FROM one WHERE '%(x)s' LIKE '%x%'",
    ],
)
def test_a_query_may_contain_percent_signs_semicolons_and_comments(databases: Databases, query: str) -> None:
    (only,) = recipients_of(audience(databases, query))
    assert only.attributes["email"] == "5%"


def test_a_query_may_use_the_scheduled_time_of_its_run(databases: Databases) -> None:
    week_before = "(%(scheduled_at)s - interval '7 days') AT TIME ZONE 'UTC'"
    query = f"SELECT 1 AS key, to_char({week_before}, 'FMDD Mon HH24') AS at"
    (only,) = recipients_of(audience(databases, query))
    assert only.attributes["at"] == "11 Nov 13"


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        (
            "SELECT 1 AS key FORM people",
            "audience.query: PostgreSQL refuses the query: syntax error at or near",
        ),
        (
            "SELECT 1 AS other",
            "audience.query: PostgreSQL refuses the query: column audience.key does not exist",
        ),
        (
            "SELECT 1 AS key, nothing AS email",
            'audience.query: PostgreSQL refuses the query: column "nothing" does not',
        ),
        ("SELECT 1 AS key", "audience.columns: the audience has no column 'email'; it has: key"),
        ("SELECT 1 AS key, 2 AS email, 3 AS email", "audience.columns: two columns have the name 'email'"),
        (
            "SELECT 1.5::float8 AS key, 2 AS email",
            "audience.key: has the type float; cast it to a text, a whole number",
        ),
        (
            "SELECT now() AS key, 2 AS email",
            "audience.key: has the type datetime; cast it to a text, a whole number",
        ),
    ],
)
@pytest.mark.parametrize("size", [1, 1000])
def test_a_query_that_cannot_be_an_audience_is_refused_with_the_reason(
    databases: Databases, query: str, problem: str, size: int
) -> None:
    with pytest.raises(Invalid) as fault:
        audience(databases, query, columns=["email"]).page(cursor_page(size=size))
    assert str(fault.value).startswith(problem)


def test_the_query_of_an_audience_cannot_write_to_the_database(databases: Databases, app: Connection) -> None:
    app.execute("CREATE TABLE people (key int)")
    app.execute(
        "CREATE FUNCTION added() RETURNS int LANGUAGE sql AS 'INSERT INTO people VALUES (1) RETURNING key'"
    )
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        audience(databases, "SELECT added() AS key").page(cursor_page())
    assert app.execute("SELECT count(*) FROM people").fetchone() == (0,)


def test_the_cursor_of_an_audience_is_passed_as_a_value_and_not_as_a_part_of_the_query(
    databases: Databases,
) -> None:
    asked = audience(databases, "SELECT 'k' AS key")
    assert [each.key for each in asked.page(cursor_page("' OR true --")).recipients] == ["k"]
    assert asked.page(cursor_page("z' OR true --")).recipients == []


def test_the_key_column_of_an_audience_may_have_a_name_with_spaces_quotes_and_semicolons(
    databases: Databases,
) -> None:
    name = 'User "id"; DROP'
    quoted = name.replace('"', '""')
    asked = audience(databases, f'SELECT n AS "{quoted}" FROM generate_series(1, 3) AS n', name)
    assert keys_of(asked, 1) == ["1", "2", "3"]


def test_a_later_page_of_an_audience_reads_only_its_own_rows_and_the_next_one_from_the_table(
    databases: Databases, app: Connection
) -> None:
    app.execute("CREATE TABLE people (id bigint PRIMARY KEY, email text NOT NULL)")
    app.execute("INSERT INTO people SELECT n, 'p' || n FROM generate_series(1, 20000) AS n")
    app.execute("VACUUM ANALYZE people")
    asked = audience(databases, "SELECT id, email FROM people WHERE email <> ''", "id")
    row = "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_user_tables WHERE relname = 'people'"

    def read() -> int:
        """How many rows were read so far, as the server counts."""
        with databases.connection("app") as pooled:
            pooled.execute("SELECT pg_stat_force_next_flush()")
        found = app.execute(row).fetchone()
        assert found is not None
        return int(found[0])

    before = read()
    assert len(asked.page(cursor_page("19000", size=100)).recipients) == 100
    assert read() - before == 101  # and the next, which says whether there is more
