"""Incoming messages to a number at Twilio: POST /texts with From, Body and To (default: the stage's number).

The simulator posts the message to `/twilio/inbound` of the stage's API, with Twilio's fields and signature,
and returns the status of the response. After STOP, later messages to that phone are refused (21610) until
START, as at Twilio.
"""

from typing import Any

from mailroom_local.providers.http import E164, Pages, Request
from mailroom_local.providers.sms import SimulatedSms, SmsNetwork
from mailroom_local.providers.twilio import ACCOUNT_SID, VERSION
from mailroom_local.providers.twilio_callbacks import post_form

OURS = "+12025550123"
"""Number of the local stage, its setting `sms.sender`."""


def pages(network: SmsNetwork) -> Pages:
    return Pages("/texts", {"POST /texts": lambda request: _text(network, request)})


def _text(network: SmsNetwork, request: Request) -> dict[str, Any]:
    form = request.form
    sender = form.get("From", "")
    if not E164.fullmatch(sender):
        raise ValueError("From has to be a number such as +12025550170.")
    sms = network.receive(sender, form.get("To", OURS), form.get("Body", ""))
    # The request is sent to the stage's own API, at the URL that the API uses as its public URL: see
    # `PublicApi`.
    url = f"http://{request.headers['host']}/api/twilio/inbound"
    return {"sid": sms.sid, "answer": post_form(url, _fields(sms))}


def _fields(sms: SimulatedSms) -> dict[str, str]:
    """Return the form fields of an incoming message:
    https://www.twilio.com/docs/messaging/guides/webhook-request."""
    return {
        "AccountSid": ACCOUNT_SID,
        "ApiVersion": VERSION,
        "Body": sms.order.body,
        "From": sms.number,
        "FromCountry": "US",
        "MessageSid": sms.sid,
        "NumMedia": "0",
        "NumSegments": "1",
        "SmsMessageSid": sms.sid,
        "SmsSid": sms.sid,
        "SmsStatus": "received",
        "To": sms.order.to,
        "ToCountry": "US",
    }
