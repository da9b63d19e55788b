"""Fax channel, with the providers SignalWire and Telnyx. Faxes to the same number are sent one after another.
If the Lambda function's invocation ends before the fax does, a later invocation polls the fax."""

from mailroom.channels.channel import Channel, Estimate
from mailroom.channels.fax.contract import Fax

CHANNEL = Channel(
    contract=Fax,
    choices=[{"required": ["to"]}, {"oneOf": [{"required": ["pdf_url"]}, {"required": ["payload_ref"]}]}],
    delayable=False,
    messages="Faxes",
    example={"to": "+12025550112", "pdf_url": "https://example.com/letter.pdf"},
    personal=True,
    estimate=Estimate(
        latency=60.0,  # seconds, for the fax's whole phone call
        ledger_units=3.0,
        note="Faxes to the same number are sent one by one, so many take longer; so do further attempts.",
    ),
    checks={"credentials": "mailroom_ops.doctor.checks.channels:fax_credentials"},
)
