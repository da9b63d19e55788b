"""Number of functions that a stage may run at a time, and functions that AWS invokes asynchronously."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from mailroom.ledger.waits import SHARDS
from mailroom_stacks.settings.concurrency import STREAM_SHARDS, functions_at_once
from mailroom_stacks.settings.load import load, load_campaigns
from tests.support.stacks.campaign_folders import AUDIENCES, EVERYTHING, changes_for, of_each_kind
from tests.support.stacks.refusals import with_settings
from tests.support.stacks.resolved import Resolver, as_list
from tests.support.stacks.templates import Templates
from tests.support.stacks.variants import BY_RESEND, EVERY_ALARM, LEAN, OTHERWISE, TWO_PROVIDERS

CHANGES: Mapping[str, Mapping[str, object]] = {
    "dev": {},
    "prod": {},
    "whole": {**changes_for(*AUDIENCES), **EVERY_ALARM},
    "everything": EVERYTHING,
    "by_resend": BY_RESEND,
    "two_providers": TWO_PROVIDERS,
    "lean": LEAN,
    "otherwise": OTHERWISE,
}
"""Settings of the fixtures with the same names."""
of_each_stage = pytest.mark.parametrize("name", CHANGES)


class Invoked:
    """Functions of a stage, by what invokes them."""

    def __init__(self, stage: Templates) -> None:
        self._resolver = Resolver(stage)
        self._resources = [
            (stack, name, resource["Type"], resource.get("Properties", {}))
            for stack, template in stage.stacks.items()
            for name, resource in template.body["Resources"].items()
        ]
        self.functions = {
            self._arn(stack, name): properties
            for stack, name, kind, properties in self._resources
            if kind == "AWS::Lambda::Function"
        }
        self._roles = {
            self._arn(stack, name): (stack, properties["Role"]["Fn::GetAtt"][0])
            for stack, name, kind, properties in self._resources
            if kind == "AWS::Lambda::Function"
        }

    def _arn(self, stack: str, name: str) -> str:
        return self._resolver.text(stack, {"Fn::GetAtt": [name, "Arn"]})

    def _all(self, kind: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
        for stack, _, type_, properties in self._resources:
            if type_ == f"AWS::{kind}":
                yield stack, properties

    def by_mappings(self) -> Iterator[tuple[str, int]]:
        """Yield the functions that read a queue or stream, with the number of their batches at a time."""
        for stack, mapping in self._all("Lambda::EventSourceMapping"):
            at_once = mapping.get("ScalingConfig", {}).get("MaximumConcurrency")
            streams = mapping.get("ParallelizationFactor", 0) * STREAM_SHARDS
            yield self._arn(stack, mapping["FunctionName"]["Ref"]), at_once or streams

    def by_schedules(self) -> Iterator[str]:
        """Yield the functions that rules with a schedule invoke."""
        for stack, rule in self._all("Events::Rule"):
            if "ScheduleExpression" in rule:
                yield from (self._resolver.text(stack, target["Arn"]) for target in rule["Targets"])

    def by_others(self) -> Iterator[str]:
        """Yield the functions that rules, topics and buckets invoke."""
        targets: list[tuple[str, object]] = []
        for stack, rule in self._all("Events::Rule"):
            targets += [(stack, target["Arn"]) for target in rule.get("Targets", ())]
        for stack, subscription in self._all("SNS::Subscription"):
            targets.append((stack, subscription["Endpoint"]))
        for stack, bucket in self._all("S3::Bucket"):
            notifications = bucket.get("NotificationConfiguration", {})
            targets += [(stack, each["Function"]) for each in notifications.get("LambdaConfigurations", ())]
        for stack, target in targets:
            arn = target if isinstance(target, str) else self._resolver.text(stack, target)
            if arn in self.functions:
                yield arn

    def by_functions(self) -> Iterator[tuple[str, str]]:
        """Yield the functions that may invoke a function, each with the function that it may invoke."""
        for arn, (stack, role) in self._roles.items():
            for policy in self._resolver.policies(stack, role):
                for statement in policy["Statement"]:
                    if "lambda:InvokeFunction" in as_list(statement["Action"]):
                        yield from ((arn, invoked) for invoked in statement["Resource"])

    def by_api(self) -> Iterator[str]:
        """Yield the functions of the HTTP API."""
        for stack, integration in self._all("ApiGatewayV2::Integration"):
            yield self._resolver.text(stack, integration["IntegrationUri"])

    def configured(self) -> dict[str, Mapping[str, Any]]:
        """Return the settings of asynchronous invocations, by function."""
        return {
            self._arn(stack, config["FunctionName"]["Ref"]): config
            for stack, config in self._all("Lambda::EventInvokeConfig")
        }


@of_each_stage
def test_the_calculated_concurrency_of_each_function_equals_that_of_the_templates(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    invoked = Invoked(request.getfixturevalue(name))
    numbers: Counter[str] = Counter()
    for arn, number in invoked.by_mappings():
        numbers[arn] += number
    numbers.update(invoked.by_others())
    for _, arn in invoked.by_functions():
        lines = json.loads(invoked.functions[arn]["Environment"]["Variables"]["LINES"])
        numbers[arn] += SHARDS + len(lines)
    stage = "prod" if name == "prod" else "dev"
    settings = load(with_settings(CHANGES[name], stage), stage)
    folder = of_each_kind(tmp_path) if settings.campaigns.enabled and CHANGES[name] else None
    campaigns = load_campaigns(settings, folder) if folder else load_campaigns(settings)
    names = {arn: arn.partition(f":mailroom-{stage}-")[2] for arn in invoked.functions}
    assert functions_at_once(settings, campaigns) == {names[arn]: number for arn, number in numbers.items()}
    assert {*invoked.functions} - {*numbers} == {*invoked.by_api()}


@of_each_stage
def test_the_schedules_of_an_idle_stage_start_at_most_three_functions_at_a_time(
    name: str, request: pytest.FixtureRequest
) -> None:
    """Show that a stage fits into a new account, which may run 10 functions: a rule that invokes `release`
    starts no other function if no message waits, as test_release_rounds.py shows."""
    scheduled = Counter(Invoked(request.getfixturevalue(name)).by_schedules())
    assert {arn.partition("-dev-")[2] or arn.partition("-prod-")[2] for arn in scheduled} == {
        "release",
        "dead-letters",
    }
    assert scheduled.total() <= 3


@of_each_stage
def test_each_function_that_is_invoked_asynchronously_has_limits_for_its_events(
    name: str, request: pytest.FixtureRequest
) -> None:
    invoked = Invoked(request.getfixturevalue(name))
    configured = invoked.configured()
    by_functions = [arn for _, arn in invoked.by_functions()]
    assert {*invoked.by_others(), *by_functions} == {*configured}
    assert {config["MaximumRetryAttempts"] for config in configured.values()} == {0}
    ages = {arn.rpartition("-")[2]: each["MaximumEventAgeInSeconds"] for arn, each in configured.items()}
    assert ages == {"release": 60, "letters": 3600}


@of_each_stage
def test_only_release_may_invoke_a_function_and_only_itself(
    name: str, request: pytest.FixtureRequest
) -> None:
    ((invoking, invoked),) = Invoked(request.getfixturevalue(name)).by_functions()
    assert invoking == invoked
    assert invoked.endswith("-release")
