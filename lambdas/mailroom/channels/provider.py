"""Common parts of adapters: accounts opened with credentials, and the meaning of AWS's errors."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Container
from typing import Any, Generic, Protocol, Self, TypeVar

import msgspec
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
)

from mailroom.aws import clients
from mailroom.aws.secret import unreadable
from mailroom.errors import InvalidRequest, InvalidSecret, OutcomeUnknown
from mailroom.message.message import Message
from mailroom.message.outcome import (
    ANY_ACCOUNT,
    Evidence,
    Misconfigured,
    NotReady,
    Outcome,
    Refusal,
    Rejected,
    Retry,
    Unknowable,
)
from mailroom.telemetry import redact

T = TypeVar("T")
M = TypeVar("M", bound=Message)
R_contra = TypeVar("R_contra", contravariant=True)
_THROTTLED = ("Throttl", "TooManyRequests", "RequestLimitExceeded", "SlowDown")


def credentials(secret: str, arn: str, *names: str) -> list[str]:
    """Read the values of these names in the secret `arn`, which sentences call `secret`. Raises
    InvalidSecret and botocore's errors."""
    text = clients.secretsmanager().get_secret_value(SecretId=arn).get("SecretString", "")
    try:
        content = msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        content = {}  # the error's words may quote the secret
    values = [content.get(name) for name in names]
    if not all(isinstance(value, str) and value for value in values):
        shape = ", ".join(f'"{name}": "…"' for name in names)
        raise InvalidSecret(f"{secret} is not {{{shape}}}; put its credentials there")
    return [str(value) for value in values]


class Provider(Protocol[R_contra]):
    """API of a provider with one account's credentials. Each method makes each of its requests once."""

    @property
    def account(self) -> str:
        """Our account at the provider; its look-ups see no other account's messages."""

    def submit(self, request: R_contra) -> Outcome:
        """Submit a message. Raises if its acceptance is unknown."""


P = TypeVar("P", bound=Provider[Any])


class ProviderAdapter(ABC, Generic[P, M]):
    """Adapter of a provider that needs credentials. The account is opened once a process, and again after the
    provider refused it: credentials get fixed."""

    def __init__(self, provider: str, secret: str, open_: Callable[[], P]) -> None:
        """Set up an adapter that opens its account by `open_`, which raises InvalidSecret or botocore's
        errors. Sentences call the secret with the credentials `secret`."""
        self.provider = provider
        self._secret = secret
        self._open = open_
        self._api: P | None = None

    def open(self) -> "ProviderSession[P, M]":
        """Return a session of the account. Raises NotReady if it cannot be opened now."""
        if self._api is None:
            self._api = self._opened()
        return ProviderSession(self, self._api)

    @abstractmethod
    def find(self, api: P, message: M, since: int, other_ids: Container[str]) -> Evidence:
        """Look for a try at this account, as `Session.look_up` does."""

    def forget(self) -> None:
        """Open the account anew for the next session."""
        self._api = None

    def _opened(self) -> P:
        try:
            return self._open()
        except InvalidSecret as fault:
            raise NotReady(Misconfigured(str(fault))) from None
        except (ClientError, BotoCoreError) as error:
            raise unreadable(self._secret, error) from None
        except Exception as fault:  # noqa: BLE001 - any error here comes before the first request
            # Only the exception's class: its message may quote the secret.
            raise NotReady(Misconfigured(f"{self._secret} cannot be used: {type(fault).__name__}")) from None


class ProviderSession(Generic[P, M]):
    """Session of one opened account: look-up and submit use the same credentials, also if another thread
    opens another account meanwhile."""

    def __init__(self, adapter: ProviderAdapter[P, M], api: P) -> None:
        self._adapter = adapter
        self._api = api
        self.account = f"{adapter.provider}/{api.account}"

    def look_up(self, message: M, since: int, other_ids: Container[str]) -> Evidence:
        """Look for an earlier try. Raises if the provider cannot answer."""
        return self.ask(lambda api: self._adapter.find(api, message, since, other_ids))

    def submit(self, request: object) -> Outcome:
        """Submit a request. Raises if its acceptance is unknown."""
        try:
            outcome = self._api.submit(request)
        except InvalidRequest as fault:
            outcome = Misconfigured(f"{self._adapter.provider} {fault}")
        if isinstance(outcome, Misconfigured):
            self._adapter.forget()
        return outcome

    def ask(self, question: Callable[[P], T]) -> T:
        """Return the provider's answer. Raises the error of the question; the next session then has the
        credentials of its time."""
        try:
            return question(self._api)
        except Exception:
            self._adapter.forget()
            raise


class WithoutLookUp:
    """Adapter of a provider that needs no credentials of ours and has no list of past messages: it is its own
    session."""

    account = ANY_ACCOUNT

    def open(self) -> Self:
        """Return the adapter itself."""
        return self

    def look_up(self, message: object, since: int, other_ids: Container[str]) -> Evidence:  # noqa: ARG002 - no list call
        """Return Unknowable: the provider cannot be asked. Its events are in the ledger, where a claim finds
        them."""
        return Unknowable()


def not_sent(
    service: str, error: ClientError | BotoCoreError, refusal: Callable[[ClientError], Refusal]
) -> Refusal:
    """Classify an error of an AWS call that proves that nothing was sent; `refusal` classifies responses of
    the service. Raises OutcomeUnknown for an error that proves nothing: a 5xx response, or none."""
    match error:
        case ClientError():
            status = error.response["ResponseMetadata"]["HTTPStatusCode"]
            if status < 500:
                return refusal(error)
            raise OutcomeUnknown(f"{service} answered {status} {code_of(error)}") from error
        case NoCredentialsError():
            return Misconfigured(f"{service}: {error}")
        case EndpointConnectionError() | ConnectTimeoutError():
            return Retry(f"{service} cannot be reached: {type(error).__name__}")
    raise OutcomeUnknown(f"{service} did not answer: {type(error).__name__}") from error


def refused(error: ClientError, reason: str, *, own: bool) -> Refusal:
    """Classify a refusal by AWS. `own`: its code, or its code and field, is on the service's list of the
    message's own faults. Every other refusal is ours: credentials, permissions, limits, settings."""
    throttled = code_of(error).removeprefix("KMS").startswith(_THROTTLED)
    if throttled or error.response["ResponseMetadata"]["HTTPStatusCode"] == 429:
        return Retry(reason)
    return Rejected(reason) if own else Misconfigured(reason)


def code_of(error: ClientError) -> str:
    """Return the error's name, without the ending that some of a service's protocols leave out."""
    return error.response["Error"]["Code"].removesuffix("Exception")


def reason_of(error: ClientError) -> str:
    """Return a sentence for the ledger and the log."""
    return f"{code_of(error)}: {redact(error.response['Error'].get('Message', ''))}"
