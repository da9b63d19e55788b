"""The way of a text message: as any to people, and told apart from others of the same words."""

from mailroom.channels.sms.contract import Sms, SmsRequest
from mailroom.delivery.delivery import Adapter, Delivery, to_people
from mailroom.delivery.worker import Tools
from mailroom.environment import SmsSender

_HOUR = 3600


def text_delivery(
    settings: SmsSender, adapter: Adapter[Sms, SmsRequest], tools: Tools
) -> Delivery[Sms, SmsRequest]:
    """A look-up finds a message by its number and its text, and two that are alike may be on their way: those
    that the ledger knows as others' are none of it.

    The ledger goes by our own clock, and records after the submit: an hour is generous, for an id that is
    missing would be taken for this message's, and this message would be lost.
    """
    return to_people(settings, adapter, tools, line_seconds=settings.clock_skew_seconds + _HOUR)
