"""What a campaign is, as the stack wrote it into the bundle: `campaigns.json`, one entry a campaign.

The stack has checked all of it against the stage's settings; here it is only read.
"""

from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct


class Postgresql(Struct, frozen=True, tag_field="kind", tag="postgresql"):
    """The rows of a `query` of the `database` of that name, in the order of `key`, one of its columns."""

    database: str
    query: str
    key: str
    columns: tuple[str, ...] = ()
    """Columns that may not be empty; of every kind."""


class Csv(Struct, frozen=True, tag_field="kind", tag="csv"):
    """The lines of a CSV file with a header, at `location` (s3://bucket/key)."""

    location: str
    key: str
    columns: tuple[str, ...] = ()
    delimiter: str = ","


class JsonLines(Struct, frozen=True, tag_field="kind", tag="jsonl"):
    """The lines of a file at `location` (s3://bucket/key), each a JSON object."""

    location: str
    key: str
    columns: tuple[str, ...] = ()


class Table(Struct, frozen=True, tag_field="kind", tag="dynamodb"):
    """The items of a DynamoDB table, or of an `index` of it."""

    table: str
    key: str
    columns: tuple[str, ...] = ()
    index: str | None = None


class Module(Struct, frozen=True, tag_field="kind", tag="module"):
    """What the campaign's own `recipients(page)` hands out."""

    columns: tuple[str, ...] = ()


Audience = Postgresql | Csv | JsonLines | Table | Module


class Definition(Struct, frozen=True):
    """One campaign. `module` is the path of its own Python file, from the bundle's root."""

    name: str
    channel: str
    audience: Audience
    topic: str | None = None
    attributes: dict[str, Any] = {}
    """Of every message: `template`, `from`, …; what its module composes goes before them."""
    lane: str = "bulk"
    page_size: int = 1000
    recipients_per_message: int = 50
    """How many people one message of the audience queue holds: what is composed, and retried, together."""
    max_pages: int = 100_000
    expires_after_hours: float | None = None
    module: str | None = None


def read(path: Path) -> dict[str, Definition]:
    """The campaigns of a bundle by name. Raises msgspec.ValidationError, OSError."""
    return msgspec.json.decode(path.read_bytes(), type=dict[str, Definition])
