"""MiniStack's application, as uvicorn serves it, with what our stage needs beside it.

MiniStack answers whoever asks, by any name, and lets every web page read the answer: a page could make a
function here and run it. So web pages of others are refused.

Its CloudFormation refuses alarms on metric math. Here such an alarm becomes one on its first metric; its
name, ARN and outputs stay. Nothing is lost by it: the emulator evaluates no alarm on SQS's
metrics. And where a secret is generated, it knows `ExcludeCharacters` alone: the other exclusions are
translated into it. For what saves time see unpacked.py and prompt.py. All of this folder runs with the
emulator's own Python and packages.
"""

import os
import string
from typing import Any

from ministack.app import app as ministack
from ministack.core.concurrency import esm_wake
from ministack.services import dynamodb_streams
from ministack.services.cloudformation import provisioners

from local.providers.http import is_meant
from local.stage.emulated import unpacked
from local.stage.emulated.prompt import ticking, waiting

OWN = f"{os.environ['BIND_HOST']}:{os.environ['GATEWAY_PORT']}"
EXCLUSIONS = {
    "ExcludeLowercase": string.ascii_lowercase,
    "ExcludeNumbers": string.digits,
    "ExcludePunctuation": string.punctuation,
    "ExcludeUppercase": string.ascii_uppercase,
}

_record = provisioners._cw_metric_alarm_record
_secret = provisioners._sm_secret_string


def _on_first_metric(name: str, properties: dict[str, Any]) -> Any:
    metrics = properties.get("Metrics")
    if not metrics:
        return _record(name, properties)
    first = next(each["MetricStat"] for each in metrics if "MetricStat" in each)
    metric = {key: first["Metric"][key] for key in ("Namespace", "MetricName", "Dimensions")}
    kept = {key: value for key, value in properties.items() if key != "Metrics"}
    return _record(name, kept | metric | {"Period": first["Period"], "Statistic": first["Stat"]})


def _without_excluded(properties: dict[str, Any]) -> Any:
    wanted = properties.get("GenerateSecretString")
    if not wanted:
        return _secret(properties)
    excluded = wanted.get("ExcludeCharacters", "")
    excluded += "".join(marks for name, marks in EXCLUSIONS.items() if wanted.get(name) in (True, "true"))
    return _secret(properties | {"GenerateSecretString": {**wanted, "ExcludeCharacters": excluded}})


async def app(scope: Any, receive: Any, send: Any) -> None:
    """The ASGI application."""
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope.get("headers", ())}
    if scope["type"] == "lifespan" or is_meant(headers, OWN):
        await ministack(scope, receive, send)
    elif scope["type"] == "websocket":
        await send({"type": "websocket.close"})
    else:
        await send({"type": "http.response.start", "status": 403, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body"})


provisioners._cw_metric_alarm_record = _on_first_metric
provisioners._sm_secret_string = _without_excluded
unpacked.share()
dynamodb_streams.handle_request = waiting(dynamodb_streams.handle_request)
ticking(esm_wake)
