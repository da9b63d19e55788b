"""HTTP server of all provider simulators. Each local stage starts one.

`python -m mailroom_local.providers.server --port N --emulator URL` runs it in the foreground.
"""

import argparse
from importlib import import_module
from typing import Any

from mailroom.channels.contracts import CHANNELS
from mailroom_local.providers import delay_queue, twilio_texts
from mailroom_local.providers.delay_queue import DelayQueue
from mailroom_local.providers.fax import FaxLine
from mailroom_local.providers.http import Simulator, SimulatorServer
from mailroom_local.providers.inbox import InboxStore
from mailroom_local.providers.resend_mail import SECRET as RESEND_SECRET
from mailroom_local.providers.resend_mail import ResendSimulator
from mailroom_local.providers.ses import SesSimulator
from mailroom_local.providers.ses_feedback import SesFeedback, SuppressionList
from mailroom_local.providers.signalwire import SignalWireSimulator
from mailroom_local.providers.sms import SmsNetwork
from mailroom_local.providers.sns import SnsSimulator
from mailroom_local.providers.telnyx import TelnyxSimulator
from mailroom_local.providers.trouble import Trouble
from mailroom_local.providers.twilio import SECRET as TWILIO_SECRET
from mailroom_local.providers.twilio import TwilioSimulator
from mailroom_local.providers.twilio_callbacks import StatusCallbacks
from mailroom_local.providers.upstream import PublicApi, Upstream
from mailroom_local.providers.webhook_receiver import WebhookReceiver

SLOW_FAX_SECONDS = 9.0
"""Duration of a slow fax, longer than the time-out of a function in the local stage, so that several
invocations poll its status."""
CREDENTIALS: dict[str, dict[str, str]] = {
    "FaxSecretName": {"project": "local", "token": "local", "api_key": "local"},
    "TwilioSecretName": TWILIO_SECRET,
    "ResendSecretName": RESEND_SECRET,
}
"""Credentials that the simulators accept, by the stack output with the name of their secret. For a channel
that names its own simulator, the output is the channel's name, capitalized, followed by SecretName."""
_OWN = {name: each.simulator.split(":") for name, each in CHANNELS.items() if each.simulator}
"""Module and class of the simulators that channels name in their descriptors, by channel."""
CREDENTIALS |= {f"{name.capitalize()}SecretName": import_module(at).SECRET for name, (at, _) in _OWN.items()}


def simulators(upstream: Upstream) -> dict[str, Simulator]:
    """Return all simulators by name. Functions reach each at $MAILROOM_PROVIDERS followed by its `prefix`."""
    inbox = InboxStore()
    network, line = SmsNetwork(inbox), FaxLine(inbox, slow_seconds=SLOW_FAX_SECONDS)
    suppressed = SuppressionList()
    feedback = SesFeedback(upstream, suppressed)
    callbacks, trouble, resend = StatusCallbacks(), Trouble(), ResendSimulator(inbox)
    queues: dict[str, DelayQueue[Any]] = {
        "ses": feedback.queue,
        "twilio": callbacks.queue,
        "resend": resend.queue,
    }
    for queue in queues.values():
        queue.start()
    return {
        "ses": trouble.around("ses", SesSimulator(inbox, upstream, suppressed, feedback)),
        "resend": trouble.around("resend", resend),
        "sns": trouble.around("sns", SnsSimulator(inbox, upstream)),
        "twilio": trouble.around("twilio", TwilioSimulator(network, callbacks.accepted)),
        "signalwire": trouble.around("signalwire", SignalWireSimulator(line)),
        "telnyx": TelnyxSimulator(line),
        **{name: getattr(import_module(module), kind)(inbox) for name, (module, kind) in _OWN.items()},
        "webhook receiver": trouble.around("webhook", WebhookReceiver()),
        "stage's own API": PublicApi(upstream),
        "pages: inbox": inbox.pages(),
        "pages: faxes": line.pages(),
        "pages: texts": twilio_texts.pages(network),
        "pages: events": delay_queue.pages(queues),
        "pages: trouble": trouble.pages(),
    }


class ProviderServer(SimulatorServer):
    """Server of the simulators, some of which forward requests to an emulator."""

    def __init__(self, port: int, emulator_url: str) -> None:
        self._upstream = Upstream(emulator_url)
        super().__init__(port, *simulators(self._upstream).values())

    def server_close(self) -> None:
        super().server_close()
        self._upstream.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True, help="port on 127.0.0.1")
    parser.add_argument("--emulator", required=True, help="URL of the emulator")
    options = parser.parse_args()
    ProviderServer(options.port, options.emulator).serve_forever(poll_interval=0.1)


if __name__ == "__main__":
    main()
