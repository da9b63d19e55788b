"""SES v2's SendEmail on the wire: what it says, and what SES would refuse in it."""

import base64
from typing import Any

MAX_RECIPIENTS = 50
MAX_HEADERS = 15
MAX_HEADER_NAME = 126
MAX_HEADER_VALUE = 995
Refusal = tuple[int, str, str]  # HTTP status, error code, message


def recipients_of(mail: dict[str, Any]) -> list[str]:
    """All addresses: to, cc, bcc."""
    destination = mail.get("Destination") or {}
    return [
        address
        for kind in ("ToAddresses", "CcAddresses", "BccAddresses")
        for address in destination.get(kind) or []
    ]


def refusal_of(mail: dict[str, Any]) -> Refusal | None:
    """The error that SES answers to a request it would not take; None if it would."""
    count = len(recipients_of(mail))
    if count == 0:
        return _bad("Destination is required: no recipient is given.")
    if count > MAX_RECIPIENTS:
        return _bad(f"Recipient count exceeds {MAX_RECIPIENTS}.")
    headers = mail.get("Content", {}).get("Simple", {}).get("Headers") or []
    if len(headers) > MAX_HEADERS:
        return _bad(f"The number of headers exceeds {MAX_HEADERS}.")
    for header in headers:
        name, value = header.get("Name", ""), header.get("Value", "")
        if not 0 < len(name) <= MAX_HEADER_NAME or not 0 < len(value) <= MAX_HEADER_VALUE:
            return _bad(f"Header {name[:MAX_HEADER_NAME]!r} is empty or too long.")
        if any(mark in name + value for mark in "\r\n"):
            return _bad(f"Header {name!r} holds a line break.")
    return None


def _bad(message: str) -> Refusal:
    return 400, "BadRequestException", message


def content_of(mail: dict[str, Any]) -> dict[str, Any]:
    """What was sent, as the inbox shows it. Mailroom sends Simple content only."""
    destination = mail.get("Destination") or {}
    message = (mail.get("Content") or {}).get("Simple") or {}
    body = message.get("Body") or {}
    return {
        "from": mail.get("FromEmailAddress", ""),
        "to": destination.get("ToAddresses") or [],
        "cc": destination.get("CcAddresses") or [],
        "bcc": destination.get("BccAddresses") or [],
        "reply_to": mail.get("ReplyToAddresses") or [],
        "configuration_set": mail.get("ConfigurationSetName"),
        "tags": {tag["Name"]: tag["Value"] for tag in mail.get("EmailTags") or []},
        "subject": (message.get("Subject") or {}).get("Data", ""),
        "text": (body.get("Text") or {}).get("Data"),
        "html": (body.get("Html") or {}).get("Data"),
        "headers": {each["Name"]: each["Value"] for each in message.get("Headers") or []},
        "attachments": [
            {"name": each["FileName"], "size": len(base64.b64decode(each.get("RawContent", "")))}
            for each in message.get("Attachments") or []
        ],
    }
