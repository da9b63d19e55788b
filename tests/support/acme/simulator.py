"""Acme's API on the local stage."""

import json

from mailroom_local.own_simulator import Accepted, InboxStore, Reply, Request, json_reply

SECRET = {"token": "local"}


class AcmeSimulator:
    """Accepts every text."""

    prefix = "/acme"

    def __init__(self, inbox: InboxStore) -> None:
        self._inbox = inbox

    def handle(self, request: Request) -> Reply:
        text = json.loads(request.body)
        self._inbox.add(Accepted("sms", text["to"], "A1", text))
        return json_reply(201, {"id": "A1"})
