"""Drafts: a chunk of people as their messages would be, with nothing written yet."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct, structs

from mailroom.campaigns.audience import Connections, Recipient, Recipients, portable
from mailroom.campaigns.bodies import Chunk
from mailroom.campaigns.definition import Composed, Definition, Module, Modules
from mailroom.clock import epoch, iso
from mailroom.environment import COMPOSE_KEPT_BACK_SECONDS
from mailroom.errors import Invalid
from mailroom.message.message import Message, mistakes, parse
from mailroom.recipients.choices import Blocked, Preferences, opted_out
from mailroom.telemetry import logger

Item = dict[str, Any]

ADDRESS = frozenset({"to", "email", "platform", "time_zone", "locale"})
"""Attributes of a message that an audience may give. Its other columns are variables, and a column named like
a further attribute (`bcc`, `headers`) is dropped: the author of a file need not be allowed to send. An empty
cell of these attributes counts as missing."""

COPIES = frozenset({"cc", "bcc"})


class Draft(Struct, frozen=True):
    """The item for one person."""

    key: str
    """Key of the person in the audience."""
    item: Item
    """Item for the mailbox."""
    blocked: Blocked | None = None
    """Reason why the item will not be put."""


class Drafts(Struct, frozen=True):
    """A chunk as it was composed. `left_out` are the keys of those whom the campaign's module left out,
    `failed` of those for whom it raised, composed what no message can hold, or was not asked in time."""

    drafts: Sequence[Draft]
    left_out: Sequence[str] = ()
    failed: Sequence[str] = ()


class Drafter(Struct, frozen=True):
    """Composes for one stage: `contracts` are those of its channels."""

    modules: Modules
    preferences: Preferences
    contracts: Mapping[str, type[Message]]
    databases: Connections | None = None

    def drafts(self, definition: Definition, chunk: Chunk, remaining: Callable[[], int]) -> Drafts:
        """A chunk's drafts; `remaining` is Lambda's `get_remaining_time_in_millis`. Raises what the
        campaign's module raises for all of its people, and UnprocessedKeys."""
        composed, failed = self._composed(definition, chunk, remaining)
        left_out = [each.key for each in chunk.recipients if each.key not in {*composed, *failed}]
        contract, drafts = self.contracts[definition.channel], list[Draft]()
        for each in chunk.recipients:
            if each.key in composed:
                try:
                    item = item_of(contract, definition, chunk, each, composed[each.key])
                    drafts.append(Draft(each.key, item))
                except Invalid as fault:
                    logger.warning(
                        "compose returned what no message can hold", key=each.key, reason=str(fault)
                    )
                    failed.append(each.key)
        return Drafts([*self._judged(drafts)], left_out, failed)

    def _composed(
        self, definition: Definition, chunk: Chunk, remaining: Callable[[], int]
    ) -> tuple[Composed, list[str]]:
        """What the module composes for each person, and the keys of those for whom it fails."""
        try:
            return self._ask(definition, chunk, chunk.recipients), []
        except Exception as error:
            if len(chunk.recipients) == 1 or isinstance(error, Invalid) or is_outage(error):
                raise
            logger.warning("compose failed for a chunk; each of it alone now", exc_info=True)
        return self._one_by_one(definition, chunk, remaining)

    def _one_by_one(
        self, definition: Definition, chunk: Chunk, remaining: Callable[[], int]
    ) -> tuple[Composed, list[str]]:
        """Ask for each person separately: one for whom the module fails must not keep the others waiting."""
        composed: dict[str, Mapping[str, Any]] = {}
        failed: list[str] = []
        for each in chunk.recipients:
            if remaining() < COMPOSE_KEPT_BACK_SECONDS * 1000:
                failed.append(each.key)
                continue
            try:
                composed.update(self._ask(definition, chunk, [each]))
            except Exception as error:
                if is_outage(error):
                    raise
                logger.warning("compose failed", key=each.key, error=type(error).__name__)
                failed.append(each.key)
        if len(failed) == len(chunk.recipients):
            raise RuntimeError(f"compose failed for each of {len(failed)} people")
        return composed, failed

    def _ask(self, definition: Definition, chunk: Chunk, people: Sequence[Recipient]) -> Composed:
        recipients = Recipients(people, chunk.run, chunk.scheduled_at, self.databases)
        composed = self.modules.compose(definition, recipients)
        return {each.key: {} for each in people} if composed is None else composed

    def _judged(self, drafts: Sequence[Draft]) -> Iterator[Draft]:
        """The drafts, with the opt-outs of all asked for in one read."""
        wanted = {draft.key: _pairs(draft.item, self.contracts) for draft in drafts}
        pairs = [pair for each in wanted.values() for pair in each]
        found = self.preferences.find(pairs) if pairs else {}
        for draft in drafts:
            choices = [found[pair] for pair in wanted[draft.key] if pair in found]
            # Of a message to several people, the sender leaves out those who have opted out.
            if choices and len(choices) == len(wanted[draft.key]):
                draft = structs.replace(draft, blocked=opted_out(choices[0]))
            yield draft


def _pairs(item: Item, contracts: Mapping[str, type[Message]]) -> list[tuple[str, str]]:
    """Whom a message is for, with its topic; nothing where it has none. A bad item is put as it is: dispatch
    refuses it and says why, in the ledger."""
    try:
        message = parse(item, contracts)
    except Invalid:
        return []
    return [] if message.topic is None else [(each, message.topic) for each in message.addressees]


def item_of(
    contract: type[Message],
    definition: Definition,
    chunk: Chunk,
    recipient: Recipient,
    composed: Mapping[str, Any],
) -> Item:
    """One person's item: what the audience has of them, then the campaign's settings, then what its module
    composed, and last what makes the item this campaign's, which none of these may set. Raises Invalid for
    what a module may not compose. The id is that of a dry run; a run adds what nobody can guess."""
    kept = _names(contract) - ADDRESS
    columns = {
        name: value
        for name, value in recipient.attributes.items()
        if name not in kept and (value != "" or name not in ADDRESS)
    }
    written = _portable(definition, composed)
    own: Item = {
        "id": f"{chunk.campaign}#{chunk.run}#{recipient.key}",
        "event_type": definition.channel,
        "lane": definition.lane,
    }
    if columns_alike := mistakes(contract, columns):
        own["audience_columns"] = sorted(columns_alike)
    if definition.topic is not None:
        own["topic"] = definition.topic
    if definition.window is not None:
        own["window"] = definition.window
    if definition.unless is not None and (
        other_id := _value_of(definition, recipient, definition.unless.column)
    ):
        status = [*definition.unless.status]
        own["unless"] = {"id": f"{other_id}", "event_type": definition.unless.event_type, "status": status}
        own["send_at"] = written.get("send_at") or chunk.scheduled_at
    if (expires := expiry(definition, chunk.scheduled_at)) is not None:
        own["expires_at"] = iso(expires)
    return {**columns, **definition.attributes, **written, **own}


def _value_of(definition: Definition, recipient: Recipient, column: str) -> Any:
    """Return a recipient's value of a column. The recipient's attributes lack the column of the keys if it
    has the name of an attribute that every message has."""
    audience = definition.audience
    is_key = not isinstance(audience, Module) and audience.key == column
    return recipient.key if is_key else recipient.attributes.get(column)


def _portable(definition: Definition, composed: Mapping[str, Any]) -> Item:
    """What a module composed, as JSON has it: times as ISO 8601, UUIDs as text."""
    where = f"{definition.module}: compose"
    if not isinstance(composed, Mapping):
        raise Invalid(where, f"returned {type(composed).__name__} for one; use a mapping of attributes")
    if definition.topic is not None and (others := COPIES & composed.keys()):
        # Then there would be no link for opting out: it would be both recipients'.
        raise Invalid(where, f"set {' and '.join(sorted(others))}; a mail with a topic goes to one alone")
    item: Item = {}
    for name, value in composed.items():
        try:
            item[name] = portable(value)
        except (ValueError, RecursionError) as fault:
            raise Invalid(where, f"attribute {name:.60} {fault}") from None
    return item


@cache
def _names(contract: type[Message]) -> frozenset[str]:
    return frozenset(each.encode_name for each in structs.fields(contract))


def expiry(definition: Definition, scheduled_at: str) -> float | None:
    """When the messages of a run of that time are sent no more, in epoch seconds; None: they always are."""
    if definition.expires_after_hours is None:
        return None
    return epoch(scheduled_at) + definition.expires_after_hours * 3600


def is_outage(error: Exception) -> bool:
    """Whether the fault is everybody's for the moment (the network, a database, AWS), and not one person's
    for good. Not every OSError is an outage: something may be missing (404) for one person only."""
    if isinstance(error, (ConnectionError, TimeoutError, BotoCoreError, ClientError)):
        return True
    # Only a process that has loaded psycopg can have raised its errors, and psycopg takes a while to load.
    psycopg: Any = sys.modules.get("psycopg")
    return psycopg is not None and isinstance(error, psycopg.OperationalError)
