"""The simulated Twilio on a real server, checked against Twilio's description and used with Twilio's
client."""

import json
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from twilio.http.http_client import TwilioHttpClient
from twilio.rest import Client

from mailroom_local.providers.http import Reply, Request, SimulatorServer
from mailroom_local.providers.inbox import InboxStore
from mailroom_local.providers.sms import SimulatedSms, SmsNetwork, SmsOrder
from mailroom_local.providers.twilio import ACCOUNT_SID, AUTH_TOKEN, TwilioSimulator
from tests.support.local.fax import NOW, Clock
from tests.support.local.openapi import Description
from tests.support.local.served import served

SENDER = "+12025550123"
DESCRIPTION = Description(Path(__file__).parent / "specs" / "twilio_messages.openapi.json")
ERROR = {"code": int, "message": str, "more_info": str, "status": int}


class Described:
    """The simulator. Every request and response is checked against Twilio's description."""

    prefix = TwilioSimulator.prefix

    def __init__(self, simulator: TwilioSimulator, wrong: list[str]) -> None:
        self._simulator = simulator
        self._wrong = wrong

    def handle(self, request: Request) -> Reply:
        bare = Request(request.method, request.path.removeprefix(self.prefix), request.headers, request.body)
        reply = self._simulator.handle(request)
        try:
            if reply.status >= 400:
                body = json.loads(reply.body)
                assert {name: type(value) for name, value in body.items()} == ERROR
                assert body["status"] == reply.status
            else:
                DESCRIPTION.request(bare)
                DESCRIPTION.reply(bare, reply)
        except AssertionError as error:
            self._wrong.append(str(error))
        return reply


class Redirected(TwilioHttpClient):  # type: ignore[misc]
    """Twilio's client with its requests sent to the simulator."""

    def __init__(self, url: str) -> None:
        super().__init__(timeout=5, pool_connections=False)
        self._url = url

    def request(self, method: str, url: str, *args: Any, **kwargs: Any) -> Any:
        return super().request(method, url.replace("https://api.twilio.com", self._url), *args, **kwargs)


@dataclass
class Bench:
    """Network, server and client. `told` are the messages for which a status callback would be sent."""

    url: str
    network: SmsNetwork
    inbox: InboxStore
    told: list[SimulatedSms]
    clock: Clock = field(repr=False)

    @property
    def twilio(self) -> Any:
        """Return the message resource of a client of the account."""
        return self.client(ACCOUNT_SID, AUTH_TOKEN)

    def client(self, user: str, password: str) -> Any:
        client = Client(
            user, password, ACCOUNT_SID, environment={}, http_client=Redirected(f"{self.url}/twilio")
        )
        return client.messages

    def send(self, to: str, body: str = "Hello", **more: Any) -> Any:
        sender = {} if "messaging_service_sid" in more else {"from_": SENDER}
        return self.twilio.create(to=to, body=body, **sender, **more)

    def wait(self, seconds: float) -> None:
        self.clock.now += seconds


def number(ending: str) -> str:
    """Return a number of the table in `sms.py`."""
    return f"+161755501{ending}"


def accepted_sms(ending: str = "60", callback: str = "", **more: Any) -> SimulatedSms:
    """Return an accepted message, in the form of the network."""
    network = SmsNetwork(InboxStore(), Clock(NOW))
    return network.submit(SmsOrder(number(ending), SENDER, body="Hello", callback=callback, **more))


def form(body: bytes) -> dict[str, str]:
    return dict(urllib.parse.parse_qsl(body.decode(), keep_blank_values=True))


@contextmanager
def running_twilio_bench() -> Iterator[Bench]:
    """Yield the bench while its server runs.

    Fails at the end if any exchange differed from Twilio's description.
    """
    clock, inbox, told = Clock(), InboxStore(), list[SimulatedSms]()
    wrong: list[str] = []
    network = SmsNetwork(inbox, clock)
    described = Described(TwilioSimulator(network, told.append), wrong)
    with served(SimulatorServer(0, described)) as url:
        yield Bench(url, network, inbox, told, clock)
    assert wrong == []
