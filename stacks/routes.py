"""Where a message goes by its event type and lane: what dispatch is told, and may send to."""

from collections.abc import Iterator
from dataclasses import dataclass

from stacks.channels import ChannelsStack
from stacks.constructs.worker import Worker
from stacks.fax import FaxStack
from stacks.webhook import WebhookStack


@dataclass(frozen=True)
class Routes:
    """The queues of all channels. `fax` is missing where the stage has no fax gateway."""

    channels: ChannelsStack
    fax: FaxStack | None
    webhook: WebhookStack

    def urls(self) -> dict[str, dict[str, str]]:
        """Queue URLs by event type and lane."""
        routes: dict[str, dict[str, str]] = {}
        for (event_type, lane), worker in self._by_lane():
            routes.setdefault(event_type, {})[lane] = worker.queue.queue_url
        return routes

    def delayed(self) -> dict[str, str]:
        """For a channel whose queue cannot delay a message, the URL of one that can."""
        return {"fax": self.fax.retry.queue.queue_url} if self.fax else {}

    def arns(self) -> list[str]:
        """Every queue that dispatch may send to."""
        arns = [worker.queue.queue_arn for _, worker in self._by_lane()]
        return [*arns, self.fax.retry.queue.queue_arn] if self.fax else arns

    def workers(self) -> Iterator[Worker]:
        """Everybody who works off one of these queues."""
        yield from (worker for _, worker in self._by_lane())
        if self.fax:
            yield self.fax.retry

    def _by_lane(self) -> Iterator[tuple[tuple[str, str], Worker]]:
        yield from self.channels.workers.items()
        if self.fax:
            yield ("fax", "normal"), self.fax.worker
        yield ("webhook", "normal"), self.webhook.worker
