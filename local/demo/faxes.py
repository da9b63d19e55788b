"""The demo's faxes and webhooks: put, and wait for their ends."""

import time
from collections.abc import Callable, Sequence

from local.demo.fax_post import FaxPost
from local.demo.postbox import Postbox
from local.demo.scenarios.faxes import Fax
from local.demo.scenarios.mails import Item
from local.demo.waiter import Patience
from local.demo.watch import FAXES
from local.stage.workspace import State

SETTLE_SECONDS = 120.0


class FaxRun:
    """One run; its seconds count from the first fax that is put."""

    def __init__(self, running: State, postbox: Postbox) -> None:
        self._providers = running.endpoints.providers
        self._bucket = running.outputs["PayloadBucketName"]
        self._post = FaxPost(running.endpoints, running.outputs["FaxQueueUrl"], self._bucket)
        self._postbox = postbox
        self._started = time.monotonic()

    def put(self, faxes: Sequence[Fax], done: Callable[[], None]) -> None:
        """Put all, each where it goes in; those of the upstream application in their order."""
        for fax in faxes:
            if fax.payload:
                self._post.store(fax)
            if fax.way == "queue":
                self._post.write(fax)
                done()
        items = [fax.item(self._providers, self._bucket) for fax in faxes if fax.way == "mailbox"]
        self._postbox.put_all(items, done)

    def put_webhooks(self, items: Sequence[Item]) -> None:
        """Put the webhooks that are messages."""
        self._postbox.put_all(items, lambda: None)

    def wait(self, count: int, patience: Patience, ended: Callable[[int], None]) -> float:
        """Seconds until so many faxes and webhooks have ended. Raises Unsettled."""
        patience.until_completed(FAXES, count, SETTLE_SECONDS, ended)
        return time.monotonic() - self._started
