"""Where the people of each campaign come from, and the databases that it may ask."""

from collections.abc import Mapping

from msgspec import Struct

from mailroom.aws import clients
from mailroom.campaigns.audience import Audience, Connections, Found, Page, Rows
from mailroom.campaigns.definition import Definition, File, Modules, Postgresql
from mailroom.environment import DatabaseSettings

KEY = "(key)"
"""What a key is called that stands in no column."""


def databases_of(settings: Mapping[str, DatabaseSettings]) -> Connections | None:
    """The stage's databases; None: the settings name none, and the time to load psycopg is saved."""
    if not settings:
        return None
    from mailroom.campaigns.databases import Databases

    return Databases(settings, clients.secretsmanager())


def audience_of(modules: Modules, definition: Definition) -> Audience:
    """A campaign's audience. Raises Invalid where its definition cannot be followed."""
    optional = () if definition.unless is None else (definition.unless.column,)
    # A kind is imported where a campaign has it: psycopg takes longer to load than all the rest.
    match definition.audience:
        case Postgresql() as asked:
            from mailroom.campaigns.postgresql import PostgresqlAudience

            return PostgresqlAudience(asked, optional)
        case File() as asked:
            from mailroom.campaigns.file_audience import FileAudience

            return FileAudience(asked, clients.s3(), optional)
        case asked:
            return _ModuleAudience(modules, definition, asked.columns)


class _ModuleAudience(Struct, frozen=True):
    """What the campaign's own module hands out."""

    modules: Modules
    definition: Definition
    columns: tuple[str, ...]

    def page(self, page: Page) -> Found:
        """The module's people, held to the same rules as those of a file."""
        found = self.modules.recipients(self.definition, page)
        rows = Rows(KEY, self.columns)
        for at, each in enumerate(found.recipients, 1):
            rows.add(f"person {at} of a page", {**each.attributes, KEY: each.key})
        for each in rows.recipients:
            del each.attributes[KEY]  # the module did not give it as an attribute
        return Found(rows.recipients, found.cursor, [*found.faults, *rows.faults])
