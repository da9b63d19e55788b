"""A stage with campaigns, in process: queues and tables, functions as fakes, and a repository of its own."""

import io
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import structs

from mailroom.aws.dynamo_values import image_of
from mailroom.budget import Budget, PerDay
from mailroom.campaigns.audience import Fault
from mailroom.campaigns.runs import PageClaim, Runs
from mailroom_ops import cli
from tests.support.ops.message import ENVIRONMENT
from tests.support.ops.run_app import run_app
from tests.support.ops.search import VARIABLES as SEARCH
from tests.support.ops.search import make_search
from tests.support.ops.shared import (
    RUNS,
    LambdaDouble,
    Session,
    client,
    make_deeds,
    make_runs,
    make_table,
)

NOW = 1_795_269_634.0  # 2026-11-21T14:00:34Z
RUN = "2026-11-21T14:00Z"
COLLECT = "mailroom-dev-collect"
TOML = """
channel = "mail"
topic = "followers"
template = "weekly"
[schedule]
cron = "0 13 ? * WED *"
time_zone = "Europe/Berlin"
[audience]
kind = "file"
location = "s3://lists/{stage}.csv"
key = "user"
"""
BY_HAND = 'channel = "sms"\ntemplate = "short"\n[audience]\nkind = "module"\n'
CDK = {
    "context": {
        "mailroom": {
            "dev": {"campaigns": {"enabled": ["weekly", "news"]}, "sms": {"default_region": "US"}},
            "prod": {"sms": None},
        }
    }
}
Answer = Callable[[dict[str, Any]], dict[str, Any]]
"""A function's answer to a dry run's question."""


API = {name: value for name, value in ENVIRONMENT.items() if name not in SEARCH}
"""A stage without search."""


class FakeFunctions(LambdaDouble):
    """Lambda client: functions that have an answer can be invoked; `error` makes them fail."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.answers: dict[str, Answer] = {}
        self.error: str | None = None
        self.variables: dict[str, str] = {}
        """The environment of each."""

    def environment_of(self, name: str) -> dict[str, str]:
        return {**API, **self.variables}

    def invoke(self, *, FunctionName: str, Payload: bytes) -> dict[str, Any]:  # noqa: N803 - boto3's names
        short, question = FunctionName.removeprefix("mailroom-dev-"), json.loads(Payload)["dry_run"]
        self.asked.append((short, question))
        if short not in self.answers:
            raise self.exceptions.ResourceNotFoundException({"Error": {"Code": "404"}}, "Invoke")
        failed = {"FunctionError": self.error} if self.error else {}
        answer = self.answers[short](question)
        return {"StatusCode": 200, "Payload": io.BytesIO(json.dumps(answer).encode()), **failed}


class CampaignStage:
    """The deployed stage `dev`, and the repository that it was deployed from."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.functions = FakeFunctions()
        self.session = Session({"lambda": self.functions})
        self.sqs = client("sqs")
        self.scheduler = client("scheduler")
        self.dynamodb = client("dynamodb")
        self.runs = Runs(self.dynamodb, RUNS, lease=60, clock=lambda: NOW)
        self._make()

    def _make(self) -> None:
        self.sqs.create_queue(QueueName=COLLECT)
        if RUNS not in self.dynamodb.list_tables()["TableNames"]:  # a whole stage has them already
            make_runs(self.dynamodb)
        make_deeds(self.dynamodb)
        for name, text in (("weekly", TOML), ("news", BY_HAND), ("draft", BY_HAND)):
            self.write(f"campaigns/{name}/campaign.toml", text)
        self.write("cdk.json", json.dumps(CDK))
        self.write("templates/mail/weekly/subject.txt", "News for {{ first_name }}")
        self.write("templates/mail/weekly/body.txt", "Hello {{ first_name }}. Enough? {{ unsubscribe_url }}")
        self.write("templates/sms/short/body.txt", "Hi {{ first_name }}")

    def write(self, path: str, text: str) -> None:
        """A file of the repository."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def started(self) -> list[dict[str, Any]]:
        """Return the messages in the collect queue."""
        url = self.sqs.get_queue_url(QueueName=COLLECT)["QueueUrl"]
        found = self.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=0)
        return [json.loads(each["Body"]) for each in found.get("Messages", [])]

    def begun(
        self,
        run: str = RUN,
        start: str = "s-1",
        scheduled_at: str = "2026-11-21T13:59:00Z",
        seconds_ago: float = 0,
    ) -> None:
        """A run that was started, and had its first page."""
        runs = structs.replace(self.runs, clock=lambda: NOW - seconds_ago)
        assert runs.begin("weekly", run, start, scheduled_at)

    def collected(
        self, *faults: Fault, run: str = RUN, start: str = "s-1", recipients: int = 40, **counts: int
    ) -> None:
        """A start of a run whose only page was read, and what became of its people."""
        self.begun(run, start)
        claim = self.runs.claim("weekly", run, start, 1)
        assert isinstance(claim, PageClaim)
        self.runs.advance(claim, None, recipients, faults)
        self.runs.count("weekly", run, counts or {"composed": 38, "existed": 2})

    def counted(self, opted_out: int = 0, **statuses: int) -> None:
        """The stage has search, and has counted how the messages of RUN ended; so many opted out since."""
        make_search(self.dynamodb)
        self.functions.variables = {
            **self.functions.variables,
            **SEARCH,
            "LEDGER_TABLE": "mailroom-dev-ledger",
        }
        tally = {"found_by": f"tally#weekly#{RUN}#{int(NOW)}", "put": "0", "ttl": 9_999_999_999, **statuses}
        self.dynamodb.put_item(TableName=SEARCH["SEARCH_TABLE"], Item=image_of(tally))
        make_preferences(self.dynamodb)
        for at in range(opted_out + 1):
            # The first one had opted out before the run.
            moment = int((NOW - 86_400 + (172_800 if at else 0)) * 1000)
            item = {
                "recipient": f"p{at}@example.com",
                "topic": "followers",
                "opted_out_at": moment,
                "by": "page",
            }
            self.dynamodb.put_item(TableName="mailroom-dev-preferences", Item=image_of(item))

    def limited(self, per_day: int, sent: int) -> None:
        """The day of mail has a limit, a tenth of it for codes; bulk has sent so many."""
        days: PerDay = [("0001-01-01", per_day)]
        limit = {"per_day": days, "reserve": 0.1, "queue_url": "https://sqs.example/mail-bulk"}
        self.functions.variables = {"LIMITS": json.dumps({"mail": limit}), "BUDGETS_TABLE": "budgets"}
        make_table(self.dynamodb, "budgets", "name")
        Budget(self.dynamodb, "budgets", "mail", days, 0.1, lambda: NOW).ask(sent)

    def schedule(self, name: str, state: str = "ENABLED") -> None:
        """A deployed schedule."""
        self.scheduler.create_schedule_group(Name="mailroom-dev-campaigns")
        self.scheduler.create_schedule(
            Name=name,
            GroupName="mailroom-dev-campaigns",
            ScheduleExpression="cron(0 13 ? * WED *)",
            FlexibleTimeWindow={"Mode": "OFF"},
            State=state,
            Target={
                "Arn": "arn:aws:sqs:us-east-1:123456789012:q",
                "RoleArn": "arn:aws:iam::123456789012:role/r",
            },
        )


def answer_with_two(world: CampaignStage) -> None:
    """The functions of a stage with a dry run of two recipients."""
    item = {"id": f"weekly#{RUN}#ada", "event_type": "mail", "to": "ada@example.com", "first_name": "Ada"}
    people = [{"key": "ada", "variables": {}}]
    world.functions.answers = {
        "collect": lambda _: {
            "recipients": 2,
            "refused": 1,
            "faults": ["line 3"],
            "samples": people,
            "cursor": None,
        },
        "compose": lambda _: {
            "items": [{**item, "template": "weekly", "topic": "followers"}],
            "opted_out": [],
            "left_out": [],
            "failed": [],
        },
    }


def make_preferences(dynamodb: Any) -> None:
    """The table of preferences with its index."""
    make_table(dynamodb, "mailroom-dev-preferences", "recipient", "topic", topics=("topic", "opted_out_at"))


run = partial(run_app, cli.app, columns=160)
