"""The unchanged example campaign, over 5,000 people in a real PostgreSQL."""

import importlib.util
import json
import re
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from types import ModuleType
from typing import Any

import msgspec
import pytest
from psycopg import Connection

from mailroom.campaigns import Recipients
from mailroom.campaigns.audience import Audience, Page, Recipient
from mailroom.campaigns.databases import Databases
from mailroom.campaigns.definition import Postgresql
from mailroom.campaigns.postgresql import PostgresqlAudience
from mailroom.content.templates import Templates
from mailroom_local.database import example_people
from mailroom_local.database.example_people import People, email, first_name
from mailroom_local.database.postgres import Postgres
from tests.support import ROOT
from tests.support.postgres.vault import Vault, database_settings
from tests.support.unit.audience import RUN, TIME, Connected, audience_pages

FOLDER = ROOT / "campaigns" / "weekly-followers"
SETTINGS: dict[str, Any] = tomllib.loads((FOLDER / "campaign.toml").read_text())
AT = datetime.fromisoformat(TIME)
PEOPLE = People(mailed=5_000, quiet=400, unwilling=300)


@pytest.fixture(scope="module")
def databases(server: Postgres) -> Databases:
    """The application's database, with all its people."""
    with server.connect() as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
        example_people.create(connection, PEOPLE, AT)
    return Databases({"app": database_settings()}, Vault(**server.secret))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def module() -> ModuleType:
    """The campaign's own file."""
    spec = importlib.util.spec_from_file_location("weekly_followers", FOLDER / "campaign.py")
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def audience(databases: Databases) -> Audience:
    return Connected(PostgresqlAudience(msgspec.convert(SETTINGS["audience"], Postgresql)), databases)


def recipients(databases: Any, *numbers: int, at: str = TIME) -> Recipients:
    return Recipients([Recipient(str(number)) for number in numbers], RUN, at, databases)


def test_the_audience_query_finds_each_person_with_new_followers_who_wants_the_mail_once(
    databases: Databases,
) -> None:
    found = [*audience_pages(audience(databases), SETTINGS["page_size"])]
    assert [len(each.recipients) for each in found] == [1000] * 5
    assert not any(each.faults for each in found)
    assert [person for each in found for person in each.recipients] == [
        Recipient(str(number), {"user_id": number, "email": email(number), "first_name": first_name(number)})
        for number in range(1, PEOPLE.mailed + 1)
    ]


def test_a_run_finds_the_people_with_new_followers_in_the_week_before_its_scheduled_time(
    databases: Databases,
) -> None:
    def seen(at: datetime) -> int:
        return len(audience(databases).page(Page(None, 1000, RUN, at.isoformat())).recipients)

    # Some have a follower of the week before, and some one of the week after.
    days = [seen(AT + timedelta(days=day)) for day in (-16, -7, 0, 7, 16)]
    assert days == [0, 1000, 1000, 1000, 0]


def newest_followers(number: int, most: int) -> list[str]:
    count = min(PEOPLE.new_followers(number), most)
    return [first_name((number + step) % PEOPLE.all + 1) for step in range(count)]


def test_compose_names_at_most_five_newest_followers_of_a_person_and_counts_all_new_ones(
    databases: Databases, module: ModuleType
) -> None:
    numbers = [*range(1, 40), 2_500, 5_000]
    composed = module.compose(recipients(databases, *numbers))
    assert composed == {
        str(number): {
            "new_followers": PEOPLE.new_followers(number),
            "followers": newest_followers(number, 5),
        }
        for number in numbers
    }
    assert {len(each["followers"]) for each in composed.values()} == {1, 2, 3, 4, 5}
    assert max(each["new_followers"] for each in composed.values()) == 9
    json.dumps(composed)


def test_compose_leaves_out_a_person_without_a_new_follower(databases: Databases, module: ModuleType) -> None:
    quiet = PEOPLE.mailed + 1
    assert [*module.compose(recipients(databases, 1, quiet))] == ["1"]


class Counting:
    """Databases that keep what they are asked."""

    def __init__(self, databases: Databases) -> None:
        self._databases = databases
        self.asked: list[tuple[Any, Any]] = []

    @contextmanager
    def connection(self, name: str) -> Iterator[Any]:
        with self._databases.connection(name) as connection:
            yield _Told(connection, self.asked)


class _Told:
    def __init__(self, connection: Connection, asked: list[tuple[Any, Any]]) -> None:
        self._connection = connection
        self._asked = asked

    def execute(self, query: Any, values: Any) -> Any:
        self._asked.append((query, values))
        return self._connection.execute(query, values)


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for each in plan.get("Plans", ()):
        yield from nodes(each)


def plan(
    databases: Databases, query: str, values: Any, explain: str = "EXPLAIN (FORMAT JSON)"
) -> list[dict[str, Any]]:
    with databases.connection("app") as connection:
        row = connection.execute(f"{explain} {query}", values).fetchone()
    assert row is not None
    return [*nodes(row[0][0]["Plan"])]


def test_compose_reads_a_chunk_of_recipients_by_one_query_that_uses_indexes(
    databases: Databases, module: ModuleType
) -> None:
    counting = Counting(databases)
    chunk = range(1, SETTINGS["recipients_per_message"] + 1)
    assert len(module.compose(recipients(counting, *chunk))) == len(chunk)
    ((query, values),) = counting.asked
    steps = plan(databases, query, values)
    assert not [each for each in steps if each["Node Type"] == "Seq Scan"]
    indexes = {each["Index Name"] for each in steps if "Index Name" in each}
    assert indexes == {"follows_by_followed", "users_pkey"}


def test_the_query_of_the_audiences_last_page_reads_by_indexes_without_a_scan_or_a_sort(
    databases: Databases,
) -> None:
    page = f"SELECT * FROM ({SETTINGS['audience']['query']}) AS a WHERE user_id > %(after)s ORDER BY user_id"
    asked = {"scheduled_at": AT, "after": "4900"}
    steps = plan(databases, page + " LIMIT 1000", asked, "EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON)")
    read = {
        each["Index Name"]: each["Actual Rows"] * each["Actual Loops"]
        for each in steps
        if "Index Name" in each
    }
    wanting = PEOPLE.mailed - 4900 + PEOPLE.quiet
    assert read == {"users_pkey": wanting, "follows_by_followed": PEOPLE.mailed - 4900}
    assert not [each for each in steps if each["Node Type"] in ("Seq Scan", "Sort")]


@pytest.mark.parametrize(
    ("number", "count", "said"),
    [(9, 1, "a new follower"), (3, 4, "4 new followers"), (8, 9, "9 new followers")],
)
def test_the_mail_names_the_newest_followers_and_counts_the_others(
    databases: Databases, module: ModuleType, number: int, count: int, said: str
) -> None:
    own = module.compose(recipients(databases, number))[str(number)]
    link = "https://mail.example.com/unsubscribe/a.b?c=1&d=2"
    variables = {"first_name": "Ann & <Bo>", "email": email(number), **own, "unsubscribe_url": link}
    mail = Templates(ROOT / "templates" / "mail").render(SETTINGS["template"], variables)
    assert mail.html is not None
    assert mail.text is not None
    assert mail.subject == f"Ann & <Bo>, you have {said}"
    for name in own["followers"]:
        assert f"  * {name}\n" in mail.text
        assert f"<strong>{name}</strong>" in mail.html
    more = count - len(own["followers"])
    assert (f"and {more} more" in mail.text) == (f"and {more} more" in mail.html) == (more > 0)
    assert "Dear Ann &amp; &lt;Bo&gt;," in mail.html
    assert link in mail.text
    assert 'href="https://mail.example.com/unsubscribe/a.b?c=1&amp;d=2"' in mail.html
    assert not re.search(r"\n{3,}|[ \t]+\n", mail.text)
