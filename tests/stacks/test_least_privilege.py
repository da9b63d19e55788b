"""A role may do what its function does, to what it does it to, and nothing else."""

import re
from typing import Any

import pytest

from mailroom_stacks.constructs.grants import Grant
from tests.support.stacks.templates import Templates, allowed

ACCOUNT = "eu-central-1:111122223333"
CONSUME = {
    "sqs:ReceiveMessage",
    "sqs:DeleteMessage",
    "sqs:GetQueueAttributes",
    "sqs:ChangeMessageVisibility",
}
LOG = {"logs:CreateLogStream", "logs:PutLogEvents"}
PAYLOADS = "arn:aws:s3:::mailroom-dev-payloads-111122223333-eu-central-1"


def logical(stage: Templates, stack: str, kind: str, **properties: str) -> str:
    """The logical id of one resource."""
    wanted = stage[stack].one(kind, **properties)
    resources = stage[stack].body["Resources"].items()
    (name,) = (str(key) for key, each in resources if each["Properties"] is wanted)
    return name


@pytest.mark.parametrize(("function", "queue"), [("send-mail", "mail"), ("send-mail-bulk", "mail-bulk")])
def test_a_mail_sender_reads_its_queue_writes_the_ledger_reads_payloads_signs_links_and_sends(
    dev: Templates, function: str, queue: str
) -> None:
    may = dev["channels"].policy(f"mailroom-dev-{function}")
    own = logical(dev, "channels", "SQS::Queue", QueueName=f"mailroom-dev-{queue}")
    assert may.keys() == CONSUME | LOG | {
        "dynamodb:BatchGetItem",
        "dynamodb:BatchWriteItem",
        "dynamodb:PartiQLInsert",
        "dynamodb:UpdateItem",
        "ses:SendEmail",
        "ses:SendRawEmail",
        "s3:GetObject",
        "s3:ListBucket",
        "secretsmanager:GetSecretValue",
    }
    assert all(may[action] == {f"<{own}.Arn>"} for action in CONSUME)
    budgets = {f"arn:aws:dynamodb:{ACCOUNT}:table/mailroom-dev-budgets"}
    assert budgets < may["dynamodb:UpdateItem"]
    (contents,) = may["dynamodb:BatchWriteItem"]
    assert "ExportsOutputFnGetAttContents" in contents
    for writes in (may["dynamodb:PartiQLInsert"], may["dynamodb:UpdateItem"] - budgets):
        assert all("ExportsOutputFnGetAttLedger" in each for each in writes)
    ledger, preferences, suppressions = sorted(may["dynamodb:BatchGetItem"])
    assert "ExportsOutputFnGetAttLedger" in ledger
    assert "ExportsOutputFnGetAttPreferences" in preferences
    assert "ExportsOutputFnGetAttSuppressions" in suppressions
    (secret,) = may["secretsmanager:GetSecretValue"]
    assert "ExportsOutputRefUnsubscribeSecret" in secret
    assert may["s3:GetObject"] == {f"{PAYLOADS}/*"}
    assert may["s3:ListBucket"] == {PAYLOADS}
    assert (
        may["ses:SendEmail"]
        == may["ses:SendRawEmail"]
        == {
            f"arn:aws:ses:{ACCOUNT}:identity/*",
            f"arn:aws:ses:{ACCOUNT}:configuration-set/mailroom-dev",
        }
    )


def statements(role: dict[str, Any]) -> list[dict[str, Any]]:
    return [each for policy in role["Policies"] for each in policy["PolicyDocument"]["Statement"]]


def test_mail_may_be_sent_from_the_stages_senders_alone(dev: Templates) -> None:
    sending = [
        each
        for role in dev["channels"].all("IAM::Role")
        for each in statements(role)
        if "ses:SendEmail" in each["Action"] or "ses:SendRawEmail" in each["Action"]
    ]
    assert len(sending) == 2
    for each in sending:
        assert each["Condition"] == {"StringEqualsIgnoreCase": {"ses:FromAddress": ["mailroom@example.com"]}}


def test_dispatch_reads_the_stream_sends_to_the_channels_and_writes_the_ledger(dev: Templates) -> None:
    may = dev["routing"].policy("mailroom-dev-dispatch")
    bucket = logical(dev, "routing", "S3::Bucket")
    stream = {"dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"}
    assert may.keys() == LOG | stream | {
        "dynamodb:ListStreams",
        "dynamodb:PartiQLInsert",
        "dynamodb:UpdateItem",
        "s3:ListBucket",
        "s3:PutObject",
        "sqs:SendMessage",
    }
    assert may["dynamodb:ListStreams"] == {f"arn:aws:dynamodb:{ACCOUNT}:table/mailroom-dev-mailbox/stream/*"}
    assert may["s3:PutObject"] == {f"<{bucket}.Arn>/*"}
    sent_to = {re.search("ExportsOutputFnGetAtt(.*)Queue", each) for each in may["sqs:SendMessage"]}
    queues = {"Mail", "MailBulk", "Sms", "Fax", "FaxRetry", "Webhook"}
    assert {found[1] for found in sent_to if found} == queues
    assert len(may["sqs:SendMessage"]) == len(queues)


def test_a_fax_sender_may_also_query_one_index_and_send_on_to_its_own_queue(dev: Templates) -> None:
    may = dev["fax"].policy("mailroom-dev-send-fax")
    own = logical(dev, "fax", "SQS::Queue", QueueName="mailroom-dev-fax.fifo")
    secret = logical(dev, "fax", "SecretsManager::Secret", Name="mailroom-dev-fax")
    assert may.keys() == CONSUME | LOG | {
        "dynamodb:BatchGetItem",
        "dynamodb:Query",
        "dynamodb:UpdateItem",
        "s3:GetObject",
        "s3:ListBucket",
        "secretsmanager:GetSecretValue",
        "sqs:SendMessage",
    }
    assert all(may[action] == {f"<{own}.Arn>"} for action in CONSUME)
    (ledger,) = may["dynamodb:UpdateItem"] | may["dynamodb:BatchGetItem"]
    assert "ExportsOutputFnGetAttLedger" in ledger
    assert may["dynamodb:Query"] == {f"{ledger}/index/lines"}
    assert may["sqs:SendMessage"] == {f"arn:aws:sqs:{ACCOUNT}:mailroom-dev-fax.fifo"}
    assert may["secretsmanager:GetSecretValue"] == {f"<{secret}>"}
    assert may["s3:GetObject"] == {f"{PAYLOADS}/*"}
    assert may["s3:ListBucket"] == {PAYLOADS}


def test_the_retry_mover_reads_its_queue_and_sends_to_the_fax_queue(dev: Templates) -> None:
    may = dev["fax"].policy("mailroom-dev-retry-fax")
    own = logical(dev, "fax", "SQS::Queue", QueueName="mailroom-dev-fax-retry")
    fax = logical(dev, "fax", "SQS::Queue", QueueName="mailroom-dev-fax.fifo")
    assert may.keys() == CONSUME | LOG | {"sqs:SendMessage"}
    assert all(may[action] == {f"<{own}.Arn>"} for action in CONSUME)
    assert may["sqs:SendMessage"] == {f"<{fax}.Arn>"}


def test_a_webhook_sender_writes_the_ledger_and_reads_payloads_and_the_signing_secret(
    dev: Templates,
) -> None:
    may = dev["webhook"].policy("mailroom-dev-send-webhook")
    own = logical(dev, "webhook", "SQS::Queue", QueueName="mailroom-dev-webhook")
    secret = logical(dev, "webhook", "SecretsManager::Secret", Name="mailroom-dev-webhook-keys")
    assert may.keys() == CONSUME | LOG | {
        "dynamodb:BatchGetItem",
        "dynamodb:UpdateItem",
        "s3:GetObject",
        "s3:ListBucket",
        "secretsmanager:GetSecretValue",
    }
    assert all(may[action] == {f"<{own}.Arn>"} for action in CONSUME)
    (ledger,) = may["dynamodb:UpdateItem"] | may["dynamodb:BatchGetItem"]
    assert "ExportsOutputFnGetAttLedger" in ledger
    assert may["secretsmanager:GetSecretValue"] == {f"<{secret}>"}
    assert may["s3:GetObject"] == {f"{PAYLOADS}/*"}
    assert may["s3:ListBucket"] == {PAYLOADS}


def test_outcomes_reads_the_ledgers_stream_and_sends_to_the_webhook_and_retry_queues(dev: Templates) -> None:
    may = dev["routing"].policy("mailroom-dev-outcomes")
    bucket = logical(dev, "routing", "S3::Bucket")
    stream = {"dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"}
    assert may.keys() == LOG | stream | {
        "dynamodb:ListStreams",
        "s3:ListBucket",
        "s3:PutObject",
        "sqs:SendMessage",
    }
    for action in stream:
        (read,) = may[action]
        assert re.search("ExportsOutputFnGetAttLedger.*StreamArn", read)
    assert may["dynamodb:ListStreams"] == {f"arn:aws:dynamodb:{ACCOUNT}:table/mailroom-dev-ledger/stream/*"}
    assert may["s3:PutObject"] == {f"<{bucket}.Arn>/*"}
    retry, webhook = sorted(may["sqs:SendMessage"])
    assert "ExportsOutputFnGetAttFaxRetryQueue" in retry
    assert "ExportsOutputFnGetAttWebhookQueue" in webhook


def test_release_reads_waits_items_and_contents_and_sends_to_the_queues_of_messages_alone(
    dev: Templates,
) -> None:
    may = dev["routing"].policy("mailroom-dev-release")
    dynamodb = {"BatchGetItem", "BatchWriteItem", "GetItem", "PartiQLInsert", "Query", "UpdateItem"}
    queues = {"sqs:GetQueueAttributes", "sqs:SendMessage"}
    assert may.keys() >= LOG | queues | {f"dynamodb:{action}" for action in dynamodb}
    assert not [action for action in may if action.startswith(("scheduler:", "iam:"))]
    assert tables(may["dynamodb:BatchGetItem"]) == {"Mailbox", "Contents"}
    assert tables(may["dynamodb:BatchWriteItem"]) == {"Contents"}
    assert tables(may["dynamodb:UpdateItem"]) == {"Ledger", "Budgets"}
    (index,) = may["dynamodb:Query"]
    assert index.endswith("/index/waiting")
    (lane,) = may["sqs:GetQueueAttributes"]
    assert "MailBulk" in lane
    assert {lane} < may["sqs:SendMessage"]


def tables(arns: set[str]) -> set[str]:
    """The tables of the stack `mailbox` that are named."""
    return {name for arn in arns for name in re.findall("ExportsOutputFnGetAtt([A-Z][a-z]+)", arn)}


def test_messages_wait_without_a_schedule(dev: Templates) -> None:
    assert not dev["routing"].all("Scheduler::ScheduleGroup")


def test_no_role_has_a_wildcard_action_a_bare_wildcard_or_a_policy_that_is_not_ours(dev: Templates) -> None:
    roles = [role for stack in dev.stacks.values() for role in stack.all("IAM::Role")]
    assert len(roles) == 15
    for role in roles:
        assert "ManagedPolicyArns" not in role
        for action, resources in allowed(role).items():
            assert "*" not in action
            assert "*" not in resources
    assert not any(stack.all("IAM::Policy") for stack in dev.stacks.values())


def test_a_function_writes_to_its_own_log_alone(dev: Templates) -> None:
    for stack in ("api", "channels", "dead-letters", "fax", "feedback", "routing", "webhook"):
        for function in dev[stack].all("Lambda::Function"):
            name = function["FunctionName"]
            group = f"arn:aws:logs:{ACCOUNT}:log-group:/aws/lambda/{name}:*"
            assert all(dev[stack].policy(name)[action] == {group} for action in LOG)


def test_a_wildcard_without_its_reason_is_refused() -> None:
    with pytest.raises(ValueError, match="needs its reason"):
        Grant(["s3:GetObject"], ["arn:aws:s3:::bucket/*"])
    with pytest.raises(ValueError, match="name the actions"):
        Grant(["s3:*"], ["arn:aws:s3:::bucket"])
