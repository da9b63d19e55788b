"""All messages of the demo, the callbacks that they must have, and their final statuses."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from local.aws import STAGE
from local.demo.client import Item, Key, StageClient
from local.demo.scenarios import CALLBACKS, MESSAGES, Notice, Scenario, faxes, mails, pushes, sms
from local.demo.scenarios.faxes import FaxScenario
from local.stage.workspace import REPOSITORY

WITH_CALLBACK = 5
"""Messages of each kind with a callback_url, beside the first that fails."""
PAYLOADS: Mapping[str, Any] = {
    "webhook-map": {"order": 7, "lines": [{"sku": "a-1", "paid": True}], "note": None},
    "webhook-list": ["a", 1, {"b": "c"}],
    "webhook-umlauts": {"name": "Zoë Müller", "emoji": "📠"},
    "webhook-told-twice": {"answer": "503 first"},
}
TITLES = {"mail": "Mail", "sms": "SMS", "push": "Push"}
SENTENCES = {
    "sent": "{title} sent successfully",
    "delivered": "{title} delivered",
    "bounced": "{title} bounced",
    "undelivered": "{title} could not be delivered",
    "failed": "Failed to send {channel}: ",
}


@dataclass(frozen=True)
class DemoFacts:
    """What the demo asks the deployed stage: `max_attempts` of a fax, `function_seconds` that its sender may
    take, the key that verifies webhooks, platform applications (ARNs by name), and topics (ARNs)."""

    max_attempts: int
    function_seconds: int
    webhook_key: str
    applications: dict[str, str]
    topics: list[str]

    @classmethod
    def of(cls, stage: StageClient) -> "DemoFacts":
        sender = stage.output("SendFaxFunctionName")
        pusher = stage.variables(stage.output("SendPushFunctionName"))
        return cls(
            int(stage.variables(sender)["MAX_ATTEMPTS"]),
            stage.functions.get_function_configuration(FunctionName=sender)["Timeout"],
            _webhook_key(stage),
            json.loads(pusher["PLATFORM_APPLICATIONS"]),
            json.loads(pusher["TOPICS"]),
        )


def _webhook_key(stage: StageClient) -> str:
    """Ask the operator's command, as the owner of a receiver does."""
    command = ["ops", "webhook-key", stage.running.endpoints.providers, "--stage", STAGE]
    environment = os.environ | stage.running.variables()
    return subprocess.check_output(
        [sys.executable, "-m", *command], cwd=REPOSITORY, env=environment, text=True
    ).strip()


@dataclass(frozen=True)
class DemoPlan:
    """`again` are second messages to recipients that the first ones put on the suppression list, by channel;
    each is to be put when its recipient is there. `suppressed` is the whole list in the end: reasons by
    recipient and channel. `callbacks` are those that must come, by the message's id."""

    mails: list[Scenario]
    sms: list[Scenario]
    pushes: list[Scenario]
    faxes: list[FaxScenario]
    webhooks: list[Item]
    again: Mapping[str, Scenario]
    suppressed: Mapping[tuple[str, str], str]
    callbacks: Mapping[str, list[Notice]]

    @classmethod
    def of(cls, facts: DemoFacts, devices: Mapping[str, str], providers: str) -> "DemoPlan":
        """`devices` are the ARNs of registered endpoints by token, `providers` is the simulators' URL."""
        mailed = [
            *with_callbacks([*mails.good(), *mails.awkward()], providers),
            *with_callbacks(mails.returning(), providers, mails.BOUNCES),
        ]
        texts = with_callbacks(sms.texts(), providers)
        pushed = with_callbacks(pushes.pushes(devices, facts.topics), providers)
        faxed = faxes.faxes(facts.max_attempts)
        suppressed = {"mail": mails.suppressed(), "sms": sms.suppressed(), "push": pushes.suppressed(devices)}
        return cls(
            mailed,
            texts,
            pushed,
            faxed,
            webhooks(providers),
            {"mail": mails.again(), "sms": sms.again(), "push": pushes.again(devices)},
            {(who, channel): why for channel, listed in suppressed.items() for who, why in listed.items()},
            expected_callbacks([*mailed, *texts, *pushed], faxed, facts.max_attempts),
        )

    def finals(self) -> dict[Key, str]:
        messages = [*self.mails, *self.sms, *self.pushes, *self.again.values()]
        return {
            **{message.key: message.status for message in messages},
            **{fax.key: "sent" if fax.delivered else "failed" for fax in self.faxes},
            **{(item["id"], item["event_type"]): "sent" for item in self.webhooks},
        }

    def suppressing(self) -> set[tuple[str, str]]:
        """Recipients that have to be on the list before the second messages to them are put."""
        return {(message.address, channel) for channel, message in self.again.items()}


def webhooks(providers: str) -> list[Item]:
    """Webhooks that are messages, one for each payload; the last one's endpoint fails at first."""
    return [
        {
            "id": id_,
            "event_type": "webhook",
            "url": f"{providers}/receiver/{'flaky/1' if 'twice' in id_ else 'ok'}/{MESSAGES}/{id_}",
            "payload": payload,
        }
        for id_, payload in PAYLOADS.items()
    ]


def with_callbacks(
    messages: Sequence[Scenario], providers: str, first: int = WITH_CALLBACK
) -> list[Scenario]:
    """The messages; the first few and the first that fails have a callback_url."""
    failing = [each for each in messages if each.reason]
    keys = {each.key for each in [*messages[:first], *failing[:1]]}
    url = f"{providers}/receiver/ok/{CALLBACKS}"
    return [
        replace(each, item={**each.item, "callback_url": f"{url}/{each.id}"}) if each.key in keys else each
        for each in messages
    ]


def expected_callbacks(
    messages: Sequence[Scenario], faxes: Sequence[FaxScenario], max_attempts: int
) -> dict[str, list[Notice]]:
    """The callbacks that must come, by the message's id: that it was sent, and how it ended."""
    expected = {fax.id: fax.callbacks(max_attempts) for fax in faxes}
    for message in messages:
        if "callback_url" in message.item:
            statuses = ["sent"] if not message.reason and message.status != "sent" else []
            words = {"channel": message.key[1], "title": TITLES[message.key[1]]}
            expected[message.id] = [
                (status, SENTENCES[status].format(**words)) for status in (*statuses, message.status)
            ]
    return expected
