"""Classes of descriptors, with the properties that shared code needs: each channel's package has a descriptor
`CHANNEL`, and each provider's package a descriptor `PROVIDER`."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from msgspec import Struct

from mailroom.message.message import Message


class Estimate(Struct, frozen=True, kw_only=True):
    """Estimate of the time and the money that one message takes, for the command `cost`."""

    latency: float = 0.1
    """Seconds that a sender function with a whole vCPU takes for one message: the wait for the provider's
    response, and the writes into the ledger."""
    computing: float = 0.005
    """Seconds of `latency` in which the vCPU is busy. The default is the benchmark's result for a mail
    (`cpu_ms_a_mail`)."""
    ledger_units: float = 2.0
    """DynamoDB write units that the ledger uses for one message: the claim and the completion."""
    events: int = 0
    """Number of events that the provider sends about one message."""
    callbacks: int = 1
    """Number of callbacks to the message's `callback_url` if the message is delivered."""
    note: str = ""
    """Sentence about costs or delays that the command `cost` cannot compute."""


class Provider(Struct, frozen=True, kw_only=True):
    """Descriptor of a provider, for code that handles all providers alike.

    It refers to code by names, `module:attribute`. So a function imports the code of its own provider only,
    and its bundle does not contain operators' tools and the local stage.
    """

    title: str
    """Name of the provider in sentences for users, such as "Twilio"."""
    channel: str = ""
    """Channel of a provider of Mailroom. It is empty for the provider of an own channel, whose channel has
    this descriptor."""
    client: str = ""
    """Class of the client, whose method `of` opens the account in the sender's settings. Empty if the
    provider has a handler of its own."""
    events: Mapping[str, str] = {}
    """Functions that read the provider's events in the feedback queue, by the value of `source` that the
    function for the provider's requests writes into a queue message."""
    topic_events: str = ""
    """Function that reads the events that the provider publishes to the stage's topic."""
    url: str = ""
    """Default URL of the provider's HTTP API; {space} is replaced by that setting. Empty for an AWS
    service."""
    credentials: str = ""
    """Content of the secret with the credentials, for operators; empty without a secret."""
    one_of: tuple[str, ...] = ()
    """Settings in the channel's section of which the provider needs exactly one."""
    needed: str = ""
    """Value of the first setting in `one_of`, in words for operators."""
    sender: str = ""
    """Regular expression of a sender of text messages."""
    day_limit: bool = False
    """Whether the provider refuses messages above a limit for 24 hours, which the stage does not know."""
    unrepeated: int = 0
    """Number of requests for each message that the provider makes to the stage's API and does not repeat if
    the API throttles them."""
    media_from_bucket: int = 0
    """Maximum number of media of a text message, if the provider reads them from the payload bucket with the
    permissions of the sender. Zero if it gets URLs."""
    test_address: str = ""
    """Address for the canary, whose mails the provider discards and reports as delivered."""
    needs: str = ""
    """Function that returns the permissions and variables of the senders."""
    resources: str = ""
    """Function that creates further resources for events and alarms."""
    routes: Mapping[str, str] = {}
    """Purpose of the requests that the provider makes to the API, by path: a key of `SHARES` in the settings
    of the API, which are the parts of the throttling limits."""
    signed_with: str = ""
    """Secret with which the provider signs these requests, in words."""
    requests: str = ""
    """Function that returns the specification of the function that receives these requests."""
    checks: Mapping[str, str] = {}
    """Functions with which `doctor` checks the provider of mail or text messages, by the name of a check in
    the channel's descriptor."""
    variable: str = ""
    """Environment variable by which `doctor` recognizes the provider's senders."""
    price: float = 0.0
    """Price of one message in US dollars, if it is the same everywhere."""
    plans: Mapping[str, float] = {}
    """Prices of one message by the account's plan. `price` is that of a new account."""
    unpriced: str = "its price is not known here"
    """Reason why the price is left out; empty if `price` covers it or the provider is free."""
    note: str = ""
    """Sentence about costs or delays that the command `cost` cannot compute."""
    simulator: str = ""
    """Name (`module:class`) of the class of the provider's simulator. The class has one argument, the local
    stage's inbox. The constant `SECRET` in its module holds the credentials that the simulator accepts. Empty
    for built-in simulators that share a network of phones or events with others."""

    def open(self, settings: Any) -> Any:
        """Open the account whose secret and numbers are in the settings of its sender, and return its client.
        Raises InvalidSecret or botocore's errors."""
        module, _, kind = self.client.partition(":")
        return getattr(import_module(module), kind).of(settings)


class Channel(Struct, frozen=True, kw_only=True):
    """Descriptor of a channel, for code that handles all channels alike.

    Code that only operators' tools and the local stage need is referred to by a name, `module:attribute`, and
    not imported, so that the bundles of the Lambda functions do not contain it.
    """

    contract: type[Message]
    choices: list[dict[str, Any]] = []
    """JSON Schemas for rules of the contract that its types cannot express, such as "one attribute or another
    is required"."""
    delayable: bool = True
    """Whether the channel's queue can delay a message; a FIFO queue cannot."""
    message: str = ""
    """Word for one message in sentences for users, such as "text"; if empty, the channel's name is used."""
    messages: str
    """Word for several messages in sentences for users, such as "Texts"."""
    example: Mapping[str, str] = {}
    """Initial values of the local stage's form for a new message, by attribute."""
    rendered: bool = False
    """Whether a message's content can be rendered from a template."""
    providers: Mapping[str, Provider] = {}
    """Descriptors of an own channel's providers, by the names that the ledger stores. Empty for the built-in
    channels, whose providers are in mailroom/providers."""
    sent: str = "{provider} accepted it."
    """Explanation of the status `sent`, used until the provider reports a later status."""
    personal: bool = False
    """Whether recipients are mail addresses, phone numbers or devices. An erasure of a person's data by a
    mail address, a phone number or a device covers all personal channels at once. For any other channel, the
    erasure command needs the channel's name, and finds messages by the attributes in the contract's
    `addressing`."""
    estimate: Estimate = Estimate()
    checks: Mapping[str, str] | None = None
    """Checks that the command `doctor` makes, by name. If None, `doctor` only checks that the secrets of the
    sender functions can be read."""
