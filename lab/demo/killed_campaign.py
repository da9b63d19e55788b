"""The demo's campaign, which is started, killed half-way, and started again."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import cached_property
from threading import Event

from lab.harness.acceptances import id_of_mail
from lab.harness.expected import Expected, Item
from lab.harness.stage_client import StageClient
from lab.harness.waiter import NotSettled, Waiter
from mailroom.campaigns.runs import Runs
from mailroom_local.database.postgres import connect
from mailroom_local.processes import wait_until
from mailroom_local.stage.lifecycle import DATABASE_SECRET
from mailroom_local.stage.workspace import MAILBOX
from mailroom_stacks.paths import PROJECT

CAMPAIGN = "weekly-followers"
POST_HEADER, ONE_CLICK = "List-Unsubscribe-Post", "List-Unsubscribe=One-Click"
PEOPLE = 500
"""Number of people who get the campaign's mail."""
FIRST_SECONDS = 0.05
"""Seconds between two checks whether the first messages of the run are composed. About half of all messages
are composed nevertheless: five functions are composing 50 messages each by then."""
SOON_SECONDS = 0.2
STILL_SECONDS = 1.5
COMMAND_SECONDS = 120.0
KILL_SECONDS = SEND_SECONDS = 180.0
QUEUES = ("CollectQueueUrl", "AudienceQueueUrl")
# This query repeats the conditions of the campaign's query, so that the check does not depend on it.
_WITH_NEWS = """
SELECT id, email FROM users WHERE weekly_mail AND EXISTS (
    SELECT FROM follows
    WHERE followed_id = users.id AND created_at >= %(now)s - interval '7 days' AND created_at < %(now)s
) ORDER BY id
"""


class CampaignRun:
    """A run of the campaign, named by the current minute, as its schedule would name it."""

    def __init__(self, stage: StageClient, bar: Callable[[str, int], Callable[[int], None]]) -> None:
        """`bar` adds a progress bar with a name and a total, and returns the function that updates it."""
        self._stage = stage
        moment = datetime.now(UTC).replace(second=0, microsecond=0)
        self._run = f"{moment:%Y-%m-%dT%H:%MZ}"
        self._prefix = f"{CAMPAIGN}#{self._run}#"
        self._runs = Runs(stage.dynamodb, stage.output("RunsTableName"))
        self._addresses = with_news(stage, moment)
        self._show_killed, self._show_again = (
            bar(f"campaign, {part}", len(self._addresses)) for part in ("until killed", "started again")
        )
        self.killed_at = 0
        """Number of the run's messages that were in the mailbox when the run was killed."""

    @cached_property
    def expected(self) -> list[Expected]:
        """Expected messages to all people who have new followers. Raises NotSettled if the run has not
        begun."""
        run = self._runs.read(CAMPAIGN, self._run)
        if run is None:
            raise NotSettled("The campaign's run has not begun.")
        return [
            Expected({"id": run.id_of(key), "event_type": "mail", "to": address})
            for key, address in self._addresses.items()
        ]

    def without_link(self, inbox: Sequence[Item]) -> list[str]:
        """Return a sentence for each of the run's mails without a link to opt out."""
        ids = [id_of_mail(mail) for mail in inbox if mail["channel"] == "mail" and not has_link(mail)]
        return [f"{id_} has no link for opting out." for id_ in ids if id_.startswith(self._prefix)]

    def disturb(self, stop: Event) -> None:
        """Start the run, purge its queues, and start it again. Wait until each of its messages has ended."""
        self._start_and_kill(stop)
        _end(self._start())

        def show(count: int) -> None:
            if stop.is_set():
                raise NotSettled("The campaign was stopped before its end.")
            self._show_again(count)

        keys = [message.key for message in self.expected]
        Waiter(self._stage).until_ended(keys, SEND_SECONDS, show)

    def _start_and_kill(self, stop: Event) -> None:
        """Start the run. When its first messages are in the mailbox, purge its queues."""
        command = self._start()

        def half_way() -> bool:
            # The run's own count: to read the mailbox takes a busy machine longer than to compose the rest.
            run = self._runs.read(CAMPAIGN, self._run)
            count = run.composed if run else 0
            self._show_killed(count)
            return stop.is_set() or count > 0 or command.poll() not in (None, 0)

        wait_until(half_way, KILL_SECONDS, FIRST_SECONDS)
        self.killed_at = self._kill()
        _end(command)
        self._show_killed(self.killed_at)
        if not 0 < self.killed_at < len(self._addresses):
            problem = f"{self.killed_at} of {len(self._addresses)} messages were composed"
            raise NotSettled(f"The campaign was not killed half-way: {problem}.")

    def _start(self) -> "subprocess.Popen[str]":
        """Start the run by the operator's command, without waiting: a small campaign may end before the
        command."""
        words = ("campaign", "start", CAMPAIGN, "--run", self._run, "--new", "--yes")
        return subprocess.Popen(
            [sys.executable, "-m", "mailroom_ops", *words],
            cwd=PROJECT,
            env=os.environ | self._stage.running.variables() | {"NO_PROXY": "*"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def _kill(self) -> int:
        """Purge the run's queues, repeatedly until functions compose no more messages. Return the number of
        messages that are then in the mailbox."""
        # The first purge precedes the first check of the mailbox, which takes as long as composing a page.
        still_since, composed = time.monotonic(), 0
        while time.monotonic() - still_since < STILL_SECONDS:
            for output in QUEUES:
                self._stage.sqs.purge_queue(QueueUrl=self._stage.output(output))
            time.sleep(SOON_SECONDS)
            if (latest := self._composed()) != composed:
                still_since, composed = time.monotonic(), latest
        return composed

    def _composed(self) -> int:
        """Return the number of the run's messages that are in the mailbox."""
        images = self._stage.scan(MAILBOX, ProjectionExpression="id")
        return sum(image["id"]["S"].startswith(self._prefix) for image in images)


def has_link(mail: Item) -> bool:
    """Return whether a mail has a link to opt out with one click (RFC 8058)."""
    return link_of(mail) != "" and mail["content"]["headers"].get(POST_HEADER) == ONE_CLICK


def link_of(mail: Item) -> str:
    """Return the link for opting out of a mail, or an empty string if there is none."""
    value = str(mail["content"]["headers"].get("List-Unsubscribe", ""))
    return value[1:-1] if value.startswith("<http") and value.endswith(">") else ""


def with_news(stage: StageClient, moment: datetime) -> dict[str, str]:
    """Return the addresses of people, by key, who have new followers in the week before `moment` and have not
    turned the mail off. They are read from the database itself."""
    secret = json.loads(stage.secrets.get_secret_value(SecretId=DATABASE_SECRET)["SecretString"])
    with connect(secret) as connection:
        return {str(key): email for key, email in connection.execute(_WITH_NEWS, {"now": moment})}


def _end(command: "subprocess.Popen[str]") -> None:
    """Wait for the end of a command. Raises NotSettled if it fails."""
    _, errors = command.communicate(timeout=COMMAND_SECONDS)
    if command.returncode != 0:
        raise NotSettled(f"mailroom campaign start: {errors.strip()}")
