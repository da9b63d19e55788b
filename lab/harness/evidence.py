"""Evidence about messages in a stage's logs, dead-letter queues and bucket of failed records."""

import json
from collections import defaultdict
from datetime import datetime

from lab.harness.expected import Key
from lab.harness.stage_client import StageClient
from mailroom_local.aws import STAGE, LocalSession, patient


def announced(stage: StageClient) -> dict[Key, list[float]]:
    """Return the times (epoch seconds) at which a sender logged that it sends a message again after an
    unknown outcome, by message."""
    logs = LocalSession().client("logs", endpoint_url=stage.running.endpoints.aws, config=patient())
    times: dict[Key, list[float]] = defaultdict(list)
    groups = logs.describe_log_groups(logGroupNamePrefix=f"/aws/lambda/mailroom-{STAGE}-send-")["logGroups"]
    for name in (group["logGroupName"] for group in groups):
        for event in logs.filter_log_events(logGroupName=name, filterPattern='"resending"')["events"]:
            for text in event["message"].splitlines():
                if '"resending' in text:
                    line = json.loads(text[text.index("{") :])
                    moment = datetime.strptime(line["timestamp"], "%Y-%m-%d %H:%M:%S,%f%z")
                    times[line["id"], line["event_type"]].append(moment.timestamp())
    return dict(times)


def dead(stage: StageClient) -> str:
    """Return the text of all dead letters, and of all records on which streams gave up."""
    texts = [
        letter["Body"]
        for name, depth in stage.depths(dead=True).items()
        for _ in range(depth)
        for letter in stage.sqs.receive_message(
            QueueUrl=stage.sqs.get_queue_url(QueueName=name)["QueueUrl"],
            MaxNumberOfMessages=10,
            VisibilityTimeout=600,
        ).get("Messages", [])
    ]
    bucket = stage.output("UnprocessedBucketName")
    objects = stage.s3.list_objects_v2(Bucket=bucket).get("Contents", [])
    bodies = [stage.s3.get_object(Bucket=bucket, Key=letter["Key"])["Body"].read() for letter in objects]
    return "\n".join([*texts, *(body.decode() for body in bodies)])
