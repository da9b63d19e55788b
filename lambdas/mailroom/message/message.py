"""Message: an item of the mailbox, parsed into the class (contract) of its channel. The body of a queue
message is the same item as JSON."""

import base64
import binascii
import hashlib
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal, DecimalException
from functools import cache, lru_cache
from typing import Annotated, Any, ClassVar, Self, TypeVar

import msgspec
from msgspec import Meta, Struct, structs

from mailroom.clock import epoch
from mailroom.errors import MAX_DEPTH, MAX_KEY_BYTES, NUMBERS, Invalid, Malformed, check_variables, too_deep
from mailroom.message import CAMPAIGN_START
from mailroom.message.address import has_control, to_e164
from mailroom.message.unless import MAX_CONDITIONS, Condition
from mailroom.message.window import Window

MAX_ID_BYTES = 180
"""Maximum number of bytes of an id in UTF-8. The base64url of such an id has 240 characters, and an SES tag's
value may have 256."""
MAX_ATTEMPT = 999_999_999
"""Highest attempt that fits into a reference. DynamoDB stores at most 38 digits."""
_FORM = re.compile(r"([A-Za-z0-9_-]{2,240})(?:\.([1-9][0-9]{0,8}))?", re.ASCII)

MAX_REF_BYTES = len("s3://") + 63 + len("/") + 1024
"""Maximum number of bytes of a `payload_ref`, by the longest bucket name and the longest object key. The
limit is needed because the ledger stores the `payload_ref` of a fax, and a queue message may be larger than
any DynamoDB item."""

MAX_TIME = 64
"""Maximum number of characters of a time. A time with microseconds and an offset has half as many, but Python
reads any number of digits after the decimal point, and a ledger item stores the text."""

MAX_AHEAD_SECONDS = 366 * 86400
"""Maximum time in seconds from now until `send_at`."""

MAX_GROUP = 128
"""Maximum number of characters of a message's group in a queue: SQS's MessageGroupId."""

CANARY = "mailroom-canary-"
"""Prefix of the ids of canaries: mails to the provider's test address, which are sent regularly to test the
stage."""

LANES = ("normal", "bulk")
"""Names of all lanes: the parallel queues of a channel."""

MAX_SUBJECT = 200
"""Maximum number of characters of a subject in the ledger, so that a ledger item stays near one write
unit."""

MAX_TOPIC = 64
"""Maximum number of characters of a topic, which is part of the unsubscribe link and so of a header with a
limited length."""

OURS = ("variables", "attempt", "payload_prefix", "restored_id", "audience_columns", CAMPAIGN_START)
"""Attributes of a message that only Mailroom writes."""

MAX_MISTAKABLE = 32
"""Maximum number of characters of an unknown name that is compared with the names of attributes."""

EVERYDAY = frozenset(("sentat", "endat", "windows", "fallbackurl"))
"""Names of common template variables, as `_spelling` returns them, that are allowed although they differ from
a vital attribute by only one letter."""

Time = Annotated[str, Meta(description="ISO 8601, for example 2026-11-21T09:00:00Z; without offset: UTC")]


_OF_RUN = re.compile(r"[^#]+#[^#]+#.+#([0-9a-f]{8})[0-9a-f]{32}", re.ASCII)


def begun_of(id_: str) -> int | None:
    """Return the `begun_at` of the run that composed a message, read from the message's id (see `Run.id_of`),
    or None for other ids."""
    form = _OF_RUN.fullmatch(id_)
    return None if form is None else int(form[1], 16)


class CampaignStart(Struct, frozen=True):
    """Start of a campaign's run that composed a message. A run may be started several times."""

    campaign: str
    run: str
    start: int
    """Number of the start: its time in epoch milliseconds, greater than the number of each earlier start and
    stop of the run."""

    def may_have(self, id_: str) -> bool:
        """Return whether a message with this id may be of the run."""
        return id_.startswith(f"{self.campaign}#{self.run}#")


class Key(Struct, frozen=True):
    """Identity of a message: the primary key of the mailbox and of the ledger."""

    id: str
    """Id that the producer chose."""
    event_type: str
    """Channel of the message."""


ID_TAG, ATTEMPT_TAG = "correlation", "attempt"
"""Names of the two tags of a mail that hold the reference: see `Reference.tags`."""
SEVERAL_TAG = "several"
"""Name of the tag of a mail to more than one recipient, at a provider whose events do not name the
recipient."""


class Reference(Struct, frozen=True):
    """Id of an attempt for the provider, who gets the reference with the message and returns it in events.

    The reference contains the attempt's number, because an event of an earlier attempt, or from before an
    operator's resend, must not change the present attempt.
    """

    id: str
    """Id of the message."""
    attempt: int = 1
    """Number of the attempt, counted from 1."""

    @property
    def text(self) -> str:
        """The reference as text: unpadded base64url of the id, and `.2` for a second attempt. The text is
        safe in headers and URL paths."""
        coded = encoded(self.id)
        return coded if self.attempt == 1 else f"{coded}.{self.attempt}"

    @property
    def tags(self) -> dict[str, str]:
        """The reference as tags of a mail: two tags, because a tag cannot contain the dot of `text`."""
        return {ID_TAG: encoded(self.id), ATTEMPT_TAG: str(self.attempt)}

    @classmethod
    def of_tags(cls, tags: Mapping[str, str]) -> "Reference | None":
        """Return the reference in the tags of a mail, or None if another program has sent the mail."""
        coded, attempt = tags.get(ID_TAG, ""), tags.get(ATTEMPT_TAG, "1")
        return cls.found_in(coded if attempt == "1" else f"{coded}.{attempt}")

    @classmethod
    def found_in(cls, text: str) -> "Reference | None":
        """Return the reference that a text contains, or None if another program has written the text."""
        try:
            return cls.read(text)
        except Malformed:
            return None

    @classmethod
    def read(cls, text: str) -> "Reference":
        """Return the reference that a text contains. Raises Malformed for any text that `Reference.text`
        never returns."""
        form = _FORM.fullmatch(text)
        if form is None:
            raise Malformed("is not a message's reference")
        coded, attempt = form.groups()
        try:
            id_ = base64.urlsafe_b64decode(coded + "=" * (-len(coded) % 4)).decode()
        except (binascii.Error, UnicodeDecodeError):
            raise Malformed("is not a message's reference") from None
        # Every id has exactly one valid reference, although base64 has several spellings of the same bits.
        # Any other spelling is forged.
        if encoded(id_) != coded or has_control(id_) or len(id_.encode()) > MAX_ID_BYTES or attempt == "1":
            raise Malformed("is not a message's reference")
        return cls(id_, int(attempt or 1))


def encoded(id_: str) -> str:
    """Return an id as unpadded base64url, which is allowed in headers and in SES tags."""
    return base64.urlsafe_b64encode(id_.encode()).rstrip(b"=").decode()


_MISSING = (None,) * 5
"""Values of the optional attributes that `Message.check` looks at, in a message that lacks all of them."""


class Message(Struct, frozen=True, kw_only=True):
    """Attributes that the contracts of all channels share. A subclass for each channel adds the channel's
    attributes."""

    addressing: ClassVar[tuple[str, ...]] = ("to",)
    """Attributes that contain recipients. A subclass with other such attributes lists all of them. A payload
    cannot set these attributes, because the recipients are stored, and their opt-outs read, before the
    payload is read."""
    vital: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "send_at": ("scheduled_at", "scheduled_for", "deliver_at", "deliver_after", "send_after", "send_on"),
        "expires_at": ("expires", "expire", "expires_after", "time_to_live", "validity_period"),
        "unless": (),
        "window": (),
        "topic": (),
        "callback_url": ("status_callback", "webhook_url"),
        "payload_ref": (),
    }
    """Attributes that must not be misspelt, because the message would be sent too early, too late, or without
    its invoice, for example. Each attribute has the names that other systems use for it. An unknown name that
    resembles one of these is refused, unless the template uses it as a variable. A subclass with further
    vital attributes includes `Message.vital`."""
    windowed: ClassVar[bool] = True
    """Whether messages may have a `window`. False for a channel whose messages take so long that the window
    may close during the transmission."""
    hints: ClassVar[Mapping[str, str]] = {}
    """Remedies by attribute. The remedy is added to the error message if a map in the attribute lacks a
    required field or has an unknown field."""

    id: Annotated[str, Meta(description=f"chosen by the producer; 1 to {MAX_ID_BYTES} bytes of UTF-8")]
    """Id that the producer chose: with `event_type`, the key of the message."""
    event_type: str
    """Channel of the message."""
    send_at: Time | None = None
    """Earliest time to send the message: see `due`."""
    expires_at: Time | None = None
    """Time after which sending is pointless: see `expiry`."""
    unless: Annotated[
        Condition | list[Condition] | None,
        Meta(
            description=f"up to {MAX_CONDITIONS} conditions on other messages; if one is true at `send_at`, "
            "the message is cancelled"
        ),
    ] = None
    """Conditions on other messages. If one is fulfilled, the message is not sent."""
    lane: Annotated[
        str, Meta(description="bulk never delays normal messages", extra_json_schema={"enum": list(LANES)})
    ] = "normal"
    """Lane of the channel's queues, one of `LANES`."""
    window: Annotated[
        Window | None, Meta(description="hours in which it may be sent; outside of them it waits")
    ] = None
    """Hours in which the message may be sent."""
    time_zone: Annotated[str | None, Meta(description="time zone of the recipient, for `window`")] = None
    """Time zone of the recipient, which overrides the window's `zone`."""
    topic: Annotated[
        str | None, Meta(description=f"topic that a recipient can opt out of; 1 to {MAX_TOPIC} characters")
    ] = None
    """Topic that a recipient can opt out of."""
    callback_url: Annotated[str | None, Meta(description="receives a webhook for each status change")] = None
    """URL to which a webhook reports each change of the message's status."""
    payload_ref: Annotated[
        str | None,
        Meta(
            description="s3://bucket/key: a JSON object with further attributes",
            extra_json_schema={"maxLength": MAX_REF_BYTES},
        ),
    ] = None
    """Location (s3://bucket/key) of a JSON object in the payload bucket with further attributes of the
    message."""
    payload_prefix: Annotated[
        str | None,
        Meta(description="set only by the API: prefix of the payload keys that its caller may use"),
    ] = None
    """Prefix that the API sets: the keys of all `objects` must begin with this text."""
    restored_id: Annotated[
        str | None, Meta(description="set only by Mailroom: the id of an item that was restored")
    ] = None
    """Id of a mailbox item that was restored from a backup. The function `dispatch` never queues such an
    item: see `mailbox.RESTORED`."""
    campaign_start: Annotated[
        CampaignStart | None, Meta(description="set only by Mailroom: the start of the run that composed it")
    ] = None
    """Start of the campaign's run that composed the message; None if a producer put the message."""
    audience_columns: list[str] = msgspec.field(default_factory=list)
    """Names of columns of a campaign's audience or of an imported file that resemble a vital attribute. They
    are variables of the template, so they do not count as misspelt attributes."""
    ttl: Annotated[int | None, Meta(description="epoch seconds after which the message may be deleted")] = (
        None
    )
    """Epoch seconds after which DynamoDB may delete the item."""
    attempt: Annotated[
        int, Meta(ge=1, le=MAX_ATTEMPT, description="set only by Mailroom; producers leave it out")
    ] = 1
    """Number of the attempt, counted from 1."""
    variables: dict[str, Any] = msgspec.field(default_factory=dict)
    """Variables for a template: all attributes of the item except `campaign_start`."""

    @property
    def key(self) -> Key:
        return Key(self.id, self.event_type)

    @property
    def template_name(self) -> str | None:
        """Name of the template. None if the item lacks a template, because the message is not templated or
        the name is in its payload."""
        return None

    @property
    def conditions(self) -> Sequence[Condition]:
        """Conditions of `unless`."""
        if isinstance(self.unless, Condition):
            return (self.unless,)
        return self.unless or ()

    @property
    def recipient(self) -> str | list[str]:
        """Recipient, or list of recipients, as the ledger stores them. Contracts with recipients override
        this."""
        return []

    @property
    def reference(self) -> Reference:
        """Reference that the provider gets with the message and returns in events."""
        return Reference(self.id, self.attempt)

    @property
    def addressees(self) -> tuple[str, ...]:
        """Recipients in the canonical form, in which the suppression list stores them. Empty for a channel
        without suppression."""
        return ()

    @property
    def reached(self) -> tuple[str, ...]:
        """Recipients, including recipients that are never on the suppression list, such as a fax number or
        a topic of SNS."""
        to = self.recipient
        return self.addressees or ((to,) if isinstance(to, str) else (*to,))

    @property
    def recipient_count(self) -> int:
        """Number of recipients in the request to the provider, which the provider's quota counts."""
        return 1

    def without(self, addressees: Container[str]) -> Self:  # noqa: ARG002 - overrides use the argument
        """Return the message without the recipients `addressees`. Classes of messages to several recipients
        override this method; the base class returns the message unchanged."""
        return self

    def redirected(self, to: str) -> Self:
        """Return the message with `to` as the only recipient."""
        return structs.replace(self, **dict.fromkeys(self.addressing) | {self.addressing[0]: to})

    @property
    def headline(self) -> Mapping[str, str | int]:
        """Attributes that the ledger stores so that lists of messages can show them beside the recipient:
        `template` with the version and `subject`, if the item has them."""
        return {}

    @property
    def line(self) -> str | None:
        """Telephone number by which a look-up at the provider searches for messages, if the channel has such
        a number."""
        return None

    @property
    def group(self) -> str | None:
        """Message group in the queue, such as a fax number, which accepts one fax at a time, or an endpoint,
        which must not delay the messages to other endpoints."""
        return None

    @property
    def objects(self) -> list[tuple[str, str]]:
        """Attributes that refer to objects in the payload bucket, each with the object's s3://bucket/key."""
        return [] if self.payload_ref is None else [("payload_ref", self.payload_ref)]

    @property
    def duplicate(self) -> str:
        """Deduplication id of the attempt, within the 128 characters that a FIFO queue accepts."""
        return hashlib.sha256(f"{self.id}\0{self.attempt}".encode()).hexdigest()

    @property
    def kept(self) -> Mapping[str, str | int]:
        """Further attributes that the ledger stores, because they are needed to build the message of a later
        attempt."""
        return {}

    @property
    def kind(self) -> str:
        """Value of the queue message's attribute `type`: the kind of content, if the channel has several."""
        return self.event_type

    @property
    def may_use(self) -> bool:
        """Whether attributes outside the contract may have an effect, because the template may use them as
        variables."""
        return False

    def unused(self, used: Container[str]) -> list[str]:
        """Return the attributes without an effect: they are outside the contract, and not among the
        variables that the template has `used`."""
        return [name for name in self.variables.keys() - _names(type(self)) if name not in used]

    def misspelt(self) -> Mapping[str, str]:
        """Return the attributes outside the contract that resemble a vital attribute, such as `sendAt`,
        `scheduled_at` and `attachment`, each with the vital attribute's name. The names in `audience_columns`
        are not among them."""
        return mistakes(type(self), self.variables.keys() - self.audience_columns)

    def check_names(self, used: Container[str], *, strict: bool = False) -> None:
        """Raise Invalid for a misspelt attribute that is not among the variables that the template has
        `used`, because the message would be sent without the attribute's value. With `strict`, raise Invalid
        for any unused attribute."""
        misspelt = self.misspelt()
        for name in sorted(self.unused(used)) if misspelt or strict else ():
            if name in misspelt:
                raise Invalid(name, f"is not used here; did you mean `{misspelt[name]}`?")
            if strict:
                raise Invalid(name, "is not used, and `items.unknown` refuses unused attributes; remove it")

    def check(self) -> None:
        """Raise Invalid for faults of the message that the types of its attributes cannot express. Subclasses
        extend `super().check()`."""
        if not self.may_use:
            self.check_names(())
        due, expiry = self.due(), self.expiry()
        if due is not None and expiry is not None and due >= expiry:
            raise Invalid("send_at", "is not before expires_at; the message would expire before it is sent")
        if due is not None and self.ttl is not None and self.ttl <= due:
            raise Invalid("ttl", "is not after send_at; the item would be deleted before its message is sent")
        if self.lane not in LANES:
            raise Invalid("lane", f"{self.lane!r:.60} is not a lane; use {' or '.join(LANES)}")
        optional = (self.topic, self.window, self.unless or None, self.callback_url, self.payload_ref)
        if optional != _MISSING:
            self._check_optional()
        if self.payload_prefix:
            self.check_objects(self.payload_prefix)

    def _check_optional(self) -> None:
        """Raise Invalid for faults of attributes that most messages lack."""
        if self.topic is not None and not (1 <= len(self.topic) <= MAX_TOPIC and self.topic.isprintable()):
            raise Invalid("topic", f"is not a topic's name; use 1 to {MAX_TOPIC} printable characters")
        if self.window is not None:
            self._check_window(self.window)
        if self.unless:
            self._check_conditions()
        if self.callback_url is not None and not re.fullmatch(r"https?://[!-~]{1,2000}", self.callback_url):
            raise Invalid("callback_url", "is not an https URL; use https://host/path")
        if self.payload_ref is not None and (size := len(self.payload_ref.encode())) > MAX_REF_BYTES:
            problem = f"has {size} bytes; an object's s3://bucket/key has at most {MAX_REF_BYTES}"
            raise Invalid("payload_ref", problem)

    def _check_window(self, window: Window) -> None:
        if not self.windowed:
            raise Invalid("window", f"is not allowed in {self.event_type} messages; use send_at")
        window.check(self.time_zone)

    def _check_conditions(self) -> None:
        conditions = self.conditions
        if self.send_at is None:
            raise Invalid("unless", "needs send_at, the time at which the conditions are checked")
        if len(conditions) > MAX_CONDITIONS:
            raise Invalid("unless", f"has {len(conditions)} conditions; use at most {MAX_CONDITIONS}")
        for number, condition in enumerate(conditions):
            field = "unless" if isinstance(self.unless, Condition) else f"unless[{number}]"
            condition.check(field)
            _check_id(condition.id, f"{field}.id")
            _check_id(condition.event_type, f"{field}.event_type")
            if Key(condition.id, condition.event_type) == self.key:
                raise Invalid(f"{field}.id", "is the id of this message; use the id of another message")

    def check_objects(self, prefix: str | None) -> None:
        """Raise Invalid if the message refers to an object in the payload bucket whose key does not begin
        with `prefix`. Without a prefix, raise Invalid for any object."""
        for name, ref in self.objects:
            if prefix is None:
                raise Invalid(
                    name,
                    "refers to an object, but the caller has no prefix in the payload bucket; ask "
                    "the stage's operator to add one to api.payload_prefixes",
                )
            if not _below(prefix, ref):
                raise Invalid(
                    name,
                    f"{ref!r:.120} has a key that the caller may not use; use a key in the payload bucket "
                    f"that begins with {prefix}",
                )

    def due(self) -> float | None:
        """Return the earliest time to send the message, in epoch seconds, or None if it may be sent at
        once."""
        return None if self.send_at is None else _time("send_at", self.send_at)

    def expiry(self) -> float | None:
        """Return the time after which sending is pointless, in epoch seconds, or None if sending never
        becomes pointless."""
        return None if self.expires_at is None else _time("expires_at", self.expires_at)

    def expired(self, timestamp: float) -> bool:
        """Return whether sending is pointless at `timestamp` (epoch seconds)."""
        return self.expires_at is not None and _time("expires_at", self.expires_at) <= timestamp


DEFAULT_TEMPLATE = "default"
"""Template of a mail without content and without `template`."""
TEMPLATE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_LOCALE = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{1,8}){0,6}", re.ASCII)
"""Form of a BCP 47 tag (RFC 5646, 2.1). The pattern allows languages of two or three letters, because longer
ones were never registered."""


class Templated(Message, frozen=True, kw_only=True):
    """Attributes that contracts with templates share.

    Every attribute of the item, inside or outside the contract, is a variable of the template.
    """

    template: Annotated[
        str | None, Meta(description="a folder of the channel's templates; mail without content: `default`")
    ] = None
    """Name of the template, which is a folder."""
    locale: Annotated[
        str | None, Meta(description="recipient's language, like fr-CA (BCP 47); default: the template's")
    ] = None
    """Language of the recipient, as a BCP 47 tag."""
    template_version: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(description="a published version, or 0: the deployed one; default: the one in use"),
    ] = None
    """Version of the template, or 0 for the deployed one. By default dispatch uses the version that is active
    when it queues the message."""

    @property
    def template_name(self) -> str | None:
        return self.template

    @property
    def headline(self) -> Mapping[str, str | int]:
        headline = {"template": self.template_name, "template_version": self.template_version}
        return {name: value for name, value in headline.items() if value}

    def check_template(self, beside: str | None) -> None:
        """Raise Invalid for an invalid `template` or `locale`, for a message with both a template and
        content, or for too many bytes of variables. `beside` is the name of the attribute with the content,
        or None if there is none."""
        if self.locale is not None and not _LOCALE.fullmatch(self.locale):
            raise Invalid("locale", f"{self.locale!r:.60} is not a language tag; use one like fr or fr-CA")
        if self.template is not None:
            if not TEMPLATE_NAME.fullmatch(self.template):
                raise Invalid("template", "is not a template's name; use letters, digits, - and _")
            if beside is not None:
                raise Invalid("template", f"is not allowed together with {beside}; use only one")
        if self.template_name is not None:
            check_variables("item", len(_encoder.encode(self.variables)))


M = TypeVar("M", bound=Message)


@cache
def _names(contract: type[Message]) -> frozenset[str]:
    return frozenset(contract.__struct_encode_fields__)


def mistakes(contract: type[Message], names: Iterable[str]) -> Mapping[str, str]:
    """Return the names outside the contract that resemble a vital attribute, each with the name of that
    attribute."""
    return _mistakes(contract, *names)


@lru_cache(maxsize=32)  # cached, because most messages have the same names; few, because names may be long
def _mistakes(contract: type[Message], *names: str) -> Mapping[str, str]:
    short = {name for name in names if len(name) <= MAX_MISTAKABLE} - _names(contract)
    return {name: attribute for name in short if (attribute := _meant(contract, name))}


@lru_cache(maxsize=4096)
def _meant(contract: type[Message], name: str) -> str | None:
    """Return the vital attribute that a short name outside the contract resembles, or None. The name is a
    synonym of the attribute, or differs from the attribute's name by a few letters."""
    spelling = _spelling(name)
    words = _vital_words(contract) if spelling not in EVERYDAY else {}
    if spelling in words:
        return words[spelling][0]
    for word, (attribute, letters) in words.items():
        # The sets of letters are compared first: this is cheap, and rules out most names before the slow
        # `_alike`.
        if letters and len({*spelling} ^ {*word}) <= 2 * letters and _alike(spelling, word, letters):
            return attribute
    return None


@cache
def _vital_words(contract: type[Message]) -> dict[str, tuple[str, int]]:
    """Return the names and synonyms of vital attributes, as `_spelling` returns them. Each has the attribute,
    and the number of letters by which another name may differ and still count as a misspelling."""
    words: dict[str, tuple[str, int]] = {}
    for attribute, synonyms in contract.vital.items():
        words |= dict.fromkeys(map(_spelling, synonyms), (attribute, 0))
        spelling = _spelling(attribute)
        # A short name must match exactly, because too many common words differ by one letter, such as
        # `topics` and `topic`, or `abc` and `bcc`.
        words[spelling] = attribute, 0 if len(spelling) <= 5 else 1 if len(spelling) <= 7 else 2
    return words


def _spelling(name: str) -> str:
    """Return a name in lower case, without `_` and `-`."""
    return name.lower().replace("_", "").replace("-", "")


def _alike(name: str, attribute: str, letters: int) -> bool:
    """Return whether the names differ by at most `letters` edits: a letter is added, removed, replaced, or
    swapped with the next letter (Damerau-Levenshtein distance)."""
    if name == attribute or not letters or abs(len(name) - len(attribute)) > letters:
        return name == attribute
    if name[:1] == attribute[:1]:
        return _alike(name[1:], attribute[1:], letters)
    remainders = [(name[1:], attribute[1:]), (name[1:], attribute), (name, attribute[1:])]
    if name[:2] == attribute[1::-1]:
        remainders.append((name[2:], attribute[2:]))
    return any(_alike(*remainder, letters - 1) for remainder in remainders)


def key_of(item: Mapping[str, Any]) -> Key:
    """Return the key of an item, even if other attributes are invalid. Raises Malformed for a key that is
    missing or too long for a ledger item."""
    key = _unbounded_key(item)
    for name, bound in MAX_KEY_BYTES.items():
        if len(getattr(key, name).encode()) > bound:
            raise Malformed(f"`{name}` is longer than the {bound} bytes that DynamoDB allows for it")
    return key


def _unbounded_key(item: Mapping[str, Any]) -> Key:
    id_, event_type = item.get("id"), item.get("event_type")
    if not (isinstance(id_, str) and id_ and isinstance(event_type, str) and event_type):
        raise Malformed("is not a message: `id` or `event_type` is missing or not a string")
    return Key(id_, event_type)


def parse(item: Mapping[str, Any], contracts: Mapping[str, type[M]]) -> M:
    """Return the message in an item, as an object of the class for its `event_type` in `contracts`.

    Raises Malformed if the key is missing, and Invalid (with field and remedy) if anything else is invalid.
    """
    key = _unbounded_key(item)  # too long a key raises Invalid below, with a remedy
    contract = contracts.get(key.event_type)
    if contract is None:
        raise Invalid("event_type", f"{key.event_type!r:.60} is not allowed here; use {', '.join(contracts)}")
    _check_id(key.id)
    if isinstance(locale := item.get("locale"), str) and issubclass(contract, Templated):
        item = {**item, "locale": locale.replace("_", "-")}  # POSIX and Java write pt_BR for pt-BR
    variables = item
    if CAMPAIGN_START in item:
        variables = {name: value for name, value in item.items() if name != CAMPAIGN_START}
    try:
        message = msgspec.convert({**item, "variables": variables}, contract)
    except msgspec.ValidationError as error:
        fault = explain(error)
        hint = contract.hints.get(re.split(r"[.\[]", fault.field, maxsplit=1)[0])
        if hint and fault.problem.startswith("object "):
            fault = Invalid(fault.field, f"{fault.problem}; {hint}")
        raise fault from None
    message.check()
    return message


def _below(prefix: str, ref: str) -> bool:
    key = ref.removeprefix("s3://").partition("/")[2]
    # S3 treats . and .. as ordinary text, but other software may resolve them, and the key could leave the
    # prefix.
    return key.startswith(prefix) and not {".", ".."} & {*key.split("/")}


def _check_id(id_: str, field: str = "id") -> None:
    if has_control(id_):
        raise Invalid(field, "holds control characters; use printable ones")
    if len(id_.encode()) > MAX_ID_BYTES:
        raise Invalid(field, f"is {len(id_.encode())} bytes long; use at most {MAX_ID_BYTES}")


def _time(field: str, text: str) -> float:
    if len(text) <= MAX_TIME:
        with suppress(ValueError, OverflowError):
            return epoch(text)
    raise Invalid(field, f"{text!r:.60} is not an ISO 8601 time; use one like 2026-11-21T09:00:00Z")


def seconds_left(expiry: float | None, timestamp: float, bounds: tuple[int, int]) -> int | None:
    """Return for how many seconds from `timestamp` on a provider may still try to deliver a message, until
    `expiry`. The result is within the `bounds` (minimum, maximum) that the provider accepts. Returns None
    without an expiry."""
    if expiry is None:
        return None
    shortest, longest = bounds
    return int(max(shortest, min(longest, expiry - timestamp)))


def number(field: str, text: str | None, region: str = "") -> str:
    """Return a telephone number in E.164. Raises Invalid for the attribute `field` if the number is
    invalid."""
    try:
        return to_e164(text or "", region)
    except ValueError as error:
        raise Invalid(field, f"{error}") from None


_TYPE_NAMES = {
    "str": "a string",
    "int": "a number",
    "float": "a number",
    "decimal": "a number",
    "array": "a list",
    "object": "a map",
    "null": "nothing",
    "bool": "true or false",
    "bytes": "binary",
}


def explain(error: msgspec.ValidationError) -> Invalid:
    """Return Invalid with a sentence for producers, from an error such as ``Expected `str`, got `int` - at
    `$.to[1]` ``."""
    problem, _, path = str(error).partition(" - at `")
    field = path.rstrip("`").removeprefix("$").removeprefix(".") or "item"
    if "`int" in problem and problem.endswith("`decimal`"):
        return Invalid(field, "expected a whole number, got one with a fraction")
    sentence = re.sub(r"`([^`]*)`", lambda match: _words(match[1]), problem)
    return Invalid(field, sentence[0].lower() + sentence[1:])


def _words(types: str) -> str:
    names = types.removesuffix(" | null").split(" | ")  # null is not mentioned in the sentence
    return " or ".join(_TYPE_NAMES.get(name, name) for name in names)


_encoder = msgspec.json.Encoder(decimal_format="number")
_bodies = msgspec.json.Decoder(dict[str, Any], float_hook=NUMBERS.create_decimal)
_requests = msgspec.json.Decoder(dict[str, Any], float_hook=Decimal)


def encode(item: Mapping[str, Any] | Struct) -> str:
    """Return an item as the JSON body of a queue message. Numbers keep all their digits."""
    text = _encoder.encode(item).decode()
    # DynamoDB and JSON accept the characters U+FFFE and U+FFFF, but SQS refuses them.
    return text.replace("\ufffe", "\\ufffe").replace("\uffff", "\\uffff")


def scheduled(text: str) -> dict[str, Any]:
    """Return the JSON body of a queue message that EventBridge Scheduler has sent. If the scheduler could not
    send the message, its dead-letter queue contains the parameters of the whole SendMessage call. After a
    redrive these parameters are the body, with the actual body inside. Raises Malformed."""
    body = decode(text)
    inner = body.get("MessageBody")
    return decode(inner) if isinstance(inner, str) and "QueueUrl" in body else body


def decode(text: str | bytes) -> dict[str, Any]:
    """Return the item in the JSON of a queue body or a payload. Raises Malformed."""
    body = read(text, _bodies)
    if too_deep(text, body):
        raise Malformed(f"the body has over {MAX_DEPTH} levels of lists and maps; use fewer")
    return body


def read(text: str | bytes, decoder: msgspec.json.Decoder[dict[str, Any]] = _requests) -> dict[str, Any]:
    """Return a JSON object. The levels and, with the default `decoder`, the numbers are not limited: the code
    that stores the object checks DynamoDB's limits, and reports the invalid field. Raises Malformed."""
    try:
        return decoder.decode(text)
    except DecimalException:
        raise Malformed("the body has a number with over 38 digits, or outside 1E-130 to 1E+125") from None
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise Malformed(f"the body is not a JSON object: {error}") from None
