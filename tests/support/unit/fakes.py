"""Stand-ins: a client that meddles with its calls, an adapter that says what it is told."""

import itertools
from collections.abc import Callable, Container
from typing import Any

import pytest
from botocore.exceptions import ClientError

from mailroom.channels.mail.contract import Mail
from mailroom.message.outcome import ANY_ACCOUNT, Evidence, NotReady, Outcome, Refusal, Unknowable


class Meddler:
    """A client whose named calls pass through `change`; everything else is the real one's."""

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

    def names(self) -> list[str]:
        return [name for name, _ in self.calls]


def asked_twice(real: Callable[..., Any], **arguments: Any) -> Any:
    """An SDK whose first answer was lost: the call is made again, and that answer counts."""
    real(**arguments)
    return real(**arguments)


def failing(*errors: Exception) -> Callable[..., Any]:
    """The first calls raise; those after them are real."""
    left = list(errors)

    def call(real: Callable[..., Any], **arguments: Any) -> Any:
        if left:
            raise left.pop(0)
        return real(**arguments)

    return call


def client_error(code: str, message: str = "", status: int = 400) -> ClientError:
    response: Any = {
        "Error": {"Code": code, "Message": message},
        "ResponseMetadata": {"HTTPStatusCode": status},
    }
    return ClientError(response, "AnOperation")


Saying = Outcome | Exception


class FakeAdapter:
    """Says what it is told, in turn, and keeps what it was asked to submit."""

    provider = "fake"
    contract = Mail

    def __init__(
        self,
        *says: Saying,
        evidence: Evidence | Exception | None = None,
        prepare: Callable[[Mail], None] | None = None,
    ) -> None:
        self.tells: str | Refusal = ANY_ACCOUNT
        """The account, or why nothing can be submitted."""
        self.account = ANY_ACCOUNT
        self._says = itertools.cycle(says)
        self._evidence = evidence or Unknowable()
        self._prepare = prepare
        self.submitted: list[Mail] = []
        self.looked_up: list[int] = []

    def open(self) -> "FakeAdapter":
        if isinstance(self.tells, Refusal):
            raise NotReady(self.tells)
        self.account = self.tells
        return self

    def prepare(self, message: Mail) -> Mail:
        if self._prepare is not None:
            self._prepare(message)
        return message

    def submit(self, request: Mail) -> Outcome:
        self.submitted.append(request)
        said = next(self._says)
        if isinstance(said, Exception):
            raise said
        return said

    def look_up(self, message: Mail, since: int, other_ids: Container[str]) -> Evidence:
        self.looked_up.append(since)
        if isinstance(self._evidence, Exception):
            raise self._evidence
        return self._evidence


def why_not(adapter: Any) -> Refusal:
    """Why nothing can be submitted through an adapter now."""
    with pytest.raises(NotReady) as raised:
        adapter.open()
    return raised.value.outcome
