"""A function's settings: its stack fills one of these types, and the function reads the same type."""

import os
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

FEEDBACK_KEPT_BACK_SECONDS = 5
"""Kept of the time of `feedback`: a write that starts later might not end in it."""
DEAD_LETTERS_KEPT_BACK_SECONDS = 10
"""Kept of the time of `dead-letters`, for what has begun and for putting back."""
COMPOSE_KEPT_BACK_SECONDS = 10
"""Kept of the time of `compose`, for putting what was composed."""
RELEASE_KEPT_BACK_SECONDS = 15
"""Seconds of the time of `release` that a round keeps for the messages that it is handing over."""
Seconds = Annotated[float, Meta(ge=0)]
T = TypeVar("T", bound=Struct)


class Common(Struct, frozen=True, kw_only=True, rename="upper"):
    """What every function that writes the ledger knows."""

    ledger_table: str
    ledger_ttl_seconds: Seconds
    payload_bucket: str


class Sender(Common, frozen=True, kw_only=True, rename="upper"):
    """A worker's own: its queue, and the numbers that the stack derived for it."""

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
    """The least time between a try whose outcome is unknown and each resend, and so the number of resends."""
    submits_at_once: Annotated[int, Meta(ge=1)] = 1
    recipients_only: Sequence[str] | None = None
    """Whom the stage may reach: see `AllowedRecipients`. None: everybody."""
    redirect_to: str = ""
    """Who gets the messages to all others; "": they are suppressed."""
    contents_table: str = ""
    """Table with the contents of messages that wait; empty if no message of the channel ever waits."""
    budgets_table: str = ""
    per_day: Sequence[tuple[str, int]] = ()
    """How many recipients the channel may reach a day: see `budget.PerDay`."""
    reserve: float = 0
    """The part of `per_day` that is never bulk's."""
    bulk: bool = False
    """Whether this is the lane `bulk`: it asks for its part of the day before it sends, and is closed for a
    while if the provider refuses what it submits."""
    window: dict[str, str] | None = None
    """The hours of the lane, for messages without a window of their own: see `Window`."""
    runs_table: str = ""
    """Table of the runs of campaigns; empty if no campaign sends by this lane."""


class SuppressingSender(Sender, frozen=True, kw_only=True, rename="upper"):
    """A sender's whose recipients may be on the suppression list, or may have opted out of a topic."""

    suppressions_table: str
    preferences_table: str


class MailSender(SuppressingSender, frozen=True, kw_only=True, rename="upper"):
    """A mail sender's. `unsubscribe_url` is below which the links for opting out lie, and the secret is what
    they are signed with."""

    mail_senders: Sequence[str]
    max_attachment_bytes: int
    unsubscribe_url: str
    unsubscribe_secret_arn: str
    templates: str = "templates/mail"
    templates_bucket: str = ""
    """Where published versions of templates lie; "": the stage publishes none."""
    unknown: Literal["allow", "refuse"] = "allow"
    """What becomes of an attribute that nobody uses."""


class SesSender(MailSender, frozen=True, kw_only=True, rename="upper"):
    """A mail sender's by SES."""

    configuration_set: str


class ResendSender(MailSender, frozen=True, kw_only=True, rename="upper"):
    """A mail sender's by Resend: the secret with its API key, and where its API is."""

    resend_secret_arn: str = ""
    resend_base_url: str = ""


class SmsSender(SuppressingSender, frozen=True, kw_only=True, rename="upper"):
    """An SMS sender's: its provider and what that one needs; "" is none.

    `sms_sender` is a number or, of AWS, any origination identity; `callback_url` is where Twilio's status
    callbacks go, to a path of the message's own below it.
    """

    sms_provider: Literal["twilio", "aws"]
    twilio_secret_arn: str = ""
    sms_base_url: str = ""
    messaging_service_sid: str = ""
    sms_sender: str = ""
    sms_configuration_set: str = ""
    default_region: str = ""
    callback_url: str = ""
    max_segments: int
    media_seconds: int
    clock_skew_seconds: Seconds
    templates: str = "templates/sms"
    templates_bucket: str = ""
    unknown: Literal["allow", "refuse"] = "allow"


class PushSender(SuppressingSender, frozen=True, kw_only=True, rename="upper"):
    """A push sender's: the platform applications by their names here, and the topics; all as ARNs."""

    platform_applications: dict[str, str]
    topics: Sequence[str]


class FaxSender(Sender, frozen=True, kw_only=True, rename="upper"):
    """A fax sender's: its provider, and the longest it follows a fax."""

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
    """A webhook sender's: how it signs, how often it tries, and where it may send to. The keys of hosts are
    derived from the signing secret."""

    signing_secret_arn: str
    signing_overlap_seconds: Seconds
    delays: Sequence[Seconds]
    retry_after_cap_seconds: Seconds
    allowed_networks: Sequence[str]
    allowed_schemes: Sequence[str]
    allowed_ports: Sequence[int]


class FeedbackSettings(Common, frozen=True, kw_only=True, rename="upper"):
    """Feedback's: the topics that it believes, where it marks recipients, and the stage's own words that stop
    text messages and start them again."""

    queue_url: str
    suppressions_table: str
    feedback_topics: Sequence[str]
    default_region: str = ""
    stop_words: Sequence[str] = ()
    start_words: Sequence[str] = ()


class TwilioCallbacksSettings(Struct, frozen=True, kw_only=True, rename="upper"):
    """The function's that Twilio calls: what it signs with, under which URL, and where its words go; where to
    ask Twilio when a text was sent, and the stage's own words that stop texts and start them again."""

    twilio_secret_arn: str
    public_url: str
    feedback_queue_url: str
    sms_base_url: str = "https://api.twilio.com"
    stop_words: Sequence[str] = ()
    start_words: Sequence[str] = ()


class ResendEventsSettings(Struct, frozen=True, kw_only=True, rename="upper"):
    """The function's that Resend calls: the secret with what its webhooks are signed with, and where they
    go."""

    resend_secret_arn: str
    feedback_queue_url: str


class DatabaseSettings(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How to reach a PostgreSQL: who and where stands in its secret, as RDS writes it (`host`, `port`,
    `username`, `password`, `dbname`)."""

    secret_arn: str
    sslmode: Literal["verify-full", "verify-ca", "require", "disable"] = "verify-full"
    ca_file: str = ""
    """The certificates of who may have signed the server's, from the bundle's root; "" is the system's."""
    host: str = ""
    port: int = 0
    dbname: str = ""
    """`host`, `port` and `dbname` are used where the secret lacks them."""
    connect_seconds: Seconds = 5
    statement_seconds: Seconds = 60


class DayLimit(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The limit of a channel's day: see `Sender.per_day`. `queue_url` is the queue of the lane that asks."""

    per_day: Sequence[tuple[str, int]]
    reserve: float
    queue_url: str


class CollectSettings(Struct, frozen=True, kw_only=True, rename="upper"):
    """Collect's: its own queue, the one for composing, and the table of runs, whose items live for
    `run_ttl_seconds` after their last change. `limits` has the channels with a limit of the day."""

    queue_url: str
    audience_queue_url: str
    runs_table: str
    lease_seconds: Seconds
    run_ttl_seconds: Seconds
    budgets_table: str = ""
    limits: dict[str, DayLimit] = {}
    databases: dict[str, DatabaseSettings] = {}
    campaigns: str = "campaigns.json"
    templates_bucket: str = ""
    search_table: str = ""


class ComposeSettings(Common, frozen=True, kw_only=True, rename="upper"):
    """Compose's: whom it may write to, and the mailbox. `mailbox_ttl_seconds` is how long an item stays
    there; 0 is for ever."""

    queue_url: str
    mailbox_table: str
    preferences_table: str
    runs_table: str
    run_ttl_seconds: Seconds
    queues: dict[str, str] = {}
    """URLs of the queues of the lane `bulk`, by channel: for messages that a stopped run sends after all."""
    default_region: str = ""
    mailbox_ttl_seconds: Seconds = 0
    databases: dict[str, DatabaseSettings] = {}
    campaigns: str = "campaigns.json"


class CallerLimit(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a caller of the API may send: recipients a day (None: any number), and the addresses that its
    mails may come from (None: all of the stage's)."""

    per_day: int | None = None
    senders: Sequence[str] | None = None


class MessagesApiSettings(Common, frozen=True, kw_only=True, rename="upper"):
    """The HTTP API's: the mailbox, and the lanes that each channel of the stage has. `caller_claim` is
    the claim of a token that names its caller; "": callers sign by IAM. `payload_prefixes` says how the keys
    of a caller's objects begin."""

    mailbox_table: str
    lanes: dict[str, list[str]]
    callback_schemes: Sequence[str]
    callback_ports: Sequence[int]
    caller_claim: str = ""
    payload_prefixes: dict[str, str] = {}
    """The prefix of the objects that each caller may name; empty: every caller may name all."""
    callers: dict[str, CallerLimit] = {}
    """What each caller may send; empty: every caller may send all."""
    mail_senders: Sequence[str] = ()
    fax_senders: Sequence[str] = ()
    templates: str = "templates"
    templates_bucket: str = ""
    unknown: Literal["allow", "refuse"] = "allow"
    budgets_table: str = ""
    default_region: str = ""
    mailbox_ttl_seconds: Seconds = 0
    payload_ttl_seconds: Seconds = 0
    """How long large content is kept; 0 is for ever."""
    search_table: str = ""
    """Where messages are found by their recipients; "": the stage has no search."""
    search_key_name: str = ""


class UnsubscribeSettings(Struct, frozen=True, kw_only=True, rename="upper"):
    """Unsubscribe's: where choices are kept, what links are signed with, and the bundle's file with what the
    stage says of its page, "" for none."""

    preferences_table: str
    unsubscribe_secret_arn: str
    unsubscribe_page: str = ""


class DeadLettersSettings(Common, frozen=True, kw_only=True, rename="upper"):
    """Variables of `dead-letters`."""

    dead_letter_queues: dict[str, str]
    """URL of each dead-letter queue, by the queue's short name."""


class RetryFaxSettings(Struct, frozen=True, kw_only=True, rename="upper"):
    """The retry mover's: from which queue to which."""

    queue_url: str
    fax_queue_url: str


class OutcomesSettings(Struct, frozen=True, kw_only=True, rename="upper"):
    """Outcomes': where callbacks, retries and events go, when a fax is tried again, and which channels and
    campaigns there are. `event_bus` is a bus's name or ARN; "": nothing is put on any."""

    webhook_queue_url: str
    retry_queue_url: str
    max_attempts: int
    retry_delay_seconds: Seconds
    channels: Sequence[str] = ()
    event_bus: str = ""
    event_source: str = ""
    campaigns: Sequence[str] = ()


class IndexSettings(Struct, frozen=True, kw_only=True, rename="upper"):
    """Index-messages': which table it reads, which it writes, and the name of the secret that recipients are
    hashed with."""

    ledger_table: str
    search_table: str
    search_key_name: str
    campaigns: Sequence[str] = ()
    """Those whose messages are counted by how they ended."""


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
    """Where it stands which published versions of templates count; "": the stage publishes none."""
    unknown: Literal["allow", "refuse"] = "allow"
    """What becomes of an attribute that nobody uses."""


class LineSettings(Struct, frozen=True):
    """Settings of one channel's line: messages of bulk that wait for the day."""

    per_second: float
    """Messages that the lane sends in a second."""
    per_day: Sequence[tuple[str, int]] = ()
    """Recipients that the channel may reach a day: see `budget.PerDay`."""
    reserve: float = 0
    """Part of `per_day` that is never bulk's."""


class ReleaseSettings(DispatchSettings, frozen=True, kw_only=True, rename="upper"):
    """Settings of `release`, which also dispatches the items that it reads back from the mailbox."""

    mailbox_table: str
    contents_table: str
    budgets_table: str
    lines: dict[str, LineSettings]
    """The lines, by channel."""
    runs_table: str = ""
    """Table of the runs of campaigns; empty without campaigns."""
    lease_seconds: Seconds
    """Seconds for which a round has its part of the work for itself."""


def read(kind: type[T], variables: Mapping[str, str] = os.environ) -> T:
    """The settings of `kind` from the environment, or from another function's variables; lists and maps
    stand there as JSON.

    Raises msgspec.ValidationError that names the variable at fault.
    """
    values: dict[str, Any] = {}
    for each in msgspec.structs.fields(kind):
        text = variables.get(each.encode_name)
        if text is not None:
            values[each.encode_name] = _json(each.encode_name, text) if text.startswith(("[", "{")) else text
    return msgspec.convert(values, kind, strict=False)


def variables_of(settings: Struct) -> dict[str, str]:
    """The variables that `read` makes `settings` of; what is as its default has none.

    Lists, maps and numbers are JSON. Text may hold what CloudFormation fills in.
    """
    found = {}
    for each in msgspec.structs.fields(settings):
        value = getattr(settings, each.name)
        default = each.default_factory() if callable(each.default_factory) else each.default
        if value != default:
            found[each.encode_name] = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return found


def _json(name: str, text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise msgspec.ValidationError(f"`{name}` is not JSON: {error}") from None
