"""Results of each layer for the provider Acme.

It runs in a process of its own, because tables are created at import: python -m tests.support.acme.tour
"""

import json
import os
import sys
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from msgspec import structs

from mailroom import providers

providers.MODULES["acme"] = "tests.support.acme.provider"  # the one row

from mailroom import environment  # noqa: E402 - after the row
from mailroom.aws import clients  # noqa: E402
from mailroom.channels.sms.adapter import SmsAdapter  # noqa: E402
from mailroom.environment import SmsSender  # noqa: E402
from mailroom.feedback.reader import read  # noqa: E402
from mailroom.message.outcome import Event  # noqa: E402
from mailroom.providers import client_modules, provider  # noqa: E402
from mailroom_local.own_simulator import SimulatorServer  # noqa: E402
from mailroom_local.providers.server import CREDENTIALS, simulators  # noqa: E402
from mailroom_local.providers.upstream import Upstream  # noqa: E402
from mailroom_ops.costs.configured_lanes import lane_of  # noqa: E402
from mailroom_ops.costs.message_cost import message_parts  # noqa: E402
from mailroom_ops.doctor.checks.channels import sms_credentials  # noqa: E402
from mailroom_ops.messages.timeline import _NAMES  # noqa: E402
from mailroom_stacks.settings.load import load, with_providers  # noqa: E402
from mailroom_stacks.settings.sentences import SettingsError  # noqa: E402
from tests.support.acme import provider as acme  # noqa: E402
from tests.support.acme.provider.sender import AcmeSender  # noqa: E402
from tests.support.local.served import served  # noqa: E402
from tests.support.stacks.refusals import with_settings  # noqa: E402
from tests.support.stacks.variants import up_to  # noqa: E402
from tests.support.unit.sms import SMS_SETTINGS, sms  # noqa: E402

BY_ACME = {"sms": {"provider": "acme", "sender": "SHOP"}}


def error_of_settings(**section: str) -> str:
    """Return the error of a stage with these settings of SMS."""
    try:
        load(with_settings({"sms": section}), "dev")
    except SettingsError as error:
        return str(error)
    return ""


def facts_of_template() -> dict[str, Any]:
    """Return the sender's variables, whether it may read the secret, and the secret's description."""
    stacks = up_to("channels", BY_ACME)
    variables = stacks["channels"].environment("mailroom-dev-send-sms")
    secret = stacks["feedback"].one("SecretsManager::Secret", Name="mailroom-dev-acme")
    return {
        "variables": {name: variables.get(name) for name in ("SMS_PROVIDER", "SMS_SENDER", "ACME_URL")},
        "reads": "secretsmanager:GetSecretValue" in stacks["channels"].policy("mailroom-dev-send-sms"),
        "secret": secret["Description"],
    }


def throttled() -> dict[str, Any]:
    """Return the functions and the rates of requests of an API for a provider without a secret."""
    with patch.object(acme, "PROVIDER", structs.replace(acme.PROVIDER, credentials="")):
        api = up_to("api", BY_ACME)["api"]
    stage = api.one("ApiGatewayV2::Stage")
    return {
        "functions": [function["FunctionName"] for function in api.all("Lambda::Function")],
        "rates": {path: limits["ThrottlingRateLimit"] for path, limits in stage["RouteSettings"].items()},
        "messages": stage["DefaultRouteSettings"]["ThrottlingRateLimit"],
    }


def two_providers() -> list[str]:
    """Return the URLs of a stage whose second provider is Acme, if `sms.base_url` is set."""
    section = {"sender": "+12025550123", "fallback": "acme", "fallback_sender": "SHOP"}
    url = "https://api.dublin.ie1.twilio.com"
    settings = load(with_settings({"sms": {"provider": "twilio", **section, "base_url": url}}), "dev")
    return [settings.sms_by(name).url for name in settings.providers("sms")]


def send_text() -> str:
    """Send a text as the handler does, to the simulator of the local stage, and return the outcome."""
    simulator = simulators(Upstream("http://127.0.0.1:1"))["acme"]
    secrets = SimpleNamespace(get_secret_value=lambda **_: {"SecretString": '{"token": "t"}'})
    with served(SimulatorServer(0, simulator)) as url:
        own = {"acme_url": f"{url}/acme", "acme_secret_arn": "arn", "sms_provider": "acme"}
        sender = AcmeSender(**{**SMS_SETTINGS, **own, "sms_sender": "SHOP"})
        with (
            patch.dict(os.environ, environment.variables_of(sender)),
            patch.object(clients, "secretsmanager", lambda: secrets),
        ):
            adapter = SmsAdapter.of(environment.read(SmsSender), provider("acme"))
            return repr(adapter.open().submit(adapter.prepare(sms())))


def local() -> list[str]:
    """Return the URL of the API on a local stage, and the token that its secret gets."""
    section = {**BY_ACME["sms"], "base_url": "providers"}
    settings = with_providers(load(with_settings({"sms": section}, "local"), "local"), "http://127.0.0.1:9")
    return [settings.sms_by("acme").url, CREDENTIALS["AcmeSecretName"]["token"]]


def main() -> None:
    lane = lane_of(load(with_settings(BY_ACME), "dev"), "sms")
    variables = {"ACME_SECRET_ARN": "acme", "SMS_SENDER": "SHOP"}
    examined: Any = SimpleNamespace(
        senders=lambda _, variable: {"send-sms": variables} if variable in variables else {},
        sender=lambda *_: variables,
    )
    body = json.dumps({"source": "acme", "reference": "cy0x", "id": "A1", "at": 1})
    facts = {
        "unknown": error_of_settings(provider="acne", sender="SHOP"),
        "invalid": error_of_settings(provider="acme", sender="shop"),
        "missing": error_of_settings(provider="twilio", sender="+12025550123", fallback="acme"),
        "urls": two_providers(),
        "api": throttled(),
        **facts_of_template(),
        "modules": client_modules("sms"),
        "sent": send_text(),
        "events": [event.provider for event in read(body, ()) if isinstance(event, Event)],
        "price": message_parts(load(with_settings(BY_ACME), "dev"), lane)["Acme"],
        "title": _NAMES["acme"],
        "checks": [finding.sentence for finding in sms_credentials(examined)],
        "local": local(),
    }
    sys.stdout.write(json.dumps(facts))


if __name__ == "__main__":
    main()
