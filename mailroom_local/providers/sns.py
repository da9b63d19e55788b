"""Amazon SNS for push messages, in front of the emulator: stores published messages, and simulates errors.

A word in the token of a platform endpoint determines the outcome. With `-once` after the word, it occurs
only the first time for that token. Other requests are forwarded to the emulator, which stores endpoints, but
does not deliver to them.

| word in the token | what SNS does with a publish                                                  |
|-------------------|-------------------------------------------------------------------------------|
| disabled          | 400 EndpointDisabled (also if the endpoint's attribute Enabled is false)      |
| throttled         | 429 Throttled                                                                 |
| error             | 500 InternalError; nothing is published                                       |
| lost-answer       | publishes, then breaks the connection without an answer                       |
| row-CODE          | 400 with the words of this row of SNS's table, such as row-kmsdisabled        |

For an endpoint that does not exist, the response is 400 InvalidParameter, as at SNS. An iOS token that is
not hexadecimal is refused when its endpoint is created. In ARNs of endpoints, the emulator writes `app`
instead of `endpoint`; the simulator translates both ways.
"""

import json
import re
import uuid
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode
from xml.sax.saxutils import escape

from mailroom.providers.sns.sender import REFUSALS as ROWS
from mailroom.providers.sns.sender import TEXTS
from mailroom_local.aws import authorization
from mailroom_local.providers.http import NoAnswer, Occurrences, Reply, Request
from mailroom_local.providers.inbox import Accepted, InboxStore
from mailroom_local.providers.rows import slug
from mailroom_local.providers.upstream import Upstream

REFUSALS = {
    "disabled": (400, "EndpointDisabled", "Endpoint is disabled"),
    "throttled": (429, "Throttled", "Rate exceeded"),
    "error": (500, "InternalError", "An internal error has occurred"),
}
WORDS = (*REFUSALS, "lost-answer")
REFUSALS |= {f"row-{slug(code)}": (400, code, row.words) for code, row in ROWS.items()} | {
    f"row-{slug(code)}": (400, "InvalidParameter", row.words) for code, row in TEXTS.items()
}
PLATFORMS = {"APNS", "APNS_SANDBOX"}
NO_ENDPOINT = "Invalid parameter: TargetArn Reason: No endpoint found for the target arn specified"
NOT_HEXADECIMAL = (
    "Invalid parameter: Token Reason: iOS device tokens must be no more than 400 hexadecimal characters"
)
NO_JSON = "Invalid parameter: Message Structure - JSON message body failed to parse"
NO_DEFAULT = "Invalid parameter: Message Structure - No default entry in JSON message body"

_ENDPOINT = re.compile(r"(arn:aws:sns:[a-z0-9-]+:\d{12}):endpoint/([A-Z_]+)/([^/]+/[^/]+)")
_EMULATED = re.compile(rb"(arn:aws:sns:[a-z0-9-]+:\d{12}):app/([A-Z_]+/[^/<\s]+/[0-9a-f-]{36})")
NAMESPACE = "http://sns.amazonaws.com/doc/2010-03-31/"
VERSION = "2010-03-31"
XML = {"Content-Type": "text/xml"}
FORM = "application/x-www-form-urlencoded; charset=utf-8"


class SnsSimulator:
    """Simulator of the service under /sns."""

    prefix = "/sns"

    def __init__(self, inbox: InboxStore, upstream: Upstream) -> None:
        self._inbox = inbox
        self._upstream = upstream
        self._had = Occurrences()

    def handle(self, request: Request) -> Reply:
        form = request.form
        emulated = urlencode(
            {name: _ENDPOINT.sub(r"\1:app/\2/\3", parameter) for name, parameter in form.items()}
        )
        passed = Request(request.method, "/", request.headers, emulated.encode())
        match form.get("Action"):
            case "Publish":
                return self._publish(passed, form)
            case "CreatePlatformEndpoint" if _bad_token(form):
                return error(400, "InvalidParameter", NOT_HEXADECIMAL)
        return self._pass_on(passed)

    def _pass_on(self, request: Request) -> Reply:
        reply = self._upstream.pass_on(request)
        return Reply(reply.status, _EMULATED.sub(rb"\1:endpoint/\2", reply.body), reply.headers)

    def _publish(self, request: Request, form: Mapping[str, str]) -> Reply:
        target = form.get("TargetArn") or form.get("TopicArn", "")
        endpoint = _ENDPOINT.fullmatch(target)
        token, outcome = "", ""
        if endpoint is not None:
            arn = _ENDPOINT.sub(r"\1:app/\2/\3", target)
            known = self._upstream.pass_on(call("GetEndpointAttributes", {"EndpointArn": arn}))
            if known.status != 200:
                return error(400, "InvalidParameter", NO_ENDPOINT)
            token = value(known, "Token")
            outcome = "disabled" if value(known, "Enabled") == "false" else self._outcome(token)
        wrong = _wrong_message(form)
        if wrong:
            return error(400, "InvalidParameter", wrong)
        if outcome in REFUSALS:
            return error(*REFUSALS[outcome])
        reply = self._pass_on(request)
        if reply.status == 200:
            self._keep(target, token, endpoint[2] if endpoint else "topic", form, text(reply, "MessageId"))
        if outcome == "lost-answer":
            raise NoAnswer
        return reply

    def _outcome(self, token: str) -> str:
        if row := re.search(r"row-[a-z0-9-]+", token):
            return row[0]
        word = next((word for word in WORDS if word in token), "")
        only_first = f"{word}-once" in token
        return word if not only_first or self._had.nth(token) == 1 else ""

    def _keep(self, target: str, token: str, kind: str, form: Mapping[str, str], message_id: str) -> None:
        several = form.get("MessageStructure") == "json"
        message: dict[str, Any] = json.loads(form["Message"]) if several else {}
        payloads = {
            name: payload if name == "default" else _parsed(payload) for name, payload in message.items()
        }
        content = {
            "subject": payloads.get("default") or form.get("Message", ""),
            "platform": kind,
            "token": token,
            "payloads": payloads,
            "attributes": attributes(form),
        }
        self._inbox.add(Accepted("push", target, message_id, content))


def _bad_token(form: Mapping[str, str]) -> bool:
    platform = form.get("PlatformApplicationArn", "").partition("/")[2].partition("/")[0]
    return platform in PLATFORMS and not re.fullmatch(r"[0-9A-Fa-f]{1,400}", form.get("Token", ""))


def _wrong_message(form: Mapping[str, str]) -> str:
    """Return SNS's error for an invalid message for several platforms, or an empty string if it is valid."""
    if form.get("MessageStructure") != "json":
        return ""
    message = _parsed(form.get("Message"))
    if not isinstance(message, dict):
        return NO_JSON
    return "" if isinstance(message.get("default"), str) else NO_DEFAULT


def _parsed(payload: Any) -> Any:
    try:
        return json.loads(payload)
    except (TypeError, ValueError):
        return payload


def call(action: str, parameters: Mapping[str, str]) -> Request:
    """Return a request of the simulator's own to the emulator."""
    body = urlencode({"Action": action, "Version": VERSION, **parameters})
    return Request("POST", "/", {"content-type": FORM, "authorization": authorization("sns")}, body.encode())


def attributes(form: Mapping[str, str]) -> dict[str, str]:
    """Return the message attributes of a publish request, by name."""
    values = {}
    for field, name in form.items():
        if entry := re.fullmatch(r"(MessageAttributes\.entry\.\d+)\.Name", field):
            value = f"{entry[1]}.Value"
            values[name] = form.get(f"{value}.StringValue", form.get(f"{value}.BinaryValue", ""))
    return values


def error(status: int, code: str, message: str) -> Reply:
    fault = "Sender" if status < 500 else "Receiver"
    body = (
        f'<ErrorResponse xmlns="{NAMESPACE}"><Error><Type>{fault}</Type><Code>{code}</Code>'
        f"<Message>{escape(message)}</Message></Error><RequestId>{uuid.uuid4()}</RequestId></ErrorResponse>"
    )
    return Reply(status, body.encode(), XML)


def text(reply: Reply, tag: str) -> str:
    """Return the text of the first element with the name `tag`, or an empty string if there is none."""
    element = re.search(f"<{tag}>([^<]*)</{tag}>", reply.body.decode())
    return element[1] if element else ""


def value(reply: Reply, key: str) -> str:
    """Return the value of a map's entry, or an empty string if it is missing."""
    entry = re.search(f"<key>{re.escape(key)}</key><value>([^<]*)</value>", reply.body.decode())
    return entry[1] if entry else ""


def batch(topic: str, messages: list[str]) -> Request:
    """Return a PublishBatch request for at most ten messages."""
    parameters: dict[str, Any] = {"TopicArn": topic}
    for number, message in enumerate(messages, 1):
        member = f"PublishBatchRequestEntries.member.{number}"
        parameters |= {f"{member}.Id": str(number), f"{member}.Message": message}
    return call("PublishBatch", parameters)
