"""The audience of a campaign's own on docs/how-to/run-a-campaign.md reads a table of DynamoDB."""

from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

from mailroom.campaigns.definition import Definition, Module, Modules
from mailroom.campaigns.sources import audience_of
from tests.support.docs_pages import Page
from tests.support.unit.audience import audience_pages

TABLE: Any = {
    "TableName": "people",
    "BillingMode": "PAY_PER_REQUEST",
    "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
}


def test_the_documented_campaign_module_finds_each_person_once_and_reports_a_missing_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (module,) = (
        block
        for block in Page("docs/how-to/run-a-campaign.md").blocks("python")
        if "def recipients" in block.text
    )
    (tmp_path / "campaign.py").write_text(module.text)
    definition = Definition("weekly", "mail", Module(("email",)), module="campaign.py")
    with mock_aws():
        monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
        client = boto3.client("dynamodb")
        client.create_table(**TABLE)
        emails = {f"p{number}": f"p{number}@example.com" for number in range(9)}
        for key, email in emails.items():
            client.put_item(TableName="people", Item={"id": {"S": key}, "email": {"S": email}})
        client.put_item(TableName="people", Item={"id": {"S": "unknown"}})
        found = [*audience_pages(audience_of(Modules(tmp_path, {}), definition), 4)]
    people = [(person.key, person.attributes) for page in found for person in page.recipients]
    assert sorted(people) == [(key, {"email": email}) for key, email in emails.items()]
    (fault,) = (fault for page in found for fault in page.faults)
    assert (fault.column, fault.problem) == ("email", "is empty; fill it, or remove the entry")
