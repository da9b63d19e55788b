"""MiniStack's ASGI application with the changes that the local stage needs.

- MiniStack answers every caller under any host name, and lets every web page read the response: a page could
  create a function and run it. This application refuses requests from web pages of other sites.
- MiniStack accepts any key: another user of the machine could create a function, which would run as the user
  who started the stage. This application accepts only the stage's own key, except for requests that AWS does
  not authenticate either: the routes of the HTTP API, whose functions check the caller. Functions get the
  stage's key as their credentials.
- MiniStack's CloudFormation rejects alarms on metric math. Here such an alarm is created with its first
  metric and, in addition, its expression. MiniStack does not evaluate alarms here: it does not distinguish
  metrics with the same name, so a slow function would trigger the alarms of all functions. The pump evaluates
  the alarms for which a local stage has data.
- MiniStack generates secrets at random at each start, so receivers of webhooks would need a new key after
  each start. Here a generated secret is derived from the stage's key and the secret's name, in letters and
  digits, so it is the same after `down` and `up`.
- MiniStack unpacks a function's code again for each worker, a thousand files and more, which takes its one
  core for up to half a second. Here the code is unpacked once, and the workers' folders are links to it.
  Functions do not write to this folder, which is read-only on AWS. The comment of an archive may be the path
  of a folder that contains the code (see `Asset.content` in stage/deploy.py). That folder is copied, because
  it may be removed while the stage runs.

prompt.py removes MiniStack's delays between polls. partiql.py adds the stream records of changes by
PartiQL, which MiniStack leaves out. The modules beside this file run in the emulator's own virtual
environment.
"""

import hashlib
import hmac
import json
import os
import re
import shutil
import string
import tempfile
import threading
import zipfile
from email.utils import formatdate
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote

from ministack.app import app as ministack
from ministack.core import lambda_runtime
from ministack.core.concurrency import esm_wake
from ministack.services import cloudwatch, dynamodb, dynamodb_streams, sts
from ministack.services.cloudformation import provisioners

from mailroom_local.providers.http import is_meant
from mailroom_local.stage.emulated.partiql import noting, recording
from mailroom_local.stage.emulated.prompt import ticking, waiting

OWN = f"{os.environ['BIND_HOST']}:{os.environ['GATEWAY_PORT']}"
KEY = os.environ["AWS_ACCESS_KEY_ID"]
OPEN = re.compile(r"/restapis/[^/]+/[^/]+/_user_request_/.*|/_ministack/health")
_CREDENTIAL = re.compile(r"(?:Credential|AWSAccessKeyId)=([^/,&\s]+)")
EXCLUSIONS = {
    "ExcludeLowercase": string.ascii_lowercase,
    "ExcludeNumbers": string.digits,
    "ExcludeUppercase": string.ascii_uppercase,
}

_record = provisioners._cw_metric_alarm_record
_secret = provisioners._sm_secret_string
_unpacking = threading.Lock()
cloudwatch._evaluate_alarm = lambda _: None
dynamodb_streams.handle_request = waiting(
    dynamodb_streams.handle_request, lambda: dynamodb._stream_seq_counter
)
dynamodb._set_item = noting(dynamodb._set_item)
dynamodb._remove_item = noting(dynamodb._remove_item)
dynamodb._execute_statement = recording(dynamodb._execute_statement, dynamodb._emit_stream_event)
dynamodb._execute_transaction = recording(dynamodb._execute_transaction, dynamodb._emit_stream_event)


def _with_expression(name: str, properties: dict[str, Any]) -> Any:
    metrics = properties.get("Metrics")
    if not metrics:
        return _record(name, properties)
    first = next(each["MetricStat"] for each in metrics if "MetricStat" in each)
    names = ("Namespace", "MetricName", "Dimensions")
    metric = {key: first["Metric"][key] for key in names if key in first["Metric"]}
    others = {key: value for key, value in properties.items() if key != "Metrics"}
    record = _record(name, others | metric | {"Period": first["Period"], "Statistic": first["Stat"]})
    return {**record, "Metrics": metrics}


def _of_key(properties: dict[str, Any]) -> Any:
    rules = properties.get("GenerateSecretString")
    if not rules:
        return _secret(properties)
    excluded = rules.get("ExcludeCharacters", "")
    excluded += "".join(marks for name, marks in EXCLUSIONS.items() if rules.get(name) in (True, "true"))
    marks = [mark for mark in string.ascii_letters + string.digits if mark not in excluded]
    digest = hashlib.shake_256(f"{KEY} {properties['Name']}".encode()).digest(rules.get("PasswordLength", 32))
    text = "".join(marks[byte % len(marks)] for byte in digest)
    template = rules.get("SecretStringTemplate")
    return json.dumps({**json.loads(template), rules["GenerateStringKey"]: text}) if template else text


def _is_known(scope: Any, headers: dict[str, str]) -> bool:
    """Return whether a request has the stage's key, or needs none."""
    query = unquote(scope["query_string"].decode("latin-1"))
    credential = _CREDENTIAL.search(headers.get("authorization", "")) or _CREDENTIAL.search(query)
    if credential is None:
        return OPEN.fullmatch(scope["path"]) is not None
    # The second comparison accepts credentials that STS issued to a client with the stage's key, such as the
    # credentials of the CDK for its deploy role.
    return hmac.compare_digest(credential[1].encode(), KEY.encode()) or credential[1] in sts._sessions


def _is_signed_link(scope: Any, headers: dict[str, str]) -> bool:
    """Return whether a browser follows a signed link to an object, such as one of the console behind the
    sign-in. Only who knows the stage's key can make such a link."""
    follows = headers.get("sec-fetch-mode") == "navigate" and headers.get("host") == OWN
    return follows and scope["method"] == "GET" and b"X-Amz-Credential=" in scope["query_string"]


def _credentials(_: dict[str, Any]) -> dict[str, str]:
    return {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": KEY, "AWS_SESSION_TOKEN": ""}


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Pass a request to MiniStack, or respond with 403 if it is not allowed."""
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope.get("headers", ())}
    if scope["type"] == "lifespan" or (
        (is_meant(headers, OWN) or _is_signed_link(scope, headers)) and _is_known(scope, headers)
    ):
        await ministack(scope, receive, send)
    elif scope["type"] == "websocket":
        await send({"type": "websocket.close"})
    else:
        # AWS sends these headers to unauthorised clients as well.
        head = [(b"content-length", b"0"), (b"date", formatdate(usegmt=True).encode())]
        await send({"type": "http.response.start", "status": 403, "headers": head})
        await send({"type": "http.response.body"})


class Shared(zipfile.ZipFile):
    """Archive that is unpacked only once, into a shared folder."""

    def extractall(self, path: Any = None, members: Any = None, pwd: Any = None) -> None:
        """Replace the empty folder `path` by a link to the unpacked archive, and remove the archive's file: a
        busy disk cannot hold 24 MB for each worker without delays."""
        archive = Path(str(self.filename))
        content = archive.read_bytes()
        shared = Path(tempfile.gettempdir(), f"code-{hashlib.sha256(content).hexdigest()}")
        with _unpacking:
            if not shared.exists():
                if self.comment:
                    shutil.copytree(self.comment.decode(), shared)
                super().extractall(shared, members, pwd)
        Path(path).rmdir()
        Path(path).symlink_to(shared)
        archive.unlink()


provisioners._cw_metric_alarm_record = _with_expression
provisioners._sm_secret_string = _of_key
lambda_runtime.execution_credentials = _credentials
lambda_runtime.zipfile = SimpleNamespace(**{**vars(zipfile), "ZipFile": Shared})
ticking(esm_wake)
