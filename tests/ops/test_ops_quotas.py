"""`mailroom quotas`: what a stage needs, beside what a new account has."""

import json
from typing import Any

import pytest

from mailroom_ops.costs.quotas import quotas_of
from mailroom_stacks.paths import CDK_JSON
from mailroom_stacks.settings.channels import Fallback
from mailroom_stacks.settings.load import load
from mailroom_stacks.settings.settings import Settings

REQUEST = "aws service-quotas request-service-quota-increase"


def stage(**mail: Any) -> Settings:
    """Return the settings of prod with others of the channel mail, which is its only one."""
    context = json.loads(CDK_JSON.read_text())["context"]["mailroom"]
    settings = context["prod"]
    settings["channels"] = {"mail": settings["channels"]["mail"] | mail}
    return load(context, "prod")


def mappings(*properties: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a template with these event source mappings."""
    kind = "AWS::Lambda::EventSourceMapping"
    return [{"Resources": {f"M{n}": {"Type": kind, "Properties": p} for n, p in enumerate(properties)}}]


def test_the_concurrency_quota_is_the_sum_of_all_mappings_below_the_alarm() -> None:
    queue = {"ScalingConfig": {"MaximumConcurrency": 900}}
    stream = {"ParallelizationFactor": 2, "StartingPosition": "TRIM_HORIZON"}
    needed = next(iter(quotas_of(stage(), mappings(queue, stream, {"StartingPosition": "LATEST"}))))
    assert needed.needed == 1140  # 900 and 12 are four fifths of 1,140
    assert needed.command == f"{REQUEST} --service-code lambda --quota-code L-B99A9384 --desired-value 1140"


def test_the_quotas_of_ses_as_a_second_provider_are_those_of_its_own_limits() -> None:
    settings = stage(messages_per_second=9)
    row = settings.channels["mail"].model_copy(
        update={"fallback": Fallback(messages_per_second=3, per_day=500)}
    )
    mail = settings.mail.model_copy(update={"provider": "resend", "fallback": "ses"})
    two = settings.model_copy(update={"channels": {"mail": row}, "mail": mail})
    needed = {quota.name: quota.needed for quota in quotas_of(two, mappings())}
    assert (needed["SES, mails a second"], needed["SES, mails in 24 hours"]) == (3, 500)


def test_a_small_stage_requests_the_concurrency_that_an_older_account_has() -> None:
    needed = next(iter(quotas_of(stage(), mappings({"ScalingConfig": {"MaximumConcurrency": 20}}))))
    assert (needed.needed, needed.default) == (1000, 10)
    assert needed.command.endswith("--desired-value 1000")


@pytest.mark.parametrize(
    ("mail", "commands"),
    [
        (
            {"messages_per_second": 100, "per_day": [["2026-12-01", 500], ["2026-12-09", 90_000]]},
            ["L-CDEF9B6B --desired-value 100", "L-804C8AE8 --desired-value 90000"],
        ),
        ({"messages_per_second": 1}, []),
        (
            {"messages_per_second": 100_000},
            ["L-CDEF9B6B --desired-value 100000", "L-AB614373 --desired-value 300000"],
        ),
    ],
)
def test_a_command_requests_each_quota_that_a_new_account_lacks(
    mail: dict[str, Any], commands: list[str]
) -> None:
    found = [quota.command for quota in [*quotas_of(stage(**{"per_day": None, **mail}), [])][1:]]
    assert [command.partition("--quota-code ")[2] for command in found if command] == commands
