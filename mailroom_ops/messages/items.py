"""Mailbox items that operators write: attributes read from text, and validation by a deployed stage's
rules."""

import json
import sys
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_type_hints

import msgspec
from msgspec import Struct, structs

from mailroom.channels.contracts import CONTRACTS, UNDELAYED, contracts_of
from mailroom.errors import Invalid, Malformed
from mailroom.http.url_policy import UrlPolicy
from mailroom.message.message import Message, decode
from mailroom_ops.shared.deployed_stage import function_settings
from mailroom_ops.shared.deployed_stage import name as stage_name
from mailroom_ops.shared.refusals import Refused
from mailroom_stacks.paths import TEMPLATES

if TYPE_CHECKING:
    import boto3
    from types_boto3_dynamodb import DynamoDBClient
    from types_boto3_s3 import S3Client

    from mailroom.channels.preview import Previews
    from mailroom.dispatch.dispatcher import Validator
    from mailroom.mailbox import MailboxWriter

STDIN = "-"
NOT_TYPED = ("variables", "attempt")
"""Fields of a contract that producers do not write."""


class Attributes(Struct, frozen=True):
    """Names of the attributes of a channel's contract."""

    texts: frozenset[str]
    others: frozenset[str]
    """Lists, maps and numbers."""

    def value(self, name: str, text: str) -> Any:
        """Return an attribute's value. A list, map or number is written as JSON. Raises Invalid."""
        if name not in self.others:
            return text
        try:
            return msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError) as error:
            raise Invalid(name, f'is not JSON; write it like 7, ["a"] or {{"a": 1}} ({error})') from None

    def known(self, name: str) -> bool:
        """Return whether the contract has this attribute. All other names are variables of the template."""
        return name in self.texts or name in self.others


def attributes_of(channel: str) -> Attributes:
    """Return the attributes of a channel, or empty sets for an unknown channel."""
    contract = CONTRACTS.get(channel)
    if contract is None:
        return Attributes(frozenset(), frozenset())
    types = get_type_hints(contract, include_extras=False)
    texts: set[str] = set()
    structured: set[str] = set()
    for field in structs.fields(contract):
        if field.encode_name not in NOT_TYPED:
            (texts if _takes_text(types[field.name]) else structured).add(field.encode_name)
    return Attributes(frozenset(texts), frozenset(structured))


def pairs(typed: Iterable[str], option: str) -> dict[str, str]:
    """Parse a repeated option `name=value`. Raises Refused, which names the option."""
    values: dict[str, str] = {}
    for pair in typed:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise Refused(f"{option} {pair!r:.80} is not a pair; write {option} name=value.")
        if name.strip() in values:
            raise Refused(f"{option} {name.strip()} is given twice; remove one.")
        values[name.strip()] = value
    return values


_variables = msgspec.json.Decoder(float_hook=Decimal)
_written = msgspec.json.Encoder(decimal_format="number")


def set_values(channel: str, sets: Iterable[str], option: str = "--set") -> dict[str, Any]:
    """Return the attributes of options `--set name=value`. The value of a list, map or number of the contract
    is read as JSON. The value of a template variable is read as JSON if it is valid JSON, or else as a text.
    Raises Refused, which names the option."""
    contract = attributes_of(channel)
    try:
        return {
            name: contract.value(name, text) if contract.known(name) else variable_of(text)
            for name, text in pairs(sets, option).items()
        }
    except Invalid as fault:
        raise Refused(f"{option} {fault}.") from None


def text_of(channel: str, name: str, value: Any) -> str:
    """Return a text from which `set_values` makes this value again. A variable with the text 42 is quoted,
    because `set_values` would otherwise make a number of it."""
    plain = isinstance(value, str) and (
        attributes_of(channel).known(name) or variable_of(value) == value != ""
    )
    return value if plain else _written.encode(value).decode()


def variable_of(text: str) -> Any:
    """Return the value of a variable that an operator typed: decoded if it is valid JSON, or else the
    text."""
    try:
        value = _variables.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text
    # A template renders the number 9.50 as 9.5. So a number that would change its form stays the text that
    # the operator typed.
    return text if isinstance(value, Decimal) and f"{value.normalize():f}" != text else value


def read_item(place: str) -> dict[str, Any]:
    """Read the item in a file, or on standard input if `place` is STDIN. Raises Refused if it cannot be read
    or is not a JSON object."""
    name = "standard input" if place == STDIN else place
    try:
        text = sys.stdin.read() if place == STDIN else Path(place).read_text("utf-8-sig")
        return decode(text)
    except OSError as error:
        raise Refused(f"{name} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise Refused(f"{name} is not UTF-8; save it as UTF-8.") from None
    except Malformed:
        raise Refused(f"{name}: {_fault(text)}") from None


def _fault(text: str) -> str:
    """Describe the error in a text that is not a JSON object, with its line and column. The description does
    not quote the text."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        return f"line {error.lineno}, column {error.colno}: is not JSON ({error.msg})."
    except ValueError:
        return "is not JSON."
    several = isinstance(value, list)
    hint = "; for several messages, use mailroom messages import with JSON lines" if several else ""
    return f"is not a JSON object{hint}."


def _takes_text(type_: Any) -> bool:
    try:
        msgspec.convert("text", type_)
    except msgspec.ValidationError:
        return False
    return type_ is not Any


class Rules(Struct, frozen=True, kw_only=True, rename="upper"):
    """Rules of a deployed stage for items. Times are in seconds.

    The rules are read from the environment variables of the HTTP API's function, and not from cdk.json,
    because the stage may have been deployed with other settings.
    """

    mailbox_table: str
    payload_bucket: str
    lanes: dict[str, list[str]]
    callback_schemes: list[str]
    callback_ports: list[int]
    default_region: str = ""
    mailbox_ttl_seconds: float = 0
    """Time for which the mailbox stores an item; 0 if items never expire."""
    payload_ttl_seconds: float
    mail_senders: list[str] = []
    fax_senders: list[str] = []
    push_applications: list[str] | None = None
    templates_bucket: str = ""
    unknown: Literal["allow", "refuse"] = "allow"

    def validator(self, s3: "S3Client") -> "Validator":
        """Return a validator of items by the stage's rules. It makes no requests to AWS."""
        # Imported here, because commands that only read do not need it.
        from mailroom.content.payloads import Payloads
        from mailroom.dispatch.dispatcher import Validator

        return Validator(
            self.contracts(),
            self.lanes,
            payloads=Payloads(s3, self.payload_bucket),
            callbacks=UrlPolicy(schemes=self.callback_schemes, ports=self.callback_ports),
            waiting=UNDELAYED & self.lanes.keys(),
            strict=self.unknown == "refuse",
        )

    def contracts(self) -> dict[str, type[Message]]:
        """Return the contracts of the stage's channels."""
        return contracts_of(self.default_region, self.push_applications)

    def previews(self, s3: "S3Client") -> "Previews":
        """Return an object that renders messages like the stage's senders. It uses the templates of this
        folder and the published templates of the stage."""
        # Imported here, because its libraries take 100 ms, which would delay --help.
        from mailroom.channels.preview import Previews

        return Previews.of(self, TEMPLATES, s3)

    def writer(self, dynamodb: "DynamoDBClient", s3: "S3Client") -> "MailboxWriter":
        """Return a writer that puts items like the stage's HTTP API. The content of an item that is too large
        for DynamoDB goes into the payload bucket."""
        # Imported here, because commands that only read do not need it.
        from mailroom.mailbox import MailboxWriter, Oversize

        oversize = Oversize(s3, lambda: self.payload_bucket, self.payload_ttl_seconds)
        return MailboxWriter(dynamodb, self.mailbox_table, self.mailbox_ttl_seconds, oversize=oversize)


def rules_of(session: "boto3.Session", stage: str) -> Rules:
    """Return the rules of a deployed stage. Raises Refused if the stage is not deployed, and botocore's
    errors."""
    return function_settings(session.client("lambda"), stage_name(stage, "messages-api"), Rules)
