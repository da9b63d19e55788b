"""Calls that must succeed in the end."""

import time
from collections.abc import Callable

from local.pump.functions import TROUBLE

TROUBLE_SECONDS = 1.0


def insist(call: Callable[[], object]) -> None:
    """Call until it succeeds, waiting in between."""
    while True:
        try:
            call()
        except TROUBLE as trouble:
            print(f"trying again: {trouble}", flush=True)
            time.sleep(TROUBLE_SECONDS)
        else:
            return
