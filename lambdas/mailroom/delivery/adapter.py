"""Interfaces between a delivery and the provider of its channel, and common code of adapters: it loads an
account's credentials, and classifies errors of AWS."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Container
from typing import Any, Generic, Protocol, Self, TypeVar

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
)

from mailroom.aws import clients
from mailroom.aws.secret import read_secret, unreadable
from mailroom.errors import ConnectError, InvalidRequest, InvalidSecret, OutcomeUnknown
from mailroom.message.message import Message
from mailroom.message.outcome import (
    ANY_ACCOUNT,
    Evidence,
    Misconfigured,
    NotReady,
    Outcome,
    Refusal,
    Retry,
    Unknowable,
)
from mailroom.telemetry import redact

T = TypeVar("T")
M = TypeVar("M", bound=Message)
M_contra = TypeVar("M_contra", bound=Message, contravariant=True)
R = TypeVar("R")
R_contra = TypeVar("R_contra", contravariant=True)
_THROTTLED = ("Throttl", "TooManyRequests", "RequestLimitExceeded", "SlowDown")


class Session(Protocol[M_contra, R_contra]):
    """Access to one account at a provider. A look-up and a submit of one session go to the same account."""

    @property
    def account(self) -> str:
        """Name of the provider and its account, as stored in claims; ANY_ACCOUNT if a look-up has the same
        result for every account."""

    def look_up(self, message: M_contra, since: int, other_ids: Container[str]) -> Evidence:
        """Ask the provider about a try of the message that began at `since` (epoch milliseconds) and whose
        outcome is unknown. Returns the evidence.

        `other_ids` holds provider ids of other messages and of other attempts, which must not be mistaken for
        the id of this try. Raises an error if the look-up fails.
        """

    def submit(self, request: R_contra) -> Outcome:
        """Submit the message with one call to the provider, and return the outcome. Raises NotSent if the
        provider got no request, and any other error if its acceptance is unknown."""


class Adapter(Protocol[M, R]):
    """Access to the provider of one channel. An adapter is independent of queues, tables and retries."""

    @property
    def provider(self) -> str:
        """Name of the provider in the ledger."""

    @property
    def contract(self) -> type[M]:
        """Class of the messages that the adapter sends."""

    def open(self) -> Session[M, R]:
        """Load the credentials of the account in the settings, and return a session. Raises NotReady with the
        reason if the credentials cannot be loaded now."""

    def prepare(self, message: M) -> R:
        """Build the provider's request from the message, before the submit. Raises Invalid and NotReady;
        after any other error the message is retried, because it was not submitted."""


def credentials(secret: str, arn: str, *names: str) -> list[str]:
    """Read the secret with the ARN `arn`, a JSON object, and return the values of its fields `names`.
    `secret` is the name of the secret in error messages. Raises InvalidSecret and botocore's errors."""
    text = clients.secretsmanager().get_secret_value(SecretId=arn).get("SecretString", "")
    shape = ", ".join(f'"{name}": "…"' for name in names)
    problem = f"{secret} is not {{{shape}}}; store the credentials in it"
    content = read_secret(text, dict[str, Any], problem)
    values = [content.get(name) for name in names]
    if not all(isinstance(value, str) and value for value in values):
        raise InvalidSecret(problem)
    return [str(value) for value in values]


class ProviderClient(Protocol[R_contra]):
    """Client of a provider's API with one account's credentials. Its methods never retry a request."""

    @property
    def account(self) -> str:
        """Id of the stage's account at the provider. Look-ups only find messages that this account sent."""

    def submit(self, request: R_contra) -> Outcome:
        """Submit a message. Raises NotSent if the provider got no request, and any other error if it is
        unknown whether the provider accepted the message."""


P = TypeVar("P", bound=ProviderClient[Any])


class ProviderAdapter(ABC, Generic[P, M]):
    """Adapter of a provider that needs credentials. A process loads the account's credentials once. After the
    provider has refused them, they are loaded again, because an operator may have corrected them."""

    def __init__(self, provider: str, secret: str, open_: Callable[[], P]) -> None:
        """Create the adapter.

        `open_`: function that loads the credentials and returns the provider's client; it raises
        InvalidSecret or botocore's errors. `secret`: name of the credentials' secret in error messages.
        """
        self.provider = provider
        self._secret = secret
        self._open = open_
        self._api: P | None = None

    def open(self) -> "ProviderSession[P, M]":
        """Return a session of the account. Raises NotReady if the account's credentials cannot be loaded."""
        if self._api is None:
            self._api = self._opened()
        return ProviderSession(self, self._api)

    @abstractmethod
    def find(self, api: P, message: M, since: int, other_ids: Container[str]) -> Evidence:
        """Look for an earlier try of the message in the account of the client `api`. Raises if the provider
        does not respond."""

    def forget(self) -> None:
        """Discard the loaded credentials, so that the next session loads them again."""
        self._api = None

    def _opened(self) -> P:
        try:
            return self._open()
        except InvalidSecret as fault:
            raise NotReady(Misconfigured(str(fault))) from None
        except (ClientError, BotoCoreError) as error:
            raise unreadable(self._secret, error) from None
        except Exception as fault:  # noqa: BLE001 - raised again as NotReady; the message was not sent
            # The reason contains only the exception's class, because the exception's message may quote the
            # secret.
            raise NotReady(Misconfigured(f"{self._secret} cannot be used: {type(fault).__name__}")) from None


class ProviderSession(Generic[P, M]):
    """Session with one account's credentials. Look-up and submit use the same credentials, even if another
    thread loads new credentials in the meantime."""

    def __init__(self, adapter: ProviderAdapter[P, M], api: P) -> None:
        self._adapter = adapter
        self._api = api
        self.account = f"{adapter.provider}/{api.account}"

    def look_up(self, message: M, since: int, other_ids: Container[str]) -> Evidence:
        """Look for an earlier try of the message. Raises if the provider does not respond."""
        return self.ask(lambda api: self._adapter.find(api, message, since, other_ids))

    def submit(self, request: object) -> Outcome:
        """Submit a request. Raises if it is unknown whether the provider accepted the request."""
        try:
            outcome = self._api.submit(request)
        except ConnectError as error:
            return Retry(f"{self._adapter.provider} {error}")
        except InvalidRequest as fault:
            outcome = Misconfigured(f"{self._adapter.provider} {fault}")
        if isinstance(outcome, Misconfigured):
            self._adapter.forget()
        return outcome

    def ask(self, question: Callable[[P], T]) -> T:
        """Call `question` with the provider's client, and return the result. If `question` raises an error,
        the error is passed on, and the next session loads the credentials again."""
        try:
            return question(self._api)
        except Exception:
            self._adapter.forget()
            raise


class WithoutLookUp:
    """Base class of adapters for providers that do not list sent messages, and that need no credentials to be
    loaded. The adapter is also the session."""

    account = ANY_ACCOUNT

    def open(self) -> Self:
        """Return the adapter itself."""
        return self

    def look_up(self, message: object, since: int, other_ids: Container[str]) -> Evidence:  # noqa: ARG002 - the provider does not list messages
        """Return Unknowable, because the provider cannot look a message up. If the provider has reported an
        earlier try in an event, the event is in the ledger, and the claim has already read it."""
        return Unknowable()


def not_sent(
    service: str, error: ClientError | BotoCoreError, refusal: Callable[[ClientError], Refusal]
) -> Refusal:
    """Classify an error of an AWS call which proves that the message was not sent; `refusal` classifies the
    service's error responses. Raises OutcomeUnknown if the message may have been sent: for a 5xx response,
    or if a request was sent and no response came."""
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


def refused(error: ClientError, reason: str) -> Refusal:
    """Classify an error response whose code is not in the provider's table; `reason` explains the refusal.
    Return Retry if AWS throttled the call. Otherwise the stage's credentials, permissions, limits or settings
    are at fault."""
    throttled = code_of(error).removeprefix("KMS").startswith(_THROTTLED)
    if throttled or error.response["ResponseMetadata"]["HTTPStatusCode"] == 429:
        return Retry(reason)
    return Misconfigured(reason)


def code_of(error: ClientError) -> str:
    """Return the error's code without the ending "Exception", which AWS leaves out in some protocols."""
    return error.response["Error"]["Code"].removesuffix("Exception")


def reason_of(error: ClientError) -> str:
    """Return the error's code and its message without URLs and with phone numbers masked, for the ledger and
    the log."""
    return f"{code_of(error)}: {redact(error.response['Error'].get('Message', ''))}"
