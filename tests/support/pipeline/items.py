"""A message's item, in the forms that it takes on its way."""

import base64

from lab.harness.expected import Item

RINGS = "rings-"
"""Beginning of the id of a message for which an alarm rings; the alarm's name follows."""
UNREADABLE = "not JSON, on any channel"
"""Body of a queue message that is not a message of Mailroom."""


def mail_item(id_: str, **attributes: object) -> Item:
    """A mail's item, good but for what is given; None leaves an attribute out."""
    item: Item = {
        "id": id_,
        "event_type": "mail",
        "email": "ada@example.com",
        "first_name": "Ada",
        "last_name": "Lovelace",
    }
    return {name: value for name, value in (item | attributes).items() if value is not None}


def fax_item(id_: str, to: str, **attributes: object) -> Item:
    """A fax's item; its PDF has the message's name."""
    item: Item = {"id": id_, "event_type": "fax", "to": to, "pdf_url": f"https://example.com/faxes/{id_}.pdf"}
    return {name: value for name, value in (item | attributes).items() if value is not None}


def correlation(id_: str) -> str:
    """The message's X-Correlation-ID: base64url of its id, unpadded."""
    return base64.urlsafe_b64encode(id_.encode()).rstrip(b"=").decode()
