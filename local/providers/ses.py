"""Amazon SES v2 in front of the emulator's: keeps what was really sent, and fails on request.

A recipient at simulator.amazonses.com chooses the outcome of the whole mail; the first of them counts, in
the order to, cc, bcc. Any plus label may follow (`throttled+7@…`). With `-once` (`throttled-once+7@…`) the
outcome is had the first time only, for that full address; after that the mail is accepted.

| local part                                   | what SES does                                         |
|----------------------------------------------|-------------------------------------------------------|
| success, bounce, complaint, suppressionlist, | accepts; what follows, follows by events:             |
| ooto, soft, reject                           | see `ses_courses.py`                                  |
| throttled                                    | 429 TooManyRequestsException                          |
| rejected                                     | 400 MessageRejected                                   |
| unverified                                   | 400 MailFromDomainNotVerifiedException                |
| paused                                       | 400 SendingPausedException                            |
| suspended                                    | 400 AccountSuspendedException                         |
| error                                        | 500 InternalServiceErrorException                     |
| lost-answer                                  | accepts, then breaks the connection without an answer |
| slow                                         | accepts, and answers after SLOW_SECONDS               |

All else goes to the emulator, which refuses an unverified sender as SES does.
"""

import json
import threading
import time
from email.utils import parseaddr
from typing import Any

from local.providers.http import NoAnswer, Reply, Request
from local.providers.inbox import Accepted, InboxStore
from local.providers.ses_courses import SIMULATOR_DOMAIN
from local.providers.ses_feedback import SesFeedback
from local.providers.ses_suppression import PATH as SUPPRESSION
from local.providers.ses_suppression import SuppressionList
from local.providers.ses_wire import content_of, recipients_of, refusal_of
from local.providers.upstream import Upstream

SLOW_SECONDS = 3.0
REFUSALS = {
    "throttled": (429, "TooManyRequestsException", "Maximum sending rate exceeded."),
    "rejected": (400, "MessageRejected", "Email rejected by the simulator."),
    "unverified": (400, "MailFromDomainNotVerifiedException", "The MAIL FROM domain is not verified."),
    "paused": (400, "SendingPausedException", "Email sending is paused for this configuration set."),
    "suspended": (400, "AccountSuspendedException", "The account's ability to send email is suspended."),
    "error": (500, "InternalServiceErrorException", "Service error."),
}
ONCE = "-once"


class SesSimulator:
    """The routes under /v2/email."""

    prefix = "/v2/email"

    def __init__(
        self,
        inbox: InboxStore,
        upstream: Upstream,
        suppressed: SuppressionList,
        feedback: SesFeedback,
        slow_seconds: float = SLOW_SECONDS,
    ) -> None:
        self._inbox = inbox
        self._upstream = upstream
        self._suppressed = suppressed
        self._feedback = feedback
        self._slow_seconds = slow_seconds
        self._had: set[str] = set()
        self._known_sets: set[str] = set()
        self._lock = threading.Lock()

    def handle(self, request: Request) -> Reply:
        if request.method == "POST" and request.path.rstrip("/") == "/v2/email/outbound-emails":
            return self._send(request)
        if request.path.startswith(SUPPRESSION):
            return self._suppressed.handle(request)
        return self._upstream.pass_on(request)

    def _send(self, request: Request) -> Reply:
        mail = json.loads(request.body or b"{}")
        outcome = self._outcome(mail)
        if outcome in REFUSALS:
            return _error(*REFUSALS[outcome])
        refusal = refusal_of(mail) or self._missing_set(mail, request)
        if refusal:
            return _error(*refusal)
        reply = self._upstream.pass_on(request)
        if reply.status != 200:
            return reply
        self._accept(mail, json.loads(reply.body)["MessageId"], request)
        if outcome == "lost-answer":
            raise NoAnswer
        if outcome == "slow":
            time.sleep(self._slow_seconds)
        return reply

    def _accept(self, mail: dict[str, Any], provider_id: str, request: Request) -> None:
        content = content_of(mail)
        self._inbox.add(Accepted("mail", ", ".join(content["to"]), provider_id, content))
        self._feedback.accepted(provider_id, content, request)

    def _outcome(self, mail: dict[str, Any]) -> str:
        for recipient in recipients_of(mail):
            address = parseaddr(recipient)[1].lower()
            local, _, domain = address.partition("@")
            if domain == SIMULATOR_DOMAIN:
                return self._outcome_of(local.partition("+")[0], address)
        return "success"

    def _outcome_of(self, name: str, address: str) -> str:
        if not name.endswith(ONCE):
            return name
        with self._lock:
            first = address not in self._had
            self._had.add(address)
        return name.removesuffix(ONCE) if first else "success"

    def _missing_set(self, mail: dict[str, Any], request: Request) -> tuple[int, str, str] | None:
        """The emulator takes any configuration set's name; SES does not."""
        name = mail.get("ConfigurationSetName")
        if not name or name in self._known_sets:
            return None
        path = f"/v2/email/configuration-sets/{name}"
        if self._upstream.pass_on(Request("GET", path, request.headers, b"")).status == 200:
            self._known_sets.add(name)
            return None
        return 404, "NotFoundException", f"Configuration set <{name}> does not exist."


def _error(status: int, code: str, message: str) -> Reply:
    """An error as SES writes it: the SDKs take the code from the header."""
    headers = {"Content-Type": "application/json", "x-amzn-ErrorType": code}
    return Reply(status, json.dumps({"message": message}).encode(), headers)
