"""Mailroom's adapter for SES, with which the baselines send mails."""

import os
from pathlib import Path
from typing import Any

import boto3

from mailroom.channels.mail.rendering import MailRenderer
from mailroom.content.payloads import Payloads
from mailroom.content.templates import Templates
from mailroom.providers.ses.sender import SesMail

adapter: Any = SesMail(
    boto3.client("sesv2"),
    MailRenderer(
        Templates(Path(os.environ.get("TEMPLATES", "templates/mail"))),
        Payloads(boto3.client("s3"), os.environ["PAYLOAD_BUCKET"]),
        senders=["Mailroom <mailroom@example.com>"],
        max_attachment_bytes=7_000_000,
    ),
    os.environ["CONFIGURATION_SET"],
)
