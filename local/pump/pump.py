"""Drive the event source mappings that the emulator gets wrong, by AWS's rules.

The emulator drops failed stream records or retries them for ever, and works a FIFO queue's groups one after
another. `python -m local.pump.pump --emulator URL` disables those mappings in the emulator and delivers their
records until the process is killed. The pump keeps no checkpoint: after a crash it delivers a stream again
from the oldest record on, and the ledger refuses what was sent.
"""

import argparse
import os
import threading
import traceback
from functools import partial
from threading import Thread
from typing import Any

from local.aws import LocalSession, patient
from local.pump.fifo import EmulatedQueue, FifoMapping, Poller
from local.pump.functions import CONNECTIONS, Functions
from local.pump.stream_driver import StreamDriver
from local.pump.streams import StreamMapping

DRIVING = "driving "
"""The pump logs this when it has taken over all mappings."""


class Pump:
    """The mappings of one emulator that the pump takes over."""

    def __init__(self, url: str) -> None:
        session = LocalSession()
        self._lambda = session.client("lambda", endpoint_url=url, config=patient())
        self._sqs = session.client("sqs", endpoint_url=url, config=patient(CONNECTIONS))
        self._functions = Functions(url)
        self._streams = StreamDriver(url, self._functions)

    def run(self) -> None:
        """Start all readers and pollers; they never end."""
        pages = self._lambda.get_paginator("list_event_source_mappings").paginate()
        listed = [dict(each) for page in pages for each in page["EventSourceMappings"]]
        streams = [StreamMapping.from_api(each) for each in listed if _source(each, ":dynamodb:")]
        queues = [FifoMapping.from_api(each) for each in listed if _source(each, ":sqs:", ".fifo")]
        if not streams and not queues:
            raise SystemExit("No function is mapped to a DynamoDB stream. Deploy the stacks first.")
        for uuid in [*(each.uuid for each in streams), *(each.uuid for each in queues)]:
            # A template's `Enabled: false` does not show in the emulator's answer.
            self._lambda.update_event_source_mapping(UUID=uuid, Enabled=False)
        threads = [thread for mapping in streams for thread in self._streams.threads(mapping)]
        threads += [self._poller(mapping) for mapping in queues]
        print(f"{DRIVING}{len(streams)} stream mappings and {len(queues)} FIFO queues", flush=True)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _poller(self, mapping: FifoMapping) -> Thread:
        queue = EmulatedQueue(self._sqs, mapping.queue)
        poller = Poller(mapping, queue, partial(self._functions.invoke, mapping.function))
        return Thread(target=poller.run, daemon=True)


def _source(mapping: dict[str, Any], service: str, suffix: str = "") -> bool:
    arn = str(mapping["EventSourceArn"])
    return service in arn and arn.endswith(suffix)


def die(trouble: threading.ExceptHookArgs) -> None:
    """End the process: a failed thread must not leave the others running as if all were well."""
    traceback.print_exception(trouble.exc_type, trouble.exc_value, trouble.exc_traceback)
    os._exit(1)


def main() -> None:
    """Pump until killed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--emulator", required=True, help="URL of the emulator")
    threading.excepthook = die
    Pump(parser.parse_args().emulator).run()


if __name__ == "__main__":
    main()
