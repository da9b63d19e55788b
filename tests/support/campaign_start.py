"""The attribute of messages that a campaign's run has composed, for tests that put such messages without the
function `compose`."""

from typing import Any

from mailroom.campaigns.runs import Run


def of_run(run: Run, key: str) -> dict[str, Any]:
    """Return the id and the start of a person's message from the latest start of a run."""
    start = {"campaign": run.campaign, "run": run.run, "start": run.valid_from}
    return {"id": run.id_of(key), "campaign_start": start}


def start_in(id_: str) -> dict[str, Any]:
    """Return a start of the run whose names begin a message's id, as an attribute of the message."""
    campaign, run, _ = id_.split("#", 2)
    return {"campaign_start": {"campaign": campaign, "run": run, "start": 1}}
