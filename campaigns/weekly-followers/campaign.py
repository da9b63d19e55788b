"""Composes the mails of the campaign: the number of a person's new followers and the names of the newest, in
one query for a whole chunk of people."""

from collections.abc import Mapping
from typing import Any

from mailroom.campaigns import Recipients

NEWEST = 5

# For each person, the query uses the index on (followed_id, created_at) twice: for the number, and for the
# names. It considers the same week as the audience's query, so that everybody in the audience has a new
# follower.
QUERY = """
SELECT person.id, week.followers, newest.names
FROM unnest(%(people)s::bigint[]) AS person (id)
CROSS JOIN LATERAL (
  SELECT count(*) AS followers
  FROM follows
  WHERE follows.followed_id = person.id
    AND follows.created_at >= %(scheduled_at)s::timestamptz - interval '7 days'
    AND follows.created_at < %(scheduled_at)s::timestamptz
) AS week
CROSS JOIN LATERAL (
  SELECT array_agg(latest.first_name ORDER BY latest.created_at DESC, latest.id) AS names
  FROM (
    SELECT follower.id, follower.first_name, follows.created_at
    FROM follows
    JOIN users AS follower ON follower.id = follows.follower_id
    WHERE follows.followed_id = person.id
      AND follows.created_at >= %(scheduled_at)s::timestamptz - interval '7 days'
      AND follows.created_at < %(scheduled_at)s::timestamptz
    ORDER BY follows.created_at DESC, follower.id
    LIMIT %(newest)s
  ) AS latest
) AS newest
WHERE week.followers > 0
"""


def compose(recipients: Recipients) -> Mapping[str, Mapping[str, Any]]:
    """Return the new followers of each person. A person who has lost all new followers since the audience was
    collected gets no mail."""
    asked = {
        "people": [int(key) for key in recipients.keys],
        "scheduled_at": recipients.scheduled_at,
        "newest": NEWEST,
    }
    with recipients.connection("app") as connection:
        found = connection.execute(QUERY, asked).fetchall()
    return {str(key): {"new_followers": followers, "followers": names} for key, followers, names in found}
