"""All messages of the demo, and all that must be true of them in the end."""

from collections.abc import Mapping
from dataclasses import dataclass

from local.demo.checks.feedback import Recipient
from local.demo.facts import Facts
from local.demo.scenarios import events_cast, webhook_cast
from local.demo.scenarios import faxes as fax_cast
from local.demo.scenarios import mails as cast
from local.demo.scenarios import pushes as push_cast
from local.demo.scenarios import sms as sms_cast
from local.demo.scenarios.faxes import Fax, Told
from local.demo.scenarios.mails import Item, Message

Key = tuple[str, str]


@dataclass(frozen=True)
class Plan:
    """`again` are second messages to recipients that the first ones put on the suppression list, by channel;
    each is to be put once its recipient is there. `marked` is what that list must be in the end."""

    mails: list[Message]
    sms: list[Message]
    pushes: list[Message]
    faxes: list[Fax]
    webhooks: list[Item]
    again: Mapping[str, Message]
    marked: Mapping[Recipient, str]
    told: Mapping[str, list[Told]]

    @classmethod
    def of(cls, facts: Facts, devices: Mapping[str, str], providers: str) -> "Plan":
        """`devices` are the ARNs of registered endpoints by token, `providers` is the simulators' URL."""
        usual = webhook_cast.curious([*cast.good(), *cast.awkward()], providers)
        returning = webhook_cast.curious(events_cast.mails(), providers, events_cast.BOUNCES)
        sms = webhook_cast.curious(sms_cast.texts(), providers)
        pushes = webhook_cast.curious(push_cast.pushes(devices, facts.topics), providers)
        faxes = fax_cast.faxes(facts.max_attempts)
        marks = {
            "mail": events_cast.marked(),
            "sms": sms_cast.marked(),
            "push": push_cast.marked(devices),
        }
        return cls(
            [*usual, *returning],
            sms,
            pushes,
            faxes,
            webhook_cast.webhooks(providers),
            {"mail": events_cast.again(), "sms": sms_cast.again(), "push": push_cast.again(devices)},
            {(who, channel): why for channel, marked in marks.items() for who, why in marked.items()},
            webhook_cast.expected([*usual, *returning, *sms, *pushes], faxes, facts.max_attempts),
        )

    def finals(self) -> dict[Key, str]:
        """The status that each message must come to, by its key."""
        messages = [*self.mails, *self.sms, *self.pushes, *self.again.values()]
        return {
            **{message.key: message.status for message in messages},
            **{fax.key: "sent" if fax.delivered else "failed" for fax in self.faxes},
            **{(item["id"], item["event_type"]): "sent" for item in self.webhooks},
        }

    def suppressing(self) -> set[Recipient]:
        """Those that have to be on the list before the second messages to them are put."""
        return {(message.address, channel) for channel, message in self.again.items()}
