"""Fax, by SignalWire or Telnyx. A number gets one fax at a time. A later invocation of the function follows
a fax that an earlier invocation submitted."""

from mailroom.channels.channel import Channel, Estimate
from mailroom.channels.fax.contract import Fax

CHANNEL = Channel(
    contract=Fax,
    choices=[{"required": ["to"]}, {"oneOf": [{"required": ["pdf_url"]}, {"required": ["payload_ref"]}]}],
    delayable=False,
    messages="Faxes",
    example={"to": "+12025550112", "pdf_url": "https://example.com/letter.pdf"},
    providers={"signalwire": "SignalWire", "telnyx": "Telnyx"},
    sent="{provider} says that it went through.",
    personal=True,
    estimate=Estimate(
        latency=60.0,  # seconds of the whole phone call
        unpriced="it differs by country, provider and contract",
        ledger_units=3.0,
        indexed=True,
        stores_pdf=True,
        note="A number gets one fax at a time, so many to the same take longer; so do further attempts.",
    ),
    checks={
        "credentials": "mailroom_ops.doctor.checks.channels:fax_credentials",
        "media": "mailroom_ops.doctor.checks.channels:fax_media",
    },
)
