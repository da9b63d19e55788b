"""A fax provider's secret, and a stand-in for the providers that are opened with it."""

import itertools
from functools import partial
from types import SimpleNamespace
from typing import Any

import boto3
import pytest

from mailroom.channels.fax.adapter import FaxAdapter
from mailroom.channels.fax.contract import Delivered
from mailroom.environment import FaxSender
from mailroom.providers import provider
from mailroom.providers.signalwire import sender as signalwire
from mailroom.providers.telnyx import sender as telnyx
from tests.support.unit.fax import FakeLine

SIGNALWIRE = '{"project": "project-1", "token": "token-1"}'
_secrets = itertools.count()


def adapter_of(settings: FaxSender) -> FaxAdapter:
    """Return the adapter as the handler creates it."""
    return FaxAdapter.of(settings, provider(settings.fax_provider))


class StandIn:
    """A stand-in for both providers' classes: records how it was opened, and accepts every fax."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, ...]] = []
        """Credentials with which the client was opened."""
        self.settings: Any = None
        self.line = FakeLine(Delivered())

    def __call__(self, *arguments: Any) -> FakeLine:
        *credentials, self.settings = arguments
        self.lines.append((*credentials,))
        return self.line


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """Replace both providers by one stand-in."""
    stand_in = StandIn()
    for module, name in ((signalwire, "SignalWire"), (telnyx, "Telnyx")):
        client = getattr(module, name)
        opened = partial(client.of.__func__, stand_in)  # the class's `of`, with the stand-in as the class
        monkeypatch.setattr(module, name, SimpleNamespace(of=opened))
    return stand_in


class Secret:
    """The secret with the provider's credentials. It is binary until a text is put."""

    def __init__(self, text: str | None) -> None:
        self._client = boto3.client("secretsmanager")
        name = f"mailroom-test-fax-{next(_secrets)}"
        self.arn = self._client.create_secret(Name=name, SecretBinary=b"\x00")["ARN"]
        if text is not None:
            self.put(text)

    def put(self, text: str) -> None:
        self._client.put_secret_value(SecretId=self.arn, SecretString=text)
