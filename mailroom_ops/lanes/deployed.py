"""A stage's lanes. Lambda reads the queue of a lane by an event source mapping, and a pause disables it."""

import re
from typing import TYPE_CHECKING

from msgspec import Struct

from mailroom.clock import iso
from mailroom_ops.requeue.stage import DeployedStage
from mailroom_ops.screen import Refused
from mailroom_ops.stage import depth
from mailroom_ops.times import short

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

OFF = ("Disabling", "Disabled")
"""States of a mapping by which Lambda reads no messages."""
Mappings = dict[str, tuple[str, str]]
"""Id and state of mappings, by the names of the queues."""
_TAG = "mailroom:paused"
_TAG_LETTERS = 256
_NOT_IN_TAGS = re.compile(r"[^\w.:/=+@-]+")
"""Spaces, and characters that SQS refuses in a tag."""


class Lane(Struct, frozen=True):
    """A lane, and the pause that it is in."""

    channel: str
    lane: str
    waiting: int
    """Messages in the lane's queue, by SQS's approximate count."""
    paused: str = ""
    """Since when, by whom and why the lane is paused, and before which time it has to be resumed; empty if
    it is not paused."""


def pause_of(sqs: "SQSClient", url: str) -> str:
    """Return the words of the latest pause of a queue's lane; empty if the lane was resumed since. They hold
    only if the queue's mapping is off: a deployment may have enabled it."""
    return sqs.list_queue_tags(QueueUrl=url).get("Tags", {}).get(_TAG, "")


class DeployedLanes:
    """The lanes of one deployed stage."""

    def __init__(self, deployed: DeployedStage) -> None:
        self._deployed = deployed
        self._sqs, self._functions = deployed.sqs, deployed.functions

    def read(self) -> list[Lane]:
        """Return all lanes."""
        mappings = self._mappings()
        return [
            Lane(channel, lane, depth(self._sqs, url).all, self._pause(url, _of(url, mappings)[1]))
            for channel, urls in self._deployed.dispatch.routes.items()
            for lane, url in urls.items()
        ]

    def pause(self, channel: str, lane: str, reason: str) -> Lane:
        """Pause a lane. Raises Refused."""
        url, mapping, paused = self._settled(channel, lane)
        if paused:
            raise Refused(f"Lane {lane} of {channel} is paused already, {paused}")
        attributes = self._sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["MessageRetentionPeriod"])
        since = self._deployed.clock()
        end = since + int(attributes["Attributes"]["MessageRetentionPeriod"])
        by = f"by {self._deployed.caller()} and to be resumed before {short(iso(end))}"
        words = _NOT_IN_TAGS.sub(" ", f"since {short(iso(since))} {by}: {reason}")[:_TAG_LETTERS].strip()
        # The tag counts only while the mapping is off. So a crash between both writes leaves no pause without
        # words, and no words without a pause; `resume` keeps to that by the opposite order.
        self._sqs.tag_queue(QueueUrl=url, Tags={_TAG: words})
        self._functions.update_event_source_mapping(UUID=mapping, Enabled=False)
        return Lane(channel, lane, depth(self._sqs, url).all, words)

    def resume(self, channel: str, lane: str) -> Lane:
        """Let a lane go on. Raises Refused."""
        url, mapping, paused = self._settled(channel, lane)
        if paused:
            self._functions.update_event_source_mapping(UUID=mapping, Enabled=True)
        self._sqs.untag_queue(QueueUrl=url, TagKeys=[_TAG])
        return Lane(channel, lane, depth(self._sqs, url).all)

    def _settled(self, channel: str, lane: str) -> tuple[str, str, str]:
        """Return the URL of a lane's queue, the id of its mapping, and the words of its pause. Raises Refused
        for an unknown lane, and for a mapping that is off without a pause or about to change."""
        routes, stage = self._deployed.dispatch.routes, self._deployed.stage
        if lane not in routes.get(channel, {}):
            names = ", ".join(f"{channel} {lane}" for channel, lanes in routes.items() for lane in lanes)
            raise Refused(f"There is no lane {lane!r} of {channel!r} in {stage}; use one of {names}.")
        url = routes[channel][lane]
        mapping, state = _of(url, self._mappings())
        paused = self._pause(url, state)
        if state == ("Disabled" if paused else "Enabled"):
            return url, mapping, paused
        if stage == "local" and url.endswith(".fifo"):
            raise Refused(f"A local stage cannot pause {channel}: its pump reads the queue.")
        raise Refused(
            f"The mapping of {_queue(url)} is {state.lower()}, which no pause explains. Repeat the command "
            f"in a minute; if that does not help, mailroom doctor --stage {stage} says what to do."
        )

    def _pause(self, url: str, state: str) -> str:
        return pause_of(self._sqs, url) if state in OFF else ""

    def _mappings(self) -> Mappings:
        """Return the mappings of the account and region."""
        pages = self._functions.get_paginator("list_event_source_mappings").paginate()
        mappings = (mapping for page in pages for mapping in page["EventSourceMappings"])
        return {
            _queue(mapping.get("EventSourceArn", "")): (mapping["UUID"], mapping["State"])
            for mapping in mappings
        }


def _of(url: str, mappings: Mappings) -> tuple[str, str]:
    """Return the id and the state of a queue's mapping."""
    return mappings.get(_queue(url), ("", "missing"))


def _queue(place: str) -> str:
    """Return the name of a queue by its URL or ARN."""
    return re.split("[:/]", place)[-1]
