"""A stage with all that the console's pages read: messages, dead letters, campaigns, people and an inbox."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from moto import mock_aws
from msgspec import structs

from mailroom.aws.dynamo_values import image_of
from mailroom_local.providers.fax import FaxLine
from mailroom_local.providers.http import SimulatorServer
from mailroom_local.providers.inbox import Accepted, InboxStore
from mailroom_local.providers.webhook_receiver import WebhookReceiver
from mailroom_ops.console import server
from mailroom_ops.console.pages.campaign_acts import StartJob
from mailroom_ops.console.pages.erasing import EraseJob
from mailroom_ops.console.pages.redrive import RedriveJob
from tests.support.campaign_start import start_in
from tests.support.dynamodb import in_memory_dynamodb
from tests.support.local.served import served
from tests.support.ops.campaign import NOW, RUN, CampaignStage, answer_with_two
from tests.support.ops.console import Browser
from tests.support.ops.message import PAYLOADS
from tests.support.ops.repair import Item, RepairStage
from tests.support.ops.search import index
from tests.support.ops.shared import BUCKET, client, failure, make_table
from tests.support.unit.webhooks import KEY

MS = int(NOW * 1000)
ADA = "ada@example.com"
LINE = {"mail": {"per_day": [["0001-01-01", 2]], "reserve": 0.1, "per_second": 5, "queue_url": "https://sqs"}}


class WholeStage(RepairStage):
    """The stage dev with a campaign, and without a message."""

    def __init__(self, root: Path) -> None:
        super().__init__()
        self.world, self.store = CampaignStage(root), InboxStore()
        make_table(self.dynamodb, "mailroom-dev-contents", "message")
        self.s3 = client("s3")
        for bucket in (PAYLOADS, BUCKET):
            self.s3.create_bucket(Bucket=bucket)
        client("secretsmanager").create_secret(Name="mailroom-dev-webhook-keys", SecretString=KEY)
        self.variables["mailroom-dev-collect"] = {}
        self.variables["mailroom-dev-dispatch"]["PAYLOAD_BUCKET"] = PAYLOADS
        for channel in ("sms", "push", "fax"):
            self.variables[f"mailroom-dev-send-{channel}"] = {}
        invoke = self.functions.invoke

        def invoked(*, FunctionName: str, Payload: bytes) -> Any:  # noqa: N803 - boto3's names
            by = self.world.functions.invoke if b"dry_run" in Payload else invoke
            return by(FunctionName=FunctionName, Payload=Payload)

        self.functions.invoke = invoked  # type: ignore[method-assign]
        answer_with_two(self.world)

    def close_the_day(self) -> None:
        """Let the day of mail be used up, and a message wait for it."""
        self.world.limited(2, sent=2)
        self.variables["mailroom-dev-collect"] = self.world.functions.variables
        self.variables["mailroom-dev-release"]["LINES"] = json.dumps(LINE)
        wait = {
            "version": "v",
            "reason": "day_used_up",
            "lane": "bulk",
            "recipients": 1,
            "lines_up": True,
            "expires": None,
        }
        line: Item = {
            "waits_in": "line#mail#0",
            "waits_at": int(NOW),
            "scheduledFor": "2026-11-21T14:05:00Z",
            "wait": wait,
        }
        self.know("waits", status="scheduled", to=ADA, putAt=MS, ttl=1 << 33, **line)

    def fill(self) -> None:
        """Let the stage have a message of each kind."""
        over: Item = {"completedAt": MS, "attempts": 1, "putAt": MS - 9_000, "ttl": 1 << 33, "to": ADA}
        wrong: Item = {
            **over,
            "error": {"code": "rejected", "message": "550 no"},
        }
        several: Item = {
            "recipients": {ADA: {"status": "bounced"}, "bob@example.com": {"status": "delivered"}}
        }
        life: Item = {
            "history": [{"at": MS, "status": "sent"}],
            "sentAt": MS,
            "startedAt": MS - 5,
            "submittedAt": MS,
        }
        callbacks: Item = {"callbacks": {"sent.1": {"status": "failed", "at": MS, "reason": "url: no"}}}
        titles: Item = {"template": "weekly", "subject": "Hello"}
        self.know("whole", status="delivered", **titles, **over, **life, **callbacks)
        bounced = failure("several", "mail", "bounced", MS)
        self.know(
            "several", status="bounced", **{**wrong, "to": [ADA, "bob@example.com"]}, **several, **bounced
        )
        self.know("failed", status="failed", **wrong, **failure("failed", "mail", "failed", MS))
        self.know(f"weekly#{RUN}#ada", status="delivered", **over, **start_in(f"weekly#{RUN}#ada"))
        trouble = {"code": "throttled", "message": "busy"}
        self.know("dead", status="sending", dead_lettered_at=MS, trouble=trouble)
        self.know("both", status="delivered", **over)
        self.know("both", "sms", status="delivered", **{**over, "to": "+16175551234"})
        faxed: Item = {"to": "+16175551234", "provider": "telnyx", "provider_id": "fx-1", "deliveredAt": MS}
        self.know("letter", "fax", status="delivered", **{**over, **faxed})
        condition = {"id": "whole", "event_type": "mail", "status": ["delivered"]}
        self.know("after", status="cancelled", unless=[condition], **over)
        self.put({"id": "whole", "event_type": "mail", "to": ADA, "template": "weekly", "first_name": "Ada"})
        self.put({"id": "ready", "event_type": "sms", "to": "+16175551234", "text": "Hi"})
        index(self.dynamodb)
        about = {"reason": "bounce", "at": 1, "message_id": "several"}
        self._item("suppressions", recipient=ADA, channel="mail", **about)
        self._item("preferences", recipient=ADA, topic="news", opted_out_at=1, by="page")
        for id_ in ("dead", "else"):
            body = json.dumps({"id": id_, "event_type": "mail"})
            self.sqs.send_message(QueueUrl=self.urls["mail-dlq"], MessageBody=body)
        self.world.collected()
        content: dict[str, Any] = {"subject": "Hello", "html": "<p>", "text": "Hi", "to": [ADA]}
        content |= {"headers": {}, "attachments": []}
        content |= dict.fromkeys(("from", "cc", "bcc", "reply_to"))
        self.store.add(Accepted("mail", ADA, "p-1", content))
        self.store.add(Accepted("sms", "+1", "p-2", {"text": "Hi", "media_urls": [], "course": "delivered"}))
        push = {"payloads": {}, "subject": "Hi", "platform": "apns", "token": "t"}
        self.store.add(Accepted("push", "t", "p-3", push))

    def _item(self, table: str, **attributes: Any) -> None:
        self.dynamodb.put_item(TableName=f"mailroom-dev-{table}", Item=image_of(attributes))


def begin_jobs(browser: Browser) -> None:
    """Begin the jobs that pages show, and wait for their ends."""
    browser.post("/campaigns/start", {"campaign": "weekly", "step": "look"})
    browser.post("/people/erase", {"recipient": ADA, "step": "look"})
    browser.post("/dead-letters/redrive", {"queue": "mail", "only": "nothing"})
    jobs = [(StartJob, "weekly"), (EraseJob, ADA), (RedriveJob, "mail")]
    for key in jobs:
        browser.site.jobs[key].wait()


@contextmanager
def whole_stage(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[WholeStage, Browser]]:
    """A stage without messages, its inbox, and a browser whose console has the pages of a local stage too."""
    with mock_aws(), in_memory_dynamodb():
        stage = WholeStage(root)
        monkeypatch.setattr("boto3.Session", lambda: stage.session)
        pages = tuple(structs.replace(page, local=False) for page in server.PAGES)
        monkeypatch.setattr(server, "PAGES", pages)
        monkeypatch.setattr("mailroom_ops.campaigns.files.PROJECT", root)
        for module in ("console.pages.templates", "console.pages.form", "messages.items"):
            monkeypatch.setattr(f"mailroom_ops.{module}.TEMPLATES", root / "templates")
        monkeypatch.setattr("mailroom_ops.repair.dead_letter_queues.LONG_POLL_SECONDS", 0)
        monkeypatch.setattr("mailroom_ops.repair.redrive.LONG_POLL_SECONDS", 0)
        monkeypatch.setattr("mailroom_ops.people.erase_messages.SETTLED_AFTER", 0)
        inbox = stage.store.pages(), FaxLine(stage.store).pages()
        with served(SimulatorServer(0, *inbox, WebhookReceiver())) as url:
            monkeypatch.setenv("MAILROOM_PROVIDERS", url)
            yield stage, Browser(stage.session, clock=lambda: NOW).enter()
