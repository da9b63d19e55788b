"""Pages of the alarms that a local stage evaluates: an alarm rings, and the commands of its page say why."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import pytest
from typer.testing import Result

from mailroom.campaigns.bad_runs import LEAST_BOUNCED
from mailroom.campaigns.runs import Runs
from mailroom.channels.contracts import CONTRACTS
from mailroom.clock import iso
from mailroom.ledger.ledger import Ledger
from mailroom.ledger.observer import observe
from mailroom.message.message import parse
from mailroom_local.aws import STAGE, LocalSession, patient
from tests.support.campaign_start import of_run
from tests.support.docs_pages import Page
from tests.support.pipeline.campaign import CAMPAIGN, operator
from tests.support.pipeline.items import RINGS, mail_item
from tests.support.pipeline.shared import Pipeline, until
from tests.support.told import ses_event
from tests.support.unit.shared import claimed

RINGS_SECONDS = 60.0
MINUTE = 60


@contextmanager
def dead_letter(pipeline: Pipeline, id_: str) -> Iterator[None]:
    """SES refuses the sender of a mail."""
    pipeline.put(mail_item(id_, email="unverified@simulator.amazonses.com"))
    yield


@contextmanager
def day_used_up(pipeline: Pipeline, id_: str) -> Iterator[None]:
    """Let SES refuse further mails of the day."""
    with pipeline.release_stopped():
        pipeline.put(mail_item(id_, email="used-up@simulator.amazonses.com"))
        pipeline.until_waits("day_used_up", id_)
        yield
        cancelled = operator(pipeline, "messages", "cancel", id_, "--stage", STAGE)
        assert cancelled.exit_code == 0, cancelled.stderr
    pipeline.open_day("mail")


@contextmanager
def bulk_waits(pipeline: Pipeline, id_: str) -> Iterator[None]:
    """Use up the day's part of bulk."""
    pipeline.close_day("mail", time.time() + 3_600)
    # An older process may have room left that it was granted before.
    pipeline.restart(pipeline.output("SendMailBulkFunctionName"))
    pipeline.put(mail_item(id_, lane="bulk"))
    pipeline.until_waits("day_used_up", id_)
    yield
    pipeline.open_day("mail")


@contextmanager
def webhooks_failing(pipeline: Pipeline, id_: str) -> Iterator[None]:
    """Wait for the first try of the webhook that has failed since the stage started."""
    until(lambda: pipeline.ledger(id_, "webhook"), RINGS_SECONDS, lambda: "the webhook was not tried")
    yield


@contextmanager
def release_late(pipeline: Pipeline, id_: str) -> Iterator[None]:
    """Put the metric of rounds that were five minutes late, instead of waiting for late rounds."""
    pipeline.put(mail_item(id_))
    pipeline.one_mail(id_)
    put_metric(pipeline, "ReleaseLate", 400_000.0, service="release")
    yield


@contextmanager
def run_unknown(pipeline: Pipeline, id_: str) -> Iterator[None]:
    """The table of runs lacks the run of a message, which was put long ago: only its age is put, as a
    metric."""
    campaign, run, _ = id_.split("#")
    start = {"campaign": campaign, "run": run, "start": 1}
    pipeline.put(mail_item(id_, lane="bulk", campaign_start=start))
    pipeline.until_waits("run_unknown", id_)
    put_metric(pipeline, "RunUnknown", 1_000_000.0, service="release")
    yield
    cancelled = operator(pipeline, "messages", "cancel", id_, "--stage", STAGE)
    assert cancelled.exit_code == 0, cancelled.stderr


@contextmanager
def run_paused(pipeline: Pipeline, id_: str) -> Iterator[None]:
    """Most messages of a campaign's run have bounced."""
    runs = Runs(pipeline.dynamodb, pipeline.output("RunsTableName"))
    assert runs.begin(CAMPAIGN, id_, "s-1", iso(time.time()))
    run = runs.read(CAMPAIGN, id_)
    assert run is not None
    ledger = Ledger(
        pipeline.dynamodb, pipeline.output("LedgerTableName"), lease=60, ttl=86_400, clock=time.time
    )
    for number in range(LEAST_BOUNCED):
        composed = of_run(run, f"p{number}")
        item = mail_item(composed["id"], email="bounce@simulator.amazonses.com", subject="Hello", text="Hi")
        message = parse(item | composed, CONTRACTS)
        ledger.complete(claimed(ledger, message), "ses", f"p-{number}")
        observe(ledger, [ses_event(message.key, "bounced")])
    yield
    runs.stop(CAMPAIGN, id_)


@contextmanager
def tries_failing(pipeline: Pipeline, id_: str) -> Iterator[None]:
    """SES refuses the sender of a mail; that most mails are refused is put as a metric."""
    with dead_letter(pipeline, id_):
        put_metric(pipeline, "Misconfigured", 1000.0, service="send-mail")
        until(
            lambda: "trouble" in (pipeline.ledger(id_) or {}), RINGS_SECONDS, lambda: "the mail was not tried"
        )
        yield


@contextmanager
def messages_failing(pipeline: Pipeline, id_: str) -> Iterator[None]:
    """Put a fax without a recipient, and the metric of many failed faxes."""
    pipeline.put({"id": id_, "event_type": "fax", "pdf_url": "https://example.com/a.pdf"})
    put_metric(pipeline, "Failed", 1000.0, channel="fax")
    until(
        lambda: (pipeline.ledger(id_, "fax") or {}).get("status") == "failed",
        RINGS_SECONDS,
        lambda: "the fax has not failed",
    )
    yield


def put_metric(pipeline: Pipeline, name: str, value: float, **dimension: str) -> None:
    """Put a metric for the last five minutes, and for the next two."""
    ((key, of),) = dimension.items()
    dimensions = [{"Name": key, "Value": of}, {"Name": "stage", "Value": STAGE}]
    metric = {"MetricName": name, "Dimensions": dimensions, "Value": value}
    begin = time.time() // MINUTE * MINUTE
    data = [{**metric, "Timestamp": begin + at * MINUTE} for at in range(-5, 3)]
    cloudwatch(pipeline).put_metric_data(Namespace="Mailroom", MetricData=data)


Reason = Callable[[Pipeline, str], AbstractContextManager[None]]
RINGING: dict[str, tuple[Reason, str, str]] = {
    "webhooks-failing": (webhooks_failing, "webhooks-failing", "503"),
    "mail-dlq-not-empty": (dead_letter, "dlq-not-empty", "misconfigured"),
    "mail-tries-failing": (tries_failing, "tries-failing", "misconfigured"),
    "fax-messages-failing": (messages_failing, "messages-failing", "invalid (to)"),
    "release-late": (release_late, "release-late", "release-late rings"),
    "run-unknown": (run_unknown, "run-unknown", "its campaign's run"),
    "run-paused": (run_paused, "run-paused", "paused"),
    "mail-day-used-up": (day_used_up, "day-used-up", "Bulk waits until about"),
    "mail-day-used-up-warning": (bulk_waits, "day-used-up", "Bulk waits until about"),
}
"""Reason for which each alarm of a local stage rings, its page, and words in the output of the page's first
command.

SES has to say that the day is used up before the day is closed for bulk: on a closed day SES may not be
asked.
"""


SILENT = "mail-day-used-up-warning"
"""Alarm that does not ring while `mail-day-used-up` rings."""


@pytest.fixture(scope="module")
def answers_of_commands(pipeline: Pipeline) -> dict[str, list[Result]]:
    """Answers of the commands of each alarm's page, while all alarms ring: the stage looks at them four times
    a minute."""
    with ExitStack() as reasons:
        for name, (reason, _, _) in RINGING.items():
            reasons.enter_context(reason(pipeline, id_of_alarm(name)))
        client = cloudwatch(pipeline)
        until(lambda: not silent(client), RINGS_SECONDS, lambda: f"do not ring: {silent(client)}", poll=1)
        return {
            name: [operator(pipeline, *words) for words in commands_of_alarm(page, id_of_alarm(name))]
            for name, (_, page, _) in RINGING.items()
        }


@pytest.mark.parametrize("name", [name for name in RINGING if name != SILENT])
def test_an_alarm_rings_for_its_reason_and_the_first_command_of_its_docs_page_prints_the_cause(
    answers_of_commands: dict[str, list[Result]], name: str
) -> None:
    results = answers_of_commands[name]
    _, _, cause = RINGING[name]
    wrong = [each.stderr for each in results if each.exit_code > 1]
    assert not wrong
    assert cause in results[0].stdout, results[0].stdout


def id_of_alarm(alarm: str) -> str:
    """Return the id of the message for which an alarm rings."""
    return f"{CAMPAIGN}#lost#{RINGS}{alarm}" if alarm == "run-unknown" else f"{RINGS}{alarm}"


def commands_of_alarm(page: str, id_: str) -> list[list[str]]:
    """The commands of an alarm's page, about the local stage and a message of it. The console is left out:
    it serves until somebody stops it."""
    local = {"prod": STAGE, "order-42": id_}
    lines = Page(f"docs/alarms/{page}.md").command_lines()
    ours = [words[1:] for words in lines if words[:1] == ["mailroom"] and words[1] != "console"]
    return [[local.get(word, word) for word in words] for words in ours]


def test_the_warning_about_waiting_bulk_mails_is_silent_while_the_alarm_mail_day_used_up_rings(
    pipeline: Pipeline, answers_of_commands: dict[str, list[Result]]
) -> None:
    assert "Bulk waits until about" in answers_of_commands[SILENT][0].stdout
    (warning,) = cloudwatch(pipeline).describe_alarms(AlarmNames=[f"mailroom-{STAGE}-{SILENT}"])[
        "MetricAlarms"
    ]
    assert warning["StateValue"] == "OK"


def silent(client: Any) -> list[str]:
    """The alarms of RINGING that do not ring, but for SILENT."""
    names = [f"mailroom-{STAGE}-{name}" for name in RINGING if name != SILENT]
    alarms = client.describe_alarms(AlarmNames=names)["MetricAlarms"]
    assert len(alarms) == len(names)
    return [alarm["AlarmName"] for alarm in alarms if alarm["StateValue"] != "ALARM"]


def cloudwatch(pipeline: Pipeline) -> Any:
    return LocalSession().client("cloudwatch", endpoint_url=pipeline.running.endpoints.aws, config=patient())
