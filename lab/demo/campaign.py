"""The demo's campaign: started, killed half-way, started again; one recipient opts out in between."""

import json
import os
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import cached_property
from threading import Event

from mailroom.campaigns.runs import Runs
from mailroom_local.aws import open_url
from mailroom_local.database.postgres import connect
from lab.harness.acceptances import id_of_mail
from lab.harness.expected import Expected, Item
from lab.harness.stage_client import StageClient
from lab.harness.waiter import NotSettled, Waiter
from mailroom_local.processes import wait_until
from mailroom_local.stage.lifecycle import DATABASE_SECRET
from mailroom_local.stage.workspace import MAILBOX
from mailroom_stacks.paths import PROJECT

CAMPAIGN = "weekly-followers"
PREFIX = f"{CAMPAIGN}#"
"""How the ids of its messages begin."""
POST_HEADER, ONE_CLICK = "List-Unsubscribe-Post", "List-Unsubscribe=One-Click"
PEOPLE = 500
"""The people who get the campaign's mail; one opts out of it."""
TOPIC = "followers"
KILLED_AT = 0.2
"""The part of its messages that is in the mailbox when it is killed; some more come until it stands still."""
SOON_SECONDS = 0.2
"""How often the mailbox is counted: soon enough to kill it half-way, seldom enough for the emulator."""
STILL_SECONDS = 1.5
COMMAND_SECONDS = MAIL_SECONDS = 120.0
KILL_SECONDS = SEND_SECONDS = 180.0
QUEUES = ("CollectQueueUrl", "AudienceQueueUrl")
# Written here once more, so that the campaign's own query is not what it is checked by.
_WITH_NEWS = """
SELECT id, email FROM users WHERE weekly_mail AND EXISTS (
    SELECT FROM follows
    WHERE followed_id = users.id AND created_at >= %(now)s - interval '7 days' AND created_at < %(now)s
) ORDER BY id
"""


class CampaignRun:
    """One run, named by this minute as the schedule would name it. `before` counts the messages that were in
    the mailbox when it was killed, `seconds` are from its start, without the time between its two starts."""

    def __init__(self, stage: StageClient, bar: Callable[[str, int], Callable[[int], None]]) -> None:
        self._stage = stage
        self._waiter = Waiter(stage)
        now = datetime.now(UTC).replace(second=0, microsecond=0)
        self.run = f"{now:%Y-%m-%dT%H:%MZ}"
        self._prefix = f"{PREFIX}{self.run}#"
        self._addresses = with_news(stage, now)
        self._leaver = ""
        self.before = 0
        self.seconds = 0.0
        killed, again = (bar(f"campaign, {how}", PEOPLE + 1) for how in ("until killed", "started again"))
        self._killed, self._again = killed, again

    @cached_property
    def _people(self) -> dict[str, str]:
        """The addresses of everybody who has news, by the ids that the run gives to their messages. Raises
        NotSettled if the run has not begun."""
        run = Runs(self._stage.dynamodb, self._stage.output("RunsTableName")).read(CAMPAIGN, self.run)
        if run is None:
            raise NotSettled("The campaign's run has not begun.")
        return {run.id_of(key): email for key, email in self._addresses.items()}

    @property
    def of_the_run(self) -> list[Expected]:
        """The messages of everybody who has news; that to the leaver is suppressed."""
        return [
            Expected({"id": id_, "event_type": "mail"}, reason="opted out", ends="suppressed")
            if id_ == self._leaver
            else _mail(id_, to)
            for id_, to in self._people.items()
        ]

    @property
    def expected(self) -> list[Expected]:
        """The run's messages, and last week's to the leaver."""
        return [
            *self.of_the_run,
            *([_mail(self._last_week, self._people[self._leaver])] if self._leaver else []),
        ]

    def has(self, id_: str) -> bool:
        """Whether a message is of this run."""
        return id_.startswith(self._prefix)

    def unlinked(self, inbox: Sequence[Item]) -> list[str]:
        """A sentence for each of the run's mails that nobody can opt out of."""
        mails = [each for each in inbox if each["channel"] == "mail" and not has_link(each)]
        ids = [id_ for each in mails if self.has(id_ := id_of_mail(each))]
        return [f"{id_} has no link for opting out." for id_ in ids]

    def disturb(self, stop: Event) -> None:
        """Start the run, lose all that is queued or under way, let a recipient opt out, start it again."""
        self._begin_and_kill(stop)
        self._opt_out()
        self._start_again(stop)

    def _begin_and_kill(self, stop: Event) -> None:
        """Start it; when some of its messages are in the mailbox, lose all that is queued or under way."""
        started = time.monotonic()
        command = self._start()
        enough = int(len(self._addresses) * KILLED_AT)

        def some() -> bool:
            count = len(self._composed())
            self._killed(count)
            return stop.is_set() or count >= enough or command.poll() not in (None, 0)

        there = wait_until(some, KILL_SECONDS, SOON_SECONDS)
        composed = self._kill()
        self.before = len(composed)
        _check(command)
        self._leaver = next((id_ for id_ in reversed(self._people) if id_ not in composed), "")
        self.seconds += time.monotonic() - started
        self._killed(self.before)
        if not there or not self._leaver or not composed:
            raise NotSettled(
                f"The campaign was not killed half-way: {self.before} of {len(self._people)} were composed."
            )

    def _opt_out(self) -> None:
        """A recipient without a mail of this run presses the button in last week's."""
        item = _mail(self._last_week, self._people[self._leaver]).item | {
            "lane": "bulk",
            "topic": TOPIC,
            "subject": "You had new followers last week",
            "text": "These were your new followers.",
        }
        self._stage.put(item)
        links: list[str] = []

        def lacking() -> str:
            mails = [each for each in self._stage.accepted() if each["channel"] == "mail"]
            links[:] = [link_of(each) for each in mails if id_of_mail(each) == self._last_week]
            return "" if links else "last week's mail has not come"

        self._waiter.until(lacking, MAIL_SECONDS)
        if not links[0]:
            raise NotSettled("Last week's mail has no link for opting out.")
        _press(links[0])

    @property
    def _last_week(self) -> str:
        return f"{PREFIX}last-week#{self._leaver.split('#')[2]}"

    def _start_again(self, stop: Event) -> None:
        """Give the same command once more, and wait until each of its messages has ended."""
        started = time.monotonic()
        _check(self._start())

        def show(count: int) -> None:
            if stop.is_set():
                raise NotSettled("The campaign was not waited for.")
            self._again(count)

        try:
            self._waiter.until_ended([(id_, "mail") for id_ in self._people], SEND_SECONDS, show)
        finally:
            self.seconds += time.monotonic() - started

    def _start(self) -> "subprocess.Popen[str]":
        """Start it as an operator does, without waiting: a small campaign may end before the command."""
        return subprocess.Popen(
            [
                sys.executable,
                "-m",
                "mailroom_ops",
                "campaign",
                "start",
                CAMPAIGN,
                "--run",
                self.run,
                "--new",
                "--yes",
            ],
            cwd=PROJECT,
            env=os.environ | self._stage.running.variables() | {"NO_PROXY": "*"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def _kill(self) -> set[str]:
        """Purge its queues, also of what functions still send on to them, until nothing moves; the ids of the
        messages that are in the mailbox by then."""
        still_since, composed = time.monotonic(), self._composed()
        while time.monotonic() - still_since < STILL_SECONDS:
            for output in QUEUES:
                self._stage.sqs.purge_queue(QueueUrl=self._stage.output(output))
            time.sleep(SOON_SECONDS)
            if (now := self._composed()) != composed:
                still_since, composed = time.monotonic(), now
        return composed

    def _composed(self) -> set[str]:
        """The ids of the run's messages that are in the mailbox."""
        ids = (each["id"]["S"] for each in self._stage.scan(MAILBOX, ProjectionExpression="id"))
        return {id_ for id_ in ids if id_.startswith(self._prefix)}


def has_link(mail: Item) -> bool:
    """Whether a mail can be opted out of with one click (RFC 8058)."""
    return link_of(mail) != "" and mail["content"]["headers"].get(POST_HEADER) == ONE_CLICK


def link_of(mail: Item) -> str:
    """The link for opting out of a mail; "" without one."""
    value = str(mail["content"]["headers"].get("List-Unsubscribe", ""))
    return value[1:-1] if value.startswith("<http") and value.endswith(">") else ""


def with_news(stage: StageClient, now: datetime) -> dict[str, str]:
    """The addresses of the people who have new followers in the week before `now` and want to hear of it, by
    key; asked of the database itself."""
    secret = json.loads(stage.secrets.get_secret_value(SecretId=DATABASE_SECRET)["SecretString"])
    with connect(secret) as connection:
        return {str(key): email for key, email in connection.execute(_WITH_NEWS, {"now": now})}


def _mail(id_: str, to: str) -> Expected:
    return Expected({"id": id_, "event_type": "mail", "to": to})


def _check(command: "subprocess.Popen[str]") -> None:
    _, trouble = command.communicate(timeout=COMMAND_SECONDS)
    if command.returncode != 0:
        raise NotSettled(f"mailroom campaign start: {trouble.strip()}")


def _press(link: str) -> None:
    """Do what a mail program does (RFC 8058)."""
    name, _, value = ONE_CLICK.partition("=")
    body = urllib.parse.urlencode({name: value}).encode()
    open_url(urllib.request.Request(link, data=body, method="POST"), 30).close()  # noqa: S310
