"""Audiences on AWS, simulated by moto, and the choice of the source by a campaign's definition."""

from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError
from msgspec import structs

from mailroom.campaigns.audience import Found, Recipient
from mailroom.campaigns.definition import (
    AudienceDefinition,
    Definition,
    File,
    Module,
    Modules,
    Postgresql,
    Unless,
)
from mailroom.campaigns.file_audience import FileAudience
from mailroom.campaigns.postgresql import PostgresqlAudience
from mailroom.campaigns.sources import audience_of
from mailroom.errors import Invalid
from tests.support.unit.audience import cursor_page, keys_of, recipients_of, s3_refusal
from tests.support.unit.shared import BUCKET, Aws

PLACE = f"s3://{BUCKET}/lists/people 1%.csv"


def weekly_to(audience: AudienceDefinition) -> Definition:
    return Definition("weekly", "mail", audience)


def audience_with(audience: AudienceDefinition, aws: Aws) -> Any:
    return audience_of(Modules(), weekly_to(audience))


def test_the_kind_in_a_campaigns_definition_selects_the_source_of_its_audience(aws: Aws) -> None:
    assert isinstance(audience_with(File(PLACE, "id"), aws), FileAudience)
    assert isinstance(audience_with(Postgresql("app", "SELECT 1 AS id", "id"), aws), PostgresqlAudience)
    with pytest.raises(Invalid, match=r"the campaign's folder has no campaign\.py"):
        audience_with(Module(), aws).page(cursor_page())


def test_a_person_from_a_campaigns_module_has_only_the_attributes_that_the_module_returned() -> None:
    person, own = Recipient("7", {"email": "ada@example.com"}), Modules()
    own.loaded["campaign.py"] = SimpleNamespace(recipients=lambda _page: Found([person]))  # type: ignore[assignment]
    definition = structs.replace(weekly_to(Module(columns=("email",))), module="campaign.py")
    assert audience_of(own, definition).page(cursor_page()).recipients == [person]


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_a_file_in_s3_is_read_completely_with_any_size_of_pages(aws: Aws, size: int) -> None:
    lines = [f"{number},p{number}@example.com\n" for number in range(7)]
    aws.s3.put_object(Bucket=BUCKET, Key="lists/people 1%.csv", Body="".join(["id,email\n", *lines]).encode())
    found = recipients_of(audience_with(File(PLACE, "id"), aws), size)
    assert found == [Recipient(str(number), {"email": f"p{number}@example.com"}) for number in range(7)]


def test_a_run_stops_if_the_column_named_by_unless_is_missing_but_not_if_its_cell_is_empty(
    aws: Aws,
) -> None:
    unless = Unless("push_id", "push", ("sent",))
    audience = audience_of(Modules(), structs.replace(weekly_to(File(PLACE, "id")), unless=unless))
    aws.s3.put_object(Bucket=BUCKET, Key="lists/people 1%.csv", Body=b"id,push_id\n1,\n")
    assert keys_of(audience) == ["1"]
    aws.s3.put_object(Bucket=BUCKET, Key="lists/people 1%.csv", Body=b"id,pushid\n1,p-1\n")
    with pytest.raises(Invalid, match="the audience has no column 'push_id'; it has: id, pushid"):
        audience.page(cursor_page())


def test_an_empty_file_in_s3_has_no_recipients(aws: Aws) -> None:
    aws.s3.put_object(Bucket=BUCKET, Key="empty.jsonl", Body=b"")
    assert keys_of(audience_with(File(f"s3://{BUCKET}/empty.jsonl", "id"), aws)) == []


def test_a_file_that_was_replaced_during_the_run_stops_the_run(aws: Aws) -> None:
    audience = audience_with(File(f"s3://{BUCKET}/list.jsonl", "id"), aws)
    aws.s3.put_object(Bucket=BUCKET, Key="list.jsonl", Body=b'{"id": 1}\n{"id": 2}\n')
    cursor = audience.page(cursor_page(size=1)).cursor
    assert [each.key for each in audience.page(cursor_page(cursor)).recipients] == ["2"]
    aws.s3.put_object(Bucket=BUCKET, Key="list.jsonl", Body=b'{"id": 1}\n{"id": 2}\n{"id": 3}\n')
    with pytest.raises(Invalid, match="has changed since the run began; start the run again"):
        audience.page(cursor_page(cursor))


@pytest.mark.parametrize(
    "location", ["https://lists/people.csv", "s3://lists", "s3://lists/", "lists/people.csv", ""]
)
def test_an_audience_location_that_is_not_an_object_in_s3_is_refused(aws: Aws, location: str) -> None:
    with pytest.raises(Invalid, match=r"audience\.location: .* is not a location in S3; use s3://bucket/key"):
        audience_with(File(location, "id"), aws).page(cursor_page())


def test_a_missing_or_forbidden_file_is_refused_and_the_error_of_an_s3_outage_is_raised(
    aws: Aws, monkeypatch: pytest.MonkeyPatch
) -> None:
    audience = audience_with(File(f"s3://{BUCKET}/missing", "id"), aws)
    with pytest.raises(Invalid, match=f"s3://{BUCKET}/missing does not exist; put the file there"):
        audience.page(cursor_page())

    class Down:
        def __init__(self, code: str, status: int) -> None:
            self.answer = s3_refusal(code, status)

        def get_object(self, **asked: Any) -> Any:
            raise self.answer

    with pytest.raises(ClientError, match="SlowDown"):
        structs.replace(audience, client=Down("SlowDown", 503)).page(cursor_page())
    # On AWS a file that is not there is refused, for collect may not list the bucket.
    with pytest.raises(Invalid, match="does not exist, or collect may not read its bucket or KMS key"):
        structs.replace(audience, client=Down("AccessDenied", 403)).page(cursor_page())
