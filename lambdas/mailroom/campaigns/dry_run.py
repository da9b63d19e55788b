"""A dry run: what a campaign would do, asked by an operator page by page; nothing is written or queued."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from mailroom.campaigns.audience import Connections, Cursor, Page
from mailroom.campaigns.bodies import Chunk
from mailroom.campaigns.chunks import chunked
from mailroom.campaigns.collector import Source
from mailroom.campaigns.definition import Definition
from mailroom.campaigns.drafts import Drafter
from mailroom.campaigns.run import MAX_FAULTS, checked
from mailroom.errors import Invalid

_encoder = msgspec.json.Encoder(decimal_format="number")


class Asked(Struct, frozen=True):
    """One page of a campaign, and how many people of it to show."""

    campaign: str
    run: str
    scheduled_at: str
    cursor: Cursor = None
    samples: int = 0


def counted(
    request: Mapping[str, Any],
    campaigns: Mapping[str, Definition],
    source: Source,
    databases: Connections | None,
) -> dict[str, Any]:
    """How many people a page has, what is wrong with others, the next page's cursor (None: no more), and a
    few of its people. Raises Invalid for a campaign that is not deployed, Malformed for a bad run."""
    asked = msgspec.convert(request, Asked)
    definition = _known(campaigns, asked.campaign)
    page = Page(asked.cursor, definition.page_size, checked(asked.run), asked.scheduled_at, databases)
    found = source(definition).page(page)
    chunks, too_large = chunked(found.recipients, definition.recipients_per_message)
    faults = [*found.faults, *too_large]
    people = [each for chunk in chunks for each in chunk]
    return {
        "recipients": len(people),
        "cursor": found.cursor,
        "refused": len(faults),
        "faults": [str(each) for each in faults[:MAX_FAULTS]],
        "samples": _as_json(people[: asked.samples]),
    }


def composed(
    request: Mapping[str, Any],
    campaigns: Mapping[str, Definition],
    drafter: Drafter,
    remaining: Callable[[], int],
) -> dict[str, Any]:
    """The items that some people would get; who has opted out, who is left out, and for whom the campaign's
    code fails, by their keys. Raises Invalid for a campaign that is not deployed."""
    chunk = msgspec.convert(request, Chunk)
    drafted = drafter.drafts(_known(campaigns, chunk.campaign), chunk, remaining)
    return {
        "items": _as_json([each.item for each in drafted.drafts if each.unwanted is None]),
        "opted_out": [each.key for each in drafted.drafts if each.unwanted is not None],
        "left_out": [*drafted.left_out],
        "failed": [*drafted.failed],
    }


def _as_json(value: Any) -> Any:
    """As a queue message would carry it: decimals as numbers."""
    return msgspec.json.decode(_encoder.encode(value))


def _known(campaigns: Mapping[str, Definition], name: str) -> Definition:
    if name not in campaigns:
        raise Invalid("campaign", f"{name!r:.60} is not deployed; there are: {', '.join(campaigns)}")
    return campaigns[name]
