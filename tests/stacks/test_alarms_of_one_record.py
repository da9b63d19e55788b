"""A record that always fails rings an alarm before it becomes a dead letter: calculated from queue, function
and alarm in the templates."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.support.stacks.alarm import alarm_named
from tests.support.stacks.templates import Template, Templates

PERIOD = 300
LONGEST_LOOK = 86_400
"""CloudWatch's limit for periods of under an hour."""
LAST_TO_LEARN = 60
"""Seconds within which CloudWatch looks at an alarm again."""


@dataclass(frozen=True)
class Reader:
    """A function that reads a queue, and what of the two decides when a record comes again."""

    name: str
    visibility: int
    receives: int
    timeout: int

    def invocations(self, phase: int) -> list[int]:
        """When a record that always fails is received, the first time so long after a period's beginning."""
        return [phase + self.visibility * each for each in range(self.receives)]


def readers(stage: Templates) -> Iterator[Reader]:
    """Return all functions of a stage that read queues."""
    for template in stage.stacks.values():
        for mapping in template.all("Lambda::EventSourceMapping"):
            if "Fn::GetAtt" in mapping["EventSourceArn"]:
                yield reader(template, mapping)


def reader(template: Template, mapping: dict[str, Any]) -> Reader:
    """The function of one mapping."""
    resources = template.body["Resources"]
    queue = resources[mapping["EventSourceArn"]["Fn::GetAtt"][0]]["Properties"]
    function = resources[mapping["FunctionName"]["Ref"]]["Properties"]
    return Reader(
        name=function["FunctionName"],
        visibility=queue["VisibilityTimeout"],
        receives=queue["RedrivePolicy"]["maxReceiveCount"],
        timeout=function["Timeout"],
    )


def rings(made: dict[str, Any], started: list[int], lasting: int) -> bool:
    """Whether the alarm ever rings, where invocations that began then fail after `lasting` seconds. Lambda
    tells of a failure when it happens, as one of the period in which its invocation began:
    https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html."""
    for looked in range(0, started[-1] + lasting + made["EvaluationPeriods"] * PERIOD, LAST_TO_LEARN):
        oldest = looked // PERIOD - made["EvaluationPeriods"] + 1
        known = {begun // PERIOD for begun in started if begun + lasting <= looked}
        if len([period for period in known if period >= oldest]) >= made["DatapointsToAlarm"]:
            return True
    return False


@pytest.mark.parametrize("which", ["whole", "prod", "otherwise"])
def test_a_record_that_always_fails_raises_the_alarm_of_its_function(
    request: pytest.FixtureRequest, which: str
) -> None:
    templates: Templates = request.getfixturevalue(which)
    found = [*readers(templates)]
    assert len(found) >= 7
    for each in found:
        made = alarm_named(templates, f"{each.name}-errors")
        assert (made["Period"], made["TreatMissingData"]) == (PERIOD, "notBreaching")
        for phase in range(0, PERIOD, 10):
            for lasting in (0, each.timeout):
                assert rings(made, each.invocations(phase), lasting), (each, phase, lasting)


@pytest.mark.parametrize("which", ["whole", "otherwise"])
def test_the_evaluated_period_of_an_alarm_is_within_the_limit_of_cloudwatch(
    request: pytest.FixtureRequest, which: str
) -> None:
    templates: Templates = request.getfixturevalue(which)
    for each in readers(templates):
        made = alarm_named(templates, f"{each.name}-errors")
        assert made["EvaluationPeriods"] * made["Period"] <= LONGEST_LOOK


def test_one_or_two_failures_of_a_record_do_not_ring_the_alarm_of_its_function(whole: Templates) -> None:
    for each in readers(whole):
        made = alarm_named(whole, f"{each.name}-errors")
        assert not rings(made, [0], 0)
        assert not rings(made, [0, each.visibility], each.timeout)
