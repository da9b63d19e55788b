"""Faxes of the pipeline's tests, sent at once, because a slow one and a lost response take their time
anyway."""

import json
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from lab.harness.expected import Item
from tests.support.pipeline.items import fax_item
from tests.support.pipeline.shared import Pipeline, until

MAX_ATTEMPTS = 3
ENDED_SECONDS = 90.0
BUSY, TWICE, SLOW, LOST, REFUSED = (f"+12125550{ending}" for ending in (110, 112, 113, 114, 115))
EXPIRED = "+12125550124"
GOOD, SHARED, FOREIGN, BLOCKED, DUE, STORED = (f"+13125550{ending}" for ending in range(140, 146))
CROWD = [f"one-line-{number}" for number in range(6)]
NOT_A_FAX = json.dumps({"to": BLOCKED, "pdf_url": "https://example.com/faxes/none.pdf"})
DUE_SECONDS = 3.0


@dataclass(frozen=True)
class Faxed:
    """When the faxes were put, and when the one with a `send_at` was due, in epoch seconds; their ids."""

    put_at: float
    due_at: float
    ids: list[str]

    def until_ended(self, pipeline: Pipeline) -> None:
        """Wait until each has its outcome."""
        pipeline.until_ended(*self.ids, event_type="fax", seconds=ENDED_SECONDS)
        dead = pipeline.output("FaxDlqUrl")
        until(lambda: pipeline.dead_letters(dead), ENDED_SECONDS, lambda: "no dead letter")


def faxed(pipeline: Pipeline) -> Faxed:
    """Put all faxes."""
    due = datetime.now(UTC) + timedelta(seconds=DUE_SECONDS)
    put_at = time.time()
    items = _put_faxes(pipeline, due)
    pipeline.put(*items)
    queued = _queued(pipeline)
    return Faxed(put_at, due.timestamp(), [item["id"] for item in items] + queued)


def told_at(pipeline: Pipeline, id_: str) -> str:
    """The callback_url of a fax."""
    return pipeline.receiver(f"ok/callbacks/{id_}")


def _put_faxes(pipeline: Pipeline, due: datetime) -> list[Item]:
    bucket = pipeline.output("PayloadBucketName")
    pipeline.s3.put_object(Bucket=bucket, Key="faxes/stored.pdf", Body=b"%PDF-1.7 one page")
    stored = {"pdf_url": None, "payload_ref": f"s3://{bucket}/faxes/stored.pdf"}
    items = [
        fax_item("slow", SLOW),
        fax_item("lost", LOST),
        fax_item("simple", GOOD),
        fax_item("busy-twice", TWICE),
        fax_item("busy-always", BUSY),
        fax_item("moved", EXPIRED, retry_count=1),
        fax_item("refused", REFUSED),
        fax_item("no-number", "555-CALL-ME"),
        fax_item("stored", STORED, **stored),
        fax_item("due", DUE, send_at=due.isoformat()),
        *(fax_item(id_, SHARED) for id_ in CROWD),
    ]
    return [item | {"callback_url": told_at(pipeline, item["id"])} for item in items]


def _queued(pipeline: Pipeline) -> list[str]:
    """Put faxes directly into the queue, one of them in the group of another number. Return their ids."""
    groups = {"direct": FOREIGN, "by-hand": FOREIGN, "misgrouped": "the-invoices"}
    for id_, group in groups.items():
        body = {
            "fax_id": id_,
            "to": "+1 (312) 555-0142" if id_ == "by-hand" else FOREIGN,
            "pdf_url": f"https://example.com/faxes/{id_}.pdf",
            "callback_url": told_at(pipeline, id_),
        }
        pipeline.queue_fax(json.dumps(body), group)
        pipeline.queue_fax(json.dumps(body), group)  # the very same, which the queue knows by its content
    pipeline.queue_fax(NOT_A_FAX, BLOCKED)
    behind = {"fax_id": "behind", "to": BLOCKED, "pdf_url": "https://example.com/faxes/behind.pdf"}
    pipeline.queue_fax(json.dumps(behind), BLOCKED)
    return [*groups, "behind"]
