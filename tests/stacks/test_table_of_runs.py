"""The table of campaign runs is in every stage: a message of a run goes on only if its run can be read, and
may wait for longer than the stack of the campaigns exists."""

import pytest

from tests.support.stacks.templates import Templates

READ = "dynamodb:BatchGetItem"


def test_a_stage_without_campaigns_has_the_table_of_runs(dev: Templates) -> None:
    assert "campaigns" not in dev.stacks
    table = dev["mailbox"].one("DynamoDB::Table", TableName="mailroom-dev-campaign-runs")
    assert [key["AttributeName"] for key in table["KeySchema"]] == ["campaign", "run"]
    keys = [[key["AttributeName"] for key in index["KeySchema"]] for index in table["GlobalSecondaryIndexes"]]
    assert keys == [["campaign", "begun_at"], ["paused", "begun_at"]]


@pytest.mark.parametrize("name", ["dev", "whole", "two_providers", "otherwise"])
def test_senders_and_the_function_release_may_only_read_the_table_of_runs(
    name: str, request: pytest.FixtureRequest
) -> None:
    stage: Templates = request.getfixturevalue(name)
    senders = [each["FunctionName"] for each in stage["channels"].all("Lambda::Function")]
    assert len(senders) >= 3
    readers = [
        *((stage["channels"], sender) for sender in senders),
        (stage["routing"], "mailroom-dev-release"),
    ]
    for template, function in readers:
        assert ":ExportsOutputRefRuns" in template.environment(function)["RUNS_TABLE"]
        policy = template.policy(function)
        (runs,) = (each for each in policy[READ] if ":ExportsOutputFnGetAttRuns" in each)
        assert [action for action, resources in policy.items() if runs in resources] == [READ]


def test_the_functions_collect_and_compose_may_write_the_table_of_runs_that_release_reads(
    whole: Templates,
) -> None:
    assert not whole["campaigns"].all("DynamoDB::Table")
    table = whole["routing"].environment("mailroom-dev-release")["RUNS_TABLE"]
    for function in ("mailroom-dev-collect", "mailroom-dev-compose"):
        assert whole["campaigns"].environment(function)["RUNS_TABLE"] == table
        assert any(
            ":ExportsOutputFnGetAttRuns" in each
            for each in whole["campaigns"].policy(function)["dynamodb:UpdateItem"]
        )
