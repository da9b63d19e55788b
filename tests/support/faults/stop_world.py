"""A campaign whose run is stopped or paused, and resumed, while its messages are in progress."""

from contextlib import suppress
from uuid import uuid4

from tests.support.faults.campaign_world import RUN
from tests.support.faults.day_world import DayWorld
from tests.support.faults.outside import Stopped


class StopWorld(DayWorld):
    """Campaign and senders with the same tables, without one-time codes."""

    def __init__(self, people: int, per_day: int = 10**6) -> None:
        super().__init__(people, [], per_day, 0.5)

    def dispatch(self) -> None:
        """Dispatch the items that were put. After a crash, the stream invokes the function again."""
        while self._put:
            with suppress(Stopped):
                super().dispatch()

    def begin(self) -> None:
        """Start the run, or resume it."""
        self.campaign.start(start=str(uuid4()))

    def stop(self) -> None:
        """Stop the run, as an operator does."""
        self.campaign.runs.stop("weekly", RUN)

    def pause(self) -> None:
        """Pause the run, as an operator does."""
        self.campaign.runs.pause("weekly", RUN, "a wrong link")

    def resume(self) -> None:
        """End the pause of the run, as an operator does."""
        self.campaign.runs.resume("weekly", RUN, "since noon by ada: it is right")

    def play(self) -> bool:
        """Do the next due step. Returns False if no step is due."""
        due = self.next_due()
        if due is None:
            return False
        self.clock.now = max(self.clock.now, due)
        self.dispatch()
        self.campaign.deliver_both()
        self.dispatch()
        self.step()
        self.send_events()
        return True

    def play_on(self, seconds: float | None = None) -> None:
        """Run the due steps until none is left, or for some seconds."""
        end = None if seconds is None else self.clock.now + seconds
        while (due := self.next_due()) is not None and (end is None or due <= end):
            self.play()
