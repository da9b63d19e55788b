"""The pages of a team's console: none acts, and each shows what the person's right allows."""

import csv
import io
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from botocore.client import BaseClient

from mailroom.aws.dynamo_values import image_of
from mailroom.campaigns.runs import Runs
from mailroom.telemetry import logger
from mailroom_ops.console import csv_file
from mailroom_ops.console.server import PAGES
from mailroom_ops.console.sessions import KEYS
from mailroom_ops.console.team import READING
from mailroom_ops.messages.failures_csv import COLUMNS
from tests.ops.test_ops_console_every_page import QUERIES
from tests.ops.test_ops_console_overview import ring
from tests.support import ROOT
from tests.support.dynamodb import InMemoryDynamoDB
from tests.support.ops.campaign import NOW, RUN
from tests.support.ops.search import index
from tests.support.ops.shared import RUNS, failure
from tests.support.ops.team import TeamBrowser
from tests.support.ops.whole import ADA, MS, WholeStage, whole_stage
from tests.support.stacks.campaign_folders import EVERYTHING, of_each_kind
from tests.support.stacks.variants import variant
from tests.support.unit.rights import Judge

EVE, NUMBER, TOKEN = "eve.adams@example.com", "+16175559876", "f" * 64
IN_ID = f"order-{EVE}"
PRIVATE = re.compile(r"[\w.+-]+@example\.com|617.?555.?\d{4}|f{64}")
"""Addresses, numbers and tokens of the stage, also within a longer text."""
COLD = """
import sys
sys.path[:0] = {paths}
import console
print(len(sys.modules))
packages = {{name.partition(".")[0] for name in sys.modules}}
print(*sorted(packages & {{"typer", "rich", "pydantic", "aws_cdk", "boto3"}}))
"""
VARIABLES = {
    "MAILROOM_STAGE": "dev",
    "CONSOLE_URL": "https://console.example.com",
    "ISSUER": "https://sign-in.example.com",
    "CLIENT_ID": "mailroom",
    "CLIENT_SECRET_ARN": "arn",
    "SCOPE": "openid",
    "CLAIM": "groups",
    "READ": "[]",
    "CONTENTS": "[]",
    "POWERTOOLS_SERVICE_NAME": "console",
    "POWERTOOLS_METRICS_NAMESPACE": "Mailroom",
    "AWS_DEFAULT_REGION": "eu-central-1",
}


def gossip(stage: WholeStage) -> None:
    """Let each field that a person or a provider writes have an address, a number and a token."""
    text = f"{EVE} {NUMBER} {TOKEN}"
    over: dict[str, Any] = {"completedAt": MS, "attempts": 2, "putAt": MS - 9_000, "ttl": 1 << 33, "to": EVE}
    wrong: dict[str, Any] = {"error": {"code": "rejected", "message": f"550 <{EVE}> unknown {NUMBER}"}}
    entry: dict[str, Any] = {EVE: {"status": "bounced", "error": text}}
    about: dict[str, Any] = {
        "subject": text,
        "template": EVE,
        "provider": text,
        "provider_id": text,
        "campaign": f"{EVE}#{RUN}",
    }
    trouble: dict[str, Any] = {"trouble": {"code": "in_doubt", "message": text}}
    callbacks: dict[str, Any] = {
        "callbacks": {text: {"status": "failed", "at": MS, "reason": f"url: {text}"}}
    }
    failed = failure(IN_ID, "mail", "failed", MS)
    stage.know(
        IN_ID, status="failed", **over, **wrong, **about, **trouble, **callbacks, recipients=entry, **failed
    )
    stage.know(f"push-{EVE}", "push", status="failed", **{**over, "to": TOKEN}, **wrong)
    condition = {"id": IN_ID, "event_type": "mail", "status": ["delivered"]}
    stage.know("follows", status="cancelled", unless=[condition], **over)
    stage.put(
        {
            "id": IN_ID,
            "event_type": "mail",
            "to": EVE,
            "template": "weekly",
            "first_name": text,
            "topic": text,
        }
    )
    index(stage.dynamodb)
    stage._item(
        "suppressions", recipient=EVE, channel="mail", reason="operator", at=1, message_id=IN_ID, detail=text
    )
    for topic, way in ((EVE, "page"), ("api", "api"), ("command", "command")):
        stage._item("preferences", recipient=EVE, topic=topic, opted_out_at=1, by=way, actor=text)
    body = json.dumps({"id": IN_ID, "event_type": "mail"})
    stage.sqs.send_message(QueueUrl=stage.urls["mail-dlq"], MessageBody=body)
    for thing in ("list", f"message#mail#{IN_ID}", "lanes", "dead letters"):
        deed = {
            "found_by": thing,
            "asked_at": f"{MS:013d}#a",
            "thing": f"message#mail#{IN_ID}",
            "verb": f"resend {EVE}",
        }
        deed |= {"by": f"arn:aws:sts::1:assumed-role/r/{EVE}", "way": "command", "why": text}
        stage.dynamodb.put_item(TableName="mailroom-dev-deeds", Item=image_of(deed))


@pytest.fixture
def team_browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TeamBrowser]:
    """A browser at the team's console of a stage with a message of each kind."""
    with whole_stage(tmp_path, monkeypatch) as (stage, _):
        stage.fill()
        gossip(stage)
        ring(stage, "mailroom-dev-webhooks-failing")
        yield TeamBrowser(stage.session, clock=lambda: NOW)


def desk_browser(browser: TeamBrowser) -> TeamBrowser:
    browser.sign_in(groups=["desk"], name="Grace")
    return browser


def leads_browser(browser: TeamBrowser) -> TeamBrowser:
    browser.sign_in(groups=["leads"], name="Grace")
    return browser


def every_query() -> list[tuple[str, dict[str, str]]]:
    """Return every page with each of its queries."""
    own: dict[str, list[dict[str, str]]] = {
        "/messages": [{"q": EVE}, {"q": NUMBER}, {"q": IN_ID}, {"template": EVE}, {"status": "failed"}],
        "/message": [
            {"id": IN_ID},
            {"id": IN_ID, "channel": "mail"},
            {"id": "follows"},
            {"id": f"push-{EVE}"},
        ],
        "/people": [{"recipient": EVE}, {"recipient": TOKEN}],
        "/failures": [{"since": "30d", "domain": EVE}],
        "/deeds": [{"text": EVE}],
        "/campaigns": [{"campaign": EVE}],
    }
    pages = [page.path for page in READING]
    return [(path, query) for path in pages for query in ({}, *QUERIES[path], *own.get(path, []))]


def test_the_teams_console_has_no_page_that_changes_the_stage() -> None:
    assert [page for page in READING if page.writes] == []
    table = {page.path: page for page in PAGES}
    assert {page.path for page in READING} <= table.keys()


def test_the_teams_console_refuses_every_form_except_a_search_and_a_pasted_list(
    team_browser: TeamBrowser,
) -> None:
    leads_browser(team_browser)
    finds = {page.path for page in READING if page.finds}
    reads = {page.path for page in READING if page.reads}
    for page in PAGES:
        status = team_browser.post(page.path, {"id": "whole", "channel": "mail"}).status
        known = page.path in {row.path for row in READING}
        allowed = 303 if page.path in finds else 200 if page.path in reads else 405
        assert status == (allowed if known else 404), page.path
    assert (finds, reads) == ({"/messages", "/people"}, {"/selected"})


def test_the_teams_console_has_no_form_or_link_to_a_missing_page(team_browser: TeamBrowser) -> None:
    leads_browser(team_browser)
    paths = {page.path for page in READING} | {"/sign-out"}
    for path, query in every_query():
        text = team_browser.get(path, **query).text
        urls = re.findall(r'\s(?:href|action|src)="(/[^"?]*)', text)
        assert {url for url in urls if not url.startswith("/assets/")} <= paths, path
        assert set(re.findall(r'<form[^>]* method="post"[^>]*>', text)) <= {
            '<form class="find" action="/messages" role="search" method="post">',
            '<form class="row" action="/people" method="post">',
            '<form method="post" action="/selected">',
            '<form method="post" action="/sign-out">',
        }, path


def test_each_page_of_the_teams_console_responds_without_a_server_error_for_each_right(
    team_browser: TeamBrowser,
) -> None:
    for right in (leads_browser, desk_browser):
        right(team_browser)
        for path, query in every_query():
            status = team_browser.get(path, **query).status
            assert status in (200, 303, 400, 404), (path, query)


def test_a_person_with_the_right_read_does_not_see_an_address_a_number_or_a_token_on_any_page(
    team_browser: TeamBrowser,
) -> None:
    seen = set[str]()
    leads_browser(team_browser)
    for path, query in every_query():
        seen.update(PRIVATE.findall(unquote(unescape(team_browser.get(path, **query).text))))
    assert {EVE, ADA} <= seen  # the pages would have them
    desk_browser(team_browser)
    for path, query in every_query():
        reply = team_browser.get(path, **query)
        plain = unquote(unescape(reply.text + reply.headers.get("location", "")))
        assert PRIVATE.findall(plain) == [], (path, query)


def test_a_link_with_a_sealed_id_opens_the_page_of_its_message(team_browser: TeamBrowser) -> None:
    desk_browser(team_browser)
    page = team_browser.get("/failures", since="30d")
    links = [unescape(url) for url in re.findall(r'href="(/message\?[^"]+)"', page.text) if "sealed-" in url]
    assert links
    reply = team_browser.get(links[0])
    assert reply.status == 200
    assert "order" not in links[0]
    assert "550" in reply.words


def test_a_sealed_link_of_another_session_is_refused(team_browser: TeamBrowser) -> None:
    desk_browser(team_browser)
    page = team_browser.get("/failures", since="30d")
    (link, *_) = [
        unescape(url) for url in re.findall(r'href="(/message\?[^"]+)"', page.text) if "sealed-" in url
    ]
    desk_browser(team_browser)
    reply = team_browser.get(link)
    assert (reply.status, "another sign-in" in reply.words) == (400, True)


def test_a_person_with_the_right_read_finds_messages_by_a_whole_address_but_not_by_a_part_of_it(
    team_browser: TeamBrowser,
) -> None:
    desk_browser(team_browser)
    reply = team_browser.post("/messages", {"q": EVE})
    assert reply.status == 303
    assert EVE not in unquote(reply.headers["location"])
    assert "o***@example.com" in team_browser.get(reply.headers["location"]).words
    for part in ("eve.a", "order-eve", "example.com"):
        found = team_browser.get(team_browser.post("/messages", {"q": part}).headers["location"])
        assert "o***@example.com" not in found.words
    assert "No matching entry" in team_browser.get("/deeds", text="eve.adams").words


def test_a_pasted_list_shows_only_what_the_right_of_the_person_allows(team_browser: TeamBrowser) -> None:
    form = {"list": f"{IN_ID}\n{ADA}\nnobody.at.all@example.com"}
    leads_browser(team_browser)
    page = team_browser.post("/selected", form)
    assert page.status == 200
    assert ADA in page.words
    assert "nobody.at.all@example.com" in page.words
    desk_browser(team_browser)
    masked = team_browser.post("/selected", form)
    assert masked.status == 200
    assert PRIVATE.findall(unquote(unescape(masked.text))) == []
    assert masked.text.count("<li>") == page.text.count("<li>")


def test_the_url_of_a_search_keeps_the_address_for_a_person_with_the_right_contents(
    team_browser: TeamBrowser,
) -> None:
    leads_browser(team_browser)
    assert team_browser.post("/messages", {"q": ADA}).headers["location"] == "/messages?q=ada%40example.com"


def test_a_person_with_the_right_read_does_not_see_the_content_of_a_message(
    team_browser: TeamBrowser,
) -> None:
    desk_browser(team_browser)
    page = team_browser.get("/message", id="whole", channel="mail")
    assert "Your right does not include the contents" in page.words
    assert "<iframe" not in page.text
    assert "first_name" not in page.text
    assert team_browser.get("/message/mail", id="whole", channel="mail").status == 400


def test_each_view_of_the_content_of_a_message_is_logged_with_the_person(
    team_browser: TeamBrowser, monkeypatch: pytest.MonkeyPatch
) -> None:
    leads_browser(team_browser)
    stream = io.StringIO()
    monkeypatch.setattr(logger.registered_handler, "stream", stream)
    team_browser.get("/message", id="whole", channel="mail")
    team_browser.get("/message/mail", id="whole", channel="mail")
    team_browser.get("/message", id="whole", channel="mail", live="off")
    team_browser.ask("GET", "/message?id=whole&channel=mail", {"hx-request": "true"})
    team_browser.get("/messages")
    desk_browser(team_browser)
    team_browser.get("/message", id="whole", channel="mail")
    lines = [json.loads(line) for line in stream.getvalue().splitlines() if "content viewed" in line]
    assert [(line["page"], line["id"], line["event_type"]) for line in lines] == [
        ("/message", "whole", "mail"),
        ("/message/mail", "whole", "mail"),
        ("/message", "whole", "mail"),
    ]
    assert {line["who"] for line in lines} == {"https://sign-in.example.com 00u1"}


def test_the_teams_console_shows_a_deed_as_a_command_to_copy(team_browser: TeamBrowser) -> None:
    leads_browser(team_browser)
    failed, dead = team_browser.get("/message", id="failed").words, team_browser.get("/dead-letters").words
    assert "mailroom messages resend failed --channel mail --stage dev" in failed
    assert "mailroom messages resend --dead-letters mail --stage dev" in dead


def test_the_teams_console_shows_a_run_with_the_commands_that_its_state_allows(
    team_browser: TeamBrowser,
) -> None:
    leads_browser(team_browser)
    command = f"mailroom campaign {{}} weekly --run {RUN} --stage dev"
    assert command.format("stop") in team_browser.get("/campaigns", campaign="weekly").words
    runs = Runs(team_browser.session.client("dynamodb"), RUNS, clock=lambda: NOW)
    assert runs.stop("weekly", RUN)
    words = team_browser.get("/campaigns", campaign="weekly").words
    assert command.format("start") in words
    assert command.format("stop") not in words


def test_the_teams_console_shows_the_command_that_prints_the_page_of_an_alarm(
    team_browser: TeamBrowser,
) -> None:
    leads_browser(team_browser)
    assert "What to do: mailroom docs webhooks-failing" in team_browser.get("/").words


def stored(team_browser: TeamBrowser, path: str) -> tuple[str, str]:
    """Download a list as CSV. Return the text of the file, and its name."""
    reply = team_browser.get(path, csv="1", since="2020-01-01")
    url = urlsplit(reply.headers["location"])
    assert (reply.status, url.scheme) == (303, "https")
    assert url.netloc.startswith("mailroom-dev-payloads-")
    assert parse_qs(url.query)["X-Amz-Expires"] == ["300"]
    s3 = team_browser.session.client("s3")
    file = s3.get_object(Bucket=url.netloc.partition(".")[0], Key=url.path[1:])
    assert url.path.startswith("/console-csv/")
    assert file["ContentType"] == "text/csv; charset=utf-8"
    return file["Body"].read().decode(), unquote(file["ContentDisposition"])


@pytest.mark.parametrize("path", ["/messages", "/failures"])
def test_the_teams_console_links_for_five_minutes_to_a_csv_file_of_what_the_persons_right_allows(
    team_browser: TeamBrowser, path: str
) -> None:
    leads_browser(team_browser)
    text, name = stored(team_browser, path)
    assert f'"{EVE}"' in text
    assert name == f"attachment; filename*=UTF-8''{path[1:]} dev.csv"
    desk_browser(team_browser)
    masked, _ = stored(team_browser, path)
    assert PRIVATE.findall(masked) == []
    assert len(masked.splitlines()) == len(text.splitlines()) > 2
    assert [len(row) for row in csv.reader(masked.splitlines())] == [len(COLUMNS)] * len(masked.splitlines())


def test_the_name_of_an_incomplete_csv_file_has_the_number_of_its_messages(
    team_browser: TeamBrowser, monkeypatch: pytest.MonkeyPatch
) -> None:
    leads_browser(team_browser)
    monkeypatch.setattr(csv_file, "MAX_CHARACTERS", 100)
    text, name = stored(team_browser, "/messages")
    assert len(text.splitlines()) == 2
    assert name.endswith("messages dev, the newest 1 message.csv")


def test_the_teams_console_does_not_keep_jobs_or_documents_in_memory_between_requests(
    team_browser: TeamBrowser,
) -> None:
    leads_browser(team_browser)
    for path, query in every_query():
        team_browser.get(path, **query)
    assert (team_browser.site.jobs, team_browser.site.documents) == ({}, {})


@pytest.mark.process
def test_a_cold_start_of_the_console_imports_at_most_600_modules_and_not_the_slow_packages() -> None:
    paths = [str(ROOT), str(ROOT / "lambdas"), str(ROOT / "stacks")]
    script = COLD.format(paths=paths)
    process = subprocess.run([sys.executable, "-c", script], env=VARIABLES, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    count, names = process.stdout.splitlines()
    assert names == ""
    assert int(count) <= 600


def test_the_role_of_the_teams_consoles_function_allows_each_call_of_each_page(
    team_browser: TeamBrowser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = Judge([variant(EVERYTHING, campaigns=of_each_kind(tmp_path / "campaigns"))])
    # The policy restricts the keys of sessions; all other calls need a grant without a condition.
    judge._grants["console"] = [grant for grant in judge._grants["console"] if not grant.conditions]
    refused = set[str]()
    botocore, double = BaseClient._emit_api_params, InMemoryDynamoDB._make_api_call  # type: ignore[attr-defined]

    def by_botocore(client: Any, api_params: Any, operation_model: Any, context: Any) -> Any:
        service = operation_model.service_model.service_name
        refused.update(judge.refusals("console", service, operation_model.name, api_params))
        return botocore(client, api_params, operation_model, context)

    def by_double(client: Any, name: str, request: Any) -> Any:
        key = request.get("Key") or request.get("Item") or {}
        if key.get("found_by", {}).get("S", "").startswith(KEYS):
            return double(client, name, request)
        refused.update(judge.refusals("console", "dynamodb", name, request))
        return double(client, name, request)

    monkeypatch.setattr(BaseClient, "_emit_api_params", by_botocore)
    monkeypatch.setattr(InMemoryDynamoDB, "_make_api_call", by_double)
    leads_browser(team_browser)
    for path, query in every_query():
        team_browser.get(path, **query)
    team_browser.post("/selected", {"list": f"{IN_ID}\n{ADA}"})
    team_browser.post("/sign-out", {})
    assert sorted(refused) == []
    put = {"TableName": "mailroom-dev-ledger", "Item": {}}
    assert judge.refusals("console", "dynamodb", "PutItem", put)


def test_the_mask_for_the_right_read_does_not_change_times_figures_and_drawings(
    team_browser: TeamBrowser,
) -> None:
    desk_browser(team_browser)
    for path, query in every_query():
        text = team_browser.get(path, **query).text
        drawn = re.findall(r'\s(?:d|viewBox|width|height|x|y|datetime|class|id)="([^"]*)"', text)
        masked = [value for value in drawn if "…" in value]
        assert masked == [], (path, query)
    assert "2026-11-21" in team_browser.get("/messages").words
