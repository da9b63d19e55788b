"""Settings of functions: the stack of a function fills one of these types, and the function reads it."""

import os
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

FEEDBACK_KEPT_BACK_SECONDS = 5
"""Seconds of the time of `feedback` in which no write begins, because it might not end in time."""
DEAD_LETTERS_KEPT_BACK_SECONDS = 10
"""Seconds of the time of `dead-letters` that are reserved for calls that have begun, and for making letters
visible again."""
COMPOSE_KEPT_BACK_SECONDS = 10
"""Seconds of the time of `compose` that are reserved for putting the composed messages."""
RELEASE_KEPT_BACK_SECONDS = 15
"""Seconds of the time of `release` that a round keeps for the messages that it is handing over."""
Seconds = Annotated[float, Meta(ge=0)]
T = TypeVar("T", bound=Struct)


class Common(Struct, frozen=True, kw_only=True, rename="upper"):
    """Settings of every function that writes the ledger."""

    ledger_table: str
    ledger_ttl_seconds: Seconds
    payload_bucket: str


class Sender(Common, frozen=True, kw_only=True, rename="upper"):
    """Settings of a worker, with the numbers that the stack derived for its queue."""

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
    resend_delays: tuple[Seconds, ...] = (0, 1_800, 7_200)
    """Minimum times between a try whose outcome is unknown and each resend; their number is that of
    resends."""
    submits_at_once: Annotated[int, Meta(ge=1)] = 1
    recipients_only: Sequence[str] | None = None
    """Recipients that the stage may reach: see `AllowedRecipients`. None allows all."""
    redirect_to: str = ""
    """Recipient of the messages to all others; empty to suppress them."""
    contents_table: str = ""
    """Table with the contents of messages that wait; empty if no message of the channel ever waits."""
    budgets_table: str = ""
    per_day: Sequence[tuple[str, int]] = ()
    """Maximum number of recipients of the channel a day: see `budget.PerDay`."""
    reserve: float = 0
    """Part of `per_day` that bulk never gets."""
    bulk: bool = False
    """True for the lane `bulk`: it asks for its part of the day before it sends, and is closed for a
    while if the provider refuses what it submits."""
    window: dict[str, str] | None = None
    """Hours of the lane, for messages without a window of their own: see `Window`."""
    runs_table: str = ""
    """Table of the runs of campaigns; empty if no campaign sends by this lane."""


class SuppressingSender(Sender, frozen=True, kw_only=True, rename="upper"):
    """Settings of a sender whose recipients may be suppressed, or may have opted out of a topic."""

    suppressions_table: str
    preferences_table: str


class MailSender(SuppressingSender, frozen=True, kw_only=True, rename="upper"):
    """Settings of a mail sender."""

    mail_senders: Sequence[str]
    max_attachment_bytes: int
    unsubscribe_url: str
    """Beginning of the URLs for opting out."""
    unsubscribe_secret_arn: str
    """Secret that signs these URLs."""
    templates: str = "templates/mail"
    templates_bucket: str = ""
    """Bucket with published versions of templates; empty if the stage does not publish them."""
    unknown: Literal["allow", "refuse"] = "allow"
    """Treatment of an attribute without effect."""


class SesSender(MailSender, frozen=True, kw_only=True, rename="upper"):
    """Settings of a mail sender by SES."""

    configuration_set: str


class ResendSender(MailSender, frozen=True, kw_only=True, rename="upper"):
    """Settings of a mail sender by Resend."""

    resend_secret_arn: str = ""
    """Secret with the API key."""
    resend_base_url: str = ""


class SmsSender(SuppressingSender, frozen=True, kw_only=True, rename="upper"):
    """Settings of an SMS sender; those of other providers are empty."""

    sms_provider: Literal["twilio", "aws"]
    twilio_secret_arn: str = ""
    sms_base_url: str = ""
    messaging_service_sid: str = ""
    sms_sender: str = ""
    """Number or, for AWS, any origination identity."""
    sms_configuration_set: str = ""
    default_region: str = ""
    callback_url: str = ""
    """Beginning of the URLs for Twilio's status callbacks, each with a path of its message."""
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

    fax_provider: Literal["signalwire", "telnyx"]
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
    """ARNs of the topics whose events are accepted."""
    default_region: str = ""
    stop_words: Sequence[str] = ()
    """Words of the stage that stop text messages."""
    start_words: Sequence[str] = ()
    """Words of the stage that start them again."""


class TwilioCallbacksSettings(Struct, frozen=True, kw_only=True, rename="upper"):
    """Settings of `twilio-callbacks`, which Twilio calls."""

    twilio_secret_arn: str
    """Secret with the key of Twilio's signatures."""
    public_url: str
    """URL that Twilio signs."""
    feedback_queue_url: str
    sms_base_url: str = "https://api.twilio.com"
    """API that returns when a text was sent."""
    stop_words: Sequence[str] = ()
    start_words: Sequence[str] = ()


class ResendEventsSettings(Struct, frozen=True, kw_only=True, rename="upper"):
    """Settings of `resend-events`, which Resend calls."""

    resend_secret_arn: str
    """Secret with the key of Resend's signatures."""
    feedback_queue_url: str


class DatabaseSettings(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Connection to a PostgreSQL. The secret has the login in the form of RDS (`host`, `port`, `username`,
    `password`, `dbname`); `host`, `port` and `dbname` here are for a secret without them."""

    secret_arn: str
    sslmode: Literal["verify-full", "verify-ca", "require", "disable"] = "verify-full"
    ca_file: str = ""
    """File in the bundle with the authorities for the server's certificate; empty for those of the system."""
    host: str = ""
    port: int = 0
    dbname: str = ""
    connect_seconds: Seconds = 5
    statement_seconds: Seconds = 60


class DayLimit(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Limit of a channel's day, and the queue of the lane that asks."""

    per_day: Sequence[tuple[str, int]]
    reserve: float
    queue_url: str


class CollectSettings(Struct, frozen=True, kw_only=True, rename="upper"):
    """Settings of `collect`."""

    queue_url: str
    audience_queue_url: str
    """Queue of people to be composed."""
    runs_table: str
    lease_seconds: Seconds
    run_ttl_seconds: Seconds
    """Seconds for which a run's item lives after its last change."""
    budgets_table: str = ""
    limits: dict[str, DayLimit] = {}
    """Limits of the day, by channel."""
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
    run_ttl_seconds: Seconds
    queues: dict[str, str] = {}
    """URLs of the queues of the lane `bulk`, by channel: for messages that a stopped run sends after all."""
    default_region: str = ""
    mailbox_ttl_seconds: Seconds = 0
    """Seconds for which the mailbox keeps an item; 0 for ever."""
    databases: dict[str, DatabaseSettings] = {}
    campaigns: str = "campaigns.json"


class CallerLimit(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Limits of a caller of the API."""

    per_day: int | None = None
    """Maximum number of recipients a day; None is no limit."""
    senders: Sequence[str] | None = None
    """Addresses from which the caller may send; None allows all senders of the stage."""


class MessagesApiSettings(Common, frozen=True, kw_only=True, rename="upper"):
    """Settings of the HTTP API."""

    mailbox_table: str
    lanes: dict[str, list[str]]
    """Lanes of the stage, by channel."""
    callback_schemes: Sequence[str]
    callback_ports: Sequence[int]
    caller_claim: str = ""
    """Claim of a token that names the caller; empty if callers sign by IAM."""
    payload_prefixes: dict[str, str] = {}
    """Beginning of the keys of objects that a caller may name, by caller; empty to allow all objects."""
    callers: dict[str, CallerLimit] = {}
    """Limits by caller; empty to allow each caller everything."""
    mail_senders: Sequence[str] = ()
    fax_senders: Sequence[str] = ()
    templates: str = "templates"
    templates_bucket: str = ""
    unknown: Literal["allow", "refuse"] = "allow"
    budgets_table: str = ""
    default_region: str = ""
    mailbox_ttl_seconds: Seconds = 0
    payload_ttl_seconds: Seconds = 0
    """Seconds for which large content is kept; 0 for ever."""
    search_table: str = ""
    """Table of rows by recipient; empty for a stage without search."""
    search_key_name: str = ""


class UnsubscribeSettings(Struct, frozen=True, kw_only=True, rename="upper"):
    """Settings of `unsubscribe`."""

    preferences_table: str
    unsubscribe_secret_arn: str
    """Secret that signs the links."""
    unsubscribe_page: str = ""
    """File in the bundle with the settings of the page; empty without such settings."""


class DeadLettersSettings(Common, frozen=True, kw_only=True, rename="upper"):
    """Settings of `dead-letters`."""

    dead_letter_queues: dict[str, str]
    """URL of each dead-letter queue, by the queue's short name."""


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
    channels: Sequence[str] = ()
    event_bus: str = ""
    """Name or ARN of the bus for events; empty to put none."""
    event_source: str = ""
    campaigns: Sequence[str] = ()


class IndexSettings(Struct, frozen=True, kw_only=True, rename="upper"):
    """Settings of `index-messages`."""

    ledger_table: str
    search_table: str
    search_key_name: str
    """Name of the secret with the key for hashes of recipients."""
    campaigns: Sequence[str] = ()
    """Campaigns whose messages are counted by status."""


class DispatchSettings(Common, frozen=True, kw_only=True, rename="upper"):
    """Settings of `dispatch`."""

    routes: dict[str, dict[str, str]]
    """URL of the queue, by channel and lane."""
    delayed_routes: dict[str, str]
    """By channel whose own queue cannot delay a message, the URL of a queue that can."""
    callback_schemes: Sequence[str]
    callback_ports: Sequence[int]
    default_region: str = ""
    templates_bucket: str = ""
    """Bucket with published versions of templates; empty if the stage does not publish them."""
    unknown: Literal["allow", "refuse"] = "allow"
    """Treatment of an attribute without effect."""


class LineSettings(Struct, frozen=True):
    """Settings of one channel's line: messages of bulk that wait for the day."""

    per_second: float
    """Messages that the lane sends in a second."""
    per_day: Sequence[tuple[str, int]] = ()
    """Maximum number of recipients of the channel a day: see `budget.PerDay`."""
    reserve: float = 0
    """Part of `per_day` that bulk never gets."""


class ReleaseSettings(DispatchSettings, frozen=True, kw_only=True, rename="upper"):
    """Settings of `release`, which also dispatches the items that it reads back from the mailbox."""

    mailbox_table: str
    contents_table: str
    budgets_table: str
    lines: dict[str, LineSettings]
    """Lines by channel."""
    runs_table: str = ""
    """Table of the runs of campaigns; empty without campaigns."""
    lease_seconds: Seconds
    """Seconds for which a round has its part of the work for itself."""


def read(kind: type[T], variables: Mapping[str, str] = os.environ) -> T:
    """Read the settings of `kind` from the environment, or from another function's variables, in which lists
    and maps are JSON.

    Raises msgspec.ValidationError, which names the variable at fault.
    """
    values: dict[str, Any] = {}
    for field in msgspec.structs.fields(kind):
        name = field.encode_name
        if (text := variables.get(name)) is not None:
            values[name] = _json(name, text) if text.startswith(("[", "{")) else text
    return msgspec.convert(values, kind, strict=False)


def variables_of(settings: Struct) -> dict[str, str]:
    """Return the variables from which `read` makes `settings`. A default value has no variable.

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
