"""The webhook receiver over real HTTP, in the server of all simulators."""

import http.client
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from mailroom_local.providers.http import SimulatorServer
from mailroom_local.providers.webhook_receiver import WebhookReceiver
from tests.support.local.served import served


@dataclass
class ReceiverBench:
    """The receiver, and what it was asked to sleep."""

    port: int
    slept: list[float] = field(default_factory=list)

    def ask(self, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, bytes, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, names)
        answer = connection.getresponse()
        try:
            return answer.status, answer.read(), answer.headers
        finally:
            connection.close()

    def post(self, path: str, id_: str = "msg_1") -> int:
        return self.ask("POST", f"/receiver/{path}", b"{}", webhook_id=id_)[0]

    def received(self) -> list[dict[str, Any]]:
        return list(json.loads(self.ask("GET", "/receiver/received")[1]))


@pytest.fixture
def receiver_bench() -> Iterator[ReceiverBench]:
    slept: list[float] = []
    server = SimulatorServer(0, WebhookReceiver(slept.append))
    with served(server):
        yield ReceiverBench(server.server_address[1], slept)


def test_the_webhook_receiver_stores_a_request_unchanged(receiver_bench: ReceiverBench) -> None:
    status, _, _ = receiver_bench.ask(
        "POST",
        "/receiver/ok/orders/7?a=b",
        '{"name":"Zoë"}'.encode(),
        webhook_id="msg_1",
        Webhook_Signature="v1,x",
    )
    (kept,) = receiver_bench.received()
    assert status == 200
    assert (kept["method"], kept["path"], kept["body"]) == (
        "POST",
        "/receiver/ok/orders/7?a=b",
        '{"name":"Zoë"}',
    )
    assert (kept["headers"]["webhook-id"], kept["headers"]["webhook-signature"]) == ("msg_1", "v1,x")
    assert kept["received_at"].endswith("Z")


def test_the_webhook_receiver_stores_a_binary_body_as_base64(receiver_bench: ReceiverBench) -> None:
    receiver_bench.ask("POST", "/receiver/ok", b"\xff\x00")
    (kept,) = receiver_bench.received()
    assert (kept["body_base64"], "body" in kept) == ("/wA=", False)


@pytest.mark.parametrize(
    ("path", "status"),
    [("ok", 200), ("ok/a/b", 200), ("fail/500/a", 500), ("fail/429", 429), ("gone", 410), ("gone/a", 410)],
)
def test_the_path_of_a_request_determines_the_status_with_which_the_receiver_always_responds(
    receiver_bench: ReceiverBench, path: str, status: int
) -> None:
    assert [receiver_bench.post(path) for _ in range(3)] == [status] * 3
    assert len(receiver_bench.received()) == 3


def test_the_path_flaky_answers_503_to_a_set_number_of_tries_of_each_webhook(
    receiver_bench: ReceiverBench,
) -> None:
    assert [receiver_bench.post("flaky/2/a") for _ in range(4)] == [503, 503, 200, 200]
    assert [receiver_bench.post("flaky/2/a", "msg_2") for _ in range(3)] == [503, 503, 200]


def test_the_path_retry_after_answers_429_with_a_wait_to_the_first_try_of_each_webhook(
    receiver_bench: ReceiverBench,
) -> None:
    status, _, headers = receiver_bench.ask("POST", "/receiver/retry-after/7", webhook_id="msg_1")
    assert (status, headers["Retry-After"]) == (429, "7")
    assert [receiver_bench.post("retry-after/7"), receiver_bench.post("retry-after/7", "msg_2")] == [200, 429]


def test_the_path_redirect_responds_with_a_redirection(receiver_bench: ReceiverBench) -> None:
    status, _, headers = receiver_bench.ask("POST", "/receiver/redirect")
    assert (status, headers["Location"]) == (302, "/receiver/ok/redirected")


def test_the_path_slow_waits_for_its_number_of_seconds(receiver_bench: ReceiverBench) -> None:
    assert [receiver_bench.post("slow/2.5/a"), receiver_bench.post("slow/30")] == [200, 200]
    assert receiver_bench.slept == [2.5, 30]


def test_the_path_drop_stores_the_request_and_breaks_the_connection(receiver_bench: ReceiverBench) -> None:
    with pytest.raises(http.client.RemoteDisconnected):
        receiver_bench.post("drop")
    assert [each["path"] for each in receiver_bench.received()] == ["/receiver/drop"]
