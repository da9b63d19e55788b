"""Procrastinate on PostgreSQL, as its quick start and its page "Retry stalled jobs" describe. The task of the
page runs each 10 minutes; here it runs each 10 seconds."""

import os
from typing import Any

import boto3
from procrastinate import App, PsycopgConnector

from tests.proof.producer import State, serve

app = App(connector=PsycopgConnector(conninfo=os.environ["POSTGRES_URL"]))
JOBS = "SELECT args->>'name' AS name, status::text FROM procrastinate_jobs WHERE task_name = 'send'"
WAITING = ("todo", "doing")


@app.task(name="send")  # type: ignore[untyped-decorator]
def send_mail(name: str) -> None:
    boto3.client("sesv2").send_email(
        FromEmailAddress="mailroom@example.com",
        Destination={"ToAddresses": [f"{name}@example.com"]},
        Content={"Simple": {"Subject": {"Data": "Hello"}, "Body": {"Text": {"Data": "Hello."}}}},
    )


if os.environ.get("RETRY_STALLED") == "1":

    @app.periodic(cron="* * * * * */10")  # type: ignore[untyped-decorator]
    @app.task(queueing_lock="retry_stalled_jobs", pass_context=True)  # type: ignore[untyped-decorator]
    async def retry_stalled_jobs(context: Any, timestamp: int) -> None:
        for job in await app.job_manager.get_stalled_jobs():
            await app.job_manager.retry_job(job)


def state() -> State:
    jobs = app.connector.get_sync_connector().execute_query_all(JOBS)
    waiting = " ".join(job["name"] for job in jobs if job["status"] in WAITING)
    return {"waiting": waiting, "failed": " ".join(job["name"] for job in jobs if job["status"] == "failed")}


if __name__ == "__main__":
    with app.open():
        app.schema_manager.apply_schema()
        serve(lambda names: [send_mail.defer(name=name) for name in names], state)
