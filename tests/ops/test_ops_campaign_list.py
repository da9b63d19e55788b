"""The list of campaigns: what is here, what cdk.json makes of it, and what is deployed."""

import json

import pytest
from botocore.exceptions import NoCredentialsError

from mailroom_ops.campaigns.deployed import DeployedCampaigns
from tests.support.ops.campaign import BY_HAND, CDK, COLLECT, RUN, CampaignStage, run


def campaigns_by_name() -> dict[str, dict[str, str]]:
    result = run("campaign", "list", "--json")
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    assert answer["stage"] == "dev"
    return {each["campaign"]: each for each in answer["campaigns"]}


def test_campaign_list_shows_the_schedule_the_standing_and_the_last_run_of_each_campaign(
    world: CampaignStage,
) -> None:
    world.schedule("weekly")
    world.begun("nov", "s-0", seconds_ago=60)
    world.collected()
    result = run("campaign", "list")
    assert result.exit_code == 0
    rows = [" ".join(line.split()) for line in result.stdout.splitlines() if line.strip()]
    assert rows[2:5] == [
        "draft sms module by hand not enabled",
        "news sms module by hand enabled",
        f"weekly mail file 0 13 ? * WED * Europe/Berlin enabled {RUN} collected",
    ]
    assert campaigns_by_name()["weekly"]["schedule"] == "0 13 ? * WED * Europe/Berlin"
    assert rows[-1] == "3 campaigns, 2 enabled in dev."


def test_the_list_of_campaigns_ends_at_the_limit_with_the_option_for_the_rest(world: CampaignStage) -> None:
    world.schedule("weekly")
    answer = json.loads(run("campaign", "list", "--limit", "2", "--json").stdout)
    assert ([each["campaign"] for each in answer["campaigns"]], answer["total"]) == (["draft", "news"], 3)
    lines = run("campaign", "list", "--limit", "2").stdout.splitlines()
    assert lines[-2:] == ["3 campaigns, 2 enabled in dev.", "More: --limit 3"]
    assert "More" not in run("campaign", "list", "--limit", "3").stdout


def test_a_disabled_or_undeployed_schedule_is_listed_as_such(world: CampaignStage) -> None:
    assert campaigns_by_name()["weekly"]["standing"] == "not_deployed"
    world.schedule("weekly", "DISABLED")
    assert campaigns_by_name()["weekly"]["standing"] == "disabled"


def test_campaigns_that_are_enabled_but_not_deployed_are_listed_as_such(world: CampaignStage) -> None:
    world.sqs.delete_queue(QueueUrl=world.sqs.get_queue_url(QueueName=COLLECT)["QueueUrl"])
    found = campaigns_by_name()
    assert {name: each["standing"] for name, each in found.items()} == {
        "draft": "not_enabled",
        "news": "not_deployed",
        "weekly": "not_deployed",
    }
    assert found["news"]["last_run"] == ""


def test_a_campaign_that_was_taken_out_of_the_settings_is_listed_as_still_deployed(
    world: CampaignStage,
) -> None:
    """The campaigns' stack leaves the app with the last campaign, and stays in the account until an operator
    deletes it."""
    world.write("cdk.json", json.dumps({"context": {"mailroom": {"dev": {}}}}))
    world.schedule("weekly")
    found = campaigns_by_name()
    assert (found["weekly"]["standing"], found["draft"]["standing"]) == ("still_deployed", "not_enabled")
    assert "still deployed" in run("campaign", "list").stdout


def test_campaign_list_exits_with_2_if_aws_cannot_be_asked_for_the_schedules(
    world: CampaignStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(_: DeployedCampaigns) -> None:
        raise NoCredentialsError

    world.write("cdk.json", json.dumps({"context": {"mailroom": {"dev": {}}}}))
    monkeypatch.setattr(DeployedCampaigns, "schedules", refusing)
    assert run("campaign", "list").exit_code == 2


def test_a_schedule_without_a_time_zone_is_shown_in_utc(world: CampaignStage) -> None:
    world.write("campaigns/news/campaign.toml", f'{BY_HAND}[schedule]\ncron = "5 8 ? * * *"\n')
    assert campaigns_by_name()["news"]["schedule"] == "5 8 ? * * * UTC"


@pytest.mark.parametrize(
    ("overrides", "schedule"),
    [
        ({"schedule": {"cron": "0 9 1 * ? *"}}, "0 9 1 * ? * Europe/Berlin"),
        ({"schedule": {"time_zone": "UTC"}}, "0 13 ? * WED * UTC"),
        ({"schedule": None}, "by hand"),
        ({"page_size": 5}, "0 13 ? * WED * Europe/Berlin"),
    ],
)
def test_an_override_of_the_stage_replaces_the_value_of_the_campaigns_file(
    world: CampaignStage, overrides: dict[str, object], schedule: str
) -> None:
    cdk = json.loads(json.dumps(CDK))
    cdk["context"]["mailroom"]["dev"]["campaigns"]["overrides"] = {"weekly": overrides}
    world.write("cdk.json", json.dumps(cdk))
    found = campaigns_by_name()["weekly"]
    assert (found["schedule"], found["audience"]) == (schedule, "file")
