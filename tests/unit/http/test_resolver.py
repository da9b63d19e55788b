"""The system looks up names, within a time limit of ours."""

import socket
import threading
from typing import Any

import pytest

from mailroom.errors import ConnectError
from mailroom.http.url_policy import resolve


def test_a_host_name_resolves_to_each_of_its_ip_addresses_once() -> None:
    addresses = resolve("localhost", 5)
    assert "127.0.0.1" in addresses
    assert len(set(addresses)) == len(addresses)


def test_a_host_name_that_does_not_resolve_causes_a_connection_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", none)
    with pytest.raises(
        ConnectError,
        match=r"^cannot be reached: the name a\.example does not resolve: Name or service not known$",
    ):
        resolve("a.example", 5)


def test_a_silent_resolver_delays_a_request_only_for_the_time_allowed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answered = threading.Event()

    def silent(*_: Any, **__: Any) -> Any:
        answered.wait(10)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", silent)
    with pytest.raises(ConnectError, match="was not resolved in time"):
        resolve("a.example", 0.01)
    answered.set()


def test_an_unexpected_error_of_the_resolver_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError("broken")

    monkeypatch.setattr(socket, "getaddrinfo", broken)
    with pytest.raises(RuntimeError, match="broken"):
        resolve("a.example", 5)
