"""The API's routes for people, with two topics, and the client's requests to them."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from botocore.awsrequest import AWSPreparedRequest
from botocore.httpsession import URLLib3Session

from tests.support.unit.api_requests import Api, api_event
from tests.support.unit.shared import BUDGETS, PREFERENCES, SUPPRESSIONS, FakeClock

URL = "https://api.mailroom.example"
TITLES = {"news": {"en": "News", "de": "Neues"}, "offers": {}}


def people_api(clock: FakeClock, folder: Path, **changes: Any) -> Api:
    """Return the API with routes for people."""
    file = folder / "topics.json"
    file.write_text(json.dumps(TITLES))
    tables = {"preferences_table": PREFERENCES, "suppressions_table": SUPPRESSIONS, "budgets_table": BUDGETS}
    return Api(clock, **{**tables, "topics_file": str(file), "people_per_day": 1_000_000, **changes})


class Response:
    """Response as botocore returns it."""

    def __init__(self, status: int, body: str) -> None:
        self.status_code, self.content = status, body.encode()


def answering(patch: pytest.MonkeyPatch, api: Api) -> list[AWSPreparedRequest]:
    """Let the API answer the client's requests in place of the network, and return the list of requests."""
    requests: list[AWSPreparedRequest] = []

    def send(_: Any, request: AWSPreparedRequest) -> Response:
        requests.append(request)
        headers: Mapping[str, str] = {name: str(value) for name, value in request.headers.items()}
        caller = {"iam": {"userArn": "arn:aws:iam::123456789012:user/shop"}}
        body: Any = request.body.decode() if isinstance(request.body, bytes) else request.body
        answer = api.ask(
            api_event(request.method, request.url.removeprefix(URL), body, headers, authorizer=caller)
        )
        return Response(answer.status, answer.text)

    patch.setattr(URLLib3Session, "send", send)
    return requests
