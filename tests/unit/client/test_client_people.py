"""What people have chosen, by the client, which signs requests to the HTTP API."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from botocore.awsrequest import AWSPreparedRequest
from botocore.httpsession import URLLib3Session

from mailroom.client import ApiRefused, Mailroom
from mailroom.recipients.choices import Preferences
from tests.support.unit.api_requests import Api, event
from tests.support.unit.shared import BUDGETS, PREFERENCES, SUPPRESSIONS, Aws, FakeClock

URL = "https://api.mailroom.example"
NUMBER = "+16175551234"


class Response:
    def __init__(self, status: int, body: str) -> None:
        self.status_code, self.content = status, body.encode()


@pytest.fixture
def requests(
    monkeypatch: pytest.MonkeyPatch, aws: Aws, clock: FakeClock, tmp_path: Path
) -> list[AWSPreparedRequest]:
    """Requests, which the API answers in place of the network."""
    file = tmp_path / "topics.json"
    file.write_text('{"news": {}}')
    tables = {"preferences_table": PREFERENCES, "suppressions_table": SUPPRESSIONS, "budgets_table": BUDGETS}
    api = Api(clock, **tables, topics=str(file), people_per_day=10)
    sent: list[AWSPreparedRequest] = []

    def send(_: Any, request: AWSPreparedRequest) -> Response:
        sent.append(request)
        headers: Mapping[str, str] = {name: str(value) for name, value in request.headers.items()}
        caller = {"iam": {"userArn": "arn:aws:iam::123456789012:user/shop"}}
        body: Any = request.body.decode() if isinstance(request.body, bytes) else request.body
        answer = api.ask(
            event(request.method, request.url.removeprefix(URL), body, headers, authorizer=caller)
        )
        return Response(answer.status, answer.text)

    monkeypatch.setattr(URLLib3Session, "send", send)
    return sent


@pytest.mark.usefixtures("requests")
def test_a_person_is_looked_up_opted_out_and_opted_in_again(aws: Aws, clock: FakeClock) -> None:
    mailroom = Mailroom("test", api_url=URL)
    assert mailroom.person(NUMBER)["topics"][0]["state"] == "in"
    (out,) = mailroom.choose(NUMBER, {"news": {"state": "out"}})["topics"]
    assert out["state"] == "out"
    consent = {"state": "in", "at": out["at"], "evidence": "asked by phone"}
    assert mailroom.choose(NUMBER, {"news": consent})["topics"][0]["state"] == "in"
    choice = Preferences(aws.dynamodb, PREFERENCES, clock).choices(NUMBER)["news"]
    assert (choice.out, choice.by) == (False, "api")


def test_a_request_is_signed_for_the_api_and_encodes_the_recipient(
    requests: list[AWSPreparedRequest],
) -> None:
    Mailroom("test", api_url=URL).person("Ada <a+b@example.com>")
    (request,) = requests
    assert request.url == f"{URL}/people?recipient=Ada%20%3Ca%2Bb%40example.com%3E"
    scope = re.search(
        r"Credential=\S+/\d{8}/eu-central-1/execute-api/aws4_request", request.headers["Authorization"]
    )
    assert scope is not None


@pytest.mark.usefixtures("requests")
def test_a_refusal_is_raised_with_the_problem_of_the_api() -> None:
    with pytest.raises(ApiRefused, match=r"422: topics\.typo") as refused:
        Mailroom("test", api_url=URL).choose(NUMBER, {"typo": {"state": "out"}})
    assert refused.value.answer["errors"][0]["field"] == "topics.typo"


def test_a_response_of_the_gateway_is_raised_with_its_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        URLLib3Session, "send", lambda *_: Response(403, json.dumps({"message": "Forbidden"}))
    )
    with pytest.raises(ApiRefused, match="403: Forbidden"):
        Mailroom("test", api_url=URL).person(NUMBER)


def test_the_url_of_the_api_is_read_from_the_parameter_of_the_stage(
    requests: list[AWSPreparedRequest], monkeypatch: pytest.MonkeyPatch
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
    assert (names, len(requests)) == (["/mailroom-test/api-url"], 2)
