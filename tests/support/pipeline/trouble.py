"""Slow trouble: a lease that ends, a stream that uses up its retries. All of it at once."""

import json
import time
from dataclasses import dataclass
from typing import Any

from lab.harness.expected import Item
from mailroom.ledger.ledger import Ledger
from mailroom.ledger.observer import observe
from mailroom.message.message import Key
from mailroom_local.stage.workspace import LEDGER
from tests.support.pipeline.items import mail_item
from tests.support.pipeline.shared import LEASE_SECONDS, Pipeline, until
from tests.support.told import ses_event

ENDED_SECONDS = LEASE_SECONDS + 35
GIVEN_UP_SECONDS = 90.0
ACCEPTED_SECONDS = 20.0

UNKNOWN = ("throttled-once", "error-once", "lost-answer-once", "observed", "held", "rejected")
"""The ids of the mails that SES does not simply take."""
POISONED = mail_item("poisoned", lane="bulk", subject="Report", text="A line of many.\n" * 5_000)
NEIGHBOURS = [mail_item(f"not-poisoned-{number}") for number in range(8)]


@dataclass(frozen=True)
class Trouble:
    """When the mails of `UNKNOWN` were put, in epoch seconds, how they stood in the ledger before SES's
    events came in, and what the stream gave up on."""

    put_at: float
    rows: dict[str, Item]
    given_up: list[dict[str, Any]]


def had(pipeline: Pipeline) -> Trouble:
    """Put the mails, and return the trouble when it is over. Meanwhile, the bulk lane holds what is
    unknown."""
    with pipeline.configured(pipeline.output("SendMailBulkFunctionName"), ON_UNKNOWN="hold"):
        # Events would be the evidence that there is none of here.
        pipeline.pause_events()
        started = time.time()
        put_unknown(pipeline)
        given_up = poison(pipeline)
        pipeline.until_ended(*UNKNOWN, seconds=ENDED_SECONDS)
        sender = pipeline.output("SendMailFunctionName")
        pipeline.until_logged(sender, "already done", '"observed"', seconds=ENDED_SECONDS)
        rows = {id_: pipeline.ledger(id_) for id_ in UNKNOWN}
        pipeline.resume_events()
    return Trouble(started, rows, given_up)


def put_unknown(pipeline: Pipeline) -> None:
    """Each has an outcome of the simulator's own; one has its Delivery event before the lease ends."""
    pipeline.put(
        mail_item("throttled-once", email=simulated("throttled-once", "1")),
        mail_item("error-once", email=simulated("error-once", "1")),
        mail_item("lost-answer-once", email=simulated("lost-answer-once", "1")),
        mail_item("observed", email=simulated("lost-answer-once", "observed")),
        mail_item("held", email=simulated("lost-answer-once", "held"), lane="bulk"),
        mail_item("rejected", email=simulated("rejected", "1")),
    )
    await_acceptance(pipeline, "observed")
    # The next step of the feedback function with the event.
    ledger = Ledger(pipeline.dynamodb, LEDGER, lease=0, ttl=86_400, clock=time.time)
    provider_id = pipeline.mails("observed")[0]["provider_id"]
    observe(ledger, [ses_event(Key("observed", "mail"), "delivered", provider_id=provider_id)])
    await_acceptance(pipeline, "held")


def await_acceptance(pipeline: Pipeline, id_: str) -> None:
    """Wait until SES has accepted the mail."""
    until(lambda: pipeline.mails(id_), ACCEPTED_SECONDS, lambda: "SES did not accept it")


def simulated(outcome: str, label: str) -> str:
    """An address that chooses what SES does."""
    return f"{outcome}+{label}@simulator.amazonses.com"


def poison(pipeline: Pipeline) -> list[dict[str, Any]]:
    """A batch of which dispatch cannot handle one record, for its queue is not there; what came of it."""
    function = pipeline.output("DispatchFunctionName")
    routes = json.loads(pipeline.variables(function)["ROUTES"])
    routes["mail"]["bulk"] += "-that-is-not-there"
    with pipeline.configured(function, ROUTES=json.dumps(routes)):
        pipeline.put_batch([*NEIGHBOURS[:4], POISONED, *NEIGHBOURS[4:]])
        until(lambda: unprocessed(pipeline), GIVEN_UP_SECONDS, lambda: "the stream has given up on nothing")
    return unprocessed(pipeline)


def unprocessed(pipeline: Pipeline) -> list[dict[str, Any]]:
    """Return the documents of batches that the stream gave up on and that were not replayed."""
    bucket = pipeline.output("UnprocessedBucketName")
    listed = pipeline.s3.list_objects_v2(Bucket=bucket, Prefix="aws/lambda/").get("Contents", [])
    return [
        json.loads(pipeline.s3.get_object(Bucket=bucket, Key=each["Key"])["Body"].read()) for each in listed
    ]
