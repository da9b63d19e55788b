"""Settings of functions. A function's stack writes them into environment variables, and the function reads
them."""

import os
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

FEEDBACK_KEPT_BACK_SECONDS = 5
"""Minimum remaining seconds of an invocation of `feedback` for a write to begin, so that the write can end in
time."""
DEAD_LETTERS_KEPT_BACK_SECONDS = 10
"""Seconds of an invocation of `dead-letters` that are reserved for calls that have begun, and for making dead
letters visible again."""
COMPOSE_KEPT_BACK_SECONDS = 10
"""Seconds of an invocation of `compose` that are reserved for putting the composed messages."""
RELEASE_KEPT_BACK_SECONDS = 15
"""Seconds of an invocation of `release` that are reserved for the messages that it is putting into queues."""
Seconds = Annotated[float, Meta(ge=0)]
T = TypeVar("T", bound=Struct)


class Common(Struct, frozen=True, kw_only=True, rename="upper"):
    """Settings of every function that writes the ledger."""

    ledger_table: str
    ledger_ttl_seconds: Seconds
    payload_bucket: str


class OtherProvider(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The other one of a channel's two providers. For the senders of the first provider it is the fallback,
    and for the senders of the fallback it is the first provider."""

    name: str
    """Name of the provider in the ledger, such as resend."""
    queue_url: str
    """Queue of the same lane whose messages this provider sends."""
    after_tries: int = 0
    """Number of the receive (ApproximateReceiveCount of SQS) from which a message that the sender's own
    provider has not sent goes to the other provider; 0 for a sender of the fallback, from which messages do
    not go back."""
    after_seconds: Seconds = 0
    """Seconds from a message's first receive after which it goes to the other provider, before `after_tries`
    receives."""
    when_day_used_up: bool = False
    """Whether a message goes to the other provider if the own provider's daily quota is used up."""

    @property
    def is_fallback(self) -> bool:
        """Whether this provider takes the messages that the sender's own provider does not send."""
        return self.after_tries > 0


class Sender(Common, frozen=True, kw_only=True, rename="upper"):
    """Settings of a sender function, with numbers that the stack has derived for its queue."""

    channel: str
    queue_url: str
    lease_seconds: Seconds
    pace_seconds: Seconds
    on_unknown: Literal["resend", "hold"]
    backoff_seconds: Seconds
    backoff_cap_seconds: Seconds
    misconfigured_seconds: Seconds
    submit_seconds: Seconds
    record_seconds: Seconds
    resend_delays: tuple[Seconds, ...]
    """Minimum seconds between a try whose outcome is unknown and the next resend. There is one number for
    each resend."""
    submits_at_once: Annotated[int, Meta(ge=1)] = 1
    recipients_only: Sequence[str] | None = None
    """Recipients that the stage may reach: see `AllowedRecipients`. If None, all recipients are allowed."""
    redirect_to: str = ""
    """Recipient who gets the messages to all other recipients; if empty, these messages are suppressed."""
    contents_table: str = ""
    """Table with the contents of waiting messages; empty if messages of the channel never wait."""
    budgets_table: str = ""
    per_day: Sequence[tuple[str, int]] = ()
    """Maximum number of recipients of the channel a day: see `budget.PerDay`."""
    reserve: float = 0
    """Fraction of `per_day` that bulk messages never get."""
    budget: str = ""
    """Name of the daily budget; if empty, the channel's name is used."""
    bulk: bool = False
    """True for the lane `bulk`. It reserves recipients in the daily budget before it sends, and its new
    messages wait for a while if the provider refuses most of them."""
    window: dict[str, str] | None = None
    """Hours in which messages of the lane may be sent, for messages without the attribute `window`: see
    `Window`."""
    runs_table: str = ""
    """Table of campaign runs; empty if campaigns cannot use the channel."""
    other_provider: OtherProvider | None = None
    """The channel's other provider; None if the channel has only one."""


class SuppressingSender(Sender, frozen=True, kw_only=True, rename="upper"):
    """Settings of a sender whose recipients may be suppressed, or may have opted out of a topic."""

    suppressions_table: str
    preferences_table: str


class MailSender(SuppressingSender, frozen=True, kw_only=True, rename="upper"):
    """Settings of a mail sender."""

    mail_senders: Sequence[str]
    max_attachment_bytes: int
    unsubscribe_url: str
    """Prefix of the opt-out URLs."""
    unsubscribe_secret_arn: str
    """Secret with the key that signs the opt-out URLs."""
    templates: str = "templates/mail"
    templates_bucket: str = ""
    """Bucket with published versions of templates; empty if the stage does not publish them."""
    unknown: Literal["allow", "refuse"] = "allow"
    """Whether an attribute without an effect is allowed or makes the message invalid."""


class SesSender(MailSender, frozen=True, kw_only=True, rename="upper"):
    """Settings of a mail sender by SES."""

    configuration_set: str


class ResendSender(MailSender, frozen=True, kw_only=True, rename="upper"):
    """Settings of a mail sender by Resend."""

    resend_secret_arn: str
    """Secret with the API key."""
    resend_base_url: str


class SmsSender(SuppressingSender, frozen=True, kw_only=True, rename="upper"):
    """Settings of an SMS sender. The settings for another provider are empty."""

    sms_provider: str
    twilio_secret_arn: str = ""
    sms_base_url: str = ""
    messaging_service_sid: str = ""
    sms_sender: str = ""
    """Telephone number of the sender or, for AWS, any origination identity."""
    sms_configuration_set: str = ""
    default_region: str = ""
    callback_url: str = ""
    """Prefix of the URLs for Twilio's status callbacks, to which each message's reference is appended."""
    max_segments: int
    media_seconds: int
    clock_skew_seconds: Seconds
    templates: str = "templates/sms"
    templates_bucket: str = ""
    unknown: Literal["allow", "refuse"] = "allow"


class PushSender(SuppressingSender, frozen=True, kw_only=True, rename="upper"):
    """Settings of a push sender."""

    platform_applications: dict[str, str]
    """ARNs of the platform applications, by their names in the settings."""
    topics: Sequence[str]
    """ARNs of the topics."""


class FaxSender(Sender, frozen=True, kw_only=True, rename="upper"):
    """Settings of a fax sender."""

    fax_provider: str
    fax_secret_arn: str
    fax_base_url: str
    fax_senders: Sequence[str]
    fax_connection_id: str
    fax_ttl_minutes: int
    fax_quality: Literal["standard", "fine", "superfine"]
    media_seconds: int
    poll_seconds: Seconds
    longest_fax_seconds: Seconds
    max_attempts: int
    last_submit_receive: int
    clock_skew_seconds: Seconds
    callback_schemes: Sequence[str]
    callback_ports: Sequence[int]


class WebhookSender(Sender, frozen=True, kw_only=True, rename="upper"):
    """Settings of a webhook sender."""

    signing_secret_arn: str
    """Secret from which the keys of hosts are derived."""
    signing_overlap_seconds: Seconds
    delays: Sequence[Seconds]
    retry_after_cap_seconds: Seconds
    allowed_networks: Sequence[str]
    allowed_schemes: Sequence[str]
    allowed_ports: Sequence[int]


class FeedbackSettings(Common, frozen=True, kw_only=True, rename="upper"):
    """Settings of `feedback`."""

    queue_url: str
    suppressions_table: str
    feedback_topics: Sequence[str]
    """ARNs of the SNS topics whose events are accepted."""
    default_region: str = ""
    stop_words: Sequence[str] = ()
    """Additional words by which a person opts out of text messages."""
    start_words: Sequence[str] = ()
    """Additional words by which a person opts in to text messages again."""


class TwilioCallbacksSettings(Struct, frozen=True, kw_only=True, rename="upper"):
    """Settings of `twilio-callbacks`, which Twilio calls."""

    twilio_secret_arn: str
    """Secret with the auth token, which is the key of signatures by Twilio."""
    public_url: str
    """Public URL of the function, which Twilio's signatures cover."""
    feedback_queue_url: str
    sms_base_url: str
    """URL of the API of Twilio, from which the time of a text is read."""
    stop_words: Sequence[str] = ()
    start_words: Sequence[str] = ()


class ResendMailEventsSettings(Struct, frozen=True, kw_only=True, rename="upper"):
    """Settings of `resend-mail-events`, which Resend calls."""

    resend_secret_arn: str
    """Secret with the key of signatures by Resend."""
    feedback_queue_url: str


class DatabaseSettings(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Connection to a PostgreSQL database. The secret has the login in the form of RDS (`host`, `port`,
    `username`, `password`, `dbname`). The fields `host`, `port` and `dbname` are used if the secret lacks
    them."""

    secret_arn: str
    sslmode: Literal["verify-full", "verify-ca", "require", "disable"] = "verify-full"
    ca_file: str = ""
    """File in the bundle with the CA certificates for the server's certificate; if empty, the system's CA
    certificates are used."""
    host: str = ""
    port: int = 0
    dbname: str = ""
    connect_seconds: Seconds
    statement_seconds: Seconds


class DayLimit(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Daily limit of a channel, and the queue of its bulk lane."""

    per_day: Sequence[tuple[str, int]]
    reserve: float
    queue_url: str


class CollectSettings(Struct, frozen=True, kw_only=True, rename="upper"):
    """Settings of `collect`."""

    queue_url: str
    audience_queue_url: str
    """Queue of people whose messages have to be composed."""
    runs_table: str
    lease_seconds: Seconds
    budgets_table: str = ""
    limits: dict[str, DayLimit] = {}
    """Daily limits, by channel."""
    databases: dict[str, DatabaseSettings] = {}
    campaigns: str = "campaigns.json"
    templates_bucket: str = ""
    search_table: str = ""


class ComposeSettings(Common, frozen=True, kw_only=True, rename="upper"):
    """Settings of `compose`."""

    queue_url: str
    mailbox_table: str
    preferences_table: str
    runs_table: str
    queues: dict[str, str]
    """URLs of the bulk lanes' queues, by channel, for messages of a run that is started again."""
    default_region: str = ""
    mailbox_ttl_seconds: Seconds = 0
    """Seconds for which the mailbox stores an item; 0 if items never expire."""
    databases: dict[str, DatabaseSettings] = {}
    campaigns: str = "campaigns.json"


class CallerLimit(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Limits of a caller of the API."""

    per_day: int | None = None
    """Maximum number of recipients a day; None if the number is not limited."""
    senders: Sequence[str] | None = None
    """Addresses from which the caller may send; if None, all senders of the stage are allowed."""


class MessagesApiSettings(Common, frozen=True, kw_only=True, rename="upper"):
    """Settings of the HTTP API."""

    mailbox_table: str
    lanes: dict[str, list[str]]
    """Lanes of the stage, by channel."""
    callback_schemes: Sequence[str]
    callback_ports: Sequence[int]
    caller_claim: str = ""
    """Claim in a caller's token that contains its name; empty if callers are authenticated by IAM."""
    payload_prefixes: dict[str, str] = {}
    """Prefix of the keys of objects that a caller may use, by caller; if empty, all objects are allowed."""
    callers: dict[str, CallerLimit] = {}
    """Limits by caller; if empty, callers are not restricted."""
    mail_senders: Sequence[str] = ()
    fax_senders: Sequence[str] = ()
    push_applications: Sequence[str] | None = None
    """Names of the platform applications; None for a stage without push."""
    templates: str = "templates"
    templates_bucket: str = ""
    unknown: Literal["allow", "refuse"] = "allow"
    budgets_table: str = ""
    default_region: str = ""
    mailbox_ttl_seconds: Seconds = 0
    payload_ttl_seconds: Seconds
    """Seconds for which large content is stored."""
    search_table: str = ""
    """Table of the search index; empty for a stage without search."""
    search_key_name: str = ""
    preferences_table: str = ""
    """Table of opt-outs; empty for a stage without the routes for people."""
    suppressions_table: str = ""
    topics_file: str = ""
    """File in the bundle with the titles of the topics by language."""
    people_per_day: int = 0
    """Maximum number of people that each caller may look up a day."""


class UnsubscribeSettings(Struct, frozen=True, kw_only=True, rename="upper"):
    """Settings of `unsubscribe`."""

    preferences_table: str
    unsubscribe_secret_arn: str
    """Secret with the key that signs the opt-out links."""
    unsubscribe_page: str = ""
    """File in the bundle with the settings of the opt-out page; if empty, the default settings are used."""


class ConsoleSettings(Struct, frozen=True, kw_only=True, rename="upper"):
    """Settings of `console`, the console behind a team's sign-in."""

    console_url: str
    """Own URL of the console, without a slash at its end."""
    issuer: str
    client_id: str
    client_secret_arn: str
    scope: str
    claim: str
    """Claim of a token with the person's groups."""
    read: Sequence[str] = ()
    """Groups, addresses and domains with the right `read`."""
    contents: Sequence[str] = ()
    """Groups, addresses and domains with the right `contents`."""


class DeadLettersSettings(Common, frozen=True, kw_only=True, rename="upper"):
    """Settings of `dead-letters`."""

    dead_letter_queues: dict[str, str]
    """URLs of the dead-letter queues, by the queue's short name."""


class RetryFaxSettings(Struct, frozen=True, kw_only=True, rename="upper"):
    """Settings of `retry-fax`, which moves messages to the fax queue."""

    queue_url: str
    fax_queue_url: str


class OutcomesSettings(Struct, frozen=True, kw_only=True, rename="upper"):
    """Settings of `outcomes`."""

    webhook_queue_url: str
    retry_queue_url: str
    max_attempts: int
    retry_delay_seconds: Seconds
    channels: Sequence[str]
    event_bus: str = ""
    """Name or ARN of the event bus for outcomes; if empty, events are not put on a bus."""
    event_source: str = ""
    campaigns: Sequence[str] = ()


class IndexSettings(Struct, frozen=True, kw_only=True, rename="upper"):
    """Settings of `index-messages`."""

    ledger_table: str
    search_table: str
    search_key_name: str
    """Name of the secret with the key for hashes of recipients."""
    campaigns: dict[str, float | None] = {}
    """Campaigns whose messages are counted by status. Value: the share of bounced messages in percent above
    which a run is paused, or None."""
    runs_table: str = ""
    """Table of the runs of campaigns; empty if there are none."""


class DispatchSettings(Common, frozen=True, kw_only=True, rename="upper"):
    """Settings of `dispatch`."""

    routes: dict[str, dict[str, str]]
    """URLs of the queues, by channel and lane."""
    delayed_routes: dict[str, str]
    """URLs of queues for delayed messages, by channel, for channels whose own queue cannot delay a
    message."""
    callback_schemes: Sequence[str]
    callback_ports: Sequence[int]
    default_region: str = ""
    templates_bucket: str = ""
    """Bucket with published versions of templates; empty if the stage does not publish them."""
    unknown: Literal["allow", "refuse"] = "allow"
    """Whether an attribute without an effect is allowed or makes the message invalid."""


class LineSettings(Struct, frozen=True):
    """Settings for the bulk messages of one channel that wait for the daily budget."""

    per_second: float
    """Number of messages that the lane sends in a second."""
    per_day: Sequence[tuple[str, int]] = ()
    """Maximum number of recipients of the channel a day: see `budget.PerDay`."""
    reserve: float = 0
    """Fraction of `per_day` that bulk messages never get."""


class ReleaseSettings(DispatchSettings, frozen=True, kw_only=True, rename="upper"):
    """Settings of `release`, which also dispatches items that it reads from the mailbox again."""

    mailbox_table: str
    contents_table: str
    budgets_table: str
    lines: dict[str, LineSettings]
    """Settings by channel, for the channels with a daily limit."""
    runs_table: str
    lease_seconds: Seconds
    """Seconds for which an invocation has the exclusive right to its shard or channel."""
    aws_lambda_function_name: str = ""
    """Name of the function, which invokes itself. Lambda sets this variable for each function."""


def read(kind: type[T], variables: Mapping[str, str] = os.environ) -> T:
    """Return the settings of the class `kind` from the environment, or from the given variables. Lists and
    maps are JSON.

    Raises msgspec.ValidationError, whose text contains the invalid variable's name.
    """
    values: dict[str, Any] = {}
    for field in msgspec.structs.fields(kind):
        name = field.encode_name
        if (text := variables.get(name)) is not None:
            values[name] = _json(name, text) if text.startswith(("[", "{")) else text
    return msgspec.convert(values, kind, strict=False)


def variables_of(settings: Struct) -> dict[str, str]:
    """Return the environment variables from which `read` returns `settings`. Default values are omitted.

    Lists, maps and numbers are JSON. Texts may have tokens that CloudFormation replaces.
    """
    variables = {}
    for field in msgspec.structs.fields(settings):
        value = getattr(settings, field.name)
        default = field.default_factory() if callable(field.default_factory) else field.default
        if value != default:
            text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
            variables[field.encode_name] = text
    return variables


def _json(name: str, text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise msgspec.ValidationError(f"`{name}` is not JSON: {error}") from None
