"""How long a message may be left alone before what was to bring it on counts as lost.

A mistake costs a second queue message, which the claim drops: so the bounds need not be tight.
"""

import json
from collections.abc import Iterator, Mapping

from msgspec import Struct

from mailroom.environment import Outcomes
from mailroom.outcomes.outcomes import Schedule
from ops.deployed import function_settings, function_variables
from ops.resend.deployed import Deployed

_WAITS = (
    *("LEASE_SECONDS", "BACKOFF_CAP_SECONDS", "MISCONFIGURED_SECONDS", "RETRY_AFTER_CAP_SECONDS"),
    *("LONGEST_FAX_SECONDS", "DELAYS"),
)
"""Of a sender's settings, what it may let a message wait for between two looks at it."""


class Patience(Struct, frozen=True):
    """`older_than` is the operator's own bound, in seconds; `longest` is how long a channel's queue and
    sender may leave a message alone; `retries` is when a fax is tried again."""

    older_than: float
    longest: Mapping[str, float]
    retries: Schedule

    def quiet(self, channel: str) -> float:
        """Seconds between two changes of a message that is on its way, at most."""
        return self.longest.get(channel, max(self.longest.values(), default=0))


def patience_of(deployed: Deployed, older_than: float) -> Patience:
    """The stage's, as its senders are set up. Raises Refused."""
    found = function_settings(deployed.functions, deployed.name("outcomes"), Outcomes)
    retries = Schedule(found.retry_delay_seconds, found.retry_growth, found.retry_delay_cap_seconds)
    longest = {
        channel: max(each for url in lanes.values() for each in _waits(deployed, url))
        for channel, lanes in deployed.dispatch.routes.items()
    }
    return Patience(older_than, longest, retries)


def _waits(deployed: Deployed, url: str) -> Iterator[float]:
    """Of one queue: its visibility time-out, and what its senders let a message wait for."""
    reply = deployed.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["VisibilityTimeout", "QueueArn"])
    yield float(reply["Attributes"]["VisibilityTimeout"])
    arn = reply["Attributes"]["QueueArn"]
    pages = deployed.functions.get_paginator("list_event_source_mappings").paginate(EventSourceArn=arn)
    for page in pages:
        for mapping in page["EventSourceMappings"]:
            # arn:aws:lambda:region:account:function:name
            yield from _of_sender(
                function_variables(deployed.functions, mapping["FunctionArn"].split(":")[6])
            )


def _of_sender(variables: Mapping[str, str]) -> Iterator[float]:
    for name in _WAITS:
        value = json.loads(variables.get(name, "0"))
        yield from map(float, value if isinstance(value, list) else [value])
