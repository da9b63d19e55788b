"""Adapter for providers of text messages: the code that is the same for every provider."""

from collections.abc import Callable, Container
from functools import cached_property, partial
from typing import TYPE_CHECKING, Protocol

from msgspec import structs

from mailroom.aws import clients
from mailroom.channels.channel import Provider
from mailroom.channels.sms.contract import Sms, SmsRequest, sms_in
from mailroom.channels.sms.segments import checked
from mailroom.channels.sms.text import text_of
from mailroom.content.payload_attributes import expanded
from mailroom.content.payloads import Payloads
from mailroom.delivery.adapter import ProviderAdapter, ProviderClient
from mailroom.delivery.delivery import Adapter, Delivery, to_people
from mailroom.delivery.worker import Tools
from mailroom.environment import SmsSender
from mailroom.errors import Invalid
from mailroom.message.message import parse
from mailroom.message.outcome import Evidence, Unknowable

if TYPE_CHECKING:
    from mailroom.content.templates import Templates


class SmsProvider(ProviderClient[SmsRequest], Protocol):
    """Client of an SMS provider's API."""

    def find(self, request: SmsRequest, since: float, other_ids: Container[str]) -> Evidence:
        """Look for the requested message among the provider's messages created at `since` (epoch seconds) or
        later. `other_ids` are the provider's ids of other messages, which are excluded. Raises if the
        provider does not respond."""


class SmsAdapter(ProviderAdapter[SmsProvider, Sms]):
    """Adapter of the SMS provider that the settings name."""

    def __init__(
        self,
        settings: SmsSender,
        open_: Callable[[], SmsProvider],
        payloads: Payloads,
        media_from_bucket: int = 0,
    ) -> None:
        super().__init__(settings.sms_provider, "the SMS provider's secret", open_)
        self.contract = sms_in(settings.default_region)
        self._settings = settings
        self._payloads = payloads
        self._media_from_bucket = media_from_bucket

    @classmethod
    def of(cls, settings: SmsSender, provider: Provider) -> "SmsAdapter":
        payloads = Payloads(clients.s3(), settings.payload_bucket)
        return cls(settings, partial(provider.open, settings), payloads, provider.media_from_bucket)

    def prepare(self, message: Sms) -> SmsRequest:
        """Create the request: the number, the rendered text with its segments, and the URLs of media. URLs of
        objects in the payload bucket are signed only now, so that they do not expire early."""
        media = tuple(self._medium(f"media_urls[{at}]", url) for at, url in enumerate(message.media_urls))
        if 0 < self._media_from_bucket < len(media):
            problem = f"has {len(media)} entries; the provider allows only {self._media_from_bucket}"
            raise Invalid("media_urls", problem)
        return self._request(message, media)

    def find(self, api: SmsProvider, message: Sms, since: int, other_ids: Container[str]) -> Evidence:
        """Look for a message with the same rendered text. The URLs of media are not compared, because signed
        URLs differ between requests."""
        try:
            whole = self._whole(message)
            request = self._request(whole, tuple(whole.media_urls))
        except Invalid:
            # The text of the earlier try cannot be rendered, for example because its template or payload was
            # deleted.
            return Unknowable()
        oldest = since / 1000 - self._settings.clock_skew_seconds
        return api.find(request, oldest, other_ids)

    def _whole(self, message: Sms) -> Sms:
        if message.payload_ref is None:
            return message
        item = expanded(self._payloads, message, message.payload_ref)
        # The recipient is taken from the message, because the message may have been redirected. The item in
        # the payload contains the original recipient.
        return structs.replace(parse(item, {message.event_type: self.contract}), to=message.to)

    def _request(self, message: Sms, media: tuple[str, ...]) -> SmsRequest:
        templates = None if message.template is None else self._templates
        text = text_of(message, templates, strict=self._settings.unknown == "refuse")
        # Segments are counted only if there are no media: a message with media is billed as one message.
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
        if self._media_from_bucket:
            # The provider reads the object with this function's permissions. The check prevents an item from
            # naming an object in another bucket.
            self._payloads.key(name, url)
            return url
        if not url.startswith("s3://"):
            return url
        return self._payloads.presigned(name, url, self._settings.media_seconds)

    @cached_property
    def _templates(self) -> "Templates":
        # This import takes 80 ms, so it waits until a message uses a template.
        from mailroom.content.templates import templates_of

        return templates_of(self._settings)


_HOUR = 3600


def text_delivery(
    settings: SmsSender, adapter: Adapter[Sms, SmsRequest], tools: Tools
) -> Delivery[Sms, SmsRequest]:
    """Create the delivery of text messages. A look-up finds a message by its number and text. Another message
    may have the same number and text, so the provider's ids that the ledger stores for other messages to the
    number are excluded.

    The ids are read from `line_seconds` before the earlier try on: the maximum difference between Mailroom's
    clock and the provider's clock, and an hour more. The times in the ledger are from Mailroom's clock, and
    are written after a message was submitted. The hour is a generous margin on purpose: if the id of another
    message were not read, the look-up could return that message, and the requested message would never be
    sent.
    """
    return to_people(settings, adapter, tools, line_seconds=settings.clock_skew_seconds + _HOUR)
