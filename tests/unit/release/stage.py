"""A whole stage in one process, for any release: its functions run from their handlers, by their environment.

The stage knows what is deployed (names of handlers, variables, tables and queues) and nothing of the library.
So the same recorder runs on every release. DynamoDB and S3 are moto's, queues are lists, providers answer on
this machine. Time stands still and tokens are counted, so that two recordings are equal. A stage has to be
made before the library is imported: the library keeps `time.time` and `token_hex` as it finds them.
"""

import importlib
import io
import itertools
import json
import os
import random
import secrets
import socket
import sys
import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any

import boto3
import botocore.session
from boto3.dynamodb.types import TypeDeserializer, TypeSerializer
from botocore.client import BaseClient
from botocore.exceptions import ClientError, ReadTimeoutError
from moto import mock_aws
from moto.dynamodb.models import dynamodb_backends

NOW = 1_795_251_600.0
"""2026-11-21T09:00:00Z."""
REGION, ACCOUNT = "eu-central-1", "123456789012"
NAME = "mailroom-local-"
BUCKET = f"{NAME}payloads-{ACCOUNT}-{REGION}"
TWILIO = {"account_sid": f"AC{'fedcba9876543210' * 2}", "auth_token": "0f1e2d3c4b5a69788796a5b4c3d2e1f0"}
TOPIC = f"arn:aws:sns:{REGION}:{ACCOUNT}:{NAME}feedback"
KEYS = {
    "mailbox": ("id", "event_type"),
    "ledger": ("id", "event_type"),
    "suppressions": ("recipient", "channel"),
    "preferences": ("recipient", "topic"),
    "campaign-runs": ("campaign", "run"),
    "dead-letters": ("message_id",),
}
Image = dict[str, Any]
"""An item in DynamoDB's own form."""


@dataclass
class Entry:
    """A message of a queue, as it was sent."""

    body: Any
    attributes: dict[str, str] = field(default_factory=dict)
    delay: int = 0
    group: str = ""
    duplicate: str = ""

    @property
    def text(self) -> str:
        return self.body if isinstance(self.body, str) else json.dumps(self.body)


def url(queue: str) -> str:
    """A queue's."""
    return f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/{NAME}{queue}"


def image_of(item: Mapping[str, Any]) -> Image:
    return {name: TypeSerializer().serialize(value) for name, value in item.items()}


def plain(image: Image) -> dict[str, Any]:
    return {name: TypeDeserializer().deserialize(value) for name, value in image.items()}


ENVIRONMENT: dict[str, Any] = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_DEFAULT_REGION": REGION,
    "AWS_REGION": REGION,
    "POWERTOOLS_SERVICE_NAME": "test",
    "POWERTOOLS_METRICS_NAMESPACE": "Mailroom",
    "POWERTOOLS_METRICS_DISABLED": "true",
    "POWERTOOLS_LOG_LEVEL": "ERROR",
    "MAILROOM_STAGE": "local",
    "STAGE": "local",
    **{f"{name.upper().replace('-', '_')}_TABLE": NAME + name for name in KEYS},
    "RUNS_TABLE": f"{NAME}campaign-runs",
    "LEDGER_TTL_SECONDS": "7776000",
    "RUN_TTL_SECONDS": "7776000",
    "PAYLOAD_BUCKET": BUCKET,
    "UNSUBSCRIBE_URL": "https://api.mailroom.example/unsubscribe",
    "UNSUBSCRIBE_SECRET_ARN": "unsubscribe",
    "ROUTES": {
        "mail": {"normal": url("mail"), "bulk": url("mail-bulk")},
        **{each: {"normal": url(each)} for each in ("sms", "push", "webhook")},
        "fax": {"normal": url("fax.fifo")},
    },
    "DELAYED_ROUTES": {"fax": url("fax-retry")},
    "CALLBACK_SCHEMES": ["http", "https"],
    "CALLBACK_PORTS": [80, 443],
    "DEFAULT_REGION": "US",
    "SCHEDULE_GROUP": "mailroom-local",
    "SCHEDULE_ROLE_ARN": f"arn:aws:iam::{ACCOUNT}:role/{NAME}schedules",
    "SCHEDULE_TARGET_ARN": f"arn:aws:sqs:{REGION}:{ACCOUNT}:{NAME}scheduled",
    "SCHEDULE_DEAD_LETTER_ARN": f"arn:aws:sqs:{REGION}:{ACCOUNT}:{NAME}scheduled-dlq",
    "LEASE_SECONDS": "120",
    "PACE_SECONDS": "0",
    "ON_UNKNOWN": "hold",
    "BACKOFF_SECONDS": "5",
    "BACKOFF_CAP_SECONDS": "900",
    "MISCONFIGURED_SECONDS": "20",
    "SUBMIT_SECONDS": "10",
    "RECORD_SECONDS": "5",
    "MAIL_SENDERS": ["Mailroom <post@mailroom.example>"],
    "CONFIGURATION_SET": "mailroom-local",
    "MAX_ATTACHMENT_BYTES": "1000",
    "MEDIA_SECONDS": "3600",
    "CLOCK_SKEW_SECONDS": "5",
    "FEEDBACK_TOPICS": [TOPIC],
    "FEEDBACK_QUEUE_URL": url("feedback"),
    "TWILIO_SECRET_ARN": "twilio",
    "PUBLIC_URL": "https://api.mailroom.example",
    "FAX_QUEUE_URL": url("fax.fifo"),
    "WEBHOOK_QUEUE_URL": url("webhook"),
    "RETRY_QUEUE_URL": url("fax-retry"),
    "AUDIENCE_QUEUE_URL": url("audience"),
    "MAX_ATTEMPTS": "20",
    "RETRY_DELAY_SECONDS": "600",
    "RETRY_GROWTH": "1.0",
    "RETRY_DELAY_CAP_SECONDS": "43200",
    "CHANNELS": ["mail", "sms", "push", "fax", "webhook"],
    "DEAD_LETTER_QUEUES": {f"{each}-dlq": url(f"{each}-dlq") for each in ("mail", "sms", "webhook")},
    "MAX_SEGMENTS": "10",
    "SMS_PROVIDER": "twilio",
    "SMS_SENDER": "+12025550123",
    "CALLBACK_URL": "https://api.mailroom.example/callbacks/twilio",
    "PLATFORM_APPLICATIONS": {"ios": f"arn:aws:sns:{REGION}:{ACCOUNT}:app/APNS/shop"},
    "TOPICS": [],
    "FAX_PROVIDER": "telnyx",
    "FAX_SECRET_ARN": "fax",
    "FAX_SENDERS": ["+12025550100"],
    "FAX_CONNECTION_ID": "connection-1",
    "FAX_TTL_MINUTES": "5",
    "FAX_QUALITY": "fine",
    "POLL_SECONDS": "5",
    "LONGEST_FAX_SECONDS": "7200",
    "LAST_SUBMIT_RECEIVE": "10",
    "SIGNING_SECRET_ARN": "signing",
    "SIGNING_OVERLAP_SECONDS": "86400",
    "DELAYS": [5, 300],
    "RETRY_AFTER_CAP_SECONDS": "900",
    "ALLOWED_NETWORKS": ["203.0.113.0/24"],
    "ALLOWED_SCHEMES": ["http", "https"],
    "ALLOWED_PORTS": [80, 443],
}
"""Of all functions; what is one function's own stands in OWN."""
TEMPLATES = os.path.join(os.getcwd(), "templates")  # noqa: PTH118, PTH109 - of the release that is run
OWN: dict[str, dict[str, str]] = {
    **{
        f"send_{each}": {"CHANNEL": each, "QUEUE_URL": url(each), "TEMPLATES": f"{TEMPLATES}/{each}"}
        for each in ("mail", "sms", "push", "webhook")
    },
    "send_fax": {"CHANNEL": "fax", "QUEUE_URL": url("fax.fifo")},
    "retry_fax": {"QUEUE_URL": url("fax-retry")},
    "collect": {"QUEUE_URL": url("collect")},
    "compose": {"QUEUE_URL": url("audience")},
    "feedback": {"QUEUE_URL": url("feedback")},
    "dispatch_scheduled": {"QUEUE_URL": url("scheduled")},
}
SECRETS = {
    "twilio": json.dumps(TWILIO),
    "fax": '{"api_key": "key-1"}',
    "unsubscribe": '{"key": "0123456789abcdefKEY"}',
    "signing": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
}


class Providers(ThreadingHTTPServer):
    """Twilio, Telnyx and an endpoint of webhooks. What a number or a path ends with decides the answer:
    02 is refused or busy, 03 is not over yet, 04 gets no answer that can be understood."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.asked: list[str] = []
        self.bodies: list[str] = []
        self.faxes: dict[str, str] = {}
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def answer(self, method: str, path: str, body: str) -> tuple[int, Any]:
        self.asked.append(f"{method} {path.partition('?')[0]}")
        self.bodies.append(body)
        if "/Messages" in path:
            return self._text(method, body)
        if "/v2/faxes" in path:
            return self._fax(method, path, body)
        return (410 if path.endswith("02") else 500 if path.endswith("04") else 204), None

    def _text(self, method: str, body: str) -> tuple[int, Any]:
        if method == "GET":
            return 200, {"messages": []}
        if "02&" in f"{body.partition('To=')[2].partition('&')[0]}&":
            return 400, {"code": 21211, "message": "Invalid 'To' Phone Number"}
        if "04&" in f"{body.partition('To=')[2].partition('&')[0]}&":
            return 503, {}
        return 201, {"sid": f"SM{len(self.asked):032d}"}

    def _fax(self, method: str, path: str, body: str) -> tuple[int, Any]:
        if method == "POST" and path.endswith("/faxes"):
            to = json.loads(body)["to"]
            id_ = f"fax-{to[-2:]}-{len(self.faxes)}"
            self.faxes[id_] = to
            return (503, {}) if to.endswith("04") else (202, {"data": {"id": id_}})
        if path.endswith("/cancel"):
            return 202, {}
        if path.partition("?")[0].endswith("/faxes"):
            return 200, {"data": [], "meta": {"total_pages": 1}}
        id_ = path.rpartition("/")[2]
        states = {"02": ("failed", "user_busy"), "03": ("sending", None)}
        status, reason = states.get(id_.split("-")[1], ("delivered", None))
        return 200, {"data": {"id": id_, "status": status, "failure_reason": reason}}


class _Answers(BaseHTTPRequestHandler):
    server: Providers

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        status, said = self.server.answer(self.command, self.path, body)
        content = b"" if said is None else json.dumps(said).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = _answer  # noqa: N815 - http.server's names

    def log_message(self, *_: Any) -> None:
        """Nothing."""


class Stage:
    """The stage `local`. `queues` has what was sent to each, by its short name."""

    def __init__(self) -> None:
        self.now = NOW
        self.queues: dict[str, list[Entry]] = defaultdict(list)
        self.schedules: list[dict[str, Any]] = []
        self.mails: list[dict[str, Any]] = []
        self.texts: list[dict[str, Any]] = []
        self.pushes = 0
        self.changes: list[dict[str, Any]] = []
        """The ledger's stream."""
        self.providers = Providers()
        self._hold_still()
        os.environ.update(
            {
                name: value if isinstance(value, str) else json.dumps(value)
                for name, value in ENVIRONMENT.items()
            }
        )
        for name in ("SMS_BASE_URL", "FAX_BASE_URL"):
            os.environ[name] = f"http://127.0.0.1:{self.providers.server_port}"
        loader = botocore.session.create_loader()
        # Each session would read the same models anew.
        botocore.session.create_loader = lambda search_path_string=None: loader
        mock_aws().start()
        self._call = BaseClient._make_api_call  # type: ignore[attr-defined] # boto3 has no other way in
        BaseClient._make_api_call = lambda *call: self._aws(*call)  # type: ignore[attr-defined]
        self.dynamodb: Any = boto3.client("dynamodb")
        for table, keys in KEYS.items():
            self._create(table, keys)
        self.s3: Any = boto3.client("s3")
        self.bucket(BUCKET)

    def bucket(self, name: str) -> None:
        self.s3.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": REGION})

    def _hold_still(self) -> None:
        numbers = itertools.count(1)
        time.time = lambda: self.now
        time.sleep = self.wait  # type: ignore[assignment] # nobody gives it an object with an index
        random.random = lambda: 0.5
        secrets.token_hex = lambda nbytes=None: f"{next(numbers):0{2 * (nbytes or 32)}x}"
        secrets.randbelow = lambda exclusive_upper_bound: 0
        uuid.uuid4 = lambda: uuid.UUID(int=next(numbers))
        connect = socket.create_connection
        # Webhooks go to public addresses; here is the one endpoint behind all of them.
        socket.create_connection = lambda _, *rest: connect(self.providers.server_address[:2], *rest)  # type: ignore[arg-type]

    def wait(self, seconds: float) -> None:
        self.now += seconds

    def run(self, name: str, event: Any, milliseconds: int = 60_000, **variables: str) -> Any:
        """What a function of a new process answers."""
        before, end = dict(os.environ), self.now + milliseconds / 1000
        os.environ.update({**OWN.get(name, {}), **variables})
        sys.modules.pop(name, None)
        context = SimpleNamespace(
            function_name=NAME + name,
            memory_limit_in_mb=128,
            invoked_function_arn=f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{NAME}{name}",
            aws_request_id="request-1",
            get_remaining_time_in_millis=lambda: int((end - self.now) * 1000),
        )
        try:
            return importlib.import_module(name).handler(event, context)
        finally:
            os.environ.clear()
            os.environ.update(before)

    @property
    def submitted(self) -> int:
        """How often a provider was asked to send something."""
        posts = sum(each.startswith("POST") for each in self.providers.asked)
        return len(self.mails) + len(self.texts) + self.pushes + posts

    def work(self, name: str, *entries: Entry, **how: Any) -> list[int]:
        """Hand a function messages of its queue, receive by receive; the places of those that came back."""
        records = [
            {
                "messageId": f"{at}",
                "receiptHandle": f"receipt-{at}",
                "body": each.text,
                "attributes": {
                    "ApproximateReceiveCount": "1",
                    "SentTimestamp": str(int(self.now * 1000)),
                    **({"MessageGroupId": each.group} if each.group else {}),
                },
                "messageAttributes": {
                    key: {"stringValue": value, "dataType": "String"}
                    for key, value in each.attributes.items()
                },
            }
            for at, each in enumerate(entries)
        ]
        back = self.run(name, {"Records": records}, **how)["batchItemFailures"]
        return sorted(int(each["itemIdentifier"]) for each in back)

    def dispatch(self, *items: Image) -> int:
        """Hand dispatch the items as the mailbox's stream does; how many came back."""
        records = [
            {
                "eventName": "INSERT",
                "dynamodb": {
                    "SequenceNumber": f"{at}",
                    "NewImage": each,
                    "ApproximateCreationDateTime": self.now,
                },
            }
            for at, each in enumerate(items)
        ]
        return len(self.run("dispatch", {"Records": records})["batchItemFailures"])

    def follow(self) -> None:
        """Let outcomes take in what the ledger's stream has."""
        changes, self.changes = self.changes, []
        assert self.run("outcomes", {"Records": changes}) == {"batchItemFailures": []}

    def take(self, queue: str) -> list[Entry]:
        """What lies in a queue, which is empty then."""
        return self.queues.pop(queue, [])

    def items(self, table: str) -> list[Image]:
        return sorted(self.dynamodb.scan(TableName=NAME + table)["Items"], key=json.dumps)

    def item(self, id_: str, channel: str, table: str = "ledger") -> Image:
        key = image_of({"id": id_, "event_type": channel})
        return dict(self.dynamodb.get_item(TableName=NAME + table, Key=key).get("Item", {}))

    def put(self, table: str, *items: Image) -> None:
        for each in items:
            self.dynamodb.put_item(TableName=NAME + table, Item=each)

    def clear(self) -> None:
        """Tables and queues are empty, and it is the time of before."""
        for table in dynamodb_backends[ACCOUNT][REGION].tables.values():
            table.items.clear()
        self.queues.clear()
        self.changes.clear()
        self.schedules.clear()
        self.now = NOW

    def _create(self, table: str, keys: tuple[str, ...]) -> None:
        kinds = ("HASH", "RANGE")
        names = {*keys, *(("line", "submittedAt", "failed_on", "completedAt") if table == "ledger" else ())}
        indexes: Any = [
            {
                "IndexName": index,
                "KeySchema": [
                    {"AttributeName": first, "KeyType": "HASH"},
                    {"AttributeName": second, "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "ALL"},
            }
            for index, first, second in (
                ("failures", "failed_on", "completedAt"),
                ("lines", "line", "submittedAt"),
            )
        ]
        types = {"submittedAt": "N", "completedAt": "N"}
        self.dynamodb.create_table(
            TableName=NAME + table,
            BillingMode="PAY_PER_REQUEST",
            KeySchema=[
                {"AttributeName": key, "KeyType": kind} for key, kind in zip(keys, kinds, strict=False)
            ],
            AttributeDefinitions=[
                {"AttributeName": each, "AttributeType": types.get(each, "S")} for each in sorted(names)
            ],
            **({"GlobalSecondaryIndexes": indexes} if table == "ledger" else {}),
        )

    def _aws(self, client: Any, operation: str, asked: Any) -> Any:
        """One call to AWS."""
        service = client.meta.service_model.service_name.replace("-", "_")
        known: Callable[..., Any] | None = getattr(self, f"_on_{service}", None)
        reply = known(operation, asked) if known else None
        if reply is not None:
            return reply
        if operation == "UpdateItem" and asked["TableName"] == f"{NAME}ledger":
            return self._changed(client, asked)
        return self._call(client, operation, asked)

    def _changed(self, client: Any, asked: Any) -> Any:
        which = {"TableName": asked["TableName"], "Key": asked["Key"]}
        old = self._call(client, "GetItem", which).get("Item", {})
        reply = self._call(client, "UpdateItem", asked)
        new = self._call(client, "GetItem", which)["Item"]
        images = {"NewImage": new, **({"OldImage": old} if old else {})}
        number = {"SequenceNumber": f"{len(self.changes)}"}
        self.changes.append({"eventName": "MODIFY" if old else "INSERT", "dynamodb": {**number, **images}})
        return reply

    def _on_sqs(self, operation: str, asked: Any) -> Any:
        queue = asked["QueueUrl"].rpartition(NAME)[2] if "QueueUrl" in asked else ""
        match operation:
            case "SendMessageBatch":
                self.queues[queue] += [_entry(each) for each in asked["Entries"]]
                return {"Successful": [{"Id": each["Id"]} for each in asked["Entries"]]}
            case "SendMessage":
                self.queues[queue].append(_entry(asked))
                return {"MessageId": "1"}
            case "GetQueueUrl":
                return {"QueueUrl": url(asked["QueueName"].removeprefix(NAME))}
            case "ListQueues":
                return {"QueueUrls": [url("mail-dlq")]}
            case "GetQueueAttributes":
                return {"Attributes": dict.fromkeys(asked["AttributeNames"], "0")}
            case "ReceiveMessage":
                return {"Messages": [_letter(each) for each in self.take(queue)]}
        return {}

    def _on_scheduler(self, operation: str, asked: Any) -> Any:
        if operation == "CreateSchedule":
            self.schedules.append(asked)
        return {"Schedules": []}

    def _on_secretsmanager(self, _: str, asked: Any) -> Any:
        created = datetime.fromtimestamp(NOW - 86_400 * 365, UTC)
        return {"SecretString": SECRETS[asked["SecretId"]], "VersionId": "1", "CreatedDate": created}

    def _on_sesv2(self, operation: str, asked: Any) -> Any:
        if operation != "SendEmail":
            return {}
        to = asked["Destination"].get("ToAddresses", [""])[0]
        for name, code in (("refused@", "MessageRejected"), ("slow@", "TooManyRequestsException")):
            if to.startswith(name):
                status: Any = {"HTTPStatusCode": 400}
                reply: Any = {"Error": {"Code": code, "Message": code}, "ResponseMetadata": status}
                raise ClientError(reply, operation)
        if to.startswith("lost@"):
            raise ReadTimeoutError(endpoint_url="https://email")
        self.mails.append(asked)
        return {"MessageId": f"ses-{len(self.mails)}"}

    def _on_sns(self, operation: str, asked: Any) -> Any:
        if operation == "CreatePlatformEndpoint":
            return {"EndpointArn": asked["PlatformApplicationArn"].replace("app/", "endpoint/") + "/e-1"}
        self.pushes += 1
        return {"MessageId": f"push-{self.pushes}"}

    def _on_pinpoint_sms_voice_v2(self, _: str, asked: Any) -> Any:
        self.texts.append(asked)
        return {"MessageId": f"sms-{len(self.texts)}"}

    def _on_lambda(self, operation: str, asked: Any) -> Any:
        if operation == "GetFunctionConfiguration":
            own = OWN.get(asked["FunctionName"].removeprefix(NAME).replace("-", "_"), {})
            return {"Environment": {"Variables": {**os.environ, **own}}}
        if operation == "Invoke":
            name = asked["FunctionName"].removeprefix(NAME).replace("-", "_")
            answer = self.run(name, json.loads(asked["Payload"]))
            return {"StatusCode": 200, "Payload": io.BytesIO(json.dumps(answer).encode())}
        return {"EventSourceMappings": []}


def _entry(asked: Mapping[str, Any]) -> Entry:
    attributes = asked.get("MessageAttributes", {})
    return Entry(
        json.loads(asked["MessageBody"]),
        {name: each["StringValue"] for name, each in attributes.items()},
        asked.get("DelaySeconds", 0),
        asked.get("MessageGroupId", ""),
        asked.get("MessageDeduplicationId", ""),
    )


def _letter(entry: Entry) -> dict[str, Any]:
    """As a dead-letter queue hands it out."""
    return {
        "MessageId": f"letter-{entry.body.get('id') or entry.body.get('fax_id')}",
        "ReceiptHandle": "receipt",
        "Body": entry.text,
        "Attributes": {
            "ApproximateReceiveCount": "4",
            "SentTimestamp": str(int(NOW * 1000)),
            "ApproximateFirstReceiveTimestamp": str(int(NOW * 1000)),
            "DeadLetterQueueSourceArn": f"arn:aws:sqs:{REGION}:{ACCOUNT}:{NAME}source",
        },
    }
