"""What a claim of a page may find: every delivery of a page's message starts with one conditional write."""

from msgspec import Struct

from mailroom.campaigns.audience import Cursor
from mailroom.campaigns.run import Run
from mailroom.ledger.items import InProgress


class PageClaim(Struct, frozen=True):
    """A page of a run is this worker's; `run` is the run as it stood before."""

    run: Run
    page: int
    token: str


class Unsent(Struct, frozen=True):
    """The page is collected, but nobody has had the next one: its message may never have been sent."""

    run: Run
    cursor: Cursor


class Passed(Struct, frozen=True):
    """Nothing is to be done: `why` is collected, stopped or superseded."""

    why: str


class Unfounded(Struct, frozen=True):
    """Nothing leads up to this page: made up, or its run is long over."""


Taken = PageClaim | InProgress | Unsent | Passed | Unfounded
