"""A dry run of a campaign: counts its audience, and renders three of its messages."""

import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mailroom_ops.campaigns.deployed import RunStart, without_campaigns
from mailroom_ops.costs.days import DayShare
from mailroom_ops.messages.rendered import (
    Sample,
    Samples,
)
from mailroom_ops.shared import deployed_stage as stages
from mailroom_ops.shared.deployed_stage import config_for_invocations
from mailroom_ops.shared.refusals import Refused

if TYPE_CHECKING:
    import boto3

_REFUSED = re.compile(r"An error occurred \((\w+)\) when calling the (\w+) operation")
_SENTENCES = ("Invalid", "Malformed", "HandlerError")
"""Types of functions' errors that are shown without their type, because their texts are sentences for people.
The local stage reports every error as HandlerError."""
SAMPLES = 3
MAX_FAULTS = 20


class DryRunAnswer(Struct, frozen=True):
    """Output of a dry run: numbers for the whole audience, and messages to its first recipients
    (the samples)."""

    campaign: str
    run: str
    pages: int
    recipients: int
    refused: int
    faults: list[str]
    samples: list[Sample]
    opted_out: list[str]
    """Keys of sampled recipients who have opted out."""
    left_out: list[str]
    """Keys of sampled recipients whom the campaign's code leaves out."""
    failed: list[str]
    """Keys of sampled recipients for whom the campaign's code fails."""
    days: list[DayShare] = []
    """Days on which the messages would be sent, if the channel has a daily limit."""


class DryRun:
    """Dry run that invokes the deployed functions, and so uses the stage's own database, files and code."""

    def __init__(self, session: "boto3.Session", start: RunStart, stage: str) -> None:
        self._lambda = session.client("lambda", config=config_for_invocations())
        self._stage = stage
        self._about = {"campaign": start.campaign, "run": start.run, "scheduled_at": start.scheduled_at}

    def run(self, samples: "Samples", counted: Callable[[int], None]) -> DryRunAnswer:
        """Count the recipients on all pages, and render the first messages. `counted` is called with the
        number of recipients so far. Raises Refused if the audience cannot be read, or if the campaign's own
        code fails."""
        pages = recipients = faulty = 0
        faults: list[str] = []
        people: list[dict[str, Any]] = []
        cursor, has_more = None, True
        while has_more:
            page = self._ask("collect", {"cursor": cursor, "samples": SAMPLES - len(people)})
            pages += 1
            recipients += page["recipients"]
            faulty += page["refused"]
            faults = [*faults, *page["faults"]][:MAX_FAULTS]
            people = [*people, *page["samples"]][:SAMPLES]
            counted(recipients)
            has_more = page["cursor"] is not None
            if has_more and page["cursor"] == cursor:
                raise Refused(
                    f"Pages {pages} and {pages + 1} of the audience have the same cursor, so its order is "
                    "not stable."
                )
            cursor = page["cursor"]
        composed = self._ask("compose", {"recipients": people}) if people else {}
        return DryRunAnswer(
            self._about["campaign"],
            self._about["run"],
            pages,
            recipients,
            faulty,
            faults,
            [samples.render(item) for item in composed.get("items", [])],
            *(composed.get(name, []) for name in ("opted_out", "left_out", "failed")),
        )

    def _ask(self, short: str, question: dict[str, Any]) -> dict[str, Any]:
        name, payload = stages.name(self._stage, short), {"dry_run": {**self._about, **question}}
        try:
            reply = self._lambda.invoke(FunctionName=name, Payload=json.dumps(payload).encode())
        except self._lambda.exceptions.ResourceNotFoundException:
            raise without_campaigns(f"function {name}", self._stage) from None
        answer = json.loads(reply["Payload"].read())
        if "FunctionError" in reply:
            fault = _REFUSED.sub(r"AWS refused \2 (\1)", str(answer.get("errorMessage")))
            kind = str(answer.get("errorType")).rpartition(".")[2]
            fault = fault if kind in _SENTENCES or fault.startswith("AWS") else f"{kind}: {fault}"
            remedy = f"Correct the campaign or its permissions; see aws logs tail /aws/lambda/{name}"
            raise Refused(f"{name} failed: {fault}. {remedy}")
        return dict(answer)
