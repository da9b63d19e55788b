"""Submits use fresh connections, because the error of a dead connection looks like a lost response."""

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from botocore.exceptions import ConnectionClosedError

from mailroom.aws import clients
from tests.support.unit.loopback import Script, serving
from tests.support.unit.shared import FakeClock

JSON = b'{"MessageId": "1"}'
XML = b"<PublishResponse><PublishResult><MessageId>1</MessageId></PublishResult></PublishResponse>"
Send = Callable[[Any], Any]


def send_email(client: Any) -> Any:
    return client.send_email(Destination={}, Content={})


def send_text_message(client: Any) -> Any:
    return client.send_text_message(DestinationPhoneNumber="+16175551234")


def publish(client: Any) -> Any:
    return client.publish(TargetArn="arn:a", Message="Hi")


def responding(response: bytes) -> Script:
    """Return a script that answers a connection's first request, and resets the connection at the next."""

    def script(sock: socket.socket) -> None:
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(response), response))
        sock.recv(1)

    return script


@pytest.fixture(autouse=True)
def _time(clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients._Recent, "clock", staticmethod(clock))


@contextmanager
def client_of(make: Callable[..., Any], response: bytes, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Yield a client as functions create it, connected to a server of this test."""
    with serving(responding(response)) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.port}")
        client = make.__wrapped__(5.0)  # type: ignore[attr-defined] # the cached client would keep its endpoint
        yield client
        client.close()


@pytest.mark.parametrize(
    ("make", "send", "response"),
    [(clients.sesv2, send_email, JSON), (clients.sms, send_text_message, JSON), (clients.sns, publish, XML)],
)
def test_a_submit_after_an_idle_minute_opens_a_new_connection(
    monkeypatch: pytest.MonkeyPatch, clock: FakeClock, make: Callable[..., Any], send: Send, response: bytes
) -> None:
    with client_of(make, response, monkeypatch) as client:
        for _ in range(3):
            assert send(client)["MessageId"] == "1"
            clock.advance(60)


def test_submits_one_second_apart_share_a_connection(
    monkeypatch: pytest.MonkeyPatch, clock: FakeClock
) -> None:
    with client_of(clients.sesv2, JSON, monkeypatch) as client:
        send_email(client)
        clock.advance(1)
        with pytest.raises(ConnectionClosedError):  # the server has reset the connection that both share
            send_email(client)
