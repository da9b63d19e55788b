"""Celery on Redis, as its pages "Using Redis" and "Tasks" describe. A worker has one process, so that the
same call is the n-th in each run."""

import os

import boto3
from celery import Celery

from tests.proof.producer import State, serve

app = Celery("mails", broker=os.environ["REDIS_URL"])
seconds = int(os.environ["TIMEOUT_SECONDS"])
# The time-outs are an hour, 100 seconds (10 times 10) and 300 seconds by default.
app.conf.broker_transport_options = {
    "visibility_timeout": seconds,
    "unacked_restore_interval": 5,
    "unacked_restore_throttle": 1,
    "unacked_mutex_expire": seconds // 3,
}
app.conf.worker_concurrency = 1
app.conf.broker_connection_retry_on_startup = True


@app.task(name="send", acks_late=os.environ.get("ACKS_LATE") == "1")  # type: ignore[untyped-decorator]
def send_mail(name: str) -> None:
    boto3.client("sesv2").send_email(
        FromEmailAddress="mailroom@example.com",
        Destination={"ToAddresses": [f"{name}@example.com"]},
        Content={"Simple": {"Subject": {"Data": "Hello"}, "Body": {"Text": {"Data": "Hello."}}}},
    )


def state() -> State:
    """Return the messages in the queue, and those that workers have not acknowledged."""
    redis = queues.default_channel.client
    messages = [*redis.lrange("celery", 0, -1), *redis.hvals("unacked")]
    return {"waiting": " ".join(message.decode() for message in messages), "failed": ""}


if __name__ == "__main__":
    queues = app.connection_for_write()
    serve(lambda names: [send_mail.delay(name) for name in names], state)
