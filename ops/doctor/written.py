"""What cdk.json says of a stage, beside which what is deployed is held."""

import json
from dataclasses import dataclass, field
from pathlib import Path

from ops.plan.lanes import CDK_JSON, Lane, Stages
from stacks.settings.load import load
from stacks.settings.sentences import SettingsError
from stacks.settings.stage import Settings


@dataclass(frozen=True)
class Written:
    """A stage's settings and lanes; without them `trouble` says why."""

    settings: Settings | None = None
    lanes: list[Lane] = field(default_factory=list)
    trouble: str = "No settings were read."


def written(stage: str, path: Path = CDK_JSON) -> Written:
    """A stage's, as the file has it. Never raises for what stands there: a stage can be looked at from a
    machine that has other settings, or none."""
    try:
        context = json.loads(path.read_text())["context"]["mailroom"]
        settings = load(context, stage)
        return Written(settings, _lanes(Stages(context), settings), "")
    except SettingsError as error:
        return Written(trouble=f"{error}")
    except (OSError, ValueError, KeyError) as error:
        return Written(trouble=f"{path.name} could not be read: {type(error).__name__}.")


def _lanes(stages: Stages, settings: Settings) -> list[Lane]:
    names = [(channel, lane) for channel, row in settings.channels.items() for lane in row.lanes]
    names += [("fax", "normal")] if settings.fax else []
    return [stages.lane(settings.stage, *each) for each in [*names, ("webhook", "normal")]]
