"""Job that erases a person: it searches for the data, and then, after a confirmation, erases the data."""

from typing import TYPE_CHECKING

import msgspec

from mailroom_ops.console.job import Job
from mailroom_ops.people.erase import Survey, carry_out, take_stock
from mailroom_ops.people.person import Person
from mailroom_ops.people.stage_data import Erased, ErasureRun, StageData

if TYPE_CHECKING:
    import boto3


class EraseJob(Job):
    """Search for a person's data, and the erasure of the data. `survey` is the result of the search, and
    `answer` that of the erasure; each is None before its end. `step` is the table that is read, and `read`
    the number of items read so far."""

    def __init__(self, session: "boto3.Session", stage: str, recipient: str) -> None:
        super().__init__(stage)
        self.survey: Survey | None = None
        self.answer: Erased | None = None
        self.step, self.read = "", 0
        self._session, self._who = session, recipient
        self._run: ErasureRun | None = None
        self.begin(self._look)

    @property
    def receipt(self) -> str:
        """Result of the erasure as JSON, for the person who asked for it."""
        return msgspec.json.format(msgspec.json.encode(self.answer), indent=2).decode()

    def erase(self, reason: str, *, keep_choices: bool) -> None:
        """Erase the data that the survey found, for a reason or for none."""
        self.begin(lambda: self._erase(reason, keep_choices))

    def _look(self) -> None:
        data = StageData(self._session, self.stage)
        data.report = self._reported
        self._run = ErasureRun(data, Person(self._who, data.default_region))
        self.survey = take_stock(self._run)

    def _erase(self, reason: str, keep_choices: bool) -> None:
        run, survey = self._run, self.survey
        if run is not None and survey is not None:
            run.keep_choices = keep_choices
            self.answer = carry_out(run, survey, reason)

    def _reported(self, table: str, count: int) -> None:
        self.step, self.read = table, count
