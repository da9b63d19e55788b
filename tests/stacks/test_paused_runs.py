"""The setting `stop_at` of a campaign: its values, and what a stage has for runs that pause themselves."""

import json
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App

from mailroom_stacks.campaigns import CampaignsStack
from mailroom_stacks.mailbox import MailboxStack
from mailroom_stacks.settings.load import load, load_campaigns
from tests.support.stacks.alarm import alarms
from tests.support.stacks.annotations import warnings
from tests.support.stacks.campaign_folders import changes_for, enabled, put_campaign, refusal_of_campaigns
from tests.support.stacks.refusals import with_settings
from tests.support.stacks.templates import Templates
from tests.support.stacks.variants import variant

INDEX = "mailroom-dev-index-messages"
RUNS = "ExportsOutputFnGetAttRuns"


@pytest.mark.parametrize(
    ("changes", "stop_at"), [({}, 5), ({"stop_at": 2.5}, 2.5), ({"stop_at": False}, None)]
)
def test_the_setting_stop_at_is_five_percent_by_default_and_false_switches_the_pause_off(
    tmp_path: Path, changes: dict[str, Any], stop_at: float | None
) -> None:
    (campaign,) = enabled(put_campaign(tmp_path, **changes), "weekly")
    assert campaign.chosen.stop_at == stop_at


def test_a_stages_override_of_stop_at_by_null_switches_the_automatic_pause_off(tmp_path: Path) -> None:
    (campaign,) = enabled(
        put_campaign(tmp_path), "weekly", campaigns__overrides={"weekly": {"stop_at": None}}
    )
    assert campaign.chosen.stop_at is None


@pytest.mark.parametrize("stop_at", [0, -1, 101, "five", True])
def test_an_invalid_share_for_the_automatic_pause_is_refused_with_its_key(
    tmp_path: Path, stop_at: object
) -> None:
    sentence = refusal_of_campaigns(put_campaign(tmp_path, stop_at=stop_at), "weekly")
    assert sentence.startswith("campaigns/weekly/campaign.toml: stop_at: ")


def of_weekly(tmp_path: Path, **changes: Any) -> Templates:
    return variant(changes_for("weekly"), campaigns=put_campaign(tmp_path, **changes))


def test_the_function_index_messages_may_pause_runs_and_an_alarm_of_paused_runs_exists(
    tmp_path: Path,
) -> None:
    routing = of_weekly(tmp_path)["routing"]
    variables, policy = routing.environment(INDEX), routing.policy(INDEX)
    assert json.loads(variables["CAMPAIGNS"]) == {"weekly": 5}
    for action in ("dynamodb:GetItem", "dynamodb:UpdateItem"):
        assert RUNS in repr(policy[action])
    assert "mailroom-dev-run-paused" in {alarm.name for alarm in alarms(of_weekly(tmp_path / "again"))}


def test_a_stage_with_stop_at_switched_off_may_not_pause_runs_and_lacks_their_alarm(tmp_path: Path) -> None:
    stage = of_weekly(tmp_path, stop_at=False)
    assert json.loads(stage["routing"].environment(INDEX)["CAMPAIGNS"]) == {"weekly": None}
    assert RUNS not in repr(stage["routing"].policy(INDEX))
    assert "mailroom-dev-run-paused" not in {alarm.name for alarm in alarms(stage)}


@pytest.mark.parametrize(("search", "stop_at", "count"), [(True, 5, 0), (False, 5, 1), (False, False, 0)])
def test_synth_warns_that_stop_at_has_no_effect_on_a_stage_without_search(
    tmp_path: Path, stop_at: object, count: int, *, search: bool
) -> None:
    folder = put_campaign(tmp_path, stop_at=stop_at)
    settings = load(with_settings(changes_for("weekly", search=search)), "dev")
    app = App()
    CampaignsStack(app, settings, MailboxStack(app, settings), load_campaigns(settings, folder))
    sentences = [text for text in warnings(app) if "stop_at of weekly has no effect" in text]
    assert len(sentences) == count
