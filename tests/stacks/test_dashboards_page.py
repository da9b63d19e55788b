"""The commands of docs/how-to/dashboards.md work on a deployed stage."""

import re
from importlib import import_module
from typing import Any

from tests.support import ROOT
from tests.support.stacks.alarm import alarms
from tests.support.stacks.templates import Templates, text_of

jmespath: Any = import_module("jmespath")  # a dependency of boto3 without types
PAGE = (ROOT / "docs" / "how-to" / "dashboards.md").read_text()


def blocks(language: str) -> list[str]:
    """The page's code."""
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def described(stage: Templates) -> dict[str, Any]:
    """Return the response of describe-stacks about the stage, and about a stack of another app."""
    stacks = [
        {
            "StackName": f"mailroom-prod-{name}",
            "Outputs": [
                {"OutputKey": key, "OutputValue": text_of(each["Value"])}
                for key, each in template.body.get("Outputs", {}).items()
            ],
        }
        for name, template in stage.stacks.items()
    ]
    other = {
        "StackName": "mailroom-prod2-fax",
        "Outputs": [{"OutputKey": "FaxDlqAlarmArn", "OutputValue": "x"}],
    }
    return {"Stacks": [*stacks, other, {"StackName": "empty"}]}


def test_the_queries_on_the_page_find_the_alarm_of_each_dead_letter_queue(prod: Templates) -> None:
    queries = re.findall(r'"(Stacks\[.*?)"\)?\n', PAGE)
    assert len(queries) == 2
    pairs, arns = (jmespath.search(query, described(prod)) for query in queries)
    dead = [each.name for each in alarms(prod) if each.name.endswith("-dlq-not-empty")]
    assert len(pairs) == len(arns) == len(dead)
    assert [value for _, value in pairs] == arns
    assert {"MailDlqAlarmArn", "MailBulkDlqAlarmArn", "FaxDlqAlarmArn"} <= {key for key, _ in pairs}


def test_alarms_in_the_shell_commands_of_the_docs_exist(prod: Templates) -> None:
    shell = "\n".join(blocks("sh"))
    named = set(re.findall(r"ALARM\(([a-z0-9-]+)\)", shell))
    assert len(named) == 2
    assert named <= {each.name for each in alarms(prod)}
    assert ":mailroom-prod-alarms" in shell


def test_the_table_on_the_page_about_dashboards_lists_every_kind_of_alarm(whole: Templates) -> None:
    rows = re.findall(r"^\| (`.*?) \| .*? \|$", PAGE, re.MULTILINE)
    listed = {kind for kinds in rows for kind in re.findall(r"`([a-z0-9-]+)`", kinds)}
    assert {each.name for each in alarms(whole) if not each.name.endswith((*listed, "-warning"))} == set()
