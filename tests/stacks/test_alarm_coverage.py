"""Whatever a template has that can fail is watched, and every alarm tells somebody what to do."""

import re

from mailroom_ops.setup.docs import pages
from mailroom_stacks.settings.monitoring import MINIMAL
from tests.docs.test_docs_commands import require_command
from tests.support import ROOT
from tests.support.stacks.alarm import alarms, function_names, queues, streams, values_with_alarm
from tests.support.stacks.dashboard import name_of_stage
from tests.support.stacks.templates import Templates, text_of

COMMAND = re.compile(r"(?<![\w/-])mailroom ([^`,;()]+)")
"""Pattern of a command in a description, and of the words after it."""
STAGES = ("dev", "prod", "whole")
PAGES = {
    *("dlq-not-empty", "waiting-long", "backlog-old", "in-flight-many"),
    "errors",
    *("gave-up", "iterator-age", "api-5xx", "concurrency", "webhooks-failing"),
    *("ses-bounce-rate", "ses-complaint-rate", "day-used-up", "release-late", "run-unknown"),
    *("aws-drops", "misconfigured", "tries-failing", "messages-failing"),
}
"""Pages of the manual, one for each kind of alarm that every stage has."""
BY_SETTING = {"canary-missing", "codes-late", "run-paused"}
"""Pages of alarms that only stages with a setting have, such as the stage `whole`."""
WITHOUT_PAGE = {"dropped": "gave-up"}
"""Kinds of alarms that share the page of another kind."""
MOST_OUTPUTS = 200
"""CloudFormation's limit a stack."""


def test_the_page_of_an_alarm_says_whether_only_full_stages_have_it() -> None:
    words = "Only stages with `monitoring.level` full have this alarm."
    for page in (ROOT / "docs" / "alarms").glob("*.md"):
        assert (words in page.read_text()) == (page.stem not in MINIMAL), page.name


def test_every_queue_has_alarms_for_the_age_of_its_oldest_message_and_for_messages_in_flight(
    each_stage: Templates,
) -> None:
    own, _ = queues(each_stage)
    assert len(own) >= 7
    assert own <= values_with_alarm(each_stage, "AWS/SQS", "ApproximateAgeOfOldestMessage", "QueueName")
    assert own <= values_with_alarm(
        each_stage, "AWS/SQS", "ApproximateNumberOfMessagesNotVisible", "QueueName"
    )
    kinds = {each.name for each in alarms(each_stage)}
    for name in own:
        short = name.removesuffix(".fifo")
        assert {f"{short}-{kind}" for kind in ("waiting-long", "backlog-old", "in-flight-many")} <= kinds


def test_every_queue_has_a_dead_letter_queue_with_alarms(each_stage: Templates) -> None:
    own, dead = queues(each_stage)
    assert len(own) == len(dead)
    assert dead == values_with_alarm(each_stage, "AWS/SQS", "ApproximateNumberOfMessagesVisible", "QueueName")


def test_every_function_has_an_alarm_for_its_errors(each_stage: Templates) -> None:
    assert len(function_names(each_stage)) >= 14
    assert values_with_alarm(each_stage, "AWS/Lambda", "Errors", "FunctionName") == function_names(each_stage)


def test_every_reader_of_a_stream_has_alarms_for_lateness_and_for_lost_batches(each_stage: Templates) -> None:
    found = dict(streams(each_stage))
    assert len(found) == 3
    assert set(found.values()) == values_with_alarm(each_stage, "AWS/Lambda", "IteratorAge", "FunctionName")
    gave_up = values_with_alarm(
        each_stage, "AWS/Lambda", "OnFailureDestinationDeliveredEventCount", "EventSourceMappingUUID"
    )
    dropped = values_with_alarm(each_stage, "AWS/Lambda", "DroppedEventCount", "EventSourceMappingUUID")
    assert gave_up == dropped == found.keys()


def test_every_http_api_has_an_alarm_for_server_errors(each_stage: Templates) -> None:
    made = {each["Name"] for of in each_stage.stacks.values() for each in of.all("ApiGatewayV2::Api")}
    assert made
    assert values_with_alarm(each_stage, "AWS/ApiGateway", "5xx", "ApiId") == made


def test_every_alarm_notifies_one_topic_at_its_beginning_and_another_at_its_end(
    each_stage: Templates,
) -> None:
    begins, ends = sorted(each["TopicName"] for each in each_stage["monitoring"].all("SNS::Topic"))
    assert ends == f"{begins}-ended"
    for each in alarms(each_stage):
        (begun,), (ended,) = each.properties["AlarmActions"], each.properties["OKActions"]
        assert text_of(begun) == f"arn:aws:sns:eu-central-1:111122223333:{begins}"
        assert text_of(ended) == f"arn:aws:sns:eu-central-1:111122223333:{ends}"
        assert each.properties.get("ActionsEnabled", True) is True


def test_alarms_do_not_make_one_stack_depend_on_another(each_stage: Templates) -> None:
    assert "Fn::ImportValue" not in str(each_stage["monitoring"].body)
    for each in alarms(each_stage):
        assert "Fn::ImportValue" not in str(each.properties)


def test_every_alarm_has_a_name_of_its_own_that_contains_the_stage(each_stage: Templates) -> None:
    names = [each.name for each in alarms(each_stage)]
    prefix = min(of["TopicName"] for of in each_stage["monitoring"].all("SNS::Topic")).removesuffix("alarms")
    assert all(re.fullmatch(rf"{prefix}[a-z0-9-]+", name) for name in names)
    assert len(set(names)) == len(names)


def test_the_description_of_an_alarm_contains_its_meaning_its_command_and_its_page(
    each_stage: Templates,
) -> None:
    name = each_stage["monitoring"].all("SNS::Topic")[0]["TopicName"].split("-")[1]
    for each in alarms(each_stage):
        said = re.fullmatch(r"(.{40,}) Next: (.+)\. See `mailroom docs ([a-z0-9-]+)`\.", each.description)
        assert said, each.description
        assert re.search(r"mailroom [a-z-]+|aws [a-z]+ [a-z-]+", said[2])
        for command in COMMAND.findall(each.description):
            require_command(command, each.name)
        assert all(found == name for found in re.findall(r"--stage (\w+)", each.description))
        assert all(found == name for found in re.findall(r"/mailroom-(\w+)-", each.description))
        kind = each.name.removesuffix("-warning")
        assert said[3] in PAGES | BY_SETTING
        last = kind.rpartition("-")[2]
        assert kind.endswith(said[3]) or WITHOUT_PAGE.get(last) == said[3]
        assert len(each.description) <= 1024


def pages_of_alarms(stage: Templates) -> set[str]:
    """Return the pages that a stage's alarms name."""
    return {re.findall(r"mailroom docs ([a-z0-9-]+)", each.description)[0] for each in alarms(stage)}


def test_every_kind_of_alarm_has_its_page(dev: Templates, prod: Templates, whole: Templates) -> None:
    assert pages_of_alarms(dev) == pages_of_alarms(prod) == PAGES
    assert pages_of_alarms(whole) == PAGES | BY_SETTING
    files, folder = pages(), ROOT / "docs" / "alarms"
    assert {page: files[page].parent for page in PAGES | BY_SETTING} == dict.fromkeys(
        PAGES | BY_SETTING, folder
    )


def test_every_log_group_in_an_alarms_description_exists(each_stage: Templates) -> None:
    groups = {each["LogGroupName"] for of in each_stage.stacks.values() for each in of.all("Logs::LogGroup")}
    assert any("logs tail " in each.description for each in alarms(each_stage))
    for each in alarms(each_stage):
        assert set(re.findall(r"logs tail (\S+)", each.description)) <= groups


def test_a_stack_name_in_the_description_of_an_alarm_is_that_of_the_alarms_own_stack(
    each_stage: Templates,
) -> None:
    found = [
        (of, f"mailroom-{name_of_stage(each_stage)}-{each.stack}")
        for each in alarms(each_stage)
        for of in re.findall(r"--stack-name (\S+)", each.description)
    ]
    assert len(found) == 3  # events that a reader of a stream has dropped
    assert all(named == own for named, own in found)


def test_the_outputs_of_a_stack_are_within_the_limit_of_cloudformation(each_stage: Templates) -> None:
    for template in each_stage.stacks.values():
        assert len(template.body.get("Outputs", {})) <= MOST_OUTPUTS
