"""The example of a further simulator, in the docstring of the table of simulators, does what it says."""

import http.client
import json
import textwrap
import uuid
from typing import Any
from urllib.parse import urlsplit

import pytest

from local.providers import server
from local.providers.http import NoAnswer, Reply, Request, SimulatorServer, json_reply
from local.providers.inbox import Accepted, InboxStore
from tests.support.local.served import served


def example() -> Any:
    """The class that the docstring defines."""
    text = textwrap.dedent(str(server.simulators.__doc__).partition("goes wrong:\n\n")[2])
    names = {
        each.__name__: each
        for each in (InboxStore, Accepted, Request, Reply, NoAnswer, json_reply, json, uuid)
    }
    exec(text, names)
    return names["ChatSimulator"]


def test_the_example_of_a_simulator_accepts_refuses_and_loses_answers() -> None:
    inbox = InboxStore()
    with served(SimulatorServer(0, example()(inbox))) as url:

        def post(to: str, token: str = "local") -> int:
            connection = http.client.HTTPConnection("127.0.0.1", urlsplit(url).port or 0, timeout=5)
            body = json.dumps({"to": to, "text": "Hello"})
            connection.request("POST", "/chat", body, {"Authorization": f"Bearer {token}"})
            try:
                return connection.getresponse().status
            finally:
                connection.close()

        assert [post("ada"), post("throttled"), post("ada", "wrong")] == [200, 429, 401]
        with pytest.raises(http.client.RemoteDisconnected):
            post("lost-answer")
    assert [(each.channel, each.to, each.content) for each in inbox.all()] == [
        ("chat", "ada", {"text": "Hello"}),
        ("chat", "lost-answer", {"text": "Hello"}),
    ]
