"""The example campaign on the deployed stage: started, waited for, and looked at."""

import json
import urllib.error
import urllib.request
from collections.abc import Container
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import boto3
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from typer.testing import CliRunner, Result

from lab.demo.killed_campaign import with_news
from lab.harness.acceptances import id_of_mail
from mailroom.campaigns.runs import Run, Runs
from mailroom_local.aws import REGION, STAGE, key
from mailroom_ops import cli
from mailroom_ops.campaigns.deployed import RunStart
from mailroom_ops.shared.deployed_stage import depth
from tests.support.pipeline.shared import Accepted, Pipeline, until

CAMPAIGN = "weekly-followers"
TOPIC = "followers"
ONE_CLICK = b"List-Unsubscribe=One-Click"
FORM = "application/x-www-form-urlencoded"
RUN_SECONDS = 90.0
QUEUES = ("CollectQueueUrl", "AudienceQueueUrl", "MailBulkQueueUrl")


@dataclass(frozen=True)
class Reply:
    """An HTTP answer."""

    status: int
    headers: dict[str, str]
    body: str


class Campaign:
    """A run of the example campaign, with a name that no other test uses."""

    def __init__(self, pipeline: Pipeline, run: str) -> None:
        self._pipeline = pipeline
        self._now = datetime.now(UTC).replace(microsecond=0)
        self.run = run
        self.people = with_news(pipeline, self._now)
        """The addresses of all who have news, by their keys."""

    @cached_property
    def expected(self) -> dict[str, str]:
        """The addresses of all who have news, by the ids that the run gives to their messages. It waits until
        the run has begun."""
        until(lambda: self.state_or_none() is not None, RUN_SECONDS, lambda: "it was not begun")
        run = self.state()
        return {run.id_of(key): email for key, email in self.people.items()}

    def start(self) -> None:
        """Start the run another time."""
        start = RunStart(CAMPAIGN, self.run, f"{self._now:%Y-%m-%dT%H:%M:%SZ}")
        self._pipeline.send(self._pipeline.output("CollectQueueUrl"), [start.body()])

    def stop(self) -> None:
        """Stop the run as an operator does."""
        words = (
            "campaign",
            "stop",
            CAMPAIGN,
            "--run",
            self.run,
            "--why",
            "a test",
            "--stage",
            STAGE,
            "--yes",
        )
        answer = operator(self._pipeline, *words)
        assert answer.exit_code == 0, answer.stderr

    def until_ended(self) -> None:
        """Wait until each message has its outcome, and no message of the run is in a queue."""
        self._pipeline.until_ended(*self.expected, seconds=RUN_SECONDS)
        self.until_drained()

    def until_drained(self) -> None:
        """Until no queue of campaigns has a message, beside the delayed one by which a run looks back."""
        queues = [self._pipeline.output(name) for name in QUEUES]

        def held() -> list[str]:
            depths = {url: depth(self._pipeline.sqs, url) for url in queues}
            return [url for url, depth_ in depths.items() if depth_.visible or depth_.in_flight]

        until(lambda: not held(), RUN_SECONDS, lambda: f"not empty: {held()}")

    def state(self) -> Run:
        """How far the table of runs says it has come."""
        found = self.state_or_none()
        assert found is not None
        return found

    def state_or_none(self) -> Run | None:
        """The same; None before it has begun."""
        return Runs(self._pipeline.dynamodb, self._pipeline.output("RunsTableName")).read(CAMPAIGN, self.run)

    def mails(self) -> dict[str, list[Accepted]]:
        """Return the mails of the run that SES accepted, by the message's id."""
        found: dict[str, list[Accepted]] = {}
        for each in self._pipeline.inbox():
            if (id_ := id_of_mail(each)).startswith(f"{CAMPAIGN}#{self.run}#"):
                found.setdefault(id_, []).append(each)
        return found


def operator(pipeline: Pipeline, *words: str) -> Result:
    """Run a command on the stage, in this process: one of its own takes more than half a second to start."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in pipeline.running.variables().items():
            patch.setenv(name, value)
        patch.setenv("NO_PROXY", "*")
        patch.setattr(boto3, "DEFAULT_SESSION", None)
        result = CliRunner().invoke(cli.app, [*words], env={"COLUMNS": "160"})
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def http_reply(method: str, url: str, body: bytes | None = None, **headers: str) -> Reply:
    """Send an HTTP request, and return the response of any status."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(url, data=body, method=method, headers=named)
    try:
        with urllib.request.urlopen(request, timeout=30) as reply:
            return Reply(reply.status, _lower(reply.headers), reply.read().decode())
    except urllib.error.HTTPError as error:
        return Reply(error.code, _lower(error.headers), error.read().decode())


def signed_reply(method: str, url: str, body: bytes = b"", **headers: str) -> Reply:
    """The same by somebody with AWS credentials."""
    request = AWSRequest(method, url, data=body, headers={"Content-Type": "application/json"})
    SigV4Auth(Credentials(key(), key()), "execute-api", REGION).add_auth(request)
    named = {name.replace("-", "_"): value for name, value in request.headers.items()}
    return http_reply(method, url, body or None, **{**named, **headers})


def _lower(headers: Any) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def answer_of(pipeline: Pipeline, *words: str, codes: Container[int] = (0,)) -> dict[str, Any]:
    """Return a command's answer about the local stage. Fails at any other exit code."""
    result = operator(pipeline, *words, "--stage", "local", "--json")
    assert result.exit_code in codes, (result.stdout, result.stderr)
    answer: dict[str, Any] = json.loads(result.stdout)
    return answer
