"""Drafts: the items for a chunk of people, before they are put into the mailbox."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct, structs

from mailroom.campaigns.audience import Connections, Recipient, Recipients, portable
from mailroom.campaigns.definition import Composed, Definition, Module, Modules
from mailroom.campaigns.queue_bodies import Chunk
from mailroom.clock import epoch, iso
from mailroom.environment import COMPOSE_KEPT_BACK_SECONDS
from mailroom.errors import Invalid
from mailroom.message.message import Message, mistakes, parse
from mailroom.recipients.choices import Blocked, Preferences, opted_out
from mailroom.telemetry import logger

Item = dict[str, Any]

ADDRESS = frozenset({"to", "email", "platform", "time_zone", "locale"})
"""Attributes of a message that a column of an audience may set. A column with the name of another attribute
(`bcc`, `headers`) is dropped, because the author of a file may not be authorized to set it. All other columns
are variables of the template. An empty cell in such a column counts as missing."""

COPIES = frozenset({"cc", "bcc"})


class Draft(Struct, frozen=True):
    """Draft of the item for one person."""

    key: str
    """Key of the person in the audience."""
    item: Item
    """Item for the mailbox."""
    blocked: Blocked | None = None
    """Reason why the item will not be put into the mailbox."""


class Drafts(Struct, frozen=True):
    """Drafts for a chunk of people."""

    drafts: Sequence[Draft]
    left_out: Sequence[str] = ()
    """Keys of people for whom the campaign's module composed no message."""
    failed: Sequence[str] = ()
    """Keys of people for whom the module raised an error, composed a value that a message cannot hold, or was
    not called in time."""


class Drafter(Struct, frozen=True):
    """Creates the drafts for chunks of people."""

    modules: Modules
    preferences: Preferences
    contracts: Mapping[str, type[Message]]
    """Contracts of the stage's channels."""
    databases: Connections | None = None

    def drafts(self, definition: Definition, chunk: Chunk, remaining: Callable[[], int]) -> Drafts:
        """Return the drafts of a chunk. `remaining` is Lambda's `get_remaining_time_in_millis`. Raises
        UnprocessedKeys, and an error of the campaign's module that affects all people."""
        composed, failed = self._composed(definition, chunk, remaining)
        left_out = [person.key for person in chunk.recipients if person.key not in {*composed, *failed}]
        contract, drafts = self.contracts[definition.channel], list[Draft]()
        for person in chunk.recipients:
            if (key := person.key) in composed:
                try:
                    item = item_of(contract, definition, chunk, person, composed[key])
                    drafts.append(Draft(key, item))
                except Invalid as fault:
                    logger.warning("compose returned an invalid attribute", key=key, reason=str(fault))
                    failed.append(key)
        return Drafts([*self._without_opt_outs(drafts)], left_out, failed)

    def _composed(
        self, definition: Definition, chunk: Chunk, remaining: Callable[[], int]
    ) -> tuple[Composed, list[str]]:
        """Return the attributes that the module composes, and the keys of people for whom it fails."""
        try:
            return self._ask(definition, chunk, chunk.recipients), []
        except Exception as error:
            if len(chunk.recipients) == 1 or isinstance(error, Invalid) or is_outage(error):
                raise
            logger.warning("compose failed for a chunk; it is called for each person", exc_info=True)
        return self._one_by_one(definition, chunk, remaining)

    def _one_by_one(
        self, definition: Definition, chunk: Chunk, remaining: Callable[[], int]
    ) -> tuple[Composed, list[str]]:
        """Call the module for each person, so that a person for whom it fails does not delay the others."""
        composed: dict[str, Mapping[str, Any]] = {}
        failed: list[str] = []
        for person in chunk.recipients:
            if remaining() < COMPOSE_KEPT_BACK_SECONDS * 1000:
                failed.append(person.key)
                continue
            try:
                composed.update(self._ask(definition, chunk, [person]))
            except Exception as error:
                if is_outage(error):
                    raise
                logger.warning("compose failed", key=person.key, error=type(error).__name__)
                failed.append(person.key)
        if len(failed) == len(chunk.recipients):
            raise RuntimeError(f"compose failed, or had no time left, for each of {len(failed)} people")
        return composed, failed

    def _ask(self, definition: Definition, chunk: Chunk, people: Sequence[Recipient]) -> Composed:
        recipients = Recipients(people, chunk.run, chunk.scheduled_at, self.databases)
        composed = self.modules.compose(definition, recipients)
        return {person.key: {} for person in people} if composed is None else composed

    def _without_opt_outs(self, drafts: Sequence[Draft]) -> Iterator[Draft]:
        """Yield the drafts; a draft whose recipients have all opted out is marked as blocked."""
        pairs = {draft.key: _pairs(draft.item, self.contracts) for draft in drafts}
        of_all = [pair for of_draft in pairs.values() for pair in of_draft]
        opt_outs = self.preferences.find(of_all) if of_all else {}
        for draft in drafts:
            choices = [opt_outs[pair] for pair in pairs[draft.key] if pair in opt_outs]
            # If only some of a message's recipients have opted out, the sender function leaves them out.
            if choices and len(choices) == len(pairs[draft.key]):
                draft = structs.replace(draft, blocked=opted_out(choices[0]))
            yield draft


def _pairs(item: Item, contracts: Mapping[str, type[Message]]) -> list[tuple[str, str]]:
    """Return the recipients of a message, each with the message's topic. The list is empty for a message
    without a topic, and for an invalid item: dispatch refuses this item, and writes the reason into the
    ledger."""
    try:
        message = parse(item, contracts)
    except Invalid:
        return []
    return [] if message.topic is None else [(to, message.topic) for to in message.addressees]


def item_of(
    contract: type[Message],
    definition: Definition,
    chunk: Chunk,
    recipient: Recipient,
    composed: Mapping[str, Any],
) -> Item:
    """Return the item for a person. Its attributes come from the audience, the campaign's settings, the
    campaign's module, and the fixed attributes of the campaign; each source overrides those before it. The id
    lacks the secret suffix that a run adds (see `Run.id_of`). Raises Invalid for attributes that a module may
    not compose."""
    reserved = _names(contract) - ADDRESS
    columns = {
        name: value
        for name, value in recipient.attributes.items()
        if name not in reserved and (value != "" or name not in ADDRESS)
    }
    written = _portable(definition, composed)
    fixed: Item = {
        "id": f"{chunk.campaign}#{chunk.run}#{recipient.key}",
        "event_type": definition.channel,
        "lane": definition.lane,
    }
    if columns_alike := mistakes(contract, columns):
        fixed["audience_columns"] = sorted(columns_alike)
    if definition.topic is not None:
        fixed["topic"] = definition.topic
    if definition.window is not None:
        fixed["window"] = definition.window
    if definition.unless is not None and (
        other_id := _value_of(definition, recipient, definition.unless.column)
    ):
        status = [*definition.unless.status]
        fixed["unless"] = {"id": f"{other_id}", "event_type": definition.unless.event_type, "status": status}
        fixed["send_at"] = written.get("send_at") or chunk.scheduled_at
    if (expires := expiry(definition, chunk.scheduled_at)) is not None:
        fixed["expires_at"] = iso(expires)
    return {**columns, **definition.attributes, **written, **fixed}


def _value_of(definition: Definition, recipient: Recipient, column: str) -> Any:
    """Return a recipient's value of a column. The key is not always among the recipient's attributes (see
    `Rows.add`), so it is returned separately."""
    audience = definition.audience
    is_key = not isinstance(audience, Module) and audience.key == column
    return recipient.key if is_key else recipient.attributes.get(column)


def _portable(definition: Definition, composed: Mapping[str, Any]) -> Item:
    """Return the attributes from a campaign's module, converted for JSON: times to ISO 8601, UUIDs to
    text."""
    field = f"{definition.module}: compose"
    if not isinstance(composed, Mapping):
        raise Invalid(field, f"returned {type(composed).__name__} for a key; use a mapping of attributes")
    if definition.topic is not None and (copies := COPIES & composed.keys()):
        # A copy would contain the opt-out link of the other recipient.
        raise Invalid(
            field,
            f"leave out {' and '.join(sorted(copies))}: a mail with a topic has one recipient",
        )
    item: Item = {}
    for name, value in composed.items():
        try:
            item[name] = portable(value)
        except (ValueError, RecursionError) as fault:
            raise Invalid(field, f"attribute {name:.60} {fault}") from None
    return item


@cache
def _names(contract: type[Message]) -> frozenset[str]:
    return frozenset(attribute.encode_name for attribute in structs.fields(contract))


def expiry(definition: Definition, scheduled_at: str) -> float | None:
    """Return the time in epoch seconds from which messages of a run are not sent any more, or None."""
    if definition.expires_after_hours is None:
        return None
    return epoch(scheduled_at) + definition.expires_after_hours * 3600


def is_outage(error: Exception) -> bool:
    """Return whether the error is a temporary error of the network, a database or AWS, and not an error that
    concerns one person. A general OSError may concern one person, such as a missing file (404)."""
    if isinstance(error, (ConnectionError, TimeoutError, BotoCoreError, ClientError)):
        return True
    # Only a process that has loaded psycopg can have raised its errors, and psycopg takes a while to load.
    psycopg: Any = sys.modules.get("psycopg")
    return psycopg is not None and isinstance(error, psycopg.OperationalError)
