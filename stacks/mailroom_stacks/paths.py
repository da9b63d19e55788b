"""Paths of the package's own files, and of the project that it deploys."""

import sys
from pathlib import Path

import mailroom

STACKS = Path(__file__).parent
LIBRARY = Path(mailroom.__file__).parents[1]
"""Folder of the functions' library."""
_SHIPPED = STACKS / "lambdas"
LAMBDAS = _SHIPPED if _SHIPPED.is_dir() else LIBRARY
"""Folder of handlers and their requirements: a part of this package in the wheel, beside the library in the
repository."""


def _project() -> Path:
    """Return the nearest folder with a cdk.json, from here upwards; without one, the folder of this
    interpreter's environment, as `.venv` lies in a project."""
    here = Path.cwd()
    above = (folder for folder in (here, *here.parents) if (folder / "cdk.json").is_file())
    return next(above, Path(sys.prefix).parent)


PROJECT = _project()
"""Folder of cdk.json: a team's own, or the repository."""
CDK_JSON = PROJECT / "cdk.json"
TEMPLATES = PROJECT / "templates"
CAMPAIGNS = PROJECT / "campaigns"
CHANNELS = PROJECT / "channels"
"""Channels of the project's own."""
CAMPAIGN_FILE = "campaign.toml"
"""The settings of a campaign, in its folder."""
DOT_LOCAL = PROJECT / ".local"
"""Folder of files that can be made again."""
BUNDLES = DOT_LOCAL / "bundles"
ASSEMBLIES = DOT_LOCAL / "assemblies"
