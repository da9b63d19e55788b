"""Resources that make messages findable: in every stage unless a setting removes them."""

import json

from mailroom.message.outcome import FAILED, SILENT
from tests.support.stacks.templates import Templates

ACCOUNT = "eu-central-1:111122223333"
TABLE = f"arn:aws:dynamodb:{ACCOUNT}:table/mailroom-dev-search"


def test_the_function_index_messages_reads_new_messages_claims_and_failures(dev: Templates) -> None:
    mapping = dev["routing"].mapping("mailroom-dev-index-messages")
    patterns = [json.loads(each["Pattern"]) for each in mapping["FilterCriteria"]["Filters"]]
    assert patterns == [
        {"eventName": ["INSERT"]},
        {
            "eventName": ["INSERT", "MODIFY"],
            "dynamodb": {"NewImage": {"status": {"S": ["sending", *FAILED]}}},
        },
    ]


def test_the_function_index_messages_reads_and_may_count_every_outcome_of_campaigns(
    everything: Templates, dev: Templates
) -> None:
    routing = everything["routing"]
    mapping = routing.mapping("mailroom-dev-index-messages")
    *_, pattern = (json.loads(each["Pattern"]) for each in mapping["FilterCriteria"]["Filters"])
    names = ["csv", "jsonl", "module", "postgresql"]
    assert pattern["dynamodb"]["NewImage"] == {
        "id": {"S": [{"prefix": f"{name}#"} for name in names]},
        "status": {"S": [{"anything-but": [*SILENT]}]},
    }
    assert json.loads(routing.environment("mailroom-dev-index-messages")["CAMPAIGNS"]) == dict.fromkeys(
        names, 5
    )
    assert routing.policy("mailroom-dev-index-messages")["dynamodb:UpdateItem"] >= {TABLE}
    assert "dynamodb:UpdateItem" not in dev["routing"].policy("mailroom-dev-index-messages")


def test_only_the_index_the_api_and_collect_may_use_the_search_table(whole: Templates) -> None:
    holders = {
        function["FunctionName"]
        for stack in whole.stacks.values()
        for function in stack.all("Lambda::Function")
        if "-search" in repr(stack.policy(function["FunctionName"]))
    }
    # A campaign's run looks at the counts of its messages.
    assert holders == {f"mailroom-dev-{name}" for name in ("index-messages", "messages-api", "collect")}


def test_a_stage_without_search_has_no_resource_of_search(lean: Templates) -> None:
    assert "search" not in json.dumps(lean["mailbox"].body).lower()
    assert "index-messages" not in json.dumps(lean["routing"].body)
    assert "SEARCH_TABLE" not in lean["api"].environment("mailroom-dev-messages-api")
    assert "dynamodb:BatchGetItem" not in lean["api"].policy("mailroom-dev-messages-api")


def test_the_mailbox_stack_does_not_export_the_search_table(dev: Templates) -> None:
    exported = [name for name in dev["mailbox"].body["Outputs"] if name.startswith("ExportsOutput")]
    assert not [each for each in exported if "Search" in each]
