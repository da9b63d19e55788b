"""Amazon SNS's query protocol on the wire: forms in, XML out."""

import re
import uuid
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode
from xml.sax.saxutils import escape

from local.aws import KEY, REGION
from local.providers.http import Reply, Request

NAMESPACE = "http://sns.amazonaws.com/doc/2010-03-31/"
VERSION = "2010-03-31"
XML = {"Content-Type": "text/xml"}
SCOPE = (
    f"AWS4-HMAC-SHA256 Credential={KEY}/20260101/{REGION}/sns/aws4_request, SignedHeaders=host, Signature=0"
)
"""The emulator finds service, account and region in it, and checks no signature."""
FORM = "application/x-www-form-urlencoded; charset=utf-8"


def form_of(request: Request) -> dict[str, str]:
    """The parameters of a call."""
    return dict(parse_qsl(request.body.decode(), keep_blank_values=True))


def call(action: str, parameters: Mapping[str, str]) -> Request:
    """A call of the simulator's own, for the emulator."""
    body = urlencode({"Action": action, "Version": VERSION, **parameters})
    return Request("POST", "/", {"content-type": FORM, "authorization": SCOPE}, body.encode())


def entries(form: Mapping[str, str], prefix: str) -> Iterator[dict[str, str]]:
    """The members of a list: `X.entry.1.Name=…` and so on, each without its number."""
    number = 1
    while found := _starting(form, f"{prefix}.{number}."):
        yield found
        number += 1


def attributes(form: Mapping[str, str]) -> dict[str, str]:
    """A publish's message attributes: name and value."""
    return {
        each["Name"]: each.get("Value.StringValue", each.get("Value.BinaryValue", ""))
        for each in entries(form, "MessageAttributes.entry")
    }


def error(status: int, code: str, message: str) -> Reply:
    """An error as SNS writes it."""
    fault = "Sender" if status < 500 else "Receiver"
    body = (
        f'<ErrorResponse xmlns="{NAMESPACE}"><Error><Type>{fault}</Type><Code>{code}</Code>'
        f"<Message>{escape(message)}</Message></Error><RequestId>{uuid.uuid4()}</RequestId></ErrorResponse>"
    )
    return Reply(status, body.encode(), XML)


def text(reply: Reply, tag: str) -> str:
    """The text of the first element of that name; "" where there is none."""
    found = re.search(f"<{tag}>([^<]*)</{tag}>", reply.body.decode())
    return found[1] if found else ""


def value(reply: Reply, key: str) -> str:
    """The value of an entry of a map; "" where there is none."""
    found = re.search(f"<key>{re.escape(key)}</key><value>([^<]*)</value>", reply.body.decode())
    return found[1] if found else ""


def batch(topic: str, messages: list[str]) -> Request:
    """PublishBatch of at most ten."""
    parameters: dict[str, Any] = {"TopicArn": topic}
    for number, message in enumerate(messages, 1):
        member = f"PublishBatchRequestEntries.member.{number}"
        parameters |= {f"{member}.Id": str(number), f"{member}.Message": message}
    return call("PublishBatch", parameters)


def _starting(form: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {name.removeprefix(prefix): value for name, value in form.items() if name.startswith(prefix)}
