"""What of `campaign start` takes long, with a bar for whoever watches: waiting, and counting an audience."""

import time

import boto3
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from mailroom.campaigns.run import Run
from ops.campaigns import screen as view
from ops.campaigns import wait as waiting
from ops.campaigns.answers import stands, tried
from ops.campaigns.deployed import Campaigns, Start
from ops.campaigns.dry_run import Counted, DryRun
from ops.campaigns.files import CampaignFiles
from ops.campaigns.samples import Samples
from ops.screen import errors, plain, print_json


def wait(campaigns: Campaigns, starting: Start, *, as_json: bool) -> int:
    """Wait until a run is in the mailbox, and print it. The exit code: 1 where not all of it is."""
    with _bar(quiet=as_json) as progress:
        task = progress.add_task("collecting", total=None)

        def seen(run: Run) -> None:
            done = waiting.accounted(run, starting)
            total = None if run.state == "collecting" else max(run.recipients, done)
            progress.update(task, description=run.state, completed=done, total=total)

        ended = waiting.wait(campaigns, starting, seen, time.sleep)
    if as_json:
        print_json(ended.run and stands(ended.run))
    elif ended.run:
        view.print_run(ended.run)
    if ended.problem:
        errors.print(plain(ended.problem), style="red", soft_wrap=True)
    return 1 if ended.problem else 0


def dry_run(files: CampaignFiles, starting: Start, stage: str, *, as_json: bool) -> int:
    """Count an audience and print three of its messages. The exit code: 1 where one of them would fail."""
    asking, counted = DryRun(boto3.Session(), starting, stage), Counted()
    with _bar(quiet=as_json) as progress:
        task = progress.add_task("recipients counted", total=None)
        for counted in asking.pages():
            progress.update(task, completed=counted.recipients)
    composed = asking.compose(counted.samples)
    rendering = Samples(files.templates, files.stage(stage).get("sms", {}).get("default_region") or "")
    samples = [rendering.render(item) for item in composed.items]
    if as_json:
        print_json(tried(starting, counted, composed, samples))
    else:
        view.print_dry_run(counted, composed, samples)
    return 1 if composed.failed or any(each.problem for each in samples) else 0


def _bar(*, quiet: bool) -> Progress:
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    return Progress(*columns, console=errors, disable=quiet, transient=True)
