"""A healthy stage, as AWS would describe it to the doctor; tests change one answer of it."""

import copy
import json
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from email.utils import parseaddr
from typing import Any, ClassVar

import boto3
import botocore.session
import dns.resolver
import dns.rrset
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.exceptions import ParamValidationError
from botocore.loaders import create_loader
from botocore.validate import validate_parameters
from msgspec import structs

from mailroom.environment import FaxSender
from mailroom_ops.costs.configured_lanes import lanes_of
from mailroom_ops.doctor.checks import CHECKS
from mailroom_ops.doctor.checks.stacks import stack_parts
from mailroom_ops.doctor.examined_stage import ExaminedStage
from mailroom_ops.doctor.report import Checked
from mailroom_ops.doctor.run import run
from mailroom_stacks.settings.concurrency import FUNCTIONS_AT_ONCE
from mailroom_stacks.settings.settings import Settings
from tests.support.ops.search import VARIABLES as SEARCH
from tests.support.stacks.refusals import dev_with

ACCOUNT, REGION, STAGE = "123456789012", "us-east-1", "dev"
COPIES = "acme-second-copies"
"""Bucket of the second copy."""
SETTINGS = dev_with("deployment.second_copy", {"bucket": COPIES})
NOW = 1_795_251_600.0  # 2026-11-21T09:00:00Z
PREFIX = f"mailroom-{STAGE}-"
TOPIC = f"arn:aws:sns:{REGION}:{ACCOUNT}:{PREFIX}feedback"
ANDROID = f"arn:aws:sns:{REGION}:{ACCOUNT}:app/GCM/app"
KEY = "c2VjcmV0LXNpZ25pbmcta2V5LW9mLXRoaXMtc3RhZ2U="

_CLIENTS: dict[str, Any] = {}
_MAKING = threading.Lock()
_asked = threading.local()
_LOADER = create_loader()
"""Read once: AWS's descriptions are large."""

Answer = dict[str, Any] | str | Callable[[dict[str, Any]], dict[str, Any] | str]
"""Response of AWS: a document, an error's code, or a function that returns one of them for the request."""


class Aws(boto3.Session):
    """Real clients whose requests are answered here: each has to be as AWS's own description wants it, and so
    has each answer. The newest one answers: clients take long to make, and are made once."""

    newest: ClassVar["Aws"]

    def __init__(self, answers: dict[str, Answer]) -> None:
        session = botocore.session.Session()
        session.register_component("data_loader", _LOADER)
        super().__init__(region_name=REGION, botocore_session=session)
        self.answers = answers
        self.asked: list[str] = []
        Aws.newest = self

    def client(self, service_name: Any, *args: Any, **kwargs: Any) -> Any:
        # The stage and the sender's adapter ask in different threads. Without the lock, one of them could get
        # a client that does not answer from here yet.
        with _MAKING:
            if service_name not in _CLIENTS:
                client = super().client(service_name, *args, **kwargs)
                client.meta.events.register("provide-client-params", _note)
                client.meta.events.register("before-call", lambda model, **_: Aws.newest._reply(model))
                _CLIENTS[service_name] = client
            return _CLIENTS[service_name]

    def _reply(self, model: Any) -> tuple[AWSResponse, dict[str, Any]]:
        name = f"{model.service_model.service_name}.{model.name}"
        self.asked.append(name)
        answer = self.answers[name]
        if callable(answer):
            answer = answer(_asked.parameters)
        if isinstance(answer, str):
            action = name.replace(".", ":")
            message = f"User: ada is not authorized to perform: {action} because of a policy"
            error = {"Code": answer, "Message": message}
            return _response(400), {"Error": error, "ResponseMetadata": {"HTTPStatusCode": 400}}
        if model.output_shape is not None:
            described(answer, model.output_shape)
        return _response(200), {**answer, "ResponseMetadata": {"HTTPStatusCode": 200}}


def _response(status: int) -> AWSResponse:
    return AWSResponse("https://aws", status, HTTPHeaders(), None)


def _note(params: dict[str, Any], **_: Any) -> None:
    _asked.parameters = params


def described(answer: dict[str, Any], shape: Any) -> None:
    """Fail where AWS could not answer so."""
    try:
        validate_parameters(answer, shape)
    except ParamValidationError as error:
        raise AssertionError(f"{error}") from None


def healthy(providers: str = "http://127.0.0.1:9") -> dict[str, Answer]:
    """Return the responses to all calls of the doctor about a healthy stage. `providers` is the base URL of
    the simulators."""
    lanes = lanes_of(SETTINGS)
    functions = [
        _function(
            f"send-{lane.queue}", _environment(lane.channel, providers) | {"PACE_SECONDS": f"{lane.pace:.6f}"}
        )
        for lane in lanes
    ]
    push = {"CHANNEL": "push", "RECIPIENTS_ONLY": '["example.com"]'}
    push["PLATFORM_APPLICATIONS"] = json.dumps({"app": ANDROID})
    functions += [_function("send-push", push), _function("outcomes", {"EVENT_BUS": "orders"})]
    queues = [lane.queue for lane in lanes]
    names = [
        f"{PREFIX}{each}{dead}{'.fifo' if each == 'fax' else ''}" for each in queues for dead in ("", "-dlq")
    ]
    alarms = [f"{PREFIX}{each}-dlq-not-empty" for each in queues]
    return {
        **_general(names, alarms, functions),
        "lambda.ListEventSourceMappings": {"EventSourceMappings": [mapping(each) for each in lanes]},
        **_mail(),
        "secretsmanager.GetSecretValue": secret_value,
        "sns.GetPlatformApplicationAttributes": {"Attributes": {"Enabled": "true"}},
        "events.DescribeEventBus": {"Name": "orders"},
    }


def _general(queues: list[str], alarms: list[str], functions: list[dict[str, Any]]) -> dict[str, Answer]:
    subscription = {"SubscriptionArn": f"{TOPIC}:1", "Protocol": "email", "Endpoint": "ada@example.com"}
    return {
        "sts.GetCallerIdentity": {"Account": ACCOUNT, "Arn": f"arn:aws:iam::{ACCOUNT}:user/ada"},
        "cloudformation.DescribeStacks": stacks(),
        "lambda.ListFunctions": {"Functions": functions},
        "lambda.GetAccountSettings": {
            "AccountLimit": {"ConcurrentExecutions": 1000, "UnreservedConcurrentExecutions": 900}
        },
        "lambda.GetFunctionConcurrency": {},
        "lambda.GetFunctionConfiguration": {"Environment": {"Variables": SEARCH}},
        "sqs.ListQueues": {"QueueUrls": [f"https://sqs/{ACCOUNT}/{each}" for each in queues]},
        "sqs.GetQueueAttributes": {"Attributes": {"ApproximateNumberOfMessages": "0"}},
        "sqs.ListQueueTags": {},
        "s3.ListObjectsV2": {},
        "cloudwatch.DescribeAlarms": {"MetricAlarms": [alarm_description(each) for each in alarms]},
        "cloudwatch.GetMetricStatistics": {
            "Datapoints": [{"Timestamp": datetime(2026, 11, 21), "Average": 0.0001}]
        },
        "sns.ListSubscriptionsByTopic": {"Subscriptions": [subscription]},
        "dynamodb.GetItem": {},
        "dynamodb.Query": {"Items": []},
        "dynamodb.ListExports": {
            "ExportSummaries": [{"ExportArn": f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:export"}]
        },
        "dynamodb.DescribeExport": export(20),
    }


def export(hours: float, status: str = "COMPLETED", **changes: str) -> dict[str, Any]:
    """Return the description of an export that began before these hours."""
    began = datetime.fromtimestamp(NOW - hours * 3600, UTC)
    usual = {"ExportStatus": status, "StartTime": began, "S3Bucket": COPIES}
    return {"ExportDescription": {**usual, **changes}}


def _mail() -> dict[str, Answer]:
    return {
        "sesv2.GetAccount": ses_account_of(),
        "sesv2.GetEmailIdentity": identities({"example.com": identity()}),
        "sesv2.GetConfigurationSet": {"SendingOptions": {"SendingEnabled": True}},
    }


def stacks(at_once: int = 54, **states: str) -> dict[str, Any]:
    """Return all stacks; those with a state in `states` have that one. The stage may run `at_once`
    functions."""
    outputs = {"monitoring": [{"OutputKey": FUNCTIONS_AT_ONCE, "OutputValue": f"{at_once}"}]}
    created = datetime(2026, 11, 1, tzinfo=UTC)
    return {
        "Stacks": [
            {
                "StackName": f"{PREFIX}{part}",
                "StackStatus": states.get(part, "CREATE_COMPLETE"),
                "CreationTime": created,
                "Outputs": outputs.get(part, []),
            }
            for part in stack_parts(SETTINGS)
        ]
    }


def alarm_description(name: str, state: str = "OK", **changes: Any) -> dict[str, Any]:
    usual = {"ActionsEnabled": True, "AlarmActions": [f"{TOPIC}-alarms"], "StateValue": state}
    description = "It is bad. See `mailroom docs errors`."
    return {"AlarmName": name, "AlarmDescription": description, **usual, **changes}


def ses_account_of(**changes: Any) -> dict[str, Any]:
    usual = {
        "ProductionAccessEnabled": True,
        "SendingEnabled": True,
        "EnforcementStatus": "HEALTHY",
        "SendQuota": {"Max24HourSend": 50_000.0, "MaxSendRate": 14.0, "SentLast24Hours": 10.0},
        "SuppressionAttributes": {"SuppressedReasons": ["BOUNCE", "COMPLAINT"]},
        "PricingAttributes": {"CurrentPlan": "ESSENTIALS"},
    }
    return {**usual, **changes}


def identity(**changes: Any) -> dict[str, Any]:
    usual = {
        "VerifiedForSendingStatus": True,
        "VerificationStatus": "SUCCESS",
        "DkimAttributes": {"SigningEnabled": True, "Status": "SUCCESS"},
        "MailFromAttributes": mail_from(),
    }
    return {**usual, **changes}


def mail_from(**changes: str) -> dict[str, str]:
    usual = {"MailFromDomain": "bounces.example.com", "MailFromDomainStatus": "SUCCESS"}
    return {**usual, "BehaviorOnMxFailure": "USE_DEFAULT_VALUE", **changes}


TEXTS = {
    "bounces.example.com": ["v=spf1 include:amazonses.com ~all"],
    "_dmarc.example.com": ["v=DMARC1; p=quarantine"],
}
"""TXT records of a healthy stage's domain, by name."""


def resolver(texts: dict[str, list[str]]) -> Callable[..., dns.rrset.RRset]:
    """Return a double of dns.resolver.resolve that has only these TXT records."""

    def resolve(name: str, kind: str, lifetime: float) -> dns.rrset.RRset:
        if name not in texts:
            raise dns.resolver.NXDOMAIN
        # A text longer than 255 bytes consists of several strings, and so does each text here.
        strings = (f'"{text[:6]}" "{text[6:]}"' for text in texts[name])
        return dns.rrset.from_text(name, 300, "IN", kind, *strings)

    return resolve


def identities(known: dict[str, dict[str, Any]]) -> Answer:
    return lambda asked: known.get(asked["EmailIdentity"], "NotFoundException")


SECRETS = {
    "signing": KEY,
    "unsubscribe": json.dumps({"key": "a-long-and-random-key"}),
    "twilio": json.dumps({"account_sid": "AC" + "0123456789abcdef" * 2, "auth_token": "local"}),
    "fax": json.dumps({"project": "local", "token": "local", "api_key": "local"}),
    "of-a-row": json.dumps({"token": "local"}),
}


def secret_value(asked: dict[str, Any]) -> dict[str, Any] | str:
    if asked.get("VersionStage") == "AWSPREVIOUS":
        return "ResourceNotFoundException"
    return {"SecretString": SECRETS[asked["SecretId"]], "CreatedDate": datetime(2026, 11, 1, tzinfo=UTC)}


def with_secret(name: str, text: str) -> Answer:
    """Return all texts, one of which is replaced."""

    def answer(asked: dict[str, Any]) -> dict[str, Any] | str:
        found = secret_value(asked)
        if asked["SecretId"] == name and isinstance(found, dict):
            return {**found, "SecretString": text}
        return found

    return answer


def mapping(lane: Any, **changes: Any) -> dict[str, Any]:
    queue = f"{PREFIX}{lane.queue}{'.fifo' if lane.fifo else ''}"
    usual = {
        "UUID": f"uuid-of-{lane.queue:-<28}",
        "FunctionArn": f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{PREFIX}send-{lane.queue}",
        "EventSourceArn": f"arn:aws:sqs:{REGION}:{ACCOUNT}:{queue}",
        "State": "Enabled",
        "ScalingConfig": {"MaximumConcurrency": lane.workers},
        "LastProcessingResult": "No records processed",
    }
    return {**usual, **changes}


def _function(name: str, variables: dict[str, str]) -> dict[str, Any]:
    return {
        "FunctionName": f"{PREFIX}{name}",
        "FunctionArn": f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{PREFIX}{name}",
        "Timeout": 60,
        "Environment": {"Variables": variables},
    }


def _environment(channel: str, providers: str) -> dict[str, str]:
    assert SETTINGS.fax is not None
    of_every_channel = {
        "CHANNEL": channel,
        "PAYLOAD_BUCKET": "payloads",
        "RECIPIENTS_ONLY": '["example.com"]',
    }
    return {
        **{
            "mail": {
                "MAIL_SENDERS": json.dumps([parseaddr(each)[1] for each in SETTINGS.mail.senders]),
                "CONFIGURATION_SET": f"mailroom-{STAGE}",
                "PER_DAY": '[["0001-01-01", 40000]]',
                "RESERVE": "0.1",
                "BUDGETS_TABLE": f"{PREFIX}budgets",
            },
            "sms": {
                "SMS_PROVIDER": "twilio",
                "TWILIO_SECRET_ARN": "twilio",
                "SMS_BASE_URL": f"{providers}/twilio",
            },
            "webhook": {"SIGNING_SECRET_ARN": "signing"},
            "fax": _fax_variables(SETTINGS.fax.senders, providers),
        }.get(channel, {"PROVIDER_SECRET_ARN": "of-a-row"}),
        **of_every_channel,
    }


def _fax_variables(senders: Sequence[str], providers: str) -> dict[str, str]:
    fields = structs.fields(FaxSender)
    return {
        **{field.encode_name: "5" for field in fields if field.required},
        "LEDGER_TABLE": "ledger",
        "QUEUE_URL": "queue",
        "ON_UNKNOWN": "hold",
        "RESEND_DELAYS": "[0]",
        "FAX_QUALITY": "fine",
        "FAX_PROVIDER": "signalwire",
        "FAX_SECRET_ARN": "fax",
        "FAX_BASE_URL": f"{providers}/signalwire",
        "FAX_SENDERS": json.dumps(list(senders)),
        "FAX_CONNECTION_ID": "1",
        "CALLBACK_SCHEMES": '["https"]',
        "CALLBACK_PORTS": "[]",
    }


def with_variables(answers: dict[str, Answer], function: str, **variables: str) -> dict[str, Answer]:
    """The same, with other values in a function's environment."""
    functions = copy.deepcopy(answers["lambda.ListFunctions"])
    assert isinstance(functions, dict)
    for each in functions["Functions"]:
        if each["FunctionName"] == f"{PREFIX}{function}":
            each["Environment"]["Variables"] |= variables
    return {**answers, "lambda.ListFunctions": functions}


def looked(aws: Aws, subjects: Sequence[str] = (), settings: Settings | str = SETTINGS) -> list[Checked]:
    """Return the findings of the doctor."""
    stage = ExaminedStage(aws, STAGE, settings, lambda: NOW)
    checks = [each for each in CHECKS if each.subject in subjects or not subjects]
    return run(stage, checks)
