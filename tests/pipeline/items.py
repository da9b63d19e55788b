"""A message's item, in the forms that it takes on its way."""

import base64
from collections.abc import Mapping
from typing import Any

from boto3.dynamodb.types import TypeDeserializer, TypeSerializer

Item = dict[str, Any]

_serialize, _deserialize = TypeSerializer().serialize, TypeDeserializer().deserialize


def mail(id_: str, **attributes: object) -> Item:
    """A mail's item, good but for what is given; None leaves an attribute out."""
    item: Item = {
        "id": id_,
        "event_type": "mail",
        "email": "ada@example.com",
        "first_name": "Ada",
        "last_name": "Lovelace",
    }
    return {name: value for name, value in (item | attributes).items() if value is not None}


def fax(id_: str, to: str, **attributes: object) -> Item:
    """A fax's item; its PDF has the message's name."""
    item: Item = {"id": id_, "event_type": "fax", "to": to, "pdf_url": f"https://example.com/faxes/{id_}.pdf"}
    return {name: value for name, value in (item | attributes).items() if value is not None}


def correlation(id_: str) -> str:
    """The message's X-Correlation-ID: base64url of its id, unpadded."""
    return base64.urlsafe_b64encode(id_.encode()).rstrip(b"=").decode()


def typed(item: Mapping[str, Any]) -> dict[str, Any]:
    """An item in DynamoDB's own form."""
    return {name: _serialize(value) for name, value in item.items()}


def plain(image: Mapping[str, Any]) -> Item:
    """DynamoDB's form as an item."""
    return {name: _deserialize(value) for name, value in image.items()}
