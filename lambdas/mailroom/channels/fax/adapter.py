"""Adapter for fax providers: the code that is the same for every provider."""

from collections.abc import Callable, Container
from functools import partial
from typing import Protocol

from mailroom.aws import clients
from mailroom.channels.channel import Provider
from mailroom.channels.fax.contract import Fax, FaxRequest, FaxState, check_sender
from mailroom.content.payloads import Payloads
from mailroom.delivery.adapter import ProviderAdapter, ProviderClient
from mailroom.environment import FaxSender
from mailroom.message.message import encoded
from mailroom.message.outcome import Evidence

SECRET = "the fax provider's secret"  # noqa: S105 - name of the secret in error messages


class FaxProvider(ProviderClient[FaxRequest], Protocol):
    """Client of a fax provider's API."""

    def fetch(self, provider_id: str) -> FaxState:
        """Fetch the state of a fax. Raises if the provider does not respond; the fax may then still be in
        transmission."""

    def find(self, to: str, reference: str, since: float, other_ids: Container[str]) -> Evidence:
        """Look for the fax among the provider's faxes to the number `to` that were created at `since` (epoch
        seconds) or later. `other_ids` are the provider's ids of other messages' faxes, which are excluded. If
        the provider stores references, the fax has this reference. Raises if the provider does not respond.

        The search does not use settings, such as the sender's number, because the settings may have changed
        after the fax was submitted.
        """

    def cancel(self, provider_id: str) -> None:
        """Request that the provider cancel a fax; call `fetch` afterwards for the result. Raises if the
        provider does not respond."""


class FaxAdapter(ProviderAdapter[FaxProvider, Fax]):
    """Adapter of the fax provider that the settings name."""

    contract = Fax

    def __init__(self, settings: FaxSender, open_: Callable[[], FaxProvider], payloads: Payloads) -> None:
        super().__init__(settings.fax_provider, SECRET, open_)
        self._settings = settings
        self._payloads = payloads

    @classmethod
    def of(cls, settings: FaxSender, provider: Provider) -> "FaxAdapter":
        payloads = Payloads(clients.s3(), settings.payload_bucket)
        return cls(settings, partial(provider.open, settings), payloads)

    def prepare(self, message: Fax) -> FaxRequest:
        """Create the request to the provider. The URL of a PDF in the payload bucket is signed only now, so
        that the provider can fetch the PDF for all of the setting `media_seconds`."""
        return FaxRequest(message.line, self._sender(message), self._media_url(message), _reference(message))

    def find(self, api: FaxProvider, message: Fax, since: int, other_ids: Container[str]) -> Evidence:
        """Look for the fax among the provider's faxes to the same number. `other_ids` are the provider's ids
        of other messages' faxes; these faxes are excluded."""
        oldest = since / 1000 - self._settings.clock_skew_seconds
        return api.find(message.line, _reference(message), oldest, other_ids)

    def _sender(self, message: Fax) -> str:
        return check_sender(message, self._settings.fax_senders)

    def _media_url(self, message: Fax) -> str:
        if message.pdf_url is not None:
            return message.pdf_url
        seconds = self._settings.media_seconds
        return self._payloads.presigned("payload_ref", message.payload_ref or "", seconds)


def _reference(message: Fax) -> str:
    return f"{encoded(message.id)}.{message.attempt}"
