"""Paths of the package's own files, and of the project that it deploys."""

import sys
from pathlib import Path

import mailroom

STACKS = Path(__file__).parent
LIBRARY = Path(mailroom.__file__).parents[1]
"""Folder that contains the functions' library `mailroom`."""
_SHIPPED = STACKS / "lambdas"
LAMBDAS = _SHIPPED if _SHIPPED.is_dir() else LIBRARY
"""Folder of handlers and their requirements: in the wheel a folder of this package, in the repository the
folder of the library."""


def _project() -> Path:
    """Return the current folder or its nearest parent that contains a cdk.json. If there is none, return the
    parent of this interpreter's environment, because `.venv` is usually in the project's folder."""
    here = Path.cwd()
    above = (folder for folder in (here, *here.parents) if (folder / "cdk.json").is_file())
    return next(above, Path(sys.prefix).parent)


PROJECT = _project()
"""Folder of cdk.json: a team's project, or the repository."""
CDK_JSON = PROJECT / "cdk.json"
TEMPLATES = PROJECT / "templates"
CAMPAIGNS = PROJECT / "campaigns"
CHANNELS = PROJECT / "channels"
"""Folder of the project's own channels."""
CAMPAIGN_FILE = "campaign.toml"
"""Name of the file with the settings of a campaign, in the campaign's folder."""
DOT_LOCAL = PROJECT / ".local"
"""Folder of generated files, which can be deleted."""
BUNDLES = DOT_LOCAL / "bundles"
ASSEMBLIES = DOT_LOCAL / "assemblies"
