"""Choices of people, by the client, which signs requests to the HTTP API."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from botocore.awsrequest import AWSPreparedRequest
from botocore.httpsession import URLLib3Session

from mailroom.client import ApiRefused, Mailroom
from mailroom.recipients.choices import Preferences
from tests.support.docs_pages import Page
from tests.support.unit.people_api import URL, Response, answering, people_api
from tests.support.unit.shared import PREFERENCES, Aws, FakeClock

NUMBER = "+16175551234"


@pytest.fixture
def answered_requests(
    monkeypatch: pytest.MonkeyPatch, aws: Aws, clock: FakeClock, tmp_path: Path
) -> list[AWSPreparedRequest]:
    """Requests, which the API answers in place of the network."""
    return answering(monkeypatch, people_api(clock, tmp_path))


@pytest.mark.usefixtures("answered_requests")
def test_the_client_reads_a_persons_choices_and_opts_the_person_out_and_in_again(
    aws: Aws, clock: FakeClock
) -> None:
    mailroom = Mailroom("test", api_url=URL)
    assert mailroom.person(NUMBER)["topics"][0]["state"] == "in"
    (out,) = mailroom.choose(NUMBER, {"news": {"state": "out"}})["topics"]
    assert out["state"] == "out"
    consent = {"state": "in", "at": out["at"], "evidence": "asked by phone"}
    assert mailroom.choose(NUMBER, {"news": consent})["topics"][0]["state"] == "in"
    choice = Preferences(aws.dynamodb, PREFERENCES, clock).choices(NUMBER)["news"]
    assert (choice.out, choice.by) == (False, "api")


def test_the_client_signs_its_request_to_the_api_and_encodes_the_recipient_in_the_url(
    answered_requests: list[AWSPreparedRequest],
) -> None:
    Mailroom("test", api_url=URL).person("Ada <a+b@example.com>")
    (request,) = answered_requests
    assert request.url == f"{URL}/people?recipient=Ada%20%3Ca%2Bb%40example.com%3E"
    scope = re.search(
        r"Credential=\S+/\d{8}/eu-central-1/execute-api/aws4_request", request.headers["Authorization"]
    )
    assert scope is not None


@pytest.mark.usefixtures("answered_requests")
def test_the_client_raises_a_refusal_by_the_api_with_the_problem_that_the_api_returned() -> None:
    with pytest.raises(ApiRefused, match=r"422: topics\.typo") as refused:
        Mailroom("test", api_url=URL).choose(NUMBER, {"typo": {"state": "out"}})
    assert refused.value.answer["errors"][0]["field"] == "topics.typo"


def test_the_client_raises_an_error_response_of_api_gateway_with_its_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        URLLib3Session, "send", lambda *_: Response(403, json.dumps({"message": "Forbidden"}))
    )
    with pytest.raises(ApiRefused, match="403: Forbidden"):
        Mailroom("test", api_url=URL).person(NUMBER)


def test_the_client_reads_the_url_of_the_api_once_from_the_parameter_of_the_stage(
    answered_requests: list[AWSPreparedRequest], monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[str] = []

    class Parameters:
        def get_parameter(self, Name: str) -> Any:  # noqa: N803 - boto3's name
            names.append(Name)
            return {"Parameter": {"Value": URL}}

    mailroom = Mailroom("test", workers=1)
    monkeypatch.setattr(mailroom._session, "client", lambda *_, **__: Parameters())
    for _ in range(2):
        mailroom.person(NUMBER)
    assert (names, len(answered_requests)) == (["/mailroom-test/api-url"], 2)


# the example of a page in an application


def ask_asgi(app: Any, method: str, path: str, query: str = "") -> tuple[int, Any]:
    """Send a request to an ASGI application, and return the status and the body of its response."""
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "scheme": "https",
        "query_string": query.encode(),
        "headers": [],
    }
    asyncio.run(app(scope, receive, send))
    body = b"".join(message.get("body", b"") for message in sent[1:])
    return sent[0]["status"], json.loads(body)


@pytest.mark.usefixtures("answered_requests")
def test_the_documented_account_page_opts_a_person_out_of_a_topic_and_in_again(
    aws: Aws, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    (example,) = Page("docs/how-to/let-people-choose.md").blocks("python")
    assert len(example.text.strip().splitlines()) <= 30
    monkeypatch.setattr(Mailroom, "_url", URL)
    names: dict[str, Any] = {}
    exec(example.text, names)
    app = names["app"]
    assert [each["state"] for each in ask_asgi(app, "GET", "/account/topics")[1]["topics"]] == ["in", "in"]
    status, body = ask_asgi(app, "PUT", "/account/topics/news", "wanted=false")
    (news,) = body["topics"]
    assert (status, news["state"], news["by"]) == (200, "out", "api")
    clock.advance(60)
    preferences = Preferences(aws.dynamodb, PREFERENCES, clock)
    at = quote(news["at"])
    status, body = ask_asgi(app, "PUT", "/account/topics/news", f"wanted=true&at={at}")
    assert (status, body["topics"][0]["state"]) == (200, "in")
    preferences.opt_out("ada@example.com", "news", "one-click")
    assert ask_asgi(app, "PUT", "/account/topics/news", f"wanted=true&at={at}")[0] == 409
    assert ask_asgi(app, "PUT", "/account/topics/news", "wanted=true")[0] == 422
    assert ask_asgi(app, "PUT", "/account/topics/typo", "wanted=false")[0] == 422
