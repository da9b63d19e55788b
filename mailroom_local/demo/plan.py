"""All messages of the demo, and the suppression list that must follow from them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lab.demo.load import faxes, mails, pushes, sms
from lab.harness.expected import MESSAGES, Expected, with_callback
from lab.harness.stage_client import StageClient

WITH_CALLBACK = 5
"""Messages of each kind with a callback_url, beside the first that fails."""
PAYLOADS: Mapping[str, Any] = {
    "webhook-map": {"order": 7, "lines": [{"sku": "a-1", "paid": True}], "note": None},
    "webhook-list": ["a", 1, {"b": "c"}],
    "webhook-umlauts": {"name": "Zoë Müller", "emoji": "📠"},
    "webhook-told-twice": {"answer": "503 first"},
}


@dataclass(frozen=True)
class DemoFacts:
    """What the demo asks the deployed stage: `max_attempts` of a fax, `function_seconds` that its sender may
    take, platform applications (ARNs by name), and topics (ARNs)."""

    max_attempts: int
    function_seconds: int
    applications: dict[str, str]
    topics: list[str]

    @classmethod
    def of(cls, stage: StageClient) -> "DemoFacts":
        sender = stage.output("SendFaxFunctionName")
        pusher = stage.variables(stage.output("SendPushFunctionName"))
        return cls(
            int(stage.variables(sender)["MAX_ATTEMPTS"]),
            stage.functions.get_function_configuration(FunctionName=sender)["Timeout"],
            json.loads(pusher["PLATFORM_APPLICATIONS"]),
            json.loads(pusher["TOPICS"]),
        )


@dataclass(frozen=True)
class DemoPlan:
    """`day` are mails for a day that is closed for bulk. `again` are second messages to recipients that the
    first ones put on the suppression list, for when the recipients are there. `suppressed` is the whole list
    in the end: reasons by recipient and channel."""

    mails: list[Expected]
    others: list[Expected]
    day: list[Expected]
    again: list[Expected]
    suppressed: Mapping[tuple[str, str], str]

    @classmethod
    def of(cls, facts: DemoFacts, devices: Mapping[str, str], providers: str, bucket: str) -> "DemoPlan":
        """`devices` are the ARNs of registered endpoints by token, `providers` is the simulators' URL, and
        `bucket` has payloads."""
        listed = {"mail": mails.suppressed(), "sms": sms.suppressed(), "push": pushes.suppressed(devices)}
        return cls(
            mails=[
                *with_callbacks([*mails.good(), *mails.awkward()], providers),
                *with_callbacks(mails.returning(), providers, mails.BOUNCES),
            ],
            others=[
                *faxes.faxes(facts.max_attempts, providers, bucket),
                *with_callbacks(sms.texts(), providers),
                *with_callbacks(pushes.pushes(devices, facts.topics), providers),
                *webhooks(providers),
            ],
            day=mails.over_the_day(),
            again=[mails.again(), sms.again(), pushes.again(devices)],
            suppressed={
                (who, channel): why for channel, those in listed.items() for who, why in those.items()
            },
        )


def webhooks(providers: str) -> list[Expected]:
    """Webhooks that are messages, one for each payload; the last one's endpoint fails at first."""
    return [
        Expected(
            {
                "id": id_,
                "event_type": "webhook",
                "url": f"{providers}/receiver/{'flaky/1' if 'twice' in id_ else 'ok'}/{MESSAGES}/{id_}",
                "payload": payload,
            }
        )
        for id_, payload in PAYLOADS.items()
    ]


def with_callbacks(
    messages: Sequence[Expected], providers: str, first: int = WITH_CALLBACK
) -> list[Expected]:
    """The messages; the first few and the first that fails have a callback_url."""
    failing = [each for each in messages if each.reason]
    told = {each.key for each in [*messages[:first], *failing[:1]]}
    return [with_callback(each, providers) if each.key in told else each for each in messages]
