"""The SES adapter, and a client whose responses a test sets."""

from pathlib import Path
from typing import Any

import pytest

from mailroom.channels.mail.rendering import MailRenderer
from mailroom.content.payloads import Payloads
from mailroom.content.templates import Templates
from mailroom.errors import Invalid
from mailroom.providers.ses.sender import SesMail
from mailroom.recipients.unsubscribe_links import Links
from tests.support.unit.shared import BUCKET, SENDER, mail
from tests.support.unit.shelf import OURS
from tests.support.unit.unsubscribing import URL, kept, secrets_with_key
from tests.support.unit.webhooks import Secrets

SENDERS = [SENDER, "news@bücher.example"]


class Ses:
    """SES as a client that records its requests and fails if a test says so."""

    def __init__(self, error: Exception | None = None) -> None:
        self._error = error
        self.requests: list[dict[str, Any]] = []

    def send_email(self, **request: Any) -> dict[str, Any]:
        self.requests.append(request)
        if self._error is not None:
            raise self._error
        return {"MessageId": "0107018f-1", "ResponseMetadata": {"HTTPStatusCode": 200}}


def ses_mail(client: Any, s3: Any = None, limit: int = 1000) -> SesMail:
    renderer = MailRenderer(
        Templates(OURS), Payloads(s3, BUCKET), senders=SENDERS, max_attachment_bytes=limit
    )
    return SesMail(client, renderer, "mailroom-test")


def linked(client: Any, secrets: Secrets | None = None, root: Path = OURS) -> SesMail:
    """Return the adapter with links for opting out."""
    renderer = MailRenderer(
        Templates(root),
        Payloads(None, BUCKET),  # type: ignore[arg-type]
        senders=SENDERS,
        max_attachment_bytes=1000,
        links=Links(kept(secrets or secrets_with_key()), URL),
    )
    return SesMail(client, renderer, "mailroom-test")


def prepared(**attributes: Any) -> dict[str, Any]:
    return ses_mail(Ses()).prepare(mail(**attributes))


def headers_of(request: dict[str, Any]) -> dict[str, str]:
    """Return the headers of a request by their names."""
    return {header["Name"]: header["Value"] for header in request["Content"]["Simple"]["Headers"]}


def problem_at_ses(**attributes: Any) -> str:
    with pytest.raises(Invalid) as caught:
        prepared(**attributes)
    return str(caught.value)
