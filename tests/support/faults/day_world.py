"""A campaign and one-time codes, from the start to SES, with a daily limit and one virtual clock."""

from typing import Any

from mailroom.aws.dynamo_values import plain
from mailroom.budget import Budget
from mailroom.campaigns.definition import Definition, Module
from mailroom.campaigns.room import PageRoom
from tests.support.faults.campaign_world import AUDIENCE, CampaignWorld, People
from tests.support.faults.world import BULK, World, mail
from tests.support.unit.fakes import Meddler

DAY = 86_400


class DayWorld(World):
    """A world in which `people` get the campaign's mail, and a code is put at each of `codes` (seconds from
    the start).
    """

    def __init__(self, people: int, codes: list[float], per_day: int, reserve: float) -> None:
        super().__init__()
        self.pace = 0.1
        limit = [("0001-01-01", per_day)]
        self.day = {"budgets_table": "budgets", "per_day": limit, "reserve": reserve}
        self.campaign = self._campaign(people)
        self.begun = self.clock.now
        self._codes = [(self.begun + at, f"code-{number}") for number, at in enumerate(codes)]
        self._put: list[dict[str, Any]] = []

    def _campaign(self, people: int) -> CampaignWorld:
        weekly = Definition(
            "weekly",
            "mail",
            Module(),
            attributes={"template": "default"},
            page_size=100,
            recipients_per_message=20,
        )
        campaign = CampaignWorld(People(people), weekly)
        campaign.move_to(self, Meddler(self.dynamodb, put_item=self._streamed))
        looks: Any = self.outside.watch(self.dynamodb, "get_item")
        depths: Any = self.outside.watch(self.queues, "get_queue_attributes")
        budget = Budget(looks, "budgets", "mail", self.day["per_day"], self.day["reserve"], self.clock)
        campaign.rooms = {"mail": PageRoom(budget, depths, BULK, AUDIENCE)}
        return campaign

    def _streamed(self, real: Any, **arguments: Any) -> Any:
        reply = real(**arguments)
        # The stream's filter passes new items only.
        if arguments["TableName"] == "mailbox" and "Attributes" not in reply:
            self._put.append(plain(arguments["Item"]))
        return reply

    def dispatch(self) -> None:
        """Dispatch the items that were put since the last call."""
        put = [*self._put]
        assert not self.dispatcher().dispatch((str(at), item) for at, item in enumerate(put))
        del self._put[: len(put)]

    def run(self, *, start: bool = True) -> None:
        """Run from the start of the campaign until no message waits."""
        if start:
            self.campaign.start()
        while True:
            times = [self.next_due(), *(at for at, _ in self._codes[:1])]
            due = min((each for each in times if each is not None), default=None)
            if due is None:
                return
            self.clock.now = max(self.clock.now, due)
            while self._codes and self._codes[0][0] <= self.clock.now:
                self._put.append(mail(self._codes.pop(0)[1]))
            self.dispatch()
            self.campaign.deliver_both()
            self.dispatch()
            self.step()

    def accepted(self) -> list[tuple[float, str]]:
        """Return the messages that SES accepted, with the times in seconds from the start."""
        names = [each["Destination"]["ToAddresses"][0].partition("@")[0] for each in self.ses.accepted]
        return [(at - self.begun, name) for at, name in zip(self.ses.times, names, strict=True)]
