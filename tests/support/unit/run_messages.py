"""Messages of a campaign's run, and runs that do not answer."""

from typing import Any

from mailroom.campaigns.runs import Run, Runs
from mailroom.channels.mail.contract import Mail
from mailroom.message.message import CampaignStart
from tests.support.campaign_start import of_run
from tests.support.unit.shared import RUNS, Aws, image, mail

AT = "2026-11-18T13:00:00Z"


def start_run(runs: Runs, name: str = "r", start: str = "start") -> Run:
    """Start a run, and return it."""
    assert runs.begin("weekly", name, start, AT)
    return read_run(runs, name)


def read_run(runs: Runs, name: str = "r") -> Run:
    run = runs.read("weekly", name)
    assert run is not None
    return run


def start_of(run: Run) -> CampaignStart:
    """Return the latest start of a run, as its messages have it."""
    return CampaignStart(run.campaign, run.run, run.valid_from)


def mail_of(run: Run, key: str, **attributes: Any) -> Mail:
    """Return a person's message of the latest start of a run."""
    composed = of_run(run, key)
    return mail(composed.pop("id"), lane="bulk", **composed, **attributes)


def lose_run(aws: Aws, name: str = "r") -> dict[str, Any]:
    """Delete a run, and return its item, with which a restored table answers again."""
    reply = aws.dynamodb.delete_item(
        TableName=RUNS, Key=image(campaign="weekly", run=name), ReturnValues="ALL_OLD"
    )
    return dict(reply["Attributes"])
