"""People who opt out: a table of their choices, a secret that links are signed with, requests to the page."""

import base64
import json
from typing import Any
from urllib.parse import urlencode

from mailroom.aws.dynamo_values import plain
from mailroom.aws.secret import CachedSecret
from mailroom.recipients.choices import Preferences
from mailroom.recipients.unsubscribe_links import Links, Tokens
from mailroom.unsubscribe.application import Unsubscribe
from mailroom.unsubscribe.page import PageSettings
from tests.support.unit.fakes import Meddler
from tests.support.unit.shared import PREFERENCES, Aws
from tests.support.unit.webhooks import Secrets, cached_secret

KEY, NEWER = "0123456789abcdefKEY", "fedcba9876543210NEWER"
URL = "https://api.mailroom.example/unsubscribe"
ADA, TOPIC = "ada@example.com", "followers"
FORM = "application/x-www-form-urlencoded"
ONE_CLICK = "List-Unsubscribe=One-Click"


def secrets_with_key(key: str = KEY, *previous: str) -> Secrets:
    """Secrets Manager with the links' secret in it."""
    return Secrets(json.dumps({"key": key, **({"previous": [*previous]} if previous else {})}))


def kept(client: Secrets, clock: Any = lambda: 0.0) -> CachedSecret:
    return cached_secret(client, clock)


def tokens(key: str = KEY, *previous: str) -> Tokens:
    return Tokens(kept(secrets_with_key(key, *previous)))


def links(key: str = KEY, url: str = URL) -> Links:
    return Links(kept(secrets_with_key(key)), url)


def preferences_of(aws: Aws, clock: Any, **changes: Any) -> Preferences:
    """The table, behind a client that keeps its calls."""
    client: Any = Meddler(aws.dynamodb, **changes)
    return Preferences(client, PREFERENCES, clock)


def unsubscribe_request(token: str, method: str = "GET", **changes: Any) -> dict[str, Any]:
    """A request in payload format 2.0, as API Gateway hands it on."""
    path = f"/unsubscribe/{token}"
    event = {
        "version": "2.0",
        "routeKey": f"{method} /unsubscribe/{{token}}",
        "rawPath": path,
        "rawQueryString": "",
        "headers": {"host": "api.mailroom.example", "user-agent": "Mozilla/5.0"},
        "requestContext": {
            "accountId": "123456789012",
            "http": {"method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "192.0.2.1"},
            "requestId": "request-1",
            "stage": "$default",
        },
        "pathParameters": {"token": token},
        "isBase64Encoded": False,
    }
    return {**event, **changes}


def posted_form(
    token: str, body: str | dict[str, str], kind: str = FORM, *, encoded: bool = False
) -> dict[str, Any]:
    """A form that is posted; `encoded`: as API Gateway hands on what it does not take for text."""
    text = body if isinstance(body, str) else urlencode(body)
    return unsubscribe_request(
        token,
        "POST",
        headers={"content-type": kind},
        body=base64.b64encode(text.encode()).decode() if encoded else text,
        isBase64Encoded=encoded,
    )


def multipart(*fields: tuple[str, str], boundary: str = "----Boundary7MA4") -> tuple[str, str]:
    """The body and the content type of such a form."""
    parts = [
        f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in fields
    ]
    return "".join(parts) + f"--{boundary}--\r\n", f"multipart/form-data; boundary={boundary}"


class Door:
    """The function with a table and a secret of its own."""

    def __init__(
        self,
        aws: Aws,
        clock: Any,
        secrets: Secrets | None = None,
        page: PageSettings | None = None,
        **changes: Any,
    ) -> None:
        self.preferences = preferences_of(aws, clock, **changes)
        self.secrets = secrets or secrets_with_key()
        page = page or PageSettings()
        self._unsubscribe = Unsubscribe(self.preferences, kept(self.secrets, clock), page)

    def answer(self, event: Any) -> dict[str, Any]:
        return self._unsubscribe.answer(event)

    def status(self, event: Any) -> int:
        return int(self.answer(event)["statusCode"])

    def writes(self) -> int:
        """Return how many choices were written."""
        client: Any = self.preferences.client
        return int(client.names().count("update_item"))

    def out(self) -> str | None:
        """Return the way in which Ada opted out, or None if she is not opted out."""
        found = self.preferences.get(ADA, TOPIC)
        return found.by if found else None


def page_token(recipient: str = ADA) -> str:
    """The end of a link to the page of preferences that is right."""
    return links().page_url(recipient).removeprefix(f"{URL}/")


def token(recipient: str = ADA, topic: str = TOPIC) -> str:
    """The end of a link that is right."""
    return links().url(recipient, topic).removeprefix(f"{URL}/")


def stored_preferences(aws: Aws) -> list[dict[str, Any]]:
    """Return the rows of the table of choices."""
    return [plain(row) for row in aws.dynamodb.scan(TableName=PREFERENCES)["Items"]]
