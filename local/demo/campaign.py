"""The demo's campaign: started, killed half-way, started again; one of its people opts out in between."""

import os
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

from local.aws import LocalSession, patient
from local.demo.campaign_people import with_news
from local.demo.checks.accepted import of_mail
from local.demo.checks.campaign import CAMPAIGN, ONE_CLICK, PREFIX, Told, link_of
from local.demo.postbox import Postbox
from local.demo.scenarios.mails import Item
from local.demo.waiter import POLL_SECONDS, Unsettled
from local.demo.watch import Watch
from local.processes import wait_until
from local.stage.workspace import LEDGER, MAILBOX, REPOSITORY, State

PEOPLE = 500
"""So many get its mail, and one opts out of it."""
TOPIC = "followers"
KILLED_AT = 0.2
"""The part of its messages that is in the mailbox when it is killed; some more come until it stands."""
SOON_SECONDS = 0.1
"""How often it is looked: soon enough to kill it half-way, seldom enough to leave it the emulator's time."""
STILL_SECONDS = 1.5
LAST_WEEK = "last-week"
COMMAND_SECONDS = MAIL_SECONDS = 60.0
KILL_SECONDS, SEND_SECONDS = 90.0, 180.0
QUEUES = ("CollectQueueUrl", "AudienceQueueUrl")


class CampaignRun:
    """One run, named by this minute as the schedule would name it."""

    def __init__(self, running: State, postbox: Postbox, watch: Watch) -> None:
        self._running, self._postbox, self._watch = running, postbox, watch
        session, url = LocalSession(), running.endpoints.aws
        self._dynamodb = session.client("dynamodb", endpoint_url=url, config=patient())
        self._sqs = session.client("sqs", endpoint_url=url, config=patient())
        now = datetime.now(UTC).replace(second=0, microsecond=0)
        self.run = f"{now:%Y-%m-%dT%H:%MZ}"
        people = with_news(running, now)
        self.expected = {f"{PREFIX}{self.run}#{key}": email for key, email in people.items()}
        self._leaver = ""
        self._seconds = 0.0
        self._before = 0

    def told(self) -> Told:
        """What the demo saw of it."""
        return Told(self.expected, self._leaver, self._before, self._seconds)

    def begin_and_kill(self, put: Callable[[int], None]) -> None:
        """Start it; when some of its messages are in the mailbox, all that is queued or under way is lost."""
        started = time.monotonic()
        command = self._start()
        enough = int(len(self.expected) * KILLED_AT)

        def some() -> bool:
            count = self._in_mailbox()
            put(count)
            return count >= enough or command.poll() not in (None, 0)

        there = wait_until(some, KILL_SECONDS, SOON_SECONDS)
        self._kill()
        self._before = self._in_mailbox()
        composed = self._composed()
        self._leaver = next((id_ for id_ in reversed(self.expected) if id_ not in composed), "")
        self._seconds += time.monotonic() - started
        put(self._before)
        _check(command)
        if not there or not self._leaver:
            raise Unsettled(f"After {KILL_SECONDS:.0f} s {self._before} messages were composed.")

    def opt_out(self) -> None:
        """One of those who have no mail of this run yet presses the button in last week's."""
        item = self._last_week()
        self._postbox.put_new(item)
        links: list[str] = []

        def received() -> bool:
            links[:] = [link_of(each) for each in self._mails() if of_mail(each) == item["id"]]
            return bool(links)

        if not wait_until(received, MAIL_SECONDS, POLL_SECONDS) or not links[0]:
            raise Unsettled(f"Last week's mail has no link for opting out: {links}. {self._watch.held()}")
        _press(links[0])

    def start_again(self, ended: Callable[[int], None]) -> None:
        """The same command once more, and wait until each of its messages has ended."""
        started = time.monotonic()
        _check(self._start())

        def over() -> bool:
            count = self._ended()
            ended(count)
            return count >= len(self.expected)

        done = wait_until(over, SEND_SECONDS, POLL_SECONDS)
        self._seconds += time.monotonic() - started
        if not done:
            raise Unsettled(
                f"After {SEND_SECONDS:.0f} s {self._ended()} of {len(self.expected)} messages of the "
                f"campaign have ended. {self._watch.held()}"
            )

    def _start(self) -> "subprocess.Popen[str]":
        """As an operator does it. Not waited for: a small campaign is over before the command has ended."""
        return subprocess.Popen(
            [sys.executable, "-m", "ops", "campaign", "start", CAMPAIGN, "--run", self.run, "--new", "--yes"],
            cwd=REPOSITORY,
            env=os.environ | self._running.variables() | {"NO_PROXY": "*"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def _kill(self) -> None:
        """What is queued is lost, also what works sends on to its queues meanwhile, until nothing moves."""
        still_since, count = time.monotonic(), self._in_mailbox()
        while time.monotonic() - still_since < STILL_SECONDS:
            for output in QUEUES:
                self._sqs.purge_queue(QueueUrl=self._running.outputs[output])
            if (now := self._in_mailbox()) != count:
                still_since, count = time.monotonic(), now

    def _last_week(self) -> Item:
        key = self._leaver.rpartition("#")[2]
        return {
            "id": f"{PREFIX}{LAST_WEEK}#{key}",
            "event_type": "mail",
            "lane": "bulk",
            "topic": TOPIC,
            "to": self.expected[self._leaver],
            "subject": "You had new followers last week",
            "text": "So it was.",
        }

    def _mails(self) -> list[Item]:
        return [each for each in self._watch.inbox() if each["channel"] == "mail"]

    def _in_mailbox(self) -> int:
        return sum(page["Count"] for page in self._scan(MAILBOX, Select="COUNT"))

    def _composed(self) -> set[str]:
        pages = self._scan(MAILBOX, ProjectionExpression="id")
        return {each["id"]["S"] for page in pages for each in page["Items"]}

    def _ended(self) -> int:
        pages = self._scan(LEDGER, Select="COUNT", which=" AND attribute_exists(completedAt)")
        return sum(page["Count"] for page in pages)

    def _scan(self, table: str, which: str = "", **options: Any) -> Iterator[Any]:
        """The run's own items, page by page."""
        return iter(
            self._dynamodb.get_paginator("scan").paginate(
                TableName=table,
                FilterExpression=f"begins_with(id, :run){which}",
                ExpressionAttributeValues={":run": {"S": f"{PREFIX}{self.run}#"}},
                **options,
            )
        )


def _check(command: "subprocess.Popen[str]") -> None:
    _, trouble = command.communicate(timeout=COMMAND_SECONDS)
    if command.returncode != 0:
        raise Unsettled(f"mailroom campaign start: {trouble.strip()}")


def _press(link: str) -> None:
    """What a mail program does (RFC 8058)."""
    name, _, value = ONE_CLICK.partition("=")
    body = urllib.parse.urlencode({name: value}).encode()
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(urllib.request.Request(link, data=body, method="POST"), timeout=30):  # noqa: S310
        pass
