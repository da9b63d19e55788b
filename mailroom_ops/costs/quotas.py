"""The command `quotas`: prints the quotas of the account that a stage needs."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from mailroom_ops.shared.options import AsJson, WrittenStage
from mailroom_ops.shared.screen import fold, print_answer, refusals, right, screen, table_of
from mailroom_ops.shared.times import speed_of
from mailroom_stacks.settings.channels import days_of
from mailroom_stacks.settings.settings import Settings

LEDGER_WRITES = 3
"""Write units of a message in the ledger: its claim, its outcome and an event of its provider."""
BATCHES_A_SHARD = 1
"""Default number of functions that a stream's mapping runs at once for each shard."""
SHARDS = 4
"""Shards of the stream of a new table, which takes 4,000 writes a second; each partition takes 1,000.
Source: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/on-demand-capacity-mode.html."""
LAMBDA_DEFAULT = 1_000
"""Functions that an account runs at once, by default. A new account has fewer, often 10.
Source: https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html."""
LAMBDA_OF_A_NEW_ACCOUNT = 10


class Quota(Struct, frozen=True):
    """A quota of Service Quotas, and the value that a stage needs."""

    name: str
    needed: int
    default: int
    """Quota of a new account."""
    reason: str
    command: str
    """Command that requests the quota; empty if the default is enough."""


class QuotasOutput(Struct, frozen=True):
    """Output of the command `quotas`."""

    stage: str
    quotas: list[Quota]


def quotas(stage: WrittenStage = "prod", *, as_json: AsJson = False) -> None:
    """Compare the quotas that a stage needs with those of a new account, and print commands to request more.

    The command synthesizes the stage from cdk.json, and works without AWS credentials. Requests take hours to
    days, so make them before the first deployment. After it, `mailroom doctor` checks the account's real
    quotas.

    Example: mailroom quotas --stage prod
    """
    # These imports load the CDK, which takes seconds.
    from mailroom_stacks.app.application import NagError
    from mailroom_stacks.deploy_policy.policies import read
    from mailroom_stacks.settings.sentences import SettingsError

    with refusals(SettingsError, NagError):
        settings, templates = read(stage, {})
    answer = QuotasOutput(stage, [*quotas_of(settings, templates)])
    print_answer(answer, _show, as_json=as_json)


def quotas_of(settings: Settings, templates: Sequence[Mapping[str, Any]]) -> Iterator[Quota]:
    """Yield the quotas that depend on a stage's settings and templates. Codes and defaults:
    https://docs.aws.amazon.com/general/latest/gr/lambda-service.html, ses.html and ddb.html beside it."""
    workers = sum(map(_functions_at_once, _mappings(templates)))
    below_alarm = -(-workers * settings.monitoring.concurrency_quota // settings.monitoring.many_functions)
    reason = (
        f"{workers:,} functions at once, with {SHARDS} shards a stream; an alarm rings at 80 % of the quota"
    )
    # Service Quotas rejects a request for less than the default.
    functions = max(below_alarm, LAMBDA_DEFAULT)
    new = LAMBDA_OF_A_NEW_ACCOUNT
    yield _quota("Lambda, concurrent executions", functions, new, reason, "lambda", "L-B99A9384")
    rate = sum(row.messages_per_second for row in settings.channels.values())
    if "mail" in settings.channels and "ses" in settings.mail.providers:
        row = settings.channels["mail"]
        mail = row if settings.mail.provider == "ses" else row.fallback
        day = max((limit for _, limit in days_of(mail.per_day)), default=0)
        section = "channels.mail" if mail is row else "channels.mail.fallback"
        reason = f"{section}.messages_per_second"
        yield _quota("SES, mails a second", mail.messages_per_second, 1, reason, "ses", "L-CDEF9B6B")
        yield _quota("SES, mails in 24 hours", day, 200, f"{section}.per_day", "ses", "L-804C8AE8")
    reason = f"{speed_of(rate)} messages a second by the lanes' rates, {LEDGER_WRITES} writes a message"
    units = rate * LEDGER_WRITES
    yield _quota("DynamoDB, write units of a table", units, 40_000, reason, "dynamodb", "L-AB614373")


def _quota(name: str, needed: float, default: int, reason: str, service: str, code: str) -> Quota:
    request = "aws service-quotas request-service-quota-increase"
    number = math.ceil(needed)
    command = f"{request} --service-code {service} --quota-code {code} --desired-value {number}"
    return Quota(name, number, default, reason, command if number > default else "")


def _mappings(templates: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for template in templates:
        for resource in template["Resources"].values():
            if resource["Type"] == "AWS::Lambda::EventSourceMapping":
                yield resource["Properties"]


def _functions_at_once(mapping: Mapping[str, Any]) -> int:
    of_stream = SHARDS * mapping.get("ParallelizationFactor", BATCHES_A_SHARD)
    return int(mapping.get("ScalingConfig", {}).get("MaximumConcurrency", of_stream))


def _show(answer: QuotasOutput) -> None:
    rows = ((quota.name, f"{quota.needed:,}", f"{quota.default:,}", quota.reason) for quota in answer.quotas)
    columns = "quota", right("needed"), right("of a new account"), fold("reason")
    screen.print(table_of(*columns, rows=rows))
    for command in filter(None, (quota.command for quota in answer.quotas)):
        screen.print(command, soft_wrap=True)
