"""The estimated end of a run: one number on the run's page and of `mailroom campaign status`."""

import json
import random
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec import structs

from mailroom.aws.dynamo_values import image_of
from mailroom.budget import Budget
from mailroom.clock import epoch
from mailroom.environment import LineSettings
from mailroom_ops.campaigns.ending import End, end_of
from mailroom_ops.campaigns.progress import Progress
from mailroom_ops.campaigns.results import Results
from mailroom_ops.messages.waiting import ReleaseFacts
from tests.support.ops.campaign import NOW, RUN, CampaignStage, run
from tests.support.ops.console import Browser
from tests.support.ops.shared import make_table

RESULTS = Results(**dict.fromkeys(Results.__struct_fields__, 0))


class Sending:
    """A world whose run `weekly` has messages in the lane bulk of mail."""

    def __init__(self, world: CampaignStage, *, per_day: int = 0) -> None:
        self.world, self.minute = world, NOW
        self.url = world.sqs.create_queue(QueueName="mailroom-dev-mail-bulk")["QueueUrl"]
        line = {"per_second": 10, "per_day": [["0001-01-01", per_day]] if per_day else [], "reserve": 0.1}
        routes = {"mail": {"normal": "https://sqs/mailroom-dev-mail", "bulk": self.url}}
        world.functions.variables |= {
            "BUDGETS_TABLE": "budgets",
            "ROUTES": json.dumps(routes),
            "LINES": json.dumps({"mail": line}),
        }

    def sent(self, messages: float, minutes_ago: int = 1) -> None:
        """Let the lane have sent so many messages in a minute."""
        dimensions = {"service": "send-mail-bulk", "stage": "dev"}
        data = {
            "MetricName": "Sent",
            "Dimensions": [{"Name": name, "Value": value} for name, value in dimensions.items()],
            "Value": messages,
            "Timestamp": datetime.fromtimestamp(NOW - 60 * minutes_ago, UTC),
        }
        self.world.session.client("cloudwatch").put_metric_data(Namespace="Mailroom", MetricData=[data])

    def page(self, seconds_later: float = 0) -> str:
        """Return the words of the run's page."""
        return (
            Browser(self.world.session, clock=lambda: NOW + seconds_later)
            .enter()
            .get("/campaigns", campaign="weekly")
            .words
        )


@pytest.fixture
def sending(world: CampaignStage) -> Sending:
    world.collected(recipients=10_000, composed=10_000)
    world.counted(delivered=972)
    return Sending(world)


PACE = "until about 2026-11-21 14:16:00 UTC, at the present pace of 10 a second"
SETTINGS = (
    "until about 2026-11-21 14:16:00 UTC, at the rate of the settings, 10 a second, until messages leave"
)
NONE = "no end at the present pace: no message was accepted in the last minutes"


def test_the_estimated_end_of_a_run_follows_from_the_pace_of_its_lane(sending: Sending) -> None:
    sending.sent(600)
    assert f"Sending takes {PACE}." in sending.page()
    sending.sent(1_200)
    faster = "until about 2026-11-21 14:06:00 UTC, at the present pace of 30 a second"
    assert f"Sending takes {faster}." in sending.page()


def test_the_consoles_page_of_a_run_and_campaign_status_show_the_same_estimated_end(
    sending: Sending, monkeypatch: pytest.MonkeyPatch
) -> None:
    sending.sent(600)
    assert f"sending takes {PACE}" in " ".join(run("campaign", "status", "weekly").stdout.split())
    (answer,) = json.loads(run("campaign", "status", "weekly", "--json").stdout)["runs"]
    assert answer["end"]["at"] == "2026-11-21T14:16:00.000Z"
    assert PACE in sending.page()


def test_the_estimated_end_of_a_run_follows_from_the_settings_until_its_messages_are_sent(
    sending: Sending,
) -> None:
    assert f"Sending takes {SETTINGS}." in sending.page()


def test_a_run_whose_lane_has_sent_no_message_for_minutes_has_no_estimated_end(sending: Sending) -> None:
    sending.sent(600, minutes_ago=5)
    assert f"Sending takes {NONE}." in sending.page(seconds_later=301)


def test_a_paused_run_has_no_estimated_end(sending: Sending) -> None:
    sending.sent(600)
    sending.world.runs.pause("weekly", RUN, "since noon by ada: a wrong link")
    assert "Sending takes no end while the run is paused." in sending.page()


def test_the_estimated_end_of_a_run_is_later_with_other_messages_in_its_queue(sending: Sending) -> None:
    sending.sent(60)
    tally = {"found_by": f"tally#weekly#{RUN}#{int(NOW)}", "put": "0", "ttl": 1 << 33, "delivered": 9_999}
    sending.world.dynamodb.put_item(TableName="mailroom-dev-search", Item=image_of(tally))
    assert "until about 2026-11-21 14:01:00 UTC, at the present pace of 1 a second" in sending.page()
    for _ in range(90):
        sending.world.sqs.send_message(QueueUrl=sending.url, MessageBody="{}")
    assert "until about 2026-11-21 14:03:00 UTC, at the present pace of 1 a second" in sending.page()


class Drawn:
    """A run of a random world: its counts, its pace, the queue, the budget and the time."""

    readable = True

    def __init__(self, world: Sending, seed: int) -> None:
        draw = random.Random(seed)
        self.now = NOW + draw.uniform(0, 90_000)
        self.measured, self.set = draw.choice((0.0, 0.05, 3.3, 100.0)), draw.choice((0.5, 10.0))
        self.left, self.done = draw.randrange(1, 30_000), draw.choice((0, 5_000))
        self.age, self.is_paused = draw.choice((0, 299, 301, 9_999)), draw.random() < 0.1
        self.readable = draw.random() < 0.9
        self.per_day = draw.choice((0, 1_000, 20_000))
        self.budget: dict[str, Any] = {"name": "mail"}
        hour = int(self.now) // 3600
        for used in range(hour - draw.randrange(1, 30), hour + 1):
            count = draw.randrange(0, 200)
            self.budget |= {f"used_{used}": count, f"bulk_{used}": count}
        if draw.random() < 0.3:
            self.budget["line_at"] = int(self.now)
        if draw.random() < 0.2:
            self.budget["closed_until"] = int(self.now + draw.uniform(-60, 3_600))
        world.world.dynamodb.put_item(TableName="budgets", Item=image_of(self.budget))
        days = (("0001-01-01", self.per_day),) if self.per_day else ()
        self.facts = ReleaseFacts(
            ledger_table="",
            budgets_table="budgets",
            lines={"mail": LineSettings(self.set, days, 0.1)},
            routes={"mail": {"bulk": world.url}},
        )
        run_ = world.world.runs.read("weekly", RUN)
        assert run_ is not None
        changed = {"recipients": self.left + self.done, "valid_from": int((self.now - self.age) * 1000)}
        self.run = structs.replace(run_, paused="since noon" if self.is_paused else "", **changed)

    def pace(self, channel: str, group: str) -> float:
        """Return the pace that the drawn metrics have."""
        assert (channel, group) == ("mail", "bulk")
        return self.measured

    def waits_for_day(self, world: Sending) -> bool:
        """Return whether bulk messages may not be sent now."""
        limit = [("0001-01-01", self.per_day)]
        budget = Budget(world.world.dynamodb, "budgets", "mail", limit, 0.1, lambda: self.now)
        return self.per_day > 0 and budget.room().recipients == 0

    def end(self, world: Sending) -> End | None:
        """Return the end of the run."""
        results = structs.replace(RESULTS, delivered=self.done, under_way=self.left)
        figures: Any = lambda: (self.facts, {}, self)  # noqa: E731
        return end_of(world.world.session, Progress(self.run, results), "mail", figures, lambda: self.now)


def test_the_estimated_end_of_each_random_run_agrees_with_its_pace_and_its_daily_limit(
    sending: Sending,
) -> None:
    make_table(sending.world.dynamodb, "budgets", "name")
    kinds = Counter[str]()
    for seed in range(400):
        drawn = Drawn(sending, seed)
        end = drawn.end(sending)
        assert end is not None, seed
        stuck = not drawn.measured and drawn.age > 300 and drawn.readable
        kinds[end.words.rpartition("UTC, ")[2].partition(" of ")[0][:20]] += 1
        if drawn.is_paused:
            assert end == End("", "no end while the run is paused"), seed
        elif not end.at:
            assert stuck, seed
        else:
            earliest = drawn.now + drawn.left / (drawn.measured or drawn.set)
            latest = max(earliest, drawn.now + 86_400 * (2 + drawn.left // max(1, drawn.per_day * 0.9)))
            assert earliest <= epoch(end.at) < (latest if drawn.per_day else earliest) + 60, seed
            assert not stuck or drawn.waits_for_day(sending), seed
    assert len(kinds) == 5, kinds
