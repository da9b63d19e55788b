"""A message: one item of the mailbox, read into the typed contract of its channel; and the body of a queue's
message, which is the item itself as JSON."""

import base64
import binascii
import hashlib
import re
from collections.abc import Container, Mapping
from contextlib import suppress
from decimal import Decimal, DecimalException
from functools import cache
from typing import Annotated, Any, ClassVar, Self, TypeVar

import msgspec
from msgspec import Meta, Struct, structs

from mailroom.clock import epoch
from mailroom.errors import MAX_DEPTH, NUMBERS, Invalid, Malformed, too_deep
from mailroom.message.address import has_control, to_e164
from mailroom.message.window import Window

MAX_ID_BYTES = 180
"""Base64url of it is 240 characters: within the 256 of an SES tag's value."""
MAX_ATTEMPT = 999_999_999
"""What a reference has room for. DynamoDB takes no number of more than 38 digits."""
_FORM = re.compile(r"([A-Za-z0-9_-]{2,240})(?:\.([1-9][0-9]{0,8}))?", re.ASCII)

MAX_KEY_BYTES = {"id": 2048, "event_type": 1024}
"""DynamoDB's own bounds of a partition and a sort key: no ledger item can have a longer one."""

MAX_REF_BYTES = len("s3://") + 63 + len("/") + 1024
"""The longest name of a bucket and the longest key of an object. A ledger item keeps a fax's, and it may
come from a queue, whose messages are larger than any item."""

MAX_TIME = 64
"""Characters: one with microseconds and an offset has half of that. Python reads any number of digits after
the point, and a ledger item keeps the text."""

MAX_AHEAD_SECONDS = 366 * 86400
"""How far ahead `send_at` may lie."""

MAX_GROUP = 128
"""Characters of what a queue groups a message by: SQS's MessageGroupId."""

LANES = ("normal", "bulk")

MAX_SUBJECT = 200
"""Characters of a subject that the ledger keeps: an item stays near one write unit."""

MAX_TOPIC = 64
"""Characters of a topic: it stands in the link by which one opts out, and a header has its bounds."""

OURS = ("variables", "attempt", "payload_prefix", "restored_id")
"""Fields of a message that no producer writes."""

MISTAKABLE = 6
"""Letters of a name from which another spelling of that name is taken for a mistake: `topics`, `emails` and
`texts` are everyday variables of a template."""

Time = Annotated[str, Meta(description="ISO 8601, for example 2026-11-21T09:00:00Z; without offset: UTC")]


DAY_USED_UP, OUTSIDE_WINDOW, PROVIDER_REFUSES = "day_used_up", "outside_window", "provider_refuses"
HELD = {
    DAY_USED_UP: "it waits for the day's quota",
    OUTSIDE_WINDOW: "it waits until its window opens",
    PROVIDER_REFUSES: "it waits until the provider takes messages of this lane again; see its dead letters",
}
"""For what a message waits with its content: the code and the sentence of its `trouble`."""


_OF_RUN = re.compile(r"[^#]+#[^#]+#.+#([0-9a-f]{8})[0-9a-f]{32}", re.ASCII)


def run_of(id_: str) -> tuple[str, str]:
    """The campaign and the run that composed a message, by its id (see `Run.id_of`); two times "": none.
    A producer may write such an id too."""
    campaign, _, rest = id_.partition("#")
    run, _, key = rest.partition("#")
    return (campaign, run) if campaign and run and key else ("", "")


def begun_of(id_: str) -> int | None:
    """The `begun_at` of the run whose id this is (see `Run.id_of`); None: no run made it."""
    form = _OF_RUN.fullmatch(id_)
    return None if form is None else int(form[1], 16)


class Key(Struct, frozen=True):
    """What identifies a message: the mailbox's and the ledger's primary key."""

    id: str
    event_type: str


ID_TAG, ATTEMPT_TAG = "correlation", "attempt"
SEVERAL_TAG = "several"
"""A tag of a mail to more than one, at a provider whose events do not say which of them they are about."""


class Reference(Struct, frozen=True):
    """What goes to a provider with a message and comes back with its events: the id of the message, and the
    attempt at it (counted from 1).

    The attempt tells a message's lives apart: what arrives late about an attempt that was given up, or about
    the life before an operator's resend, says nothing about the present one.
    """

    id: str
    attempt: int = 1

    @property
    def text(self) -> str:
        """Base64url of the id, unpadded, and `.2` for a second attempt: fit for a header and a URL's path."""
        coded = encoded(self.id)
        return coded if self.attempt == 1 else f"{coded}.{self.attempt}"

    @property
    def tags(self) -> dict[str, str]:
        """The same as tags of a mail: a tag takes no dot, so the attempt has one of its own."""
        return {ID_TAG: encoded(self.id), ATTEMPT_TAG: str(self.attempt)}

    @classmethod
    def of_tags(cls, tags: Mapping[str, str]) -> "Reference | None":
        """The reference that made `tags`; None: the mail is another program's."""
        coded, attempt = tags.get(ID_TAG, ""), tags.get(ATTEMPT_TAG, "1")
        try:
            return cls.read(coded if attempt == "1" else f"{coded}.{attempt}")
        except Malformed:
            return None

    @classmethod
    def read(cls, text: str) -> "Reference":
        """The reference that `text` is. Raises Malformed for anything that `Reference.text` never makes."""
        form = _FORM.fullmatch(text)
        if form is None:
            raise Malformed("not a reference of ours")
        coded, attempt = form.groups()
        try:
            id_ = base64.urlsafe_b64decode(coded + "=" * (-len(coded) % 4)).decode()
        except (binascii.Error, UnicodeDecodeError):
            raise Malformed("not a reference of ours") from None
        # One id, one reference: other spellings of the same bits were not made here.
        if encoded(id_) != coded or has_control(id_) or len(id_.encode()) > MAX_ID_BYTES or attempt == "1":
            raise Malformed("not a reference of ours")
        return cls(id_, int(attempt or 1))


def encoded(id_: str) -> str:
    """Base64url of an id, unpadded: fit for a header, and for an SES tag, which takes no dot."""
    return base64.urlsafe_b64encode(id_.encode()).rstrip(b"=").decode()


class Message(Struct, frozen=True, kw_only=True):
    """What every channel's contract shares. A subclass a channel adds what that channel needs."""

    addressing: ClassVar[tuple[str, ...]] = ("to",)
    """The attributes that say whom it reaches; a channel with others names them all. They count in the item
    alone: the claim writes down whom a message is for, and who wants nothing is asked of these, before or
    without a look at its payload."""
    windowed: ClassVar[bool] = True
    """Whether a message may wait for its window: not where one may be under way while its window closes."""
    hints: ClassVar[Mapping[str, str]] = {}
    """What would be right, by attribute, where a map in it lacks a name or has one too many."""

    id: Annotated[str, Meta(description=f"the producer's own; 1 to {MAX_ID_BYTES} bytes of UTF-8")]
    event_type: str
    send_at: Time | None = None
    expires_at: Time | None = None
    lane: Annotated[
        str, Meta(description="bulk never delays normal", extra_json_schema={"enum": list(LANES)})
    ] = "normal"
    window: Annotated[
        Window | None, Meta(description="the hours in which it may go out; outside it waits for the next")
    ] = None
    time_zone: Annotated[str | None, Meta(description="its recipient's, for `window`")] = None
    topic: Annotated[
        str | None, Meta(description=f"what a recipient can opt out of: 1 to {MAX_TOPIC} characters")
    ] = None
    callback_url: Annotated[str | None, Meta(description="told of each change of status")] = None
    payload_ref: Annotated[
        str | None,
        Meta(
            description="s3://bucket/key: a JSON object with further attributes",
            extra_json_schema={"maxLength": MAX_REF_BYTES},
        ),
    ] = None
    payload_prefix: Annotated[
        str | None,
        Meta(description="the API's own: what its caller may name begins so; producers leave it out"),
    ] = None
    restored_id: Annotated[
        str | None, Meta(description="the system's own: the id of an item that was put back")
    ] = None
    ttl: Annotated[int | None, Meta(description="epoch seconds after which the item may go")] = None
    attempt: Annotated[
        int, Meta(ge=1, le=MAX_ATTEMPT, description="the system's own; producers leave it out")
    ] = 1
    variables: dict[str, Any] = msgspec.field(default_factory=dict)

    @property
    def key(self) -> Key:
        return Key(self.id, self.event_type)

    @property
    def recipient(self) -> str | list[str]:
        """Whom it is for, as the ledger keeps it; a contract that knows says so."""
        return []

    @property
    def reference(self) -> Reference:
        """What its provider is told, to be heard again in its events."""
        return Reference(self.id, self.attempt)

    @property
    def addressees(self) -> tuple[str, ...]:
        """Whom it reaches, each in the one form that the suppression list knows; () where nobody can be on
        it."""
        return ()

    @property
    def reached(self) -> tuple[str, ...]:
        """Whom it reaches, also where nobody can be on the suppression list: a fax number, a topic of SNS."""
        to = self.recipient
        return self.addressees or ((to,) if isinstance(to, str) else (*to,))

    @property
    def recipient_count(self) -> int:
        """The recipients of the request to its provider, as the provider's quota counts them."""
        return 1

    def without(self, addressees: Container[str]) -> Self:  # noqa: ARG002 - for those that can go to several
        """The message to the other addressees only."""
        return self

    def redirected(self, to: str) -> Self:
        """The message to `to` only."""
        return structs.replace(self, **dict.fromkeys(self.addressing) | {self.addressing[0]: to})

    @property
    def headline(self) -> Mapping[str, str | int]:
        """What lists of messages show beside the recipient, and the ledger keeps: `template` with its version
        and `subject`, as far as the item has them."""
        return {}

    @property
    def line(self) -> str | None:
        """The number under which a look-up may find it among other messages' at the provider; None: none."""
        return None

    @property
    def group(self) -> str | None:
        """What its queue groups it by: a line that takes one at a time, or an endpoint to be fair about."""
        return None

    @property
    def objects(self) -> list[tuple[str, str]]:
        """The objects of the payload bucket that it names, as s3://bucket/key, each behind its attribute."""
        return [] if self.payload_ref is None else [("payload_ref", self.payload_ref)]

    @property
    def duplicate(self) -> str:
        """An id that every copy of this attempt has, in the 128 characters that a FIFO queue takes."""
        return hashlib.sha256(f"{self.id}\0{self.attempt}".encode()).hexdigest()

    @property
    def kept(self) -> Mapping[str, str | int]:
        """Further attributes for the ledger: what a later attempt is built from."""
        return {}

    @property
    def kind(self) -> str:
        """The queue message's attribute `type`: what the content is made of, where channels differ in it."""
        return self.event_type

    @property
    def may_use(self) -> bool:
        """Whether a template, which is not known here, may use what the contract does not name."""
        return False

    def unused(self, used: Container[str]) -> list[str]:
        """The attributes that change nothing: neither the contract names them, nor are they among the
        variables that its template has `used`."""
        return [name for name in self.variables.keys() - _names(type(self)) if name not in used]

    def misspelt(self) -> dict[str, str]:
        """The attributes that the contract does not name and that are names of the contract in another
        spelling: `sendAt`, `reply-to` and `attachment`, each with the name that they are taken for."""
        meant = _spellings(type(self))
        found = {name: meant.get(_spelling(name)) for name in self.variables.keys() - _names(type(self))}
        return {name: right for name, right in found.items() if right is not None}

    def check_names(self, used: Container[str], *, strict: bool = False) -> None:
        """Raise Invalid for a misspelt attribute that is not among the variables that its template has
        `used`: the message would go out without what the attribute says. `strict`: for any that is not."""
        meant = _spellings(type(self))
        for name in sorted(self.unused(used)):
            right = meant.get(_spelling(name), name)
            if right != name:
                raise Invalid(name, f"is used by nothing here; did you mean `{right}`?")
            if strict:
                raise Invalid(name, "is used by nothing here, which `items.unknown` refuses; leave it out")

    def check(self) -> None:
        """Raise Invalid for what types alone cannot say; subclasses go on with `super().check()`."""
        if not self.may_use:
            self.check_names(())
        due, expiry = self.due(), self.expiry()
        if due is not None and expiry is not None and due >= expiry:
            raise Invalid("send_at", "lies after expires_at; it would expire before it is sent")
        if due is not None and self.ttl is not None and self.ttl <= due:
            raise Invalid("ttl", "is before send_at; the item would be gone before it is sent")
        if self.topic is not None and not (1 <= len(self.topic) <= MAX_TOPIC and self.topic.isprintable()):
            raise Invalid("topic", f"is not a topic's name; use 1 to {MAX_TOPIC} printable characters")
        self._check_window()
        if self.lane not in LANES:
            raise Invalid("lane", f"{self.lane!r:.60} is no lane; use {' or '.join(LANES)}")
        if self.callback_url is not None and not re.fullmatch(r"https?://[!-~]{1,2000}", self.callback_url):
            raise Invalid("callback_url", "is not an https URL; use https://host/path")
        self._check_payload_ref()
        if self.payload_prefix:
            self.check_objects(self.payload_prefix)

    def _check_window(self) -> None:
        if self.window is not None and not self.windowed:
            raise Invalid("window", f"is not for {self.event_type}; use send_at")
        if self.window is not None:
            self.window.check(self.time_zone)

    def check_objects(self, prefix: str | None) -> None:
        """Raise Invalid for an object whose key does not begin with `prefix`; None: for any object."""
        for name, ref in self.objects:
            if prefix is None:
                raise Invalid(
                    name,
                    "names an object, and its caller has no part of the payload bucket; ask for one in "
                    "api.payload_prefixes",
                )
            if not _below(prefix, ref):
                raise Invalid(
                    name,
                    f"{ref!r:.120} is outside the part of the payload bucket that its caller may name; use a "
                    f"key that begins with {prefix}",
                )

    def _check_payload_ref(self) -> None:
        size = len((self.payload_ref or "").encode())
        if size > MAX_REF_BYTES:
            raise Invalid(
                "payload_ref", f"has {size} bytes; an object's s3://bucket/key has at most {MAX_REF_BYTES}"
            )

    def due(self) -> float | None:
        """When it may be sent, in epoch seconds; None: at once."""
        return _time("send_at", self.send_at)

    def expiry(self) -> float | None:
        """When sending it becomes pointless, in epoch seconds; None: never."""
        return _time("expires_at", self.expires_at)

    def expired(self, now: float) -> bool:
        """Whether sending it has become pointless."""
        expiry = self.expiry()
        return expiry is not None and expiry <= now


_TEMPLATE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_LOCALE = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{1,8}){0,6}", re.ASCII)
"""The form of BCP 47 (RFC 5646, 2.1). Languages of four letters and more have never been registered."""


class Templated(Message, frozen=True, kw_only=True):
    """What the contracts share whose content may be a template's.

    Every attribute of the item, named here or not, is a variable of the template.
    """

    template: Annotated[
        str | None, Meta(description="a folder of the channel's templates; of a mail `default`")
    ] = None
    locale: Annotated[
        str | None, Meta(description="its recipient's language, fr-CA (BCP 47); the template's own")
    ] = None
    template_version: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(description="a published version, 0 the deployed one; what counts when it is queued"),
    ] = None

    @property
    def template_name(self) -> str | None:
        """The template that makes its content; None: none does, or its payload names one."""
        return self.template

    @property
    def headline(self) -> Mapping[str, str | int]:
        said = {"template": self.template_name, "template_version": self.template_version}
        return {name: value for name, value in said.items() if value}

    def check_template(self, beside: str | None) -> None:
        """Raise Invalid for what cannot name a template, or names one beside the content that the attribute
        `beside` gives (None: there is none)."""
        if self.locale is not None and not _LOCALE.fullmatch(self.locale):
            raise Invalid("locale", f"{self.locale!r:.60} is no language tag; use one like fr or fr-CA")
        if self.template is not None:
            if not _TEMPLATE.fullmatch(self.template):
                raise Invalid("template", "is not a template's name; use letters, digits, - and _")
            if beside is not None:
                raise Invalid("template", f"stands beside {beside}; use one or the other")


M = TypeVar("M", bound=Message)


@cache
def _names(contract: type[Message]) -> frozenset[str]:
    return frozenset(contract.__struct_encode_fields__)


@cache
def _spellings(contract: type[Message]) -> dict[str, str]:
    """The contract's names that may be mistaken, by their spelling."""
    bare = {_spelling(name): name for name in contract.__struct_encode_fields__ if name not in OURS}
    return {spelling: name for spelling, name in bare.items() if len(spelling) >= MISTAKABLE}


def _spelling(name: str) -> str:
    """A name without what people write in different ways: case, `_`, `-`, and the s of a plural."""
    return name.lower().replace("_", "").replace("-", "").removesuffix("s")


def key_of(item: Mapping[str, Any]) -> Key:
    """The key of an item, however wrong the rest is. Raises Malformed where it has none, or one that no
    ledger item can have."""
    key = _named(item)
    for name, bound in MAX_KEY_BYTES.items():
        if len(getattr(key, name).encode()) > bound:
            raise Malformed(f"`{name}` is longer than the {bound} bytes that a ledger item's can have")
    return key


def _named(item: Mapping[str, Any]) -> Key:
    id_, event_type = item.get("id"), item.get("event_type")
    if not (isinstance(id_, str) and id_ and isinstance(event_type, str) and event_type):
        raise Malformed("no `id` and `event_type` of type string: not a message")
    return Key(id_, event_type)


def parse(item: Mapping[str, Any], contracts: Mapping[str, type[M]]) -> M:
    """The message that an item asks for, by the contract of its `event_type`.

    Raises Malformed where the key is missing, Invalid (with field and remedy) for anything else.
    """
    key = _named(item)  # one that is too long is told so below, with what would be right
    contract = contracts.get(key.event_type)
    if contract is None:
        raise Invalid("event_type", f"{key.event_type!r:.60} is no channel here; use {', '.join(contracts)}")
    _check_id(key.id)
    try:
        message = msgspec.convert({**item, "variables": item}, contract)
    except msgspec.ValidationError as error:
        fault = _explain(error)
        hint = contract.hints.get(re.split(r"[.\[]", fault.field, maxsplit=1)[0])
        if hint and fault.problem.startswith("object "):
            fault = Invalid(fault.field, f"{fault.problem}; {hint}")
        raise fault from None
    message.check()
    return message


def _below(prefix: str, ref: str) -> bool:
    key = ref.removeprefix("s3://").partition("/")[2]
    # S3 takes . and .. as any other text; what lies between us and S3 may read them as a way out.
    return key.startswith(prefix) and not {".", ".."} & {*key.split("/")}


def _check_id(id_: str) -> None:
    if has_control(id_):
        raise Invalid("id", "holds control characters; use printable ones")
    if len(id_.encode()) > MAX_ID_BYTES:
        raise Invalid("id", f"is {len(id_.encode())} bytes long; use at most {MAX_ID_BYTES}")


def _time(field: str, text: str | None) -> float | None:
    if text is None:
        return None
    if len(text) <= MAX_TIME:
        with suppress(ValueError, OverflowError):
            return epoch(text)
    raise Invalid(field, f"{text!r:.60} is no ISO 8601 time; use one like 2026-11-21T09:00:00Z")


def seconds_left(expiry: float | None, now: float, bounds: tuple[int, int]) -> int | None:
    """For how long a provider may still try, within the bounds that it takes; None: as long as it likes."""
    if expiry is None:
        return None
    least, most = bounds
    return int(max(least, min(most, expiry - now)))


def number(field: str, text: str | None, region: str = "") -> str:
    """A telephone number in E.164. Raises Invalid, naming the attribute."""
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


def _explain(error: msgspec.ValidationError) -> Invalid:
    """Our words for msgspec's ``Expected `str`, got `int` - at `$.to[1]` ``."""
    problem, _, path = str(error).partition(" - at `")
    field = path.rstrip("`").removeprefix("$").removeprefix(".") or "item"
    if "`int" in problem and problem.endswith("`decimal`"):
        return Invalid(field, "expected a whole number, got one with a fraction")
    sentence = re.sub(r"`([^`]*)`", lambda found: _words(found[1]), problem)
    return Invalid(field, sentence[0].lower() + sentence[1:])


def _words(types: str) -> str:
    names = types.removesuffix(" | null").split(" | ")  # what may be null may as well be left out
    return " or ".join(_TYPE_NAMES.get(name, name) for name in names)


_encoder = msgspec.json.Encoder(decimal_format="number")
_bodies = msgspec.json.Decoder(dict[str, Any], float_hook=NUMBERS.create_decimal)
_requests = msgspec.json.Decoder(dict[str, Any], float_hook=Decimal)


def encode(item: Mapping[str, Any] | Struct) -> str:
    """An item as a queue body; numbers keep all their digits."""
    text = _encoder.encode(item).decode()
    # The two characters that DynamoDB and JSON take and SQS does not.
    return text.replace("\ufffe", "\\ufffe").replace("\uffff", "\\uffff")


def scheduled(text: str) -> dict[str, Any]:
    """What a schedule sent to a queue. What EventBridge could not send lies in the dead-letter queue as the
    call that it would have made, and is redriven so. Raises Malformed."""
    body = decode(text)
    inner = body.get("MessageBody")
    return decode(inner) if isinstance(inner, str) and "QueueUrl" in body else body


class Held(Struct, frozen=True):
    """A message that waits with its content, in the queue `scheduled` or in a schedule, until `due` (epoch
    seconds). Nothing is read back from the mailbox: it was to be sent at once, and its item may be gone.
    `put_at`: since when it counts as delayed (epoch seconds; None: nobody can tell). `in_line`: it waits for
    its slot of the day, and goes before those who come later. `code`: see `HELD`."""

    item: dict[str, Any]
    due: float
    put_at: float | None = None
    in_line: bool = False
    code: str = DAY_USED_UP

    @property
    def body(self) -> str:
        """The body of the queue. It has the message's key where a scheduled message has it."""
        key = {name: self.item[name] for name in ("id", "event_type")}
        waits = {"due": self.due, "put_at": self.put_at, "in_line": self.in_line, "code": self.code}
        return encode({**key, "item": self.item, **waits})


def held(body: Mapping[str, Any]) -> Held | None:
    """What the body of the queue `scheduled` holds; None: a key alone. Raises Malformed."""
    if "item" not in body:
        return None
    try:
        found = msgspec.convert(body, Held)
    except msgspec.ValidationError as fault:
        raise Malformed(f"not a message that waits: {fault}") from None
    if found.code not in HELD:
        raise Malformed(f"not a message that waits: its code is {found.code!r:.60}")
    if key_of(found.item) != key_of(body):
        raise Malformed("not a message that waits: its key is not its item's")
    return found


def decode(text: str) -> dict[str, Any]:
    """A queue body as an item. Raises Malformed."""
    body = read(text, _bodies)
    if too_deep(text, body):
        raise Malformed(f"the body has over {MAX_DEPTH} levels of lists and maps; use fewer")
    return body


def read(text: str, decoder: msgspec.json.Decoder[dict[str, Any]] = _requests) -> dict[str, Any]:
    """A JSON object of any number of levels and with any number: who stores it names the field that is beyond
    DynamoDB's bounds. Raises Malformed."""
    try:
        return decoder.decode(text)
    except DecimalException:
        raise Malformed("the body has a number beyond 38 digits, or 1E-130 to 1E+125") from None
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise Malformed(f"the body is not a JSON object: {error}") from None
