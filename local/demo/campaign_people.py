"""Who should get the demo's campaign, asked of the database itself."""

import json
from datetime import datetime

import psycopg

from local.aws import LocalSession, patient
from local.stage.lifecycle import DATABASE_SECRET
from local.stage.workspace import State

# Written here once more, so that the campaign's own query is not what it is judged by.
_WITH_NEWS = """
SELECT id, email FROM users WHERE weekly_mail AND EXISTS (
    SELECT FROM follows
    WHERE followed_id = users.id AND created_at >= %(now)s - interval '7 days' AND created_at < %(now)s
) ORDER BY id
"""


def with_news(running: State, now: datetime) -> dict[str, str]:
    """Addresses by key: those who have new followers in the week before `now` and want to hear of it."""
    secrets = LocalSession().client("secretsmanager", endpoint_url=running.endpoints.aws, config=patient())
    secret = json.loads(secrets.get_secret_value(SecretId=DATABASE_SECRET)["SecretString"])
    with psycopg.connect(
        host=secret["host"],
        port=secret["port"],
        user=secret["username"],
        password=secret["password"],
        dbname=secret["dbname"],
    ) as connection:
        return {str(key): email for key, email in connection.execute(_WITH_NEWS, {"now": now})}
