"""Builds the audiences of campaigns from their definitions, and the access to the stage's databases."""

from collections.abc import Mapping

from msgspec import Struct

from mailroom.aws import clients
from mailroom.campaigns.audience import Audience, Connections, Found, Page, Rows
from mailroom.campaigns.definition import Definition, File, Modules, Postgresql
from mailroom.environment import DatabaseSettings

KEY = "(key)"
"""Column name in faults about the key, if the audience comes from a module, which does not use a key
column."""


def databases_of(settings: Mapping[str, DatabaseSettings]) -> Connections | None:
    """Return the databases of the stage, or None if the settings contain none. In that case psycopg is not
    imported."""
    if not settings:
        return None
    from mailroom.campaigns.databases import Databases

    return Databases(settings, clients.secretsmanager())


def audience_of(modules: Modules, definition: Definition) -> Audience:
    """Return the audience of a campaign."""
    optional = () if definition.unless is None else (definition.unless.column,)
    # Only campaigns with a query import psycopg, which takes longer to load than all other modules.
    match definition.audience:
        case Postgresql() as audience:
            from mailroom.campaigns.postgresql import PostgresqlAudience

            return PostgresqlAudience(audience, optional)
        case File() as audience:
            from mailroom.campaigns.file_audience import FileAudience

            return FileAudience(audience, clients.s3(), optional)
        case audience:
            return _ModuleAudience(modules, definition, audience.columns)


class _ModuleAudience(Struct, frozen=True):
    """Audience that the campaign's own module returns."""

    modules: Modules
    definition: Definition
    columns: tuple[str, ...]

    def page(self, page: Page) -> Found:
        """Return a page of people from the module, checked by the same rules as the entries of a file."""
        answer = self.modules.recipients(self.definition, page)
        rows = Rows(KEY, self.columns)
        for number, person in enumerate(answer.recipients, 1):
            rows.add(f"person {number} of a page", {**person.attributes, KEY: person.key})
        for person in rows.recipients:
            # `Rows` needs the key among the attributes, but the key is not an attribute that the module
            # returned.
            del person.attributes[KEY]
        return Found(rows.recipients, answer.cursor, [*answer.faults, *rows.faults])
