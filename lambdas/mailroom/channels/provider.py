"""What adapters share: a provider opened with credentials, and what AWS's answers to a submit prove."""

from collections.abc import Callable
from threading import local
from typing import Any, Generic, Protocol, TypeVar

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
from mailroom.errors import Unsendable
from mailroom.message.outcome import Misconfigured, NotReady, Outcome, Refusal, Rejected, Retry
from mailroom.telemetry import redact

T = TypeVar("T")
R_contra = TypeVar("R_contra", contravariant=True)
_THROTTLED = ("Throttl", "TooManyRequests", "RequestLimitExceeded", "SlowDown")


class Unconfigured(RuntimeError):
    """The provider's credentials are not there, or not in the form that it needs."""


def credentials(secret: str, arn: str, *names: str) -> list[str]:
    """The values of these names in the secret `arn`, which sentences call `secret`. Raises Unconfigured, or
    botocore's errors."""
    text = clients.secretsmanager().get_secret_value(SecretId=arn).get("SecretString", "")
    try:
        found = msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        found = {}  # its words may quote the secret
    values = [found.get(name) for name in names]
    if not all(isinstance(value, str) and value for value in values):
        shape = ", ".join(f'"{name}": "…"' for name in names)
        raise Unconfigured(f"{secret} is not {{{shape}}}; put its credentials there")
    return [str(value) for value in values]


class Provider(Protocol[R_contra]):
    """A provider's API. Each method asks once; nothing is sent twice."""

    @property
    def account(self) -> str:
        """Our account at the provider; `find` sees only its messages."""

    def submit(self, request: R_contra) -> Outcome:
        """Ask for the message. An exception means that nobody knows whether it was accepted."""


P = TypeVar("P", bound=Provider[Any])


class OpenedProvider(Generic[P]):
    """An adapter's provider. It is opened once a process, and again after it refused us: credentials get
    fixed.

    A thread asks and submits at the account that it was told last, although another thread may have opened
    the provider at another account meanwhile."""

    def __init__(self, name: str, secret: str, open_: Callable[[], P]) -> None:
        """`secret` is what holds its credentials, in words. `open_` reads them: it raises Unconfigured, or
        botocore's errors."""
        self.provider = name
        self._secret = secret
        self._open = open_
        self._api: P | None = None
        self._of_thread = local()

    @property
    def account(self) -> str:
        """The provider, and our account there. Raises NotReady while it cannot be opened."""
        self._of_thread.api = None
        self._of_thread.api = api = self._usable()
        return f"{self.provider}/{api.account}"

    def submit(self, request: object) -> Outcome:
        """Hand it to the provider, at the account that was told last."""
        try:
            outcome = self._opened().submit(request)
        except Unsendable as fault:
            outcome = Misconfigured(f"{self.provider} {fault}")
        if isinstance(outcome, Misconfigured):
            self._forget()
        return outcome

    def ask(self, question: Callable[[P], T]) -> T:
        """The provider's answer. Raises whatever went wrong."""
        try:
            return question(self._opened())
        except Exception:
            self._forget()  # whatever it was: the next one asks with the credentials of its time
            raise

    def _usable(self) -> P:
        try:
            return self._opened()
        except Unconfigured as fault:
            raise NotReady(Misconfigured(str(fault))) from None
        except (ClientError, BotoCoreError) as error:
            raise unreadable(self._secret, error) from None
        except Exception as fault:  # noqa: BLE001 - whatever it is, it came before any request
            # Its kind only: the words of an error may quote the secret.
            raise NotReady(Misconfigured(f"{self._secret} cannot be used: {type(fault).__name__}")) from None

    def _opened(self) -> P:
        api: P | None = getattr(self._of_thread, "api", None) or self._api
        if api is None:
            api = self._api = self._open()
        return api

    def _forget(self) -> None:
        self._api = self._of_thread.api = None


def ask_aws(service: str, call: Callable[[], T], refusal: Callable[[ClientError], Refusal]) -> T | Refusal:
    """What a call answers, or what its refusal means, by `refusal`. Raises where nobody knows: a 5xx answer,
    or no answer."""
    try:
        return call()
    except ClientError as error:
        if error.response["ResponseMetadata"]["HTTPStatusCode"] >= 500:
            raise
        return refusal(error)
    except NoCredentialsError as error:
        return Misconfigured(f"{service}: {error}")
    except (EndpointConnectionError, ConnectTimeoutError) as error:
        return Retry(f"{service} cannot be reached: {type(error).__name__}")  # so nothing went out


def refused(error: ClientError, reason: str, *, own: bool) -> Refusal:
    """Classify a refusal by AWS. `own`: its code, or its code and field, is on the service's list of the
    message's own faults. Every other refusal is ours: credentials, permissions, limits, settings."""
    throttled = code_of(error).removeprefix("KMS").startswith(_THROTTLED)
    if throttled or error.response["ResponseMetadata"]["HTTPStatusCode"] == 429:
        return Retry(reason)
    return Rejected(reason) if own else Misconfigured(reason)


def code_of(error: ClientError) -> str:
    """The error's name, without the ending that some of a service's protocols leave out."""
    return error.response["Error"]["Code"].removesuffix("Exception")


def reason_of(error: ClientError) -> str:
    """A sentence for the ledger and the log."""
    return f"{code_of(error)}: {redact(error.response['Error'].get('Message', ''))}"
