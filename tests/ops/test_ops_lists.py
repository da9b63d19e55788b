"""Lists of messages in a stage with 20,000 of them: what a page reads, and what it has."""

import csv
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mailroom.aws.dynamo_batches import batch_put
from mailroom.aws.dynamo_values import image_of
from mailroom.campaigns.runs import Runs
from mailroom.clock import iso
from mailroom.search.rows import Rows, run_row
from tests.support.campaign_start import start_in
from tests.support.ops.console import Browser
from tests.support.ops.message import LEDGER, Stage, answer, deployed, run
from tests.support.ops.search import SEARCH
from tests.support.ops.shared import RUNS, failure, make_runs
from tests.support.unit.shared import FakeClock, before_each_call

NOW = 1_795_251_600.0
RUN, OLD_RUN = "2026-11-17T09:00Z", "2026-11-10T09:00Z"
MESSAGES, OF_RUN = 20_000, 18_000
ADA = "ada@example.com"
DOMAINS = {600: "closed.example"}


class Unkeyed(Rows, frozen=True):
    """Rows whose recipients are not hashed, which takes most of the time of 20,000 messages."""

    def partition(self, form: str) -> str:
        return f"to#{form}"


def item_of(number: int) -> dict[str, Any]:
    """Return the message of a number of 20,000, the oldest first, a second apart: three of a template, 18,000
    of a run, of which 30 bounced and some were not sent, and the others."""
    put = int((NOW - MESSAGES + number) * 1000)
    item: dict[str, Any] = {
        "event_type": "mail",
        "to": f"p{number}@{DOMAINS.get(number, 'example.com')}",
        "ttl": 9_999_999_999,
    }
    item |= {"id": f"m-{number}", "status": "delivered", "putAt": put, "updatedAt": iso(put / 1000)}
    if number < 3:
        item |= {"template": "prices", "status": ("delivered", "suppressed", "sent")[number], "to": ADA}
    elif number < 3 + OF_RUN:
        item |= {"id": f"spring#{RUN}#{number}#x", "template": "spring"}
        item |= start_in(str(item["id"]))
        statuses = {0: "bounced", 1: "cancelled", 2: "scheduled"}
        item["status"] = statuses.get(number % 600, "sent")
    if item["status"] == "bounced":
        item |= {"completedAt": put, "bounce_type": "Permanent"}
        item |= failure(str(item["id"]), "mail", "bounced", put + 5_000)
    if number == 5:
        item |= {"status": "sending", "dead_lettered_at": put, "trouble": {"code": "x", "message": "busy"}}
        item |= failure(str(item["id"]), "mail", "dead-letter", put)
    return item


@pytest.fixture(scope="module")
def long_lists() -> Iterator[Stage]:
    with pytest.MonkeyPatch.context() as patch, deployed(patch) as whole:
        patch.setattr("time.time", lambda: NOW)
        make_runs(whole.dynamodb)
        runs = Runs(whole.dynamodb, RUNS, lease=60, clock=FakeClock(NOW))
        for name in (OLD_RUN, RUN):
            runs.begin("spring", name, "s", name)
        rows = Unkeyed(None)  # type: ignore[arg-type]
        patch.setattr(Rows, "partition", Unkeyed.partition)
        items = [item_of(number) for number in range(MESSAGES)]
        batch_put(whole.dynamodb, LEDGER, [image_of(item) for item in items])
        found = [row for item in items for row in (*rows.of(item), run_row(item)) if row]
        batch_put(whole.dynamodb, SEARCH, [row.image for row in found])
        yield whole


@pytest.fixture
def counted_calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """The number of calls of DynamoDB by operation."""
    counts = Counter[str]()
    before_each_call(monkeypatch, lambda operation: counts.update([operation]))
    return counts


def ids_of_answer(*words: str) -> list[str]:
    return [message["id"] for message in answer(run(*words, "--json"))["messages"]]


@pytest.mark.parametrize(
    ("words", "most", "listed"),
    [
        (("list",), {"Query": 8, "BatchGetItem": 1}, 50),
        (("list", "--channel", "sms"), {"Query": 8, "BatchGetItem": 2}, 0),
        (("list", "--status", "suppressed"), {"Query": 8, "BatchGetItem": 2}, 0),
        (("list", "--template", "prices"), {"Query": 8, "BatchGetItem": 1}, 3),
        (("list", "--template", "prices", "--status", "not-sent"), {"Query": 8, "BatchGetItem": 1}, 1),
        (("list", "--template", "spring", "--since", "2h"), {"Query": 8, "BatchGetItem": 1}, 50),
        (("list", "--status", "bounced"), {"Query": 4}, 30),
        (("list", "--status", "bounced", "--campaign", f"spring#{RUN}"), {"Query": 4}, 30),
        (("list", "--status", "dead-letter"), {"Query": 4}, 1),
        (("list", "--campaign", f"spring#{RUN}"), {"Query": 8, "BatchGetItem": 1}, 50),
        (("list", "--campaign", "spring"), {"Query": 17, "GetItem": 2, "BatchGetItem": 1}, 50),
        (("list", ADA), {"Query": 3, "BatchGetItem": 1}, 3),
    ],
)
def test_each_page_of_messages_list_makes_a_fixed_number_of_calls_to_dynamodb(
    long_lists: Stage, counted_calls: Counter[str], words: tuple[str, ...], most: dict[str, int], listed: int
) -> None:
    assert (len(ids_of_answer(*words)), dict(counted_calls)) == (listed, most)


def test_the_consoles_page_of_failures_makes_sixteen_queries_and_can_be_filtered_by_domain(
    long_lists: Stage, counted_calls: Counter[str]
) -> None:
    browser = Browser(long_lists.session, clock=lambda: NOW).enter()
    page = browser.get("/failures")
    assert dict(counted_calls) == {"Query": 16}
    assert "Domain example.com 29 closed.example 1" in page.words
    assert "29 messages ." in browser.get("/failures", domain="example.com").words.replace("es.", "es .")
    assert "Nothing went wrong" in browser.get("/failures", domain="else.example").words


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(text.removeprefix("\ufeff").splitlines()))


def test_the_console_and_messages_list_give_the_same_csv_of_a_templates_unsent_messages(
    long_lists: Stage,
) -> None:
    since, until = (iso(NOW - MESSAGES + OF_RUN + seconds) for seconds in (-400, 100))
    words = ("list", "--status", "not-sent", "--template", "spring", "--since", since, "--until", until)
    browser = Browser(long_lists.session, clock=lambda: NOW).enter()
    query = {"status": "not-sent", "template": "spring", "since": since, "until": until}
    assert "csv=1" in browser.get("/messages", **query).text
    file = browser.get("/messages", **query, csv="1")
    assert "\ufeff" + run(*words, "--csv").stdout_bytes.decode() == file.text
    expected = [f"spring#{RUN}#{number}#x" for number in (OF_RUN + 2, OF_RUN + 1, OF_RUN)]
    assert [row["id"] for row in rows_of(file.text)] == expected
    assert [row["to"] for row in rows_of(file.text)] == [
        f"p{number}@example.com" for number in (OF_RUN + 2, OF_RUN + 1, OF_RUN)
    ]
    reasons = [(row["status"], row["reason"]) for row in rows_of(file.text)]
    assert reasons == [("scheduled", ""), ("cancelled", ""), ("bounced", "Permanent")]


def test_messages_list_as_csv_has_a_dead_letter_with_the_reason_of_its_latest_try(long_lists: Stage) -> None:
    (dead,) = rows_of(run("list", "--status", "dead-letter", "--csv").stdout)
    assert (dead["status"], dead["reason"], dead["message"]) == ("dead-letter", "x", "busy")


def test_the_pages_of_messages_list_for_a_campaign_or_a_template_contain_each_message_once(
    long_lists: Stage,
) -> None:
    for words in (("--campaign", f"spring#{RUN}"), ("--template", "spring")):
        found: list[str] = []
        cursor = ""
        for _ in range(2):
            page = answer(run("list", *words, "--cursor", cursor, "--json"))
            found += [message["id"] for message in page["messages"]]
            cursor = page["cursor"]
        assert found == [f"spring#{RUN}#{number}#x" for number in range(OF_RUN + 2, OF_RUN - 98, -1)]


def test_the_console_filters_messages_by_dead_letter_by_not_sent_and_by_days(long_lists: Stage) -> None:
    browser = Browser(long_lists.session, clock=lambda: NOW).enter()
    page = browser.get("/messages", status="dead-letter")
    assert "<option selected>dead-letter</option>" in page.text
    assert "<option>not-sent</option>" in page.text
    assert f"spring%23{RUN.replace(':', '%3A')}%235" in page.text
    days = browser.get("/messages", template="prices", since="2026-11-20", until="2026-11-20")
    assert 'type="date" name="since" value="2026-11-20"' in days.text
    assert "No matching message" in days.words
    refused = browser.get("/messages", since="2026-11-21", until="2026-11-20")
    assert (refused.status, "use an earlier time" in refused.words) == (400, True)


def test_messages_list_refuses_the_option_csv_together_with_json_or_a_cursor(long_lists: Stage) -> None:
    for option in ("--json", "--cursor=x"):
        result = run("list", "--csv", option)
        assert (result.exit_code, "leave out --json and --cursor" in result.stderr) == (2, True)


def test_messages_list_selects_by_a_file_of_ids_and_addresses_and_accepts_its_own_csv_as_that_file(
    long_lists: Stage, tmp_path: Path
) -> None:
    file = tmp_path / "list.txt"
    file.write_text(f"{ADA}\n\nm-19000\nnobody@example.com\n")
    printed = run("list", "--ids", str(file), "--csv")
    rows = list(csv.DictReader(printed.stdout.splitlines()))
    assert [row["id"] for row in rows] == ["m-2", "m-1", "m-0", "m-19000"]
    assert "1 entry has no message." in printed.stderr
    file.write_text(printed.stdout)
    found = answer(run("list", "--ids", str(file), "--template", "prices", "--json"))
    assert [message["id"] for message in found["messages"]] == ["m-2", "m-1", "m-0"]


def test_messages_list_refuses_a_missing_file_of_ids_and_a_misspelt_status(
    long_lists: Stage, tmp_path: Path
) -> None:
    file = tmp_path / "list.txt"
    refused = run("list", "--ids", str(file))
    assert (refused.exit_code, "cannot be read" in refused.stderr) == (2, True)
    file.write_text("m-1")
    refused = run("list", "--ids", str(file), "--status", "lost")
    assert (refused.exit_code, "'lost' is not a status" in refused.stderr) == (2, True)
