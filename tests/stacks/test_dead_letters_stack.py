"""The function that checks dead letters, its schedule, and its permissions."""

import json
import re

from tests.support.stacks.templates import Templates, text_of


def test_the_function_dead_letters_examines_each_dead_letter_queue_under_its_short_name(
    dev: Templates,
) -> None:
    given = dev["dead-letters"].environment("mailroom-dev-dead-letters")
    looked = json.loads(given["DEAD_LETTER_QUEUES"])
    made = {
        queue["QueueName"].removeprefix("mailroom-dev-")
        for stack in dev.stacks.values()
        for queue in stack.all("SQS::Queue")
    }
    assert looked.keys() == {name for name in made if "-dlq" in name}
    assert {"mail-dlq", "fax-dlq.fifo", "fax-retry-dlq", "feedback-dlq"} < looked.keys()
    for name, url in looked.items():
        short = "".join(map(str.capitalize, name.partition("-dlq")[0].split("-")))
        assert re.search(f":ExportsOutputRef{short}DeadLetters", url)


def test_the_function_dead_letters_examines_the_dead_letter_queues_of_campaigns(whole: Templates) -> None:
    given = whole["dead-letters"].environment("mailroom-dev-dead-letters")
    assert {"collect-dlq", "audience-dlq"} < json.loads(given["DEAD_LETTER_QUEUES"]).keys()
    looked_at = whole["dead-letters"].policy("mailroom-dev-dead-letters")["sqs:ReceiveMessage"]
    assert len([each for each in looked_at if re.search("(Collect|Audience)DeadLetters", each)]) == 2


def test_a_dead_letter_alarm_of_the_stage_starts_the_function_dead_letters_when_it_rings(
    dev: Templates,
) -> None:
    rule = dev["dead-letters"].one("Events::Rule", Name="mailroom-dev-dead-letters-alarms")
    assert rule["EventPattern"] == {
        "source": ["aws.cloudwatch"],
        "detail-type": ["CloudWatch Alarm State Change"],
        "detail": {
            "alarmName": [{"wildcard": "mailroom-dev-*-dlq-not-empty"}],
            "state": {"value": ["ALARM"]},
        },
    }


def test_the_pattern_of_the_rule_matches_only_the_dead_letter_alarms_of_the_stage(dev: Templates) -> None:
    rule = dev["dead-letters"].one("Events::Rule", Name="mailroom-dev-dead-letters-alarms")
    ((wildcard,),) = (each.values() for each in rule["EventPattern"]["detail"]["alarmName"])
    pattern = re.compile(re.escape(wildcard).replace(r"\*", ".*"))
    alarms = {each["AlarmName"] for stack in dev.stacks.values() for each in stack.all("CloudWatch::Alarm")}
    fit = {name for name in alarms if pattern.fullmatch(name)}
    assert fit == {name for name in alarms if "dlq" in name}
    assert len(fit) == 7
    assert not pattern.fullmatch("mailroom-devil-mail-dlq-not-empty")


def test_a_schedule_starts_the_function_dead_letters_every_hour(dev: Templates) -> None:
    rule = dev["dead-letters"].one("Events::Rule", Name="mailroom-dev-dead-letters-schedule")
    assert rule["ScheduleExpression"] == "rate(1 hour)"
    assert "EventPattern" not in rule


def test_the_alarm_rule_and_the_schedule_may_invoke_the_function_dead_letters(dev: Templates) -> None:
    template = dev["dead-letters"]
    for rule in template.all("Events::Rule"):
        (target,) = rule["Targets"]
        function = template.body["Resources"][target["Arn"]["Fn::GetAtt"][0]]["Properties"]
        assert function["FunctionName"] == "mailroom-dev-dead-letters"
        assert rule["State"] == "ENABLED"
    permitted = {text_of(each["SourceArn"]) for each in template.all("Lambda::Permission")}
    assert len(permitted) == 2
    assert {each["Principal"] for each in template.all("Lambda::Permission")} == {"events.amazonaws.com"}
