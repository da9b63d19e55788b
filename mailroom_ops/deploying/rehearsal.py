"""Steps of a rehearsal: mails to the provider's test addresses, and their expected statuses.

The addresses: https://docs.aws.amazon.com/ses/latest/dg/send-an-email-from-console.html#send-email-simulator
and https://resend.com/docs/dashboard/emails/send-test-emails.
Each run adds its own label to the addresses, so that its suppressions and opt-outs do not affect other runs.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from msgspec import Struct

from mailroom.client import Mailroom, MessageStatus, NotCancelled
from mailroom.clock import epoch
from mailroom_ops.people.opt_outs import OptOuts
from mailroom_ops.people.suppression_lists import Lists
from mailroom_ops.repair.dead_letter_queues import DeadQueues
from mailroom_ops.repair.redrive import Redrive

if TYPE_CHECKING:
    import boto3

POLL_SECONDS = 0.5
TOPIC = "rehearsal"
COURSES = {
    "success": ("a mail with a PDF and an image in its HTML", "delivered"),
    "bounce": ("a mail to an address that does not exist", "bounced"),
    "complaint": ("a mail that its recipient reports as spam", "complained"),
    "suppressionlist": ("a mail to an address on the provider's own list", "bounced"),
}
"""Description and expected status of each mail, by the address at SES's simulator."""
AT_RESEND = {
    "success": "delivered",
    "bounce": "bounced",
    "complaint": "complained",
    "suppressionlist": "suppressed",
}
"""Names of these test addresses at Resend, by their names at SES's simulator."""


PDF = b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\ntrailer <</Root <</Type /Catalog /Pages <</Kids [] /Count 0>>>>>>\n"
"""PDF document without pages. Like most PDF files, it contains bytes that are not ASCII."""
GIF = b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;"
DOT = {"filename": "dot.gif", "content": GIF, "content_id": "dot"}
CONTENT = {"html": "<img src='cid:dot'>", "attachments": [DOT, {"filename": "empty.pdf", "content": PDF}]}


class Step(Struct, frozen=True):
    """Step of a rehearsal, and its outcome. It contains neither addresses nor the account."""

    step: str
    expected: str
    """Status that the message should reach."""
    outcome: str
    """Status that the message has."""
    seconds: Mapping[str, float] = {}
    """Seconds from the put of an accepted message to its claim, its acceptance and its expected status."""
    why: str = ""
    """Code of the message's error or trouble."""
    provider: str = ""
    """Name of the provider that accepted the message; empty if none did."""

    @property
    def ok(self) -> bool:
        """Whether the outcome is the expected one."""
        return self.outcome == self.expected


class Rehearsal:
    """Rehearsal on one stage. It sends to test addresses only."""

    def __init__(
        self, session: "boto3.Session", stage: str, label: str, patience: float, say: Callable[[str], None]
    ) -> None:
        """Prepare a rehearsal. `label` is a part of ids and addresses. `patience` is the maximum time in
        seconds for a message to reach its status. `say` is called with the progress."""
        self._client = Mailroom(stage, session)
        self._letters = DeadQueues(session, stage)
        self._lists, self._choices = Lists(session, stage), OptOuts(session, stage)
        self._label, self._patience, self._say = label, patience, say

    def steps(self) -> Iterator[Step]:
        """Run the steps, and yield each when it has ended. Suppressions and opt-outs of the steps are removed
        again."""
        for name in COURSES:
            self._send(name, name, **(CONTENT if name == "success" else {}))
        for name, (step, expected) in COURSES.items():
            yield self._until(step, name, expected)
        yield self._suppressed()
        yield self._cancelled()
        yield from self._chosen()
        yield self._dead_and_back()

    def _suppressed(self) -> Step:
        self._send("again", "bounce")
        step = self._until("a second mail to the address that does not exist", "again", "suppressed")
        for name in COURSES:
            for entry in self._lists.find(self._address(name)):
                self._lists.lift(entry, "rehearsal")
        return step

    def _cancelled(self) -> Step:
        later = datetime.now(UTC) + timedelta(hours=1)
        self._send("later", "success", send_at=f"{later:%Y-%m-%dT%H:%M:%SZ}")
        try:
            status = self._client.cancel(self._id("later"), "mail").status
        except NotCancelled as error:
            status = error.status.status if error.status else "not there"
        return Step("a mail for an hour from now, cancelled", "cancelled", status)

    def _chosen(self) -> Iterator[Step]:
        somebody = self._address("success")
        self._choices.opt_out(somebody, TOPIC)
        self._send("out", "success", topic=TOPIC)
        yield self._until("a mail of a topic that was opted out of", "out", "suppressed")
        self._choices.opt_in(somebody, TOPIC)
        self._send("in", "success", topic=TOPIC)
        yield self._until("a mail of a topic that was opted in to again", "in", "delivered")

    def _dead_and_back(self) -> Step:
        """Put a mail into the dead-letter queue, as SQS does after the last receive, and redrive it."""
        (queue,) = self._letters.named("mail")
        body = json.dumps(self._item("dead", "success"))
        self._letters.client.send_message(QueueUrl=queue.url, MessageBody=body)
        redrive = Redrive(self._letters, queue, [self._id("dead")])
        redrive.run(lambda *_: None)
        return self._until("a dead letter, put back into its queue", "dead", "delivered")

    def _id(self, name: str) -> str:
        return f"rehearsal-{self._label}-{name}"

    def _address(self, course: str) -> str:
        if next(iter(self._lists.providers)) == "Resend":
            return f"{AT_RESEND[course]}+{self._label}@resend.dev"
        return f"{course}+{self._label}@simulator.amazonses.com"

    def _item(self, name: str, course: str, **further: object) -> Mapping[str, object]:
        text = {"subject": "A rehearsal", "text": "Nobody reads this mail."}
        to = self._address(course)
        return {"id": self._id(name), "event_type": "mail", "to": to, **text, **further}

    def _send(self, name: str, course: str, **further: object) -> None:
        sent = self._client.send(self._item(name, course, **further))
        if not sent.ok:
            self._say(f"{name}: {sent.error}")

    def _until(self, step: str, name: str, expected: str) -> Step:
        self._say(f"{step}: waiting for {expected}")
        deadline = time.monotonic() + self._patience
        while True:
            status = self._client.status(self._id(name), "mail")
            if (status and status.status == expected) or time.monotonic() > deadline:
                return step_of(step, expected, status)
            time.sleep(POLL_SECONDS)


def step_of(step: str, expected: str, status: MessageStatus | None) -> Step:
    """Return a step with the expected and the present status of its message."""
    if status is None:
        return Step(step, expected, "not there", why="the mailbox does not have it")
    stations = {"claimed": "startedAt", "accepted": "completedAt", expected: f"{expected}At"}
    put = status.times.get("putAt") if status.provider_id else None
    times = {name: status.times[time] for name, time in stations.items() if put and time in status.times}
    seconds = {name: round(epoch(time) - epoch(put or ""), 2) for name, time in times.items()}
    # The step has the error's code only: the error's message may quote an address.
    code = (status.error or status.trouble or {}).get("code", "")
    return Step(step, expected, status.status, seconds, code, status.provider or "")
