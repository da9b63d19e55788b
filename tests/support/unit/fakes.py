"""Stand-ins: a client whose calls a test changes, and an adapter with given outcomes."""

import itertools
from collections.abc import Callable, Container
from typing import Any

import pytest
from botocore.exceptions import ClientError

from mailroom.channels.mail.contract import Mail
from mailroom.message.outcome import ANY_ACCOUNT, Evidence, NotReady, Outcome, Refusal, Unknowable
from tests.support.dynamodb import paginator


class Meddler:
    """Client whose named calls pass through `changes`; every other call goes to the real client."""

    def __init__(self, client: Any, **changes: Callable[..., Any]) -> None:
        self._client = client
        self._changes = changes
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._client, name)
        if name == "exceptions":
            return real

        def call(**arguments: Any) -> Any:
            self.calls.append((name, arguments))
            change = self._changes.get(name)
            return change(real, **arguments) if change else real(**arguments)

        return call

    def get_paginator(self, operation: str) -> Any:
        """Return a paginator whose calls pass through `changes` as well."""
        return paginator(getattr(self, operation))

    def names(self) -> list[str]:
        return [name for name, _ in self.calls]


def never(*_: Any, **arguments: Any) -> None:
    """Fail, because the test expects no such call."""
    raise AssertionError(f"unexpected: {arguments}")


def asked_twice(real: Callable[..., Any], **arguments: Any) -> Any:
    """Make the call twice, as the SDK does if the first response was lost; the second response counts."""
    real(**arguments)
    return real(**arguments)


def failing(*errors: Exception) -> Callable[..., Any]:
    """Return a change for `Meddler`: the first calls raise these errors, and later calls are real."""
    remaining = list(errors)

    def call(real: Callable[..., Any], **arguments: Any) -> Any:
        if remaining:
            raise remaining.pop(0)
        return real(**arguments)

    return call


def client_error(code: str, message: str = "", status: int = 400) -> ClientError:
    response: Any = {
        "Error": {"Code": code, "Message": message},
        "ResponseMetadata": {"HTTPStatusCode": status},
    }
    return ClientError(response, "AnOperation")


class FakeAdapter:
    """Adapter that returns the given outcomes in turn, and keeps the messages that it submitted."""

    provider = "fake"

    def __init__(
        self,
        *outcomes: Outcome | Exception,
        evidence: Evidence | Exception | None = None,
        prepare: Callable[[Mail], None] | None = None,
        contract: type[Any] = Mail,
    ) -> None:
        self.contract = contract
        self.account = ANY_ACCOUNT
        self.refusal: Refusal | None = None
        """Reason why the account cannot be opened."""
        self._outcomes = itertools.cycle(outcomes)
        self._evidence = evidence or Unknowable()
        self._prepare = prepare
        self.submitted: list[Mail] = []
        self.looked_up: list[int] = []

    def open(self) -> "FakeAdapter":
        if self.refusal is not None:
            raise NotReady(self.refusal)
        return self

    def prepare(self, message: Mail) -> Mail:
        if self._prepare is not None:
            self._prepare(message)
        return message

    def submit(self, request: Mail) -> Outcome:
        self.submitted.append(request)
        outcome = next(self._outcomes)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def look_up(self, message: Mail, since: int, other_ids: Container[str]) -> Evidence:
        self.looked_up.append(since)
        if isinstance(self._evidence, Exception):
            raise self._evidence
        return self._evidence


def why_not(adapter: Any) -> Refusal:
    """Return the reason why the account of an adapter cannot be opened."""
    with pytest.raises(NotReady) as raised:
        adapter.open()
    return raised.value.outcome
