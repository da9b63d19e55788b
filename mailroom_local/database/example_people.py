"""People of the example campaign, with their followers and the number of their mails.

All data of a person is derived from the person's number, so that tests can compute the expected content of
each mail.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, LiteralString

from psycopg import Connection

SCHEMA: LiteralString = """
CREATE TABLE users (
  id bigint NOT NULL,
  email text NOT NULL,
  first_name text NOT NULL,
  weekly_mail boolean NOT NULL DEFAULT true
);
CREATE TABLE follows (
  follower_id bigint NOT NULL,
  followed_id bigint NOT NULL,
  created_at timestamptz NOT NULL
);
"""
# The keys are added after the tables are filled, because loading without keys takes a fraction of the time.
KEYS: LiteralString = """
ALTER TABLE users ADD PRIMARY KEY (id), ADD UNIQUE (email);
ALTER TABLE follows
  ADD PRIMARY KEY (follower_id, followed_id),
  ADD FOREIGN KEY (follower_id) REFERENCES users,
  ADD FOREIGN KEY (followed_id) REFERENCES users;
CREATE INDEX follows_by_followed ON follows (followed_id, created_at DESC) INCLUDE (follower_id);
ANALYZE users, follows;
"""
_NAMES = ("Ada", "Bo", "Chiara", "Dmitri", "Eve", "Fatou", "Grace", "Hiro", "Ines", "Jürgen", "Kofi", "Lea")
_WEEK = timedelta(days=7)


@dataclass(frozen=True)
class People:
    """Numbers of the people in each group. People 1 to `mailed` have new followers and get the mail. The next
    `quiet` people have only old followers. The next `unwilling` people have new followers, but have turned
    the mail off."""

    mailed: int
    quiet: int = 0
    unwilling: int = 0

    @property
    def all(self) -> int:
        return self.mailed + self.quiet + self.unwilling

    def new_followers(self, number: int) -> int:
        """Return the number of a person's new followers: 1 to 9, or fewer if there are not enough people."""
        if self.mailed < number <= self.mailed + self.quiet:
            return 0
        return min(1 + number % 9, self.all - 1)


def email(number: int) -> str:
    """Return a person's address, to which the mail simulator delivers."""
    return f"person-{number}@example.com"


def first_name(number: int) -> str:
    """Return a person's first name, which is unique."""
    return f"{_NAMES[number % len(_NAMES)]} {number}"


def create(connection: Connection[Any], people: People, at: datetime) -> None:
    """Create the tables with `people`. Their new followers began to follow in the week before `at`."""
    connection.execute(SCHEMA)
    with connection.cursor() as cursor:
        with cursor.copy("COPY users (id, email, first_name, weekly_mail) FROM STDIN") as copy:
            for number in range(1, people.all + 1):
                wants_mail = number <= people.mailed + people.quiet
                copy.write_row((number, email(number), first_name(number), wants_mail))
        with cursor.copy("COPY follows (follower_id, followed_id, created_at) FROM STDIN") as copy:
            for number in range(1, people.all + 1):
                for row in _follows(people, number, at):
                    copy.write_row(row)
    connection.execute(KEYS)
    connection.commit()


def _followers(people: People, number: int) -> Iterator[int]:
    """Yield the numbers of a person's followers: first the new ones, newest first, then up to two of other
    weeks."""
    for step in range(1, min(people.new_followers(number) + 2, people.all - 1) + 1):
        yield (number - 1 + step) % people.all + 1


def _follows(people: People, number: int, at: datetime) -> Iterator[tuple[int, int, datetime]]:
    new = people.new_followers(number)
    for place, follower in enumerate(_followers(people, number)):
        if place < new:
            # These times are more than a day after the beginning of the week, so that a run later today finds
            # the same followers.
            moment = at - timedelta(hours=1 + place * 16)
        else:
            moment = at - _WEEK - timedelta(days=1) if place == new else at + timedelta(days=1)
        yield follower, number, moment
