"""HTTP server of all provider simulators. Each local stage starts one.

`python -m mailroom_local.providers.server --port N --emulator URL --memory FILE` runs it in the foreground.
SIGTERM ends it, and writes the simulators' data to the file. The next process reads and removes the file.
"""

import argparse
import signal
from importlib import import_module
from pathlib import Path
from typing import Any

from mailroom.channels.contracts import CHANNELS
from mailroom.providers import built_in
from mailroom_local.providers import delay_queue, memory, twilio_texts
from mailroom_local.providers.delay_queue import DelayQueue
from mailroom_local.providers.fax import FaxLine
from mailroom_local.providers.http import MAX_REQUESTS, PLACES, Simulator, SimulatorServer
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

PATIENCE_SECONDS = 2.0
"""Maximum time for which a process that ends waits for the end of each request."""
SLOW_FAX_SECONDS = 9.0
"""Duration of a slow fax, longer than the time-out of a function in the local stage, so that several
invocations poll its status."""
CREDENTIALS: dict[str, dict[str, str]] = {
    "FaxSecretName": {"project": "local", "token": "local", "api_key": "local"},
    "TwilioSecretName": TWILIO_SECRET,
    "ResendSecretName": RESEND_SECRET,
}
"""Credentials that the simulators accept, by the stack output with the name of their secret. If a descriptor
names the simulator, the output is the name of the provider or of the own channel, capitalized, followed by
SecretName."""
_OWN = {
    name: row.simulator.split(":")
    for name, row in (
        *built_in().items(),
        *((name, row) for name, channel in CHANNELS.items() for row in channel.providers.values()),
    )
    if row.simulator
}
"""Module and class of the simulators that descriptors name, by provider of Mailroom or by own channel."""
CREDENTIALS |= {f"{name.capitalize()}SecretName": import_module(at).SECRET for name, (at, _) in _OWN.items()}


def simulators(upstream: Upstream, file: Path | None = None) -> dict[str, Simulator]:
    """Return all simulators by name, with the data of an earlier process from `file`. Functions reach each at
    $MAILROOM_PROVIDERS followed by its `prefix`."""
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
    by_name: dict[str, Simulator] = {
        "ses": trouble.around("ses", SesSimulator(inbox, upstream, suppressed, feedback)),
        "resend": trouble.around("resend", resend),
        "sns": trouble.around("sns", SnsSimulator(inbox, upstream)),
        "twilio": trouble.around("twilio", TwilioSimulator(network, callbacks)),
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
    memory.restore(by_name, file)
    for queue in queues.values():
        queue.start()
    return by_name


class ProviderServer(SimulatorServer):
    """Server of the simulators, some of which forward requests to an emulator."""

    def __init__(self, port: int, emulator_url: str, file: Path | None = None) -> None:
        self._upstream = Upstream(emulator_url)
        self._simulators = simulators(self._upstream, file)
        super().__init__(port, *self._simulators.values())

    def server_close(self) -> None:
        super().server_close()
        self._upstream.close()

    def leave(self, file: Path) -> None:
        """Refuse new connections, wait for the end of the requests that are being handled, store the data,
        and end the process at once. Further requests on open connections are not handled."""
        self.socket.close()
        for _ in range(MAX_REQUESTS):
            PLACES.acquire(timeout=PATIENCE_SECONDS)
        memory.store(self._simulators, file)
        signal.raise_signal(signal.SIGKILL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True, help="port on 127.0.0.1")
    parser.add_argument("--emulator", required=True, help="URL of the emulator")
    parser.add_argument("--memory", type=Path, required=True, help="file for the data between two processes")
    options = parser.parse_args()
    server = ProviderServer(options.port, options.emulator, options.memory)
    signal.signal(signal.SIGTERM, lambda *_: server.leave(options.memory))
    # If the port was in use, the process has ended above, and the file is still there for the next one.
    options.memory.unlink(missing_ok=True)
    server.serve_forever(poll_interval=0.1)


if __name__ == "__main__":
    main()
