"""What the campaign commands answer programs."""

from msgspec import Struct

from mailroom.campaigns.runs import Run, State
from ops.campaigns.deployed import Start
from ops.campaigns.dry_run import Composed, Counted
from ops.campaigns.listing import Row
from ops.campaigns.samples import Sample


class Started(Struct, frozen=True):
    """A run that was started, or goes on."""

    campaign: str
    run: str
    scheduled_at: str


class Stands(Struct, frozen=True):
    """How far a run has come: see `Run`, of which this leaves out what is its workers' own."""

    campaign: str
    run: str
    scheduled_at: str
    start: str
    state: State
    next_page: int
    cursor: str | None
    pages: int
    recipients: int
    refused: int
    faults: tuple[str, ...]
    trouble: str
    composed: int
    existed: int
    opted_out: int
    left_out: int
    failed: int
    expired: int
    updated_at: str


class Runs(Struct, frozen=True):
    """The answer of `campaign status`: one campaign's runs, the newest first."""

    stage: str
    campaign: str
    runs: list[Stands]


class Listed(Struct, frozen=True):
    """The answer of `campaign list`: the campaigns of this repository, by name."""

    stage: str
    campaigns: list[Row]


class Tried(Struct, frozen=True):
    """A dry run: the whole audience counted, and the messages to its first few. `opted_out`, `left_out` and
    `failed` are the keys of those among these few who would get none."""

    campaign: str
    run: str
    pages: int
    recipients: int
    refused: int
    faults: list[str]
    samples: list[Sample]
    opted_out: list[str]
    left_out: list[str]
    failed: list[str]


def stands(run: Run) -> Stands:
    """A run for programs."""
    told = {name: getattr(run, name) for name in Stands.__struct_fields__ if name != "updated_at"}
    return Stands(**told, updated_at=run.updatedAt)


def tried(starting: Start, counted: Counted, composed: Composed, samples: list[Sample]) -> Tried:
    """A dry run for programs."""
    return Tried(
        starting.campaign,
        starting.run,
        counted.pages,
        counted.recipients,
        counted.refused,
        counted.faults,
        samples,
        composed.opted_out,
        composed.left_out,
        composed.failed,
    )
