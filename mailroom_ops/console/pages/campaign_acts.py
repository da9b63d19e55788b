"""Pages that act on a run of a campaign: start, pause, resume, stop."""

from collections.abc import Callable, Sequence
from functools import partial

from mailroom.campaigns.runs import Run
from mailroom.clock import iso
from mailroom_ops.campaigns import files
from mailroom_ops.campaigns.day import CampaignDay
from mailroom_ops.campaigns.deployed import RunStart
from mailroom_ops.campaigns.dry_run import DryRun, DryRunAnswer
from mailroom_ops.console.job import Job
from mailroom_ops.console.pages.campaigns import LATEST, RunRow, campaigns_at, run_row
from mailroom_ops.console.site import Answer, Frame, Goto, Request, Shown, Site, View, link
from mailroom_ops.costs.configured_lanes import lane_of, read_settings
from mailroom_ops.costs.days import DayShare
from mailroom_ops.costs.message_cost import message_parts
from mailroom_ops.messages.rendered import Samples, samples_of
from mailroom_ops.shared.refusals import Refused
from mailroom_stacks.settings.sentences import SettingsError

RECENT_SECONDS = 6 * 86_400
"""Seconds after a run within which the start of another run has to be confirmed: less than a week, so that
weekly campaigns start without a confirmation."""


class RunChange(View, frozen=True):
    """Values of the question before a run is stopped, paused or resumed."""

    row: RunRow
    verb: str


class StartJob(Job):
    """Dry run before a start. `answer` is None until the dry run has succeeded; `counted` is the number of
    recipients that were counted so far."""

    def __init__(self, dry_run: DryRun, samples: Samples, starting: RunStart, stage: str) -> None:
        super().__init__(stage)
        self.starting = starting
        self.counted = 0
        self.answer: DryRunAnswer | None = None
        self.begin(partial(self._run, dry_run, samples))

    def _run(self, dry_run: DryRun, samples: Samples) -> None:
        self.answer = dry_run.run(samples, self._count)

    def _count(self, count: int) -> None:
        self.counted = count


class CampaignStart(View, frozen=True):
    """Values of the page before a start. Only `name`, `run` and `job` are set before the job has its
    answer."""

    name: str
    run: str
    job: StartJob | None
    days: Sequence[DayShare] = ()
    cost: float | None = None
    seconds: float | None = None
    recent: Run | None = None
    """Another recent run, to whose recipients the start would send again."""
    recent_since: str = ""


def start(site: Site, request: Request) -> Answer:
    """Show the result of a dry run, and then start the run. Raises Refused."""
    name = request["campaign"]
    files.check(name, site.stage)
    job = site.job(StartJob, name)
    if request.form is not None:
        if request["step"] == "start":
            if job is None or job.running or job.answer is None or job.starting.run != request["run"]:
                raise Refused("This start has not been checked by a dry run. Look first, then start.")
            if _recent(site, job.starting) is not None and request.typed("typed") != name:
                raise Refused(f"Another run was sent in the last 6 days. To start this one too, type {name}.")
            del site.jobs[StartJob, name]
            campaigns_at(site).start(job.starting)
            return Goto(link("/campaigns", campaign=name))
        if job is None or not job.running:
            starting = campaigns_at(site).starting(name, request["run"] or None)
            samples = samples_of(site.session, site.stage)
            dry_run = DryRun(site.session, starting, site.stage)
            site.jobs[StartJob, name] = StartJob(dry_run, samples, starting, site.stage)
        return Goto(link("/campaigns/start", campaign=name, look="1"))
    job = job if request["look"] else None
    view = CampaignStart(name, request["run"], job)
    if job is not None and job.answer is not None:
        recent, channel = _recent(site, job.starting), str(files.read(name).get("channel"))
        days = _days(site, channel, job.answer.recipients)
        since = iso(recent.begun_at) if recent else ""
        price = _price(site, channel, job.answer)
        view = CampaignStart(name, request["run"], job, days, *price, recent, since)
    return Shown(view, f"Start {name}")


def frame(site: Site, request: Request) -> Answer:
    """Return the HTML of a message of a dry run, for its frame; empty if the dry run lacks the message."""
    job = site.job(StartJob, request["campaign"])
    samples = job.answer.samples if job is not None and job.answer is not None else []
    return Frame(next((sample.html for sample in samples if sample.id == request["id"]), ""))


def change(site: Site, request: Request) -> Answer:
    """Show the effect of a stop, pause or resumption, ask for its reason, and then do it. Raises Refused."""
    name, verb, campaigns = request["campaign"], request["do"], campaigns_at(site)
    changes: dict[str, Callable[[str, str, str], object]]
    changes = {"stop": campaigns.stop, "pause": campaigns.pause, "resume": campaigns.resume}
    if verb not in changes:
        raise Refused("There is no such change.")
    run = campaigns.run(name, request["run"])
    if request.form is not None:
        changes[verb](name, run.run, request.typed("why"))
        return Goto(link("/campaigns", campaign=name))
    row = run_row(site, run, files.settings_of(name, [run]))
    return Shown(RunChange(row, verb), f"{verb.capitalize()} a run of {name}")


def _recent(site: Site, starting: RunStart) -> Run | None:
    """Return the latest other run of the last RECENT_SECONDS that has put messages: a new run sends to the
    same people again. Return None for a start of an earlier run."""
    if starting.known is not None:
        return None
    since = site.clock() - RECENT_SECONDS
    runs = campaigns_at(site).runs(starting.campaign, LATEST)
    return next((run for run in runs if run.composed and run.begun_at > since), None)


def _days(site: Site, channel: str, recipients: int) -> list[DayShare]:
    """Return the days on which the messages would be sent. The list is empty for a channel without a daily
    limit."""
    day = CampaignDay.of(site.session, site.stage, channel, site.clock)
    return [] if day is None else day.shares(recipients)


def _price(site: Site, channel: str, answer: DryRunAnswer) -> tuple[float | None, float | None]:
    """Return the cost in US dollars and the seconds that their lane needs. Both are None if the
    stage's settings cannot be read."""
    if not answer.recipients:
        return 0.0, 0.0
    try:
        settings = read_settings(site.stage)
        lane = lane_of(settings, f"{channel}-bulk")
    except (SettingsError, OSError, ValueError, KeyError):
        return None, None
    cost = answer.recipients * sum(message_parts(settings, lane).values())
    return cost, answer.recipients / lane.speed
