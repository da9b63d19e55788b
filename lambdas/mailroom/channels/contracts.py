"""Table of all channels."""

import json
import os
from collections.abc import Sequence
from importlib import import_module

from mailroom.channels import OWN_CHANNELS, fax, mail, push, sms, webhook
from mailroom.channels.channel import Channel
from mailroom.channels.push.contract import push_to
from mailroom.channels.sms.contract import sms_in
from mailroom.message.message import Message

CHANNELS: dict[str, Channel] = {
    "mail": mail.CHANNEL,
    "sms": sms.CHANNEL,
    "push": push.CHANNEL,
    "fax": fax.CHANNEL,
    "webhook": webhook.CHANNEL,
}
"""Descriptors of all channels by `event_type`, including the channels added by the deployer."""
for _name, _module in json.loads(os.environ.get(OWN_CHANNELS) or "{}").items():
    CHANNELS[_name] = import_module(_module).CHANNEL
CONTRACTS: dict[str, type[Message]] = {name: channel.contract for name, channel in CHANNELS.items()}


def contracts_of(
    default_region: str, push_applications: Sequence[str] | None = None
) -> dict[str, type[Message]]:
    """Return the contracts of a stage by `event_type`. In text messages, a phone number without a country
    code belongs to `default_region` (ISO 3166, such as US), or is invalid if `default_region` is empty.
    `push_applications` are the names of the stage's platform applications, or None if they are unknown."""
    pushes = push.CHANNEL.contract if push_applications is None else push_to(push_applications)
    return {**CONTRACTS, "sms": sms_in(default_region), "push": pushes}


UNDELAYED = frozenset(name for name, channel in CHANNELS.items() if not channel.delayable)
"""Channels whose queue cannot delay a message. In items of these channels only the function `dispatch` may
set the attribute `not_before`."""
