"""Text messages by the provider of the settings: the parts that all providers share."""

from collections.abc import Callable, Container
from functools import cached_property, partial
from typing import TYPE_CHECKING, Protocol

from msgspec import structs

from mailroom.aws import clients
from mailroom.channels.provider import Provider, ProviderAdapter
from mailroom.channels.sms.contract import Sms, SmsRequest, sms_in
from mailroom.channels.sms.text import checked, text_of
from mailroom.content.payloads import Payloads
from mailroom.delivery.delivery import Adapter, Delivery, to_people
from mailroom.delivery.worker import Tools
from mailroom.environment import SmsSender
from mailroom.errors import Invalid
from mailroom.message.message import parse
from mailroom.message.outcome import Evidence, Unknowable

if TYPE_CHECKING:
    from mailroom.content.templates import Templates


class SmsProvider(Provider[SmsRequest], Protocol):
    """An SMS provider's API."""

    def find(self, request: SmsRequest, since: float, other_ids: Container[str]) -> Evidence:
        """Look for a message that was created at `since` (epoch seconds) or later. `other_ids` are ids of
        other messages. Raises if the provider cannot answer this time."""


class SmsAdapter(ProviderAdapter[SmsProvider, Sms]):
    """Adapter of the SMS provider."""

    def __init__(self, settings: SmsSender, open_: Callable[[], SmsProvider], payloads: Payloads) -> None:
        super().__init__(settings.sms_provider, "the SMS provider's secret", open_)
        self.contract = sms_in(settings.default_region)
        self._settings = settings
        self._payloads = payloads

    @classmethod
    def of(cls, settings: SmsSender) -> "SmsAdapter":
        return cls(settings, partial(_open, settings), Payloads(clients.s3(), settings.payload_bucket))

    def prepare(self, message: Sms) -> SmsRequest:
        """Make the request: number, rendered text and its segments, and URLs of media that are made now."""
        media = tuple(self._medium(f"media_urls[{at}]", url) for at, url in enumerate(message.media_urls))
        if self.provider == "aws" and len(media) > 1:
            raise Invalid("media_urls", f"has {len(media)} entries; AWS takes one a message")
        return self._request(message, media)

    def find(self, api: SmsProvider, message: Sms, since: int, other_ids: Container[str]) -> Evidence:
        """Look for the text that the message is rendered to; URLs of media differ in each request."""
        try:
            whole = self._whole(message)
            request = self._request(whole, tuple(whole.media_urls))
        except Invalid:
            return Unknowable()  # the template or the payload was deleted
        oldest = since / 1000 - self._settings.clock_skew_seconds
        return api.find(request, oldest, other_ids)

    def _whole(self, message: Sms) -> Sms:
        if message.payload_ref is None:
            return message
        item = self._payloads.expand(message, message.payload_ref)
        # The message may be redirected; its item is not.
        return structs.replace(parse(item, {message.event_type: self.contract}), to=message.to)

    def _request(self, message: Sms, media: tuple[str, ...]) -> SmsRequest:
        templates = None if message.template is None else self._templates
        text = text_of(message, templates, strict=self._settings.unknown == "refuse")
        # A message with media is billed as one, and its text is not cut.
        most = self._settings.max_segments
        name = "text" if message.template is None else "template"
        return SmsRequest(
            message.line,
            text,
            media,
            message.reference.text,
            message.expiry(),
            {} if media else checked(name, text, most).facts,
            exact=message.template is None,
        )

    def _medium(self, name: str, url: str) -> str:
        if self.provider == "aws":
            # AWS reads only from S3, and by our own permissions: so from no other bucket.
            self._payloads.key(name, url)
            return url
        if not url.startswith("s3://"):
            return url
        return self._payloads.presigned(name, url, self._settings.media_seconds)

    @cached_property
    def _templates(self) -> "Templates":
        from mailroom.content.templates import templates_of  # 80 ms, only where a message uses one

        return templates_of(self._settings)


def _open(settings: SmsSender) -> SmsProvider:
    """Open the provider of the settings. Only the package of this provider is imported."""
    if settings.sms_provider == "aws":
        from mailroom.channels.sms.aws import AwsSms

        return AwsSms(
            clients.sms(settings.submit_seconds),
            sender=settings.sms_sender,
            configuration_set=settings.sms_configuration_set,
        )
    from mailroom.channels.sms.twilio import TwilioSms
    from mailroom.channels.sms.twilio_account import account_at

    return TwilioSms(
        account_at(clients.secretsmanager(), settings.twilio_secret_arn),
        base_url=settings.sms_base_url,
        sender=settings.sms_sender,
        messaging_service_sid=settings.messaging_service_sid,
        callback_url=settings.callback_url,
        seconds=settings.submit_seconds,
    )


_HOUR = 3600


def text_delivery(
    settings: SmsSender, adapter: Adapter[Sms, SmsRequest], tools: Tools
) -> Delivery[Sms, SmsRequest]:
    """Build the delivery of text messages. A look-up finds a message by its number and its text, and two
    alike may be on their way, so the ledger's ids of other messages are left out.

    The ledger has our own clock's times, and records after the submit. An hour is generous on purpose: the id
    of another message that is missing there would be taken for this message, and this message would be lost.
    """
    return to_people(settings, adapter, tools, line_seconds=settings.clock_skew_seconds + _HOUR)
