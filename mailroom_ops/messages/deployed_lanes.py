"""A stage's lanes. Lambda reads a lane's queue through an event source mapping. A pause disables the
mapping."""

import re
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import Struct

from mailroom.clock import iso
from mailroom_ops.shared.deployed_stage import depth, prefix, queue_urls
from mailroom_ops.shared.refusals import Refused
from mailroom_ops.shared.stage_queues import DeployedStage
from mailroom_ops.shared.times import short
from mailroom_stacks.settings.constants import OF_FALLBACK

if TYPE_CHECKING:
    from types_boto3_lambda import LambdaClient

PAUSED = "mailroom:paused"
"""Tag of a queue, with a text about the latest pause of its lane. The text is valid only while the queue's
event source mapping is disabled: a deployment may have enabled the mapping and left the tag."""
OFF = ("Disabling", "Disabled")
"""States of an event source mapping in which Lambda does not read the queue."""
_TAG_LETTERS = 256
_NOT_IN_TAGS = re.compile(r"[^\w.:/=+@-]+")
"""Sequences of spaces and of characters that SQS does not allow in the value of a tag."""


class Lane(Struct, frozen=True):
    """Lane of a channel, with its pause."""

    channel: str
    lane: str
    waiting: int
    """Messages in the lane's queue, by SQS's approximate count."""
    paused: str
    """Since when, by whom and why the lane is paused, and before which time it has to be resumed; empty if
    it is not paused."""


def with_fallbacks(
    routes: Mapping[str, Mapping[str, str]], queues: Mapping[str, str], stage: str
) -> dict[str, dict[str, str]]:
    """Return the URLs of all lanes, by channel and lane. `routes` has the lanes to which `dispatch` sends
    messages; the queues of second providers are lanes as well. `queues` has the URLs of the queues."""
    every = {channel: dict(lanes) for channel, lanes in routes.items()}
    for lanes in every.values():
        for lane, url in [*lanes.items()]:
            name = f"{url.rpartition('/')[2].removeprefix(prefix(stage))}{OF_FALLBACK}"
            if name in queues:
                lanes["fallback" if lane == "normal" else f"{lane}{OF_FALLBACK}"] = queues[name]
    return every


def unread_queues(functions: "LambdaClient") -> set[str]:
    """Return the names of the queues that Lambda does not read, because their mappings are disabled."""
    pages = functions.get_paginator("list_event_source_mappings").paginate()
    mappings = (mapping for page in pages for mapping in page["EventSourceMappings"])
    return {mapping["EventSourceArn"].rpartition(":")[2] for mapping in mappings if mapping["State"] in OFF}


class DeployedLanes:
    """Reads, pauses and resumes the lanes of one deployed stage."""

    def __init__(self, deployed: DeployedStage) -> None:
        self._deployed, self._sqs = deployed, deployed.sqs

    @cached_property
    def routes(self) -> dict[str, dict[str, str]]:
        """URLs of the queues, by channel and lane."""
        stage = self._deployed.stage
        return with_fallbacks(self._deployed.dispatch.routes, queue_urls(self._sqs, stage), stage)

    @property
    def _urls(self) -> dict[tuple[str, str], str]:
        lanes = self.routes.items()
        return {(channel, lane): url for channel, urls in lanes for lane, url in urls.items()}

    def read(self) -> list[Lane]:
        """Return all lanes."""
        return [
            Lane(*name, depth(self._sqs, url).all, self._look(url)[2]) for name, url in self._urls.items()
        ]

    def pause(self, channel: str, lane: str, reason: str | None) -> None:
        """Pause a lane, or resume it if `reason` is None. Raises Refused if the lane does not exist, if it is
        paused already, or if its event source mapping is missing, changes its state at the moment, or is
        disabled without a pause."""
        if (channel, lane) not in self._urls:
            names = ", ".join(map(" ".join, self._urls))
            raise Refused(f"There is no lane {lane!r} of channel {channel!r}; use one of {names}.")
        url, update = self._urls[channel, lane], self._deployed.functions.update_event_source_mapping
        mapping, state, paused = self._look(url)
        if state != ("Disabled" if paused else "Enabled"):
            raise Refused(
                f"The lane {channel} {lane} cannot be paused or resumed while its event source mapping is "
                f"{state.lower()}. Try again in a minute, or run mailroom doctor --stage "
                f"{self._deployed.stage}. A local stage cannot pause fax: it reads the fax queue without the "
                "mapping."
            )
        # The tag with the reason is ignored unless the mapping is disabled. It is written before the mapping
        # is disabled, and removed after the mapping is enabled. So after a crash between the two writes,
        # every pause has its reason, and an active lane does not show one.
        if reason is not None and paused:
            raise Refused(f"{channel} {lane} is paused already, {paused}")
        verb = "resume" if reason is None else "pause"
        self._deployed.deeds.record(f"{verb} {channel} {lane}", ["lanes"], reason or "")
        if reason is None:
            update(UUID=mapping, Enabled=True)
            self._sqs.untag_queue(QueueUrl=url, TagKeys=[PAUSED])
        else:
            self._sqs.tag_queue(QueueUrl=url, Tags={PAUSED: self._words(url, reason)})
            update(UUID=mapping, Enabled=False)

    def _words(self, url: str, reason: str) -> str:
        attributes = self._sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["MessageRetentionPeriod"])
        since, by = self._deployed.clock(), self._deployed.deeds.by()
        end = short(iso(since + int(attributes["Attributes"]["MessageRetentionPeriod"])))
        words = f"since {short(iso(since))} by {by} and to be resumed before {end}: {reason}"
        return _NOT_IN_TAGS.sub(" ", words)[:_TAG_LETTERS].strip()

    def _look(self, url: str) -> tuple[str, str, str]:
        """Return the id and the state of a queue's event source mapping, and the text about the pause."""
        attributes = self._sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]
        reply = self._deployed.functions.list_event_source_mappings(EventSourceArn=attributes["QueueArn"])
        mappings = [(mapping["UUID"], mapping["State"]) for mapping in reply["EventSourceMappings"]]
        id_, state = mappings[0] if mappings else ("", "missing")
        tags = self._sqs.list_queue_tags(QueueUrl=url).get("Tags", {}) if state in OFF else {}
        return id_, state, tags.get(PAUSED, "")
