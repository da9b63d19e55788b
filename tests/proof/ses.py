"""SES and Resend for all rows: the local stage's simulators, with an account that knows every identity."""

import threading
from typing import Any
from uuid import uuid4

from mailroom_local.providers.http import Handler, Reply, Request, SimulatorServer, json_reply
from mailroom_local.providers.inbox import Accepted, InboxStore
from mailroom_local.providers.resend_mail import ResendSimulator
from mailroom_local.providers.ses import SesSimulator
from mailroom_local.providers.ses_feedback import SesFeedback, SuppressionList

PLAN = {"SendQuota": {"Max24HourSend": 1e6, "MaxSendRate": 1e3, "SentLast24Hours": 0}}
"""Account of which no row reaches a limit."""


class Account:
    """Replaces the emulator behind the simulator: each identity exists, and no topic gets events."""

    def pass_on(self, _request: Request) -> Reply:
        return json_reply(200, PLAN)


class SesServer:
    """Running simulator. A mail's name is the local part of its first recipient."""

    def __init__(self) -> None:
        account: Any = Account()
        suppressed, self._inbox = SuppressionList(), InboxStore()
        ses = SesSimulator(self._inbox, account, suppressed, SesFeedback(account, suppressed))
        resend = ResendSimulator(self._inbox)

        class Anywhere(Handler):
            """Handler of requests that come through a proxy, so that their header Host names another port."""

            def _reply(self, request: Request) -> Reply:
                reply = (resend if request.path.startswith(resend.prefix) else ses).handle(request)
                # django-ses stores this header.
                return Reply(reply.status, reply.body, {**reply.headers, "x-amzn-RequestId": str(uuid4())})

        self._server = SimulatorServer(0)
        self._server.RequestHandlerClass = Anywhere
        self.port = int(self._server.server_address[1])
        threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True).start()

    def accepted(self) -> list[str]:
        """Return the names of the accepted mails, in order."""
        return [_name(mail) for mail in self._inbox.all()]

    def references(self, names: set[str]) -> list[str]:
        """Return the header X-Correlation-ID of the accepted mails with these names."""
        mails = [mail for mail in self._inbox.all() if _name(mail) in names]
        return [mail.content["headers"].get("X-Correlation-ID", "") for mail in mails]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def _name(mail: Accepted) -> str:
    return str(mail.content["to"][0]).partition("@")[0]
