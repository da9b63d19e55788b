"""What the pages for those who move here say is tried: programs, a campaign, templates."""

import json
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

from mailroom.campaigns import Recipients
from mailroom.campaigns.bodies import Chunk
from mailroom.campaigns.definition import Definition, Modules
from mailroom.campaigns.drafts import item_of
from mailroom.channels.contracts import CONTRACTS
from mailroom.content.templates import Templates
from mailroom.message.message import parse
from tests.support.docs_pages import Page
from tests.support.segment import ENDPOINTS, JSON_LINES
from tests.support.stacks.campaign_folders import enabled
from tests.support.unit.audience import RUN, TIME, jsonl, people

FAX_GATEWAY, PINPOINT = Page("docs/coming-from-fax-gateway.md"), Page("docs/leaving-pinpoint.md")
ADA = ENDPOINTS[0] | {"first_name": "Ada"}


def test_the_program_that_moves_faxes_moves_each_body_under_its_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (program,) = FAX_GATEWAY.blocks("python")
    bodies = [
        json.dumps({"fax_id": id_, "to": to, "retry_count": count})
        for id_, to, count in (("a", "+16175551234", 0), ("b", "+16175551234", 3), ("c", "+493012345678", 19))
    ]
    with mock_aws():
        monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
        sqs = boto3.client("sqs")
        fifo = {"FifoQueue": "true", "ContentBasedDeduplication": "true"}
        old = sqs.create_queue(QueueName="fax-gateway-prod-retry")["QueueUrl"]
        new = sqs.create_queue(QueueName="mailroom-prod-fax.fifo", Attributes=fifo)["QueueUrl"]  # type: ignore[arg-type]
        monkeypatch.setattr(sys, "argv", ["move.py", old, new])
        for again in (bodies, bodies[:1]):  # it was stopped before it deleted the first one
            for body in again:
                sqs.send_message(QueueUrl=old, MessageBody=body)
            exec(program.text.replace("WaitTimeSeconds=2", "WaitTimeSeconds=0"), {})
        reply = sqs.receive_message(QueueUrl=new, MaxNumberOfMessages=10, AttributeNames=["All"])
        assert [each["Body"] for each in reply["Messages"]] == bodies
        groups = [each["Attributes"]["MessageGroupId"] for each in reply["Messages"]]
        assert groups == ["+16175551234", "+16175551234", "+493012345678"]
        assert "Messages" not in sqs.receive_message(QueueUrl=old)


def test_a_segment_is_the_audience_of_a_campaign_and_who_opted_out_gets_nothing(tmp_path: Path) -> None:
    (toml,), (module,) = PINPOINT.blocks("toml"), PINPOINT.blocks("python")
    folder = tmp_path / "campaigns" / "spring"
    folder.mkdir(parents=True)
    # The page's template is the reader's own.
    (folder / "campaign.toml").write_text(toml.text.replace('"spring"', '"default"'))
    (folder / "campaign.py").write_text(module.text)
    (campaign,) = enabled(tmp_path / "campaigns", "spring")
    audience = tomllib.loads(toml.text)["audience"]
    found = people(jsonl(JSON_LINES, audience["key"], audience["columns"]))
    assert len(found) == len(ENDPOINTS)
    chunk = Chunk("spring", RUN, TIME, found)
    definition: Any = Definition("spring", campaign.chosen.channel, audience, module=campaign.module)
    composed = Modules(tmp_path).compose(definition, Recipients(found, RUN, TIME))
    assert composed is not None
    items = [
        item_of(CONTRACTS["mail"], definition, chunk, each, composed[each.key])
        for each in found
        if each.key in composed
    ]
    assert [item["to"] for item in items] == ["ada@example.com", "bob@example.com", "eve@example.com"]
    for item in items:
        parse(item | {"subject": "Hi", "text": "Hi"}, CONTRACTS).check()


TEMPLATES = [
    each.replace("\\|", "|")
    for each in re.findall(r"`(\{[{%] .+?)`", PINPOINT.text.partition("## Templates")[2])
]
TEXTS = ["Ada", "Ada", "…", "musicbooks", "…", "Ada Lovelace"]


@pytest.mark.parametrize(("template", "text"), [*zip(TEMPLATES, TEXTS, strict=True)])
def test_a_template_says_what_pinpoints_said(tmp_path: Path, template: str, text: str) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "subject.txt").write_text("Hi")
    (tmp_path / "t" / "body.txt").write_text(template)
    assert Templates(tmp_path).render("t", ADA).text == text
