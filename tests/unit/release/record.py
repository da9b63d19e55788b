"""Records what a release writes, for the releases after it: they must read it (see CONTRIBUTING.md).

    cd RELEASE && export PYTHONPATH=lambdas:.:HERE && folder=HERE/tests/unit/release/0.3.0
    python -m tests.unit.release.record $folder
    python -m tests.unit.release.replay $folder $folder/outcomes.json

RELEASE is a checkout of the release, HERE the one of this file. Each kind has a file of JSON, with items in
DynamoDB's own form. `outcomes.json` is what the release itself does with all of it.
"""

import base64
import dataclasses
import hashlib
import hmac
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from tests.unit.release.stage import (
    ACCOUNT,
    BUCKET,
    NOW,
    REGION,
    TOPIC,
    TWILIO,
    Entry,
    Image,
    Stage,
    image_of,
    plain,
)

HOOK = "http://203.0.113.7/hooks/"
LATER, SOON = "2026-11-22T09:00:00Z", "2026-11-21T09:05:00Z"
PDF = "https://files.example.com/letter.pdf"


def _mail(id_: str, to: Any, **more: Any) -> dict[str, Any]:
    return {"id": id_, "event_type": "mail", "to": to, "subject": "Hello", "text": "Hi", **more}


def _text(id_: str, to: str, **more: Any) -> dict[str, Any]:
    return {"id": id_, "event_type": "sms", "to": to, "text": "Hi", **more}


def _fax(id_: str, to: str, **more: Any) -> dict[str, Any]:
    return {"id": id_, "event_type": "fax", "to": to, "pdf_url": PDF, **more}


FOREIGN = {"weight": 1.5, "tags": ["a", 2, None, True], "about": {"plan": {"name": "x"}}}
"""Attributes that Mailroom does not know."""
MESSAGES = (
    _mail("m-sent", "ada@example.com", callback_url=f"{HOOK}01", first_name="Ada", **FOREIGN),
    _mail("m-several", ["ada@example.com", "Bob <bob@example.com>"], cc="eve@example.com"),
    _mail("m-bulk", "dan@example.com", lane="bulk", topic="news", expires_at=LATER),
    {
        "id": "m-payload",
        "event_type": "mail",
        "email": "ada@example.com",
        "payload_ref": f"s3://{BUCKET}/p.json",
    },
    _mail("m-later", "ada@example.com", send_at=LATER, ttl=int(NOW) + 40 * 86400, callback_url=f"{HOOK}01"),
    _mail("m-gone", "ada@example.com", send_at=LATER),
    _mail("m-soon", "ada@example.com", send_at=SOON),
    _mail("m-invalid", "nobody", callback_url=f"{HOOK}01"),
    _mail("m-failed", "refused@example.com", callback_url=f"{HOOK}01"),
    _mail("m-slow", "slow@example.com"),
    _mail("m-lost", "lost@example.com"),
    _mail("m-bounced", "gone@example.com", callback_url=f"{HOOK}02"),
    _mail("m-complained", "cross@example.com"),
    _mail("m-undelivered", "full@example.com"),
    _mail("m-erased", "eve@example.com", callback_url=f"{HOOK}01"),
    _text("s-sent", "+16175550101"),
    _text("s-failed", "+16175550102"),
    _text("s-lost", "+16175550104", callback_url=f"{HOOK}01"),
    _text("s-aws", "+16175550105"),
    {
        "id": "p-sent",
        "event_type": "push",
        "to": "a" * 64,
        "platform": "ios",
        "title": "Hi",
        "data": {"n": 1},
    },
    {"id": "w-sent", "event_type": "webhook", "url": f"{HOOK}01", "payload": {"n": 1.5, "list": [1, "b"]}},
    {"id": "w-gone", "event_type": "webhook", "url": f"{HOOK}02", "payload": "gone"},
    {"id": "w-again", "event_type": "webhook", "url": f"{HOOK}04", "payload": None},
    _fax("f-sent", "+16175550201", callback_url=f"{HOOK}01", **{"from": "+12025550100"}),
    _fax("f-busy", "+16175550202", callback_url=f"{HOOK}01", expires_at=LATER),
    _fax("f-following", "+16175550203"),
    _fax("f-lost", "+16175550204"),
    _fax("f-soon", "+16175550205", send_at=SOON),
    {"id": "f-payload", "event_type": "fax", "to": "+16175550206", "payload_ref": f"s3://{BUCKET}/f.pdf"},
)
TO_THEM_AGAIN = (
    _mail("m-suppressed", "gone@example.com", callback_url=f"{HOOK}01"),
    _mail("m-opted-out", "dan@example.com", topic="news"),
    _mail("m-one-left", ["gone@example.com", "ada@example.com"]),
)
CAMPAIGN = {
    "weekly-followers": {
        "name": "weekly-followers",
        "channel": "mail",
        "topic": "news",
        "attributes": {"template": "default"},
        "page_size": 2,
        "module": "campaigns/weekly-followers/campaign.py",
        "audience": {
            "kind": "csv",
            "location": f"s3://{BUCKET}/people.csv",
            "key": "id",
            "columns": ["email"],
        },
    }
}
PEOPLE = "id,email,first_name\n1,ada@example.com,Ada\n2,dan@example.com,Dan\n3,,Bob\n4,eve@example.com,Eve\n"
MODULE = """
def compose(recipients):
    return {each.key: {"greeting": f"Hello {each.attributes['first_name']}"} for each in recipients}
"""


class Recorder:
    """The days of a stage, and what was written on them. A ledger item is kept in each state that counts."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.ledger: dict[str, Image] = {}
        self.queues: dict[str, list[dict[str, Any]]] = {}

    def run(self) -> dict[str, Any]:
        """All that is recorded, by the file's name."""
        prepare(self.stage)
        self._producers()
        self._senders()
        self._feedback()
        self._choices()
        self._again()
        self._scheduled()
        self._dead_letters()
        self._callbacks()
        self._campaign()
        self._operator()
        stage = self.stage
        return {
            "mailbox": self.mailbox,
            "ledger": self.ledger,
            "queues": self.queues,
            "schedules": self.schedules,
            "suppressions": stage.items("suppressions"),
            "preferences": stage.items("preferences"),
            "campaign-runs": self.runs,
            "dead-letters": stage.items("dead-letters"),
        }

    def keep(self, id_: str, name: str = "") -> None:
        """The ledger's item as it stands, by the message's id or a name that begins with it."""
        channels = {"m": "mail", "s": "sms", "p": "push", "w": "webhook", "f": "fax"}
        self.ledger[name or id_] = self.stage.item(id_, channels[id_[0]])
        assert self.ledger[name or id_], id_

    def take(self, queue: str) -> list[Entry]:
        """What lies in a queue, recorded."""
        entries = self.stage.take(queue)
        said = (
            {name: value for name, value in dataclasses.asdict(each).items() if value} for each in entries
        )
        self.queues.setdefault(queue, []).extend(said)
        return entries

    def _producers(self) -> None:
        from mailroom.client import Mailroom

        client = Mailroom("local", payload_bucket=BUCKET, mailbox_days=60)
        for each in MESSAGES:
            item = {name: _decimal(value) for name, value in each.items()}
            assert client.send(item).state == "accepted", each
        self.mailbox = {each["id"]["S"]: each for each in self.stage.items("mailbox")}
        assert self.stage.dispatch(*(self.mailbox[each["id"]] for each in MESSAGES)) == 0
        self.schedules = list(self.stage.schedules)
        self.keep("m-later", "m-later scheduled")
        self.keep("m-invalid")
        self.stage.follow()

    def _senders(self) -> None:
        stage = self.stage
        for queue in ("mail", "mail-bulk", "push"):
            stage.work(f"send_{queue[:4]}", *self.take(queue))
        texts = {each.body["id"]: each for each in self.take("sms")}
        stage.work("send_sms", texts.pop("s-aws"), SMS_PROVIDER="aws")
        stage.work("send_sms", *texts.values())
        # Each fax in an invocation of its own: one of them is followed to the function's end.
        for fax in self.take("fax.fifo"):
            stage.work("send_fax", fax)
        self.take("fax-retry")
        stage.work("send_webhook", *self.take("webhook"))
        for each in ("m-sent", "m-several", "m-failed", "s-sent", "s-failed", "s-aws", "p-sent"):
            self.keep(each)
        for each in ("w-sent", "w-gone", "f-sent"):
            self.keep(each)
        self.keep("m-slow", "m-slow released, in trouble")
        self.keep("w-again", "w-again released, in trouble")
        for each in ("m-lost", "s-lost", "f-lost"):
            self.keep(each, f"{each} sending, of unknown outcome")
        self.keep("f-busy", "f-busy retrying")
        self.keep("f-following", "f-following sending, submitted")
        stage.follow()
        self.take("fax-retry")

    def _feedback(self) -> None:
        stage = self.stage
        sent = {_header(each, "X-Correlation-ID"): each for each in stage.mails}
        for at, (reference, request) in enumerate(sent.items()):
            to = request["Destination"]["ToAddresses"]
            kind = {"gone": "Bounce", "cros": "Complaint", "full": "Transient"}.get(to[0][:4], "Delivery")
            body = {"Type": "Notification", "MessageId": f"{at}", "TopicArn": TOPIC}
            stage.queues["feedback"].append(
                Entry({**body, "Message": json.dumps(_of_ses(kind, reference, request))})
            )
        (text,) = stage.texts
        words = {
            "eventType": "TEXT_DELIVERED",
            "eventTimestamp": int(stage.now * 1000),
            "isFinal": True,
            "messageId": "sms-1",
            "destinationPhoneNumber": text["DestinationPhoneNumber"],
            "messageStatus": "DELIVERED",
            "context": text["Context"],
        }
        envelope = {
            "Type": "Notification",
            "MessageId": "sms",
            "TopicArn": TOPIC,
            "Message": json.dumps(words),
        }
        stage.queues["feedback"].append(Entry(envelope))
        (form,) = (parse_qs(each) for each in stage.providers.bodies if "%2B16175550101" in each)
        path = urlsplit(form["StatusCallback"][0]).path
        assert stage.run("twilio_callbacks", _by_twilio(path))["statusCode"] == 204
        assert stage.work("feedback", *self.take("feedback")) == []
        for each in ("m-bounced", "m-complained", "m-undelivered"):
            self.keep(each)
        for each in ("m-sent", "s-sent", "s-aws"):
            self.keep(each, f"{each} delivered")
        self.keep("m-several", "m-several delivered to two of three")
        stage.follow()

    def _choices(self) -> None:
        (mail,) = (
            each for each in self.stage.mails if each["Destination"]["ToAddresses"] == ["dan@example.com"]
        )
        token = _header(mail, "List-Unsubscribe").strip("<>").rpartition("/")[2]
        assert self.stage.run("unsubscribe", _one_click(token))["statusCode"] == 200

    def _again(self) -> None:
        """To those who bounced, complained or opted out."""
        assert self.stage.dispatch(*map(image_of, TO_THEM_AGAIN)) == 0
        self.stage.work("send_mail", *self.take("mail"))
        for each in TO_THEM_AGAIN:
            self.keep(each["id"])
        # A fax's second attempt, and one whose first worker was cut off.
        (again,) = (Entry(**each) for each in self.queues["fax-retry"] if each["body"].get("attempt") == 2)
        self.stage.wait(1000)
        assert self.stage.work("retry_fax", again) == []
        self.stage.work("send_fax", *self.take("fax.fifo"))
        self.keep("f-busy", "f-busy retrying again")
        self.stage.follow()
        self.take("fax-retry")

    def _scheduled(self) -> None:
        stage = self.stage
        stage.now = NOW + 86_400
        inputs = {
            json.loads(each["Target"]["Input"])["id"]: each["Target"]["Input"] for each in self.schedules
        }
        stage.dynamodb.delete_item(
            TableName="mailroom-local-mailbox", Key=image_of({"id": "m-gone", "event_type": "mail"})
        )
        stage.queues["scheduled"] += [Entry(json.loads(each)) for each in inputs.values()]
        assert stage.work("dispatch_scheduled", *self.take("scheduled")) == []
        self.keep("m-gone", "m-gone cancelled")
        self.take("mail")
        stage.follow()

    def _dead_letters(self) -> None:
        dead = [Entry(**each) for each in self.queues["mail"] if each["body"]["id"] in ("m-slow", "m-sent")]
        self.stage.queues["mail-dlq"] = [*dead, Entry({"no": "message"})]
        self.stage.run("dead_letters", {"queue": "mail-dlq"})
        self.keep("m-slow", "m-slow dead-lettered")

    def _callbacks(self) -> None:
        self.stage.work("send_webhook", *self.take("webhook"))
        for each in ("m-bounced", "m-sent", "f-sent"):
            self.keep(each, f"{each} with callbacks")

    def _campaign(self) -> None:
        stage = self.stage
        start = {"campaign": "weekly-followers", "scheduled_at": "2026-11-22T09:00:00Z"}
        stage.queues["collect"].append(Entry(start))
        self.runs: dict[str, Image] = {}
        while pages := self.take("collect"):
            assert stage.work("collect", *pages) == []
            (run,) = stage.items("campaign-runs")
            self.runs[f"{run['state']['S']}, {run['pages']['N']} pages"] = run
        assert stage.work("compose", *self.take("audience")) == []
        (self.runs["composed"],) = stage.items("campaign-runs")
        composed = [
            each for each in stage.items("mailbox") if each["id"]["S"].startswith("weekly-followers#")
        ]
        self.mailbox |= {each["id"]["S"]: each for each in composed}
        self.ledger["weekly-followers opted out"] = stage.item("weekly-followers#2026-11-22T09:00Z#2", "mail")

    def _operator(self) -> None:
        """What the command writes."""
        for line in (
            "resend m-failed --force --yes",
            "resend f-sent --force --yes",
            "settle f-following --as sent --yes",
            "erase eve@example.com --yes",
            "preferences opt-out eve@example.com --topic offers",
            "campaign start weekly-followers --run 2026-11-23 --new --yes",
            "campaign stop weekly-followers --run 2026-11-22T09:00Z --yes",
        ):
            if knows(line):
                operate(line)
        self.keep("m-failed", "m-failed reopened")
        self.keep("f-sent", "f-sent reopened")
        if knows("settle"):
            self.keep("f-following", "f-following settled")
        self.keep("m-erased", "m-erased emptied")
        self.keep("m-several", "m-several without one who was erased")
        (self.runs["stopped"],) = self.stage.items("campaign-runs")
        self.take("mail")
        self.take("collect")
        self.stage.follow()
        self.take("fax-retry")
        self.take("webhook")


def prepare(stage: Stage) -> None:
    """Objects in the bucket, and the campaign's bundle, in which the process stands from here on."""
    payload = {"subject": "Hello", "text": "Hi", "first_name": "Ada"}
    for key, content in (("p.json", json.dumps(payload)), ("f.pdf", "%PDF-1.4"), ("people.csv", PEOPLE)):
        stage.s3.put_object(Bucket=BUCKET, Key=key, Body=content.encode())
    stage.bucket(f"mailroom-local-unprocessed-{ACCOUNT}-{REGION}")
    bundle = Path(tempfile.mkdtemp())
    (bundle / "campaigns" / "weekly-followers").mkdir(parents=True)
    (bundle / "campaigns" / "weekly-followers" / "campaign.py").write_text(MODULE)
    (bundle / "campaigns.json").write_text(json.dumps(CAMPAIGN))
    os.chdir(bundle)


def knows(line: str) -> bool:
    """Whether the release has that command: it may be older than the command."""
    from typer.testing import CliRunner

    from ops import cli

    return CliRunner().invoke(cli.app, [line.split()[0], "--help"]).exit_code == 0


def operate(line: str) -> str:
    """What the operator's command says."""
    from typer.testing import CliRunner

    from ops import cli

    done = CliRunner().invoke(cli.app, [*line.split(), "--stage", "local"], env={"COLUMNS": "160"})
    assert done.exit_code == 0, (line, done.output, done.stderr, done.exception)
    return done.output


def _decimal(value: Any) -> Any:
    return plain(image_of({"x": json.loads(json.dumps(value), parse_float=_number)}))["x"]


def _number(text: str) -> Any:
    from decimal import Decimal

    return Decimal(text)


def _header(request: Any, name: str) -> str:
    headers = request["Content"]["Simple"]["Headers"]
    return next((str(each["Value"]) for each in headers if each["Name"] == name), "")


def _of_ses(kind: str, reference: str, request: Any) -> dict[str, Any]:
    """An event of SES about a mail, with what the mail carried."""
    to, at = request["Destination"]["ToAddresses"], "2026-11-21T09:00:01.000Z"
    to = [each.rpartition("<")[2].rstrip(">") for each in to]
    bounced = {"bouncedRecipients": [{"emailAddress": each, "diagnosticCode": "550 5.1.1"} for each in to]}
    section: dict[str, Any] = {
        "Delivery": {"timestamp": at, "recipients": to, "smtpResponse": "250 ok"},
        "Bounce": {"timestamp": at, "bounceType": "Permanent", "bounceSubType": "General", **bounced},
        "Transient": {"timestamp": at, "bounceType": "Transient", "bounceSubType": "MailboxFull", **bounced},
        "Complaint": {
            "timestamp": at,
            "complaintFeedbackType": "abuse",
            "complainedRecipients": [{"emailAddress": each} for each in to],
        },
    }[kind]
    kind = "Bounce" if kind == "Transient" else kind
    return {
        "eventType": kind,
        "mail": {
            "timestamp": "2026-11-21T09:00:00.000Z",
            "messageId": f"ses-{reference[:12]}",
            "destination": [*to, *request["Destination"].get("CcAddresses", [])],
            "headersTruncated": False,
            "headers": [{"name": "X-Correlation-ID", "value": reference}],
            "tags": {each["Name"]: [each["Value"]] for each in request["EmailTags"]},
        },
        kind.lower(): section,
    }


def _by_twilio(path: str) -> dict[str, Any]:
    """A status callback as the HTTP API hands it on, signed as Twilio signs."""
    fields = {"AccountSid": TWILIO["account_sid"], "MessageSid": "SM1", "MessageStatus": "delivered"}
    fields["To"] = "+16175550101"
    signed = f"https://api.mailroom.example{path}" + "".join(
        f"{name}{fields[name]}" for name in sorted(fields)
    )
    digest = hmac.digest(TWILIO["auth_token"].encode(), signed.encode(), hashlib.sha1)
    return {
        "rawPath": path,
        "rawQueryString": "",
        "headers": {
            "content-type": "application/x-www-form-urlencoded",
            "x-twilio-signature": base64.b64encode(digest).decode(),
        },
        "requestContext": {"domainName": "api.mailroom.example", "http": {"method": "POST", "path": path}},
        "pathParameters": {"reference": path.rpartition("/")[2]},
        "body": urlencode(fields),
        "isBase64Encoded": False,
    }


def _one_click(token: str) -> dict[str, Any]:
    path = f"/unsubscribe/{token}"
    return {
        "rawPath": path,
        "headers": {"content-type": "application/x-www-form-urlencoded"},
        "requestContext": {"http": {"method": "POST", "path": path}},
        "pathParameters": {"token": token},
        "body": "List-Unsubscribe=One-Click",
        "isBase64Encoded": False,
    }


def written(value: Any, depth: int = 0) -> str:
    """JSON with a line for each thing down to an item's attributes."""
    if not isinstance(value, dict | list) or depth == 3 or len(json.dumps(value)) <= 100:
        return json.dumps(value, ensure_ascii=False)
    inner = " " * (depth + 1)
    if isinstance(value, list):
        lines = [inner + written(each, depth + 1) for each in value]
        return "[\n" + ",\n".join(lines) + f"\n{' ' * depth}]"
    lines = [f"{inner}{json.dumps(name)}: {written(each, depth + 1)}" for name, each in value.items()]
    return "{\n" + ",\n".join(lines) + f"\n{' ' * depth}}}"


def main(folder: Path) -> None:
    """Record into a folder."""
    recorded = Recorder(Stage()).run()
    folder.mkdir(parents=True, exist_ok=True)
    for name, document in recorded.items():
        (folder / f"{name}.json").write_text(written(document) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
