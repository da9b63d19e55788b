"""A campaign's audience counted and three of its messages composed, with nothing written anywhere."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import boto3

from ops import stage as stages
from ops.campaigns.deployed import Start
from ops.campaigns.queues import without_campaigns
from ops.clients import config_for_invocations
from ops.screen import Refused

SAMPLES = 3
MAX_FAULTS = 20


@dataclass
class Counted:
    """What the pages so far had: good entries, bad ones, the first sentences about these, and the samples."""

    pages: int = 0
    recipients: int = 0
    refused: int = 0
    faults: list[str] = field(default_factory=list)
    samples: list[dict[str, Any]] = field(default_factory=list)

    def add(self, page: dict[str, Any]) -> None:
        """One page more; what is kept of it is bounded."""
        self.pages += 1
        self.recipients += page["recipients"]
        self.refused += page["refused"]
        self.faults = [*self.faults, *page["faults"]][:MAX_FAULTS]
        self.samples = [*self.samples, *page["samples"]][:SAMPLES]


@dataclass(frozen=True)
class Composed:
    """The samples' items as they would be put into the mailbox, and the keys of those who get none."""

    items: list[dict[str, Any]]
    opted_out: list[str]
    left_out: list[str]
    failed: list[str]


class DryRun:
    """Asks the deployed functions themselves, so with the stage's own database, files and code."""

    def __init__(self, session: boto3.Session, start: Start, stage: str) -> None:
        self._lambda = session.client("lambda", config=config_for_invocations())
        self._stage = stage
        self._about = {
            "campaign": start.campaign,
            "run": start.run,
            "scheduled_at": start.scheduled_at,
        }

    def pages(self) -> Iterator[Counted]:
        """The whole audience, page by page: the same object each time, for a page is not kept. Raises Refused
        where the audience cannot be read."""
        counted, cursor = Counted(), None
        while True:
            asked = {**self._about, "cursor": cursor, "samples": SAMPLES - len(counted.samples)}
            page = self._ask("collect", asked)
            counted.add(page)
            yield counted
            if page["cursor"] is None:
                return
            if page["cursor"] == cursor:
                raise Refused(
                    f"Page {counted.pages} of the audience leads to itself; its order is not stable."
                )
            cursor = page["cursor"]

    def compose(self, recipients: list[dict[str, Any]]) -> Composed:
        """The messages to a few. Raises Refused where the campaign's own code fails."""
        answer = self._ask("compose", {**self._about, "recipients": recipients}) if recipients else {}
        return Composed(
            answer.get("items", []),
            answer.get("opted_out", []),
            answer.get("left_out", []),
            answer.get("failed", []),
        )

    def _ask(self, short: str, question: dict[str, Any]) -> dict[str, Any]:
        name = stages.name(self._stage, short)
        try:
            reply = self._lambda.invoke(FunctionName=name, Payload=json.dumps({"dry_run": question}).encode())
        except self._lambda.exceptions.ResourceNotFoundException:
            raise without_campaigns(f"function {name}", self._stage) from None
        answer = json.loads(reply["Payload"].read())
        if "FunctionError" in reply:
            raise Refused(f"{name} failed: {answer.get('errorType')}: {answer.get('errorMessage')}")
        return dict(answer)
