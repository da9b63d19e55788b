"""Simulated trouble of providers: how it changes a submit, and that it changes no other request."""

import json
from typing import Any

import pytest

from mailroom_local.providers.http import NoAnswer, Reply, Request
from mailroom_local.providers.trouble import PROVIDERS, SLOW_SECONDS, TIMEOUT_SECONDS, Trouble

SUBMITS = {
    "ses": ("/v2/email/outbound-emails", b"{}"),
    "resend": ("/resend/emails", b"{}"),
    "sns": ("/sns", b"Action=Publish&Message=hello"),
    "twilio": ("/twilio/2010-04-01/Accounts/AC1/Messages.json", b"To=1"),
    "signalwire": ("/signalwire/api/laml/2010-04-01/Accounts/local/Faxes", b"To=1"),
    "webhook": ("/receiver/ok/7", b"{}"),
}
OTHERS = {
    "ses": ("POST", "/v2/email/identities", b"{}"),
    "resend": ("GET", "/resend/domains", b""),
    "sns": ("POST", "/sns", b"Action=CreatePlatformEndpoint"),
    "twilio": ("GET", "/twilio/2010-04-01/Accounts/AC1/Messages.json", b""),
    "signalwire": ("GET", "/signalwire/api/laml/2010-04-01/Accounts/local/Faxes", b""),
    "webhook": ("GET", "/receiver/received", b""),
}


class TroubleBench:
    """A simulator in trouble, what it was asked, and how long it slept."""

    def __init__(self, provider: str) -> None:
        self.prefix = "/"
        self.asked: list[Request] = []
        self.slept: list[float] = []
        self.trouble = Trouble(sleep=self.slept.append)
        self.provider = provider
        self._around = self.trouble.around(provider, self)

    def handle(self, request: Request) -> Reply:
        self.asked.append(request)
        return Reply(200, b"taken")

    def set(self, **shares: float) -> dict[str, Any]:
        shown: dict[str, Any] = self.post({"provider": self.provider, "shares": shares})[1]
        return shown

    def post(self, body: Any) -> tuple[int, Any]:
        reply = self.trouble.pages().handle(Request("POST", "/trouble", {}, json.dumps(body).encode()))
        return reply.status, json.loads(reply.body)

    def submit(self) -> Reply:
        path, body = SUBMITS[self.provider]
        return self._around.handle(Request("POST", path, {}, body))

    def ask(self) -> Reply:
        method, path, body = OTHERS[self.provider]
        return self._around.handle(Request(method, path, {}, body))


@pytest.fixture(params=PROVIDERS)
def trouble_bench(request: pytest.FixtureRequest) -> TroubleBench:
    return TroubleBench(request.param)


@pytest.mark.parametrize(("kind", "status"), [("throttled", 429), ("error", 500)])
def test_a_submit_that_simulated_trouble_refuses_does_not_reach_the_provider(
    trouble_bench: TroubleBench, kind: str, status: int
) -> None:
    trouble_bench.set(**{kind: 1})
    assert (trouble_bench.submit().status, trouble_bench.asked) == (status, [])


def test_a_submit_with_a_simulated_timeout_reaches_the_provider_but_its_response_is_lost(
    trouble_bench: TroubleBench,
) -> None:
    trouble_bench.set(timeout=1)
    with pytest.raises(NoAnswer):
        trouble_bench.submit()
    assert (len(trouble_bench.asked), trouble_bench.slept) == (1, [TIMEOUT_SECONDS])


def test_a_provider_with_the_trouble_slow_responds_late(trouble_bench: TroubleBench) -> None:
    trouble_bench.set(slow=1)
    assert (trouble_bench.submit().body, trouble_bench.slept) == (b"taken", [SLOW_SECONDS])


def test_simulated_trouble_of_a_provider_disturbs_only_submits(trouble_bench: TroubleBench) -> None:
    trouble_bench.set(error=1)
    assert trouble_bench.ask().body == b"taken"
    assert trouble_bench.submit().status == 500


def test_simulated_trouble_affects_the_set_share_of_submits_until_it_is_switched_off() -> None:
    bench = TroubleBench("ses")
    bench.set(throttled=0.3, error=0.2)
    statuses = [bench.submit().status for _ in range(1000)]
    had = bench.set()["had"]["ses"]
    assert had == {"throttled": statuses.count(429), "error": statuses.count(500)}
    assert 250 < had["throttled"] < 350
    assert 150 < had["error"] < 250
    assert {bench.submit().status for _ in range(100)} == {200}


@pytest.mark.parametrize(
    "wrong",
    [
        {"provider": "nobody"},
        {"provider": "ses", "shares": {"sleepy": 0.1}},
        {"provider": "ses", "shares": {"slow": 0.6, "error": 0.6}},
    ],
)
def test_an_invalid_setting_of_trouble_is_refused_with_the_valid_values(wrong: dict[str, Any]) -> None:
    status, answer = TroubleBench("ses").post(wrong)
    assert status == 400
    assert "use" in answer["message"]
