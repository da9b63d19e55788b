"""Where the package finds what it deploys, and the project that it deploys it for."""

import sys
from pathlib import Path

import mailroom

STACKS = Path(__file__).parent
LIBRARY = Path(mailroom.__file__).parents[1]
"""The folder that the functions' library lies in."""
_SHIPPED = STACKS / "lambdas"
LAMBDAS = _SHIPPED if _SHIPPED.is_dir() else LIBRARY
"""Handlers and their requirements: in the wheel they are a part of this package, in the repository they lie
beside the library."""


def _project() -> Path:
    """The nearest folder with a cdk.json, from here upwards; without one, the folder that holds the
    environment of this interpreter, as `.venv` lies in a project."""
    here = Path.cwd()
    above = (each for each in (here, *here.parents) if (each / "cdk.json").is_file())
    return next(above, Path(sys.prefix).parent)


PROJECT = _project()
"""The folder of cdk.json: a team's own, or the repository."""
CDK_JSON = PROJECT / "cdk.json"
TEMPLATES = PROJECT / "templates"
CAMPAIGNS = PROJECT / "campaigns"
CHANNELS = PROJECT / "channels"
"""Channels of the project's own."""
CAMPAIGN_FILE = "campaign.toml"
"""The settings of a campaign, in its folder."""
DOT_LOCAL = PROJECT / ".local"
"""What is made here and can be made again."""
BUNDLES = DOT_LOCAL / "bundles"
ASSEMBLIES = DOT_LOCAL / "assemblies"
