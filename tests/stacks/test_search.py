"""What makes messages findable: on in every stage, and off by a setting."""

import json

import pytest

from mailroom.message.outcome import FAILED, SILENT
from tests.support.stacks.templates import Templates
from tests.support.stacks.variants import variant

ACCOUNT = "eu-central-1:111122223333"
TABLE = f"arn:aws:dynamodb:{ACCOUNT}:table/mailroom-dev-search"
KEY = f"arn:aws:secretsmanager:{ACCOUNT}:secret:mailroom-dev-search-key-??????"


def test_rows_have_two_keys_and_go_by_themselves(dev: Templates) -> None:
    table = dev["mailbox"].one("DynamoDB::Table", TableName="mailroom-dev-search")
    assert [each["AttributeName"] for each in table["KeySchema"]] == ["found_by", "put"]
    assert table["TimeToLiveSpecification"] == {"AttributeName": "ttl", "Enabled": True}
    assert "StreamSpecification" not in table


def test_one_function_writes_rows_and_reads_the_ledger_alone(dev: Templates) -> None:
    may = dev["routing"].policy("mailroom-dev-index-messages")
    assert may["dynamodb:BatchWriteItem"] == {TABLE}
    assert may["secretsmanager:GetSecretValue"] == {KEY}
    (ledger,) = may["dynamodb:BatchGetItem"]
    assert "Ledger" in ledger
    assert not {"dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem"} & may.keys()


def test_it_is_told_of_new_messages_of_claims_and_of_what_went_wrong(dev: Templates) -> None:
    mapping = dev["routing"].mapping("mailroom-dev-index-messages")
    patterns = [json.loads(each["Pattern"]) for each in mapping["FilterCriteria"]["Filters"]]
    assert patterns == [
        {"eventName": ["INSERT"]},
        {
            "eventName": ["INSERT", "MODIFY"],
            "dynamodb": {"NewImage": {"status": {"S": ["sending", *FAILED]}}},
        },
    ]


def test_with_campaigns_it_is_told_of_all_that_becomes_of_their_messages_and_may_count_them(
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
    assert json.loads(routing.environment("mailroom-dev-index-messages")["CAMPAIGNS"]) == names
    assert routing.policy("mailroom-dev-index-messages")["dynamodb:UpdateItem"] == {TABLE}
    assert "dynamodb:UpdateItem" not in dev["routing"].policy("mailroom-dev-index-messages")


def test_no_sender_and_no_producer_of_the_stage_has_any_right_to_it(whole: Templates) -> None:
    holders = {
        function["FunctionName"]
        for stack in whole.stacks.values()
        for function in stack.all("Lambda::Function")
        if "-search" in repr(stack.policy(function["FunctionName"]))
    }
    # A campaign's run looks at the counts of its messages.
    assert holders == {f"mailroom-dev-{name}" for name in ("index-messages", "messages-api", "collect")}


@pytest.fixture(scope="module")
def off() -> Templates:
    return variant({"search": False})


def test_a_stage_without_search_has_nothing_of_it(off: Templates) -> None:
    assert "search" not in json.dumps(off["mailbox"].body).lower()
    assert "index-messages" not in json.dumps(off["routing"].body)
    assert "SEARCH_TABLE" not in off["api"].environment("mailroom-dev-messages-api")
    assert "dynamodb:BatchGetItem" not in off["api"].policy("mailroom-dev-messages-api")


def test_no_stack_holds_back_what_a_stage_is_to_have_no_more(dev: Templates) -> None:
    exported = [name for name in dev["mailbox"].body["Outputs"] if name.startswith("ExportsOutput")]
    assert not [each for each in exported if "Search" in each]
