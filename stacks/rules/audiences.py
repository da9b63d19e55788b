"""Rules of a campaign's audience: each kind needs its own settings, and has no use for the others'."""

from collections.abc import Iterator

from stacks.campaign_files import MODULE, EnabledCampaign
from stacks.settings import Settings

NEEDED = {
    "postgresql": ("database", "query", "key"),
    "csv": ("location", "key"),
    "jsonl": ("location", "key"),
    "dynamodb": ("table", "key"),
    "module": (),
}
"""What each kind cannot do without."""
USEFUL = {"csv": ("delimiter",), "dynamodb": ("index",)}
EVERY = ("kind", "columns")


def broken_audience(settings: Settings, campaign: EnabledCampaign) -> Iterator[str]:
    """Rules of the section `audience`, and of the databases that it and the campaign's own code ask."""
    yield from _settings(campaign)
    if campaign.chosen.audience.kind == "module" and campaign.module is None:
        yield (
            f"{campaign.key('audience.kind')}: 'module' needs campaigns/{campaign.name}/{MODULE} with "
            "recipients(page); add it, or use another kind."
        )
    if campaign.chosen.databases and campaign.module is None:
        yield (
            f"{campaign.key('databases')}: are for campaigns/{campaign.name}/{MODULE}, and there is none; "
            "remove them."
        )
    named = [("audience.database", campaign.chosen.audience.database)]
    named += [("databases", each) for each in campaign.chosen.databases]
    for path, name in named:
        if name is not None and name not in settings.databases:
            known = ", ".join(settings.databases) or "none yet"
            yield (
                f"{campaign.key(path)}: {name!r} is none of mailroom.{settings.stage}.databases; add it "
                f"there, or use one that is there: {known}."
            )


def _settings(campaign: EnabledCampaign) -> Iterator[str]:
    audience = campaign.chosen.audience
    needed, useful = NEEDED[audience.kind], USEFUL.get(audience.kind, ())
    for name in needed:
        if getattr(audience, name) is None:
            yield f"{campaign.key(f'audience.{name}')}: is missing; {audience.kind} needs it."
    for name in type(audience).model_fields:
        if name not in (*needed, *useful, *EVERY) and getattr(audience, name) is not None:
            yield (
                f"{campaign.key(f'audience.{name}')}: is of no use to {audience.kind}; remove it, or use "
                "another kind."
            )
