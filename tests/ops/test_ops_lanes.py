"""Lanes, paused and resumed by command and console."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
from botocore.exceptions import ClientError

from mailroom_ops.messages.deployed_lanes import DeployedLanes, Lane
from mailroom_ops.messages.lanes import app
from mailroom_ops.shared.screen import Refused
from mailroom_ops.shared.stage_queues import DeployedStage
from tests.support.ops.console import Browser
from tests.support.ops.repair import RepairStage, repair_stage
from tests.support.ops.run_app import run_app
from tests.support.unit.fakes import client_error

STAGE = repair_stage
NOW = 1_795_251_600.0  # 2026-11-21T09:00:00Z
OPERATOR = "arn:aws:sts::123456789012:user/moto"
REASON = "a wrong link"
CHANGES: dict[str, Callable[[DeployedLanes], None]] = {
    "pause": lambda lanes: lanes.pause("mail", "normal", REASON),
    "resume": lambda lanes: lanes.pause("mail", "normal", None),
}
Stop = Callable[[str], None]


run = partial(run_app, app, columns=80)


@pytest.fixture
def deployed_stage(stage: RepairStage) -> DeployedStage:
    return replace(DeployedStage.of(stage.session, "dev"), clock=lambda: NOW)


@pytest.fixture
def lanes(deployed_stage: DeployedStage) -> DeployedLanes:
    return DeployedLanes(deployed_stage)


def paused_lanes(lanes: DeployedLanes) -> list[Lane]:
    return [lane for lane in lanes.read() if lane.paused]


def test_a_paused_lane_is_not_read_until_its_resume_and_lane_list_shows_the_reason(
    stage: RepairStage,
) -> None:
    stage.sqs.send_message(QueueUrl=stage.urls["mail-bulk"], MessageBody="{}")
    words = run("pause", "mail", "bulk", "--why", REASON).stdout
    assert stage.functions.mappings == {
        **dict.fromkeys(stage.functions.mappings, "Enabled"),
        "mail-bulk": "Disabled",
    }
    assert "by moto and to be resumed before 20" in " ".join(words.split())
    listed = {
        (lane["channel"], lane["lane"]): (lane["waiting"], lane["paused"].rpartition(": ")[2])
        for lane in json.loads(run("list", "--json").stdout)
    }
    assert listed == {
        ("mail", "normal"): (0, ""),
        ("mail", "bulk"): (1, REASON),
        ("sms", "normal"): (0, ""),
        ("webhook", "normal"): (0, ""),
        ("fax", "normal"): (0, ""),
    }
    assert REASON in " ".join(run("list").stdout.split())
    assert REASON not in run("resume", "mail", "bulk").stdout
    assert {*stage.functions.mappings.values()} == {"Enabled"}


def test_the_queues_of_a_second_provider_are_lanes_of_their_own(
    stage: RepairStage, deployed_stage: DeployedStage
) -> None:
    for queue in ("mail-fallback", "mail-bulk-fallback", "mail-bulk-fallback-dlq"):
        stage.sqs.create_queue(QueueName=f"mailroom-dev-{queue}")
        stage.functions.mappings[queue] = "Enabled"
    url = stage.sqs.get_queue_url(QueueName="mailroom-dev-mail-bulk-fallback")["QueueUrl"]
    stage.sqs.send_message(QueueUrl=url, MessageBody="{}")
    lanes = DeployedLanes(deployed_stage)
    waiting = {(lane.channel, lane.lane): lane.waiting for lane in lanes.read()}
    assert (waiting["mail", "fallback"], waiting["mail", "bulk-fallback"]) == (0, 1)
    assert len(waiting) == 7
    lanes.pause("mail", "bulk-fallback", REASON)
    assert [lane.lane for lane in paused_lanes(lanes)] == ["bulk-fallback"]


def test_lane_pause_prints_the_time_at_which_sqs_would_delete_the_waiting_messages(
    stage: RepairStage, lanes: DeployedLanes
) -> None:
    stage.sqs.set_queue_attributes(
        QueueUrl=stage.urls["mail"], Attributes={"MessageRetentionPeriod": "345600"}
    )
    words = f"since 2026-11-21 09:00:00 UTC by {OPERATOR} and to be resumed before 2026-11-25 09:00:00 UTC"
    expected = f"{words}: {REASON}"
    lanes.pause("mail", "normal", REASON)
    assert [lane.paused for lane in paused_lanes(lanes)] == [expected]


def test_the_reason_of_a_lanes_pause_is_shortened_and_cleaned_to_a_valid_aws_tag(
    lanes: DeployedLanes,
) -> None:
    lanes.pause("mail", "normal", 'Grüße, "Ada"\n(ops); ' + "x" * 300)
    (words,) = (lane.paused for lane in paused_lanes(lanes))
    assert ": Grüße Ada ops xxx" in words
    assert len(words) == 256


@pytest.fixture
def stop(deployed_stage: DeployedStage) -> Stop:
    """Return a function that makes calls of SQS or Lambda by a name fail, until it is called without a
    name."""
    context = pytest.MonkeyPatch()

    def refuse(**_: object) -> None:
        raise client_error("Throttled")

    def stop(call: str) -> None:
        context.undo()
        if call:
            context.setattr(
                deployed_stage.functions if "mapping" in call else deployed_stage.sqs, call, refuse
            )

    return stop


@pytest.mark.parametrize("call", ["tag_queue", "update_event_source_mapping"])
def test_an_interrupted_pause_leaves_the_lane_running_and_may_be_repeated(
    stage: RepairStage, lanes: DeployedLanes, stop: Stop, call: str
) -> None:
    stop(call)
    with pytest.raises(ClientError):
        lanes.pause("mail", "normal", REASON)
    assert (paused_lanes(lanes), stage.functions.mappings["mail"]) == ([], "Enabled")
    stop("")
    lanes.pause("mail", "normal", "a better reason")
    assert [lane.paused.rpartition(": ")[2] for lane in paused_lanes(lanes)] == ["a better reason"]
    assert stage.functions.mappings["mail"] == "Disabled"


@pytest.mark.parametrize(
    ("call", "state"), [("update_event_source_mapping", "Disabled"), ("untag_queue", "Enabled")]
)
def test_an_interrupted_resume_shows_the_true_state_of_the_lane_and_may_be_repeated(
    stage: RepairStage, lanes: DeployedLanes, stop: Stop, call: str, state: str
) -> None:
    lanes.pause("mail", "normal", REASON)
    stop(call)
    with pytest.raises(ClientError):
        lanes.pause("mail", "normal", None)
    assert stage.functions.mappings["mail"] == state
    assert [lane.lane for lane in paused_lanes(lanes)] == (["normal"] if state == "Disabled" else [])
    stop("")
    lanes.pause("mail", "normal", None)
    assert stage.functions.mappings["mail"] == "Enabled"
    stage.functions.mappings["mail"] = "Disabled"
    assert paused_lanes(lanes) == []


def test_a_paused_lane_that_a_deployment_enabled_again_is_not_listed_as_paused(
    stage: RepairStage, lanes: DeployedLanes
) -> None:
    lanes.pause("mail", "normal", REASON)
    stage.functions.mappings["mail"] = "Enabled"
    assert paused_lanes(lanes) == []


@pytest.mark.parametrize("name", [("pigeon", "normal"), ("mail", "fast")])
def test_lane_pause_refuses_an_unknown_lane_and_names_the_existing_ones(
    name: tuple[str, str], stage: RepairStage
) -> None:
    result = run("pause", *name, "--why", REASON)
    assert result.exit_code == 2
    assert "use one of mail normal, mail bulk, sms normal, webhook normal, fax normal." in result.stderr
    assert {*stage.functions.mappings.values()} == {"Enabled"}


def test_a_second_pause_is_refused_because_it_would_delay_the_end_of_the_first(lanes: DeployedLanes) -> None:
    lanes.pause("mail", "normal", REASON)
    before = paused_lanes(lanes)
    with pytest.raises(Refused, match="is paused already, since 2026-11-21"):
        lanes.pause("mail", "normal", "another")
    assert paused_lanes(lanes) == before


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("state", ["Disabled", "Enabling", "missing"])
def test_a_lane_in_a_state_that_a_pause_does_not_explain_is_not_changed_and_the_error_names_doctor(
    stage: RepairStage, lanes: DeployedLanes, state: str, change: str
) -> None:
    del stage.functions.mappings["mail"]
    if state != "missing":
        stage.functions.mappings["mail"] = state
    before = dict(stage.functions.mappings)
    with pytest.raises(Refused, match=f"mail normal .* is {state.lower()}. .* mailroom doctor --stage dev"):
        CHANGES[change](lanes)
    assert stage.functions.mappings == before


def test_the_console_pauses_and_resumes_a_lane_and_its_overview_shows_the_pause(browser: Browser) -> None:
    form = {"channel": "mail", "lane": "bulk"}
    assert browser.post("/lanes", {**form, "why": REASON}).headers["location"] == "/lanes"
    page = browser.get("/lanes")
    assert "<button>Resume" in page.text
    assert f"Pause mail bulk by moto (console): {REASON}" in page.words
    overview = browser.get("/").words
    assert "Sending by mail is paused in part." in overview
    assert "Paused Mail, bulk: 0 wait Paused by an operator: the page Lanes shows when and why" in overview
    assert REASON in browser.get("/lanes").words
    browser.post("/lanes", {**form, "resume": "1"})
    page = browser.get("/lanes")
    assert ("<button>Resume" in page.text, "Resume mail bulk by moto (console)" in page.words) == (
        False,
        True,
    )
