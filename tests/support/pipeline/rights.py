"""IAM's answer to a call, as far as the roles of functions need it.

No evaluator that is kept up fits. MiniStack's checks signatures, which do not survive the simulators, and it
does not know PartiQL's actions. moto's refuses a call as soon as the condition of one statement does not
hold, although another statement allows the call, and it knows one kind of condition. `iam-simulate` is a
package of npm, under the AGPL.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from email.utils import parseaddr
from fnmatch import fnmatchcase
from typing import Any

from mailroom_local.aws import ACCOUNT, REGION

Context = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Request:
    """A request to IAM. `context` has the condition keys of a call, with their values."""

    function: str
    action: str
    resource: str
    context: Context = ()

    @property
    def resources(self) -> tuple[str, ...]:
        """The resource as the call names it, and for a secret that is named without its ARN the ARN too: AWS
        ends it with six characters. A reference to a secret is a name in the emulator and an ARN on AWS."""
        secret = self.action == "secretsmanager:GetSecretValue" and not self.resource.startswith("arn:")
        named = arn_in_stage("secretsmanager", f"secret:{self.resource}-abcdef")
        return (self.resource, named) if secret else (self.resource,)

    def __str__(self) -> str:
        keys = "".join(f", {key} {value}" for key, value in self.context)
        return f"{self.function}: {self.action} on {self.resource}{keys}"


@dataclass(frozen=True)
class Grant:
    """A permission: an action on a resource that the role of a function allows. `place` names the statement
    in the role's policies: it is the same on every stage of the same templates, while names that AWS makes up
    differ."""

    function: str
    action: str
    resource: str
    conditions: Mapping[str, Mapping[str, Any]]
    place: str

    def allows(self, request: Request) -> bool:
        """Return whether this permission is enough for the request. Raises LookupError for an unknown
        condition."""
        return (
            (self.function, self.action) == (request.function, request.action)
            # IAM knows no brackets.
            and any(fnmatchcase(each, self.resource.replace("[", "[[]")) for each in request.resources)
            and all(
                _holds(operator, key, _listed(expected), dict(request.context))
                for operator, keys in self.conditions.items()
                for key, expected in keys.items()
            )
        )

    def __str__(self) -> str:
        return f"{self.function}: {self.action} on {self.resource}"


OPERATORS: Mapping[str, Callable[[str, str], bool]] = {
    "StringEquals": lambda value, expected: value == expected,
    "StringEqualsIgnoreCase": lambda value, expected: value.lower() == expected.lower(),
}
KEYS = ("ses:FromAddress", "iam:PassedToService")
"""The condition keys that `requests_of` gives values for."""


def _holds(operator: str, key: str, expected: list[str], context: Mapping[str, str]) -> bool:
    if operator not in OPERATORS or key not in KEYS:
        raise LookupError(f"{operator} of {key} cannot be judged: say in rights.py what a call has for it.")
    return key in context and any(OPERATORS[operator](context[key], each) for each in expected)


def grants_of(function: str, policies: Iterable[Mapping[str, Any]]) -> Iterator[Grant]:
    """Return the permissions in the policies of a function's role. Raises LookupError for a statement that
    denies."""
    for number, policy in enumerate(policies):
        for at, statement in enumerate(_listed(policy["Statement"])):
            if statement["Effect"] != "Allow":
                raise LookupError(f"{function}: {statement} denies, which rights.py does not know yet.")
            for action in _listed(statement["Action"]):
                for nth, resource in enumerate(_listed(statement["Resource"])):
                    place = f"{function} {number}.{at} {action} {nth}"
                    yield Grant(function, action, resource, statement.get("Condition", {}), place)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def requests_of(function: str, service: str, operation: str, names: Mapping[str, Any]) -> list[Request]:
    """Return the requests to IAM for a call; `names` are the names in the record. Most operations are actions
    of the same name. Raises LookupError for an operation that has not been looked up yet:
    https://docs.aws.amazon.com/service-authorization/latest/reference/."""
    look_up = _SERVICES.get(service)
    asked = look_up(operation, names) if look_up else []
    if not asked:
        raise LookupError(f"{service} {operation}: say in rights.py which action IAM checks, and on what.")
    return [Request(function, *each) for each in asked]


Asked = list[tuple[str, str, Context]]


def _of_dynamodb(operation: str, names: Mapping[str, Any]) -> Asked:
    match operation:
        case "BatchGetItem" | "BatchWriteItem":
            return [(f"dynamodb:{operation}", _table(each), ()) for each in names["Tables"]]
        case "TransactWriteItems":  # each PartiQL operation is a separate action
            return [("dynamodb:UpdateItem", _table(each), ()) for each in names["Tables"]]
        case "BatchExecuteStatement":
            found = [each.split('"') for each in names["Statements"]]
            return [
                (f"dynamodb:PartiQL{verb.split()[0].title()}", _table(table), ()) for verb, table in found
            ]
        case "GetItem" | "PutItem" | "UpdateItem" | "Query" | "Scan":
            index = f"/index/{names['IndexName']}" if "IndexName" in names else ""
            return [(f"dynamodb:{operation}", _table(names["TableName"]) + index, ())]
    return []


def _of_sqs(operation: str, names: Mapping[str, Any]) -> Asked:
    if operation == "ListQueues":
        return [("sqs:ListQueues", "*", ())]
    queue = names.get("QueueName") or names["QueueUrl"].rpartition("/")[2]
    return [(f"sqs:{operation.removesuffix('Batch')}", arn_in_stage("sqs", queue), ())]


def _of_s3(operation: str, names: Mapping[str, Any]) -> Asked:
    actions = {"GetObject": "s3:GetObject", "HeadObject": "s3:GetObject", "PutObject": "s3:PutObject"}
    there = f"arn:aws:s3:::{names['Bucket']}/{names.get('Key', '')}"
    return [(actions[operation], there, ())] if operation in actions else []


def _of_secrets(operation: str, names: Mapping[str, Any]) -> Asked:
    secret = names["SecretId"]
    return [("secretsmanager:GetSecretValue", secret, ())] if operation == "GetSecretValue" else []


def _of_ses(operation: str, names: Mapping[str, Any]) -> Asked:
    if operation != "SendEmail":
        return []
    sender = parseaddr(names["FromEmailAddress"])[1]
    context = (("ses:FromAddress", sender),)
    used = [f"identity/{sender}", f"configuration-set/{names['ConfigurationSetName']}"]
    return [("ses:SendEmail", arn_in_stage("ses", each), context) for each in used]


def _of_sns(operation: str, names: Mapping[str, Any]) -> Asked:
    targets = {
        "Publish": names.get("TargetArn") or names.get("TopicArn"),
        "CreatePlatformEndpoint": names.get("PlatformApplicationArn"),
    }
    target = targets.get(operation)
    return [(f"sns:{operation}", target, ())] if target else []


def _of_scheduler(operation: str, names: Mapping[str, Any]) -> Asked:
    return [("scheduler:ListSchedules", "*", ())] if operation == "ListSchedules" else []


def _of_events(operation: str, names: Mapping[str, Any]) -> Asked:
    buses = names.get("EventBuses", [])
    return [(f"events:{operation}", arn_in_stage("events", f"event-bus/{each}"), ()) for each in buses]


def _of_cloudwatch(operation: str, _names: Mapping[str, Any]) -> Asked:
    reads = ("GetMetricData", "DescribeAlarms")  # of all metrics and alarms, or of none
    return [(f"cloudwatch:{operation}", "*", ())] if operation in reads else []


def _of_lambda(operation: str, names: Mapping[str, Any]) -> Asked:
    if operation == "ListEventSourceMappings":
        return [(f"lambda:{operation}", "*", ())]
    actions = {"GetFunctionConfiguration": "GetFunctionConfiguration", "Invoke": "InvokeFunction"}
    function = arn_in_stage("lambda", f"function:{names['FunctionName']}")
    return [(f"lambda:{actions[operation]}", function, ())] if operation in actions else []


_SERVICES: Mapping[str, Callable[[str, Mapping[str, Any]], Asked]] = {
    "cloudwatch": _of_cloudwatch,
    "dynamodb": _of_dynamodb,
    "lambda": _of_lambda,
    "events": _of_events,
    "s3": _of_s3,
    "scheduler": _of_scheduler,
    "secretsmanager": _of_secrets,
    "sesv2": _of_ses,
    "sns": _of_sns,
    "sqs": _of_sqs,
}


POLLS = {
    "sqs": ("ReceiveMessage", "DeleteMessage", "GetQueueAttributes"),
    "dynamodb": ("DescribeStream", "GetRecords", "GetShardIterator", "ListStreams"),
}
"""Actions of Lambda on the source of an event source mapping: those of the managed policies
AWSLambdaSQSQueueExecutionRole and AWSLambdaDynamoDBExecutionRole."""


def requests_of_lambda(function: str, mappings: Iterable[Mapping[str, Any]]) -> Iterator[Request]:
    """Return the actions that Lambda itself makes with the function's role: it writes the log, polls the
    sources of event source mappings, and stores the batches that a stream gives up on, for which it documents
    two actions: https://docs.aws.amazon.com/lambda/latest/dg/services-dynamodb-errors.html."""
    log = arn_in_stage("logs", f"log-group:/aws/lambda/{function}:log-stream:any")
    yield from (Request(function, f"logs:{each}", log) for each in ("CreateLogStream", "PutLogEvents"))
    for mapping in mappings:
        source = mapping["EventSourceArn"]
        service = source.split(":")[2]
        yield from (Request(function, f"{service}:{each}", source) for each in POLLS[service])
        bucket = mapping.get("DestinationConfig", {}).get("OnFailure", {}).get("Destination")
        if bucket:
            yield Request(function, "s3:ListBucket", bucket)
            yield Request(function, "s3:PutObject", f"{bucket}/any")


def arn_in_stage(service: str, resource: str) -> str:
    """A resource of the stage."""
    return f"arn:aws:{service}:{REGION}:{ACCOUNT}:{resource}"


def _table(name: str) -> str:
    return arn_in_stage("dynamodb", f"table/{name}")
