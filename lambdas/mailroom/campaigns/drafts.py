"""Drafts: a chunk of people as their messages would be, with nothing written yet."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, structs

from mailroom.campaigns.audience import Connections, Recipient, Recipients
from mailroom.campaigns.bodies import Chunk
from mailroom.campaigns.definition import Definition
from mailroom.campaigns.items import Item, Items
from mailroom.campaigns.modules import Composed, Modules
from mailroom.campaigns.outages import is_outage
from mailroom.errors import Invalid
from mailroom.message.message import Message, parse
from mailroom.recipients.choices import Preferences, Unwanted, opted_out
from mailroom.telemetry import logger

LEFT_MILLISECONDS = 10_000
"""What is kept of a function's time for putting what was composed."""


class Draft(Struct, frozen=True):
    """One person's item. `unwanted`: why it will not be put."""

    key: str
    item: Item
    unwanted: Unwanted | None = None


class Drafts(Struct, frozen=True):
    """A chunk as it was composed. `left_out` are the keys of those whom the campaign's module left out,
    `failed` of those for whom it raised, said what no message can hold, or was not asked in time."""

    drafts: Sequence[Draft]
    left_out: Sequence[str] = ()
    failed: Sequence[str] = ()


class Drafter:
    """Composes for one stage: `contracts` are those of its channels."""

    def __init__(
        self,
        modules: Modules,
        items: Items,
        preferences: Preferences,
        contracts: Mapping[str, type[Message]],
        databases: Connections | None = None,
    ) -> None:
        self._modules = modules
        self._items = items
        self._preferences = preferences
        self._contracts = contracts
        self._databases = databases

    def drafts(self, definition: Definition, chunk: Chunk, remaining: Callable[[], int]) -> Drafts:
        """A chunk's drafts; `remaining` is Lambda's `get_remaining_time_in_millis`. Raises what the
        campaign's module raises for all of its people, and UnprocessedKeys."""
        composed, failed = self._composed(definition, chunk, remaining)
        drafts: list[Draft] = []
        left_out: list[str] = []
        for each in chunk.recipients:
            if each.key not in composed:
                left_out.append(each.key)
                continue
            try:
                item = self._items.item(definition, chunk, each, composed[each.key])
            except Invalid as fault:
                logger.warning("compose said what no message can hold", key=each.key, reason=str(fault))
                failed.append(each.key)
                continue
            drafts.append(Draft(each.key, item))
        gone = set(failed)
        return Drafts([*self._judged(drafts)], [key for key in left_out if key not in gone], failed)

    def _composed(
        self, definition: Definition, chunk: Chunk, remaining: Callable[[], int]
    ) -> tuple[Composed, list[str]]:
        """What the module says of each; and the keys of those whom it cannot say anything of."""
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
        """One whom the module cannot cope with must not keep the others waiting."""
        composed: dict[str, Mapping[str, Any]] = {}
        failed: list[str] = []
        for each in chunk.recipients:
            if remaining() < LEFT_MILLISECONDS:
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
        recipients = Recipients(people, chunk.run, chunk.scheduled_at, self._databases)
        composed = self._modules.compose(definition, recipients)
        return {each.key: {} for each in people} if composed is None else composed

    def _judged(self, drafts: Sequence[Draft]) -> Iterator[Draft]:
        """The drafts, with the opt-outs of all asked for in one read."""
        wanted = {draft.key: _pairs(draft.item, self._contracts) for draft in drafts}
        pairs = [pair for each in wanted.values() for pair in each]
        found = self._preferences.find(pairs) if pairs else {}
        for draft in drafts:
            choices = [found[pair] for pair in wanted[draft.key] if pair in found]
            # Of several whom one message is for, the sender leaves out who has opted out.
            if choices and len(choices) == len(wanted[draft.key]):
                draft = structs.replace(draft, unwanted=opted_out(choices[0]))
            yield draft


def _pairs(item: Item, contracts: Mapping[str, type[Message]]) -> list[tuple[str, str]]:
    """Whom a message is for, with its topic; nothing where it has none. A bad item is put as it is: dispatch
    refuses it and says why, in the ledger."""
    try:
        message = parse(item, contracts)
    except Invalid:
        return []
    return [] if message.topic is None else [(each, message.topic) for each in message.addressees]
