"""SES v2's SendEmail on the wire: what it says, and what SES would refuse in it."""

import base64
import email
import email.policy
from email.message import EmailMessage
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
    if count == 0 and "Raw" not in mail.get("Content", {}):
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
    """What was sent, in one shape for Simple, Raw and Template content."""
    destination = mail.get("Destination") or {}
    shared = {
        "from": mail.get("FromEmailAddress", ""),
        "to": destination.get("ToAddresses") or [],
        "cc": destination.get("CcAddresses") or [],
        "bcc": destination.get("BccAddresses") or [],
        "reply_to": mail.get("ReplyToAddresses") or [],
        "configuration_set": mail.get("ConfigurationSetName"),
        "tags": {tag["Name"]: tag["Value"] for tag in mail.get("EmailTags") or []},
    }
    content = mail.get("Content") or {}
    if "Raw" in content:
        return _raw(base64.b64decode(content["Raw"]["Data"]), shared)
    return shared | _simple(content.get("Simple") or content.get("Template") or {})


def _simple(message: dict[str, Any]) -> dict[str, Any]:
    body = message.get("Body") or {}
    return {
        "subject": (message.get("Subject") or {}).get("Data", message.get("TemplateName", "")),
        "text": (body.get("Text") or {}).get("Data"),
        "html": (body.get("Html") or {}).get("Data"),
        "headers": {each["Name"]: each["Value"] for each in message.get("Headers") or []},
        "attachments": [
            {"name": each["FileName"], "size": len(base64.b64decode(each.get("RawContent", "")))}
            for each in message.get("Attachments") or []
        ],
    }


def _raw(data: bytes, shared: dict[str, Any]) -> dict[str, Any]:
    parsed = email.message_from_bytes(data, policy=email.policy.default)
    return {
        **shared,
        "from": shared["from"] or str(parsed.get("From", "")),
        "to": shared["to"] or [str(value) for value in parsed.get_all("To", [])],
        "subject": str(parsed.get("Subject", "")),
        "text": _part(parsed, "plain"),
        "html": _part(parsed, "html"),
        "headers": {name: str(value) for name, value in parsed.items()},
        "attachments": [
            {"name": part.get_filename() or "", "size": len(part.get_payload(decode=True) or b"")}
            for part in parsed.iter_attachments()
        ],
    }


def _part(message: EmailMessage, kind: str) -> str | None:
    part = message.get_body((kind,))
    return None if part is None else str(part.get_content())
